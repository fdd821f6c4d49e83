//! Standard output and standard error that may be closed or full.
//!
//! `print!` and its kin of the standard library panic then, and a node would
//! die with its guests because somebody ended the `head` that read its log. The macros here have
//! their names and take their place in this crate: what cannot be written to standard error is
//! lost, and a fault of standard output is remembered until the command ends, which then fails.

use report::target::Target;
use report::{Failure, Outcome};
use std::fmt::Arguments;
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first fault of standard output.
static FAULT: OnceLock<io::Error> = OnceLock::new();
/// Whether a document is written to standard output.
static SUPPRESSED: AtomicBool = AtomicBool::new(false);

/// As `print!` of the standard library; see the module.
macro_rules! print {
    ($($part:tt)*) => { $crate::output::out(format_args!($($part)*)) };
}

/// As `println!` of the standard library; see the module.
macro_rules! println {
    ($($part:tt)*) => { $crate::output::out(format_args!("{}\n", format_args!($($part)*))) };
}

/// As `eprint!` of the standard library; see the module.
macro_rules! eprint {
    ($($part:tt)*) => { $crate::output::error(format_args!($($part)*)) };
}

/// As `eprintln!` of the standard library; see the module.
macro_rules! eprintln {
    ($($part:tt)*) => { $crate::output::error(format_args!("{}\n", format_args!($($part)*))) };
}

/// Writes to standard output.
pub fn out(text: Arguments<'_>) {
    if !is_suppressed()
        && FAULT.get().is_none()
        && let Err(fault) = io::stdout().write_fmt(text)
    {
        let _ = FAULT.set(fault);
    }
}

/// Whether a document is written to standard output.
pub(crate) fn is_suppressed() -> bool {
    SUPPRESSED.load(Ordering::Relaxed)
}

/// A text for standard error, red on a terminal.
pub fn red(text: &str) -> String {
    coloured(text, 31)
}

/// A text for standard error, yellow on a terminal.
pub fn yellow(text: &str) -> String {
    coloured(text, 33)
}

/// With a colour of ECMA-48, 8.3.117 (SGR).
fn coloured(text: &str, colour: u8) -> String {
    match io::stderr().is_terminal() {
        true => format!("\x1b[{colour}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// Writes to standard error.
pub fn error(text: Arguments<'_>) {
    let _ = io::stderr().write_fmt(text);
}

/// At the end of a command: flushes standard output. A reader that closed the pipe is no error.
/// The error says what was wrong with standard output.
pub fn finish() -> Result<(), String> {
    let last = io::stdout().flush();
    let fault = FAULT.get().map_or(last.as_ref().err(), Some);
    match fault {
        Some(fault) if fault.kind() != ErrorKind::BrokenPipe => {
            Err(format!("standard output: {fault}"))
        }
        _ => Ok(()),
    }
}

/// Decides at the start of a command what is written to standard output: the document of the option
/// with the target `-`, else the command's own text or `--json`.
/// Fails if two options have the target `-`.
pub fn assign_stdout(json: bool, options: &[(&str, Option<&Target>)]) -> Outcome {
    let writers = options.iter().filter(|(_, target)| *target == Some(&Target::Stdout));
    let mut writers: Vec<&str> = writers.map(|(name, _)| *name).collect();
    if writers.is_empty() {
        return Ok(());
    }
    SUPPRESSED.store(true, Ordering::Relaxed);
    writers.extend(json.then_some("--json"));
    match writers[..] {
        [_] => Ok(()),
        _ => Err(Failure(format!(
            "{} cannot share standard output: only one of them may be -",
            writers.join(" and ")
        ))),
    }
}

/// A file that cannot be standard output, for the parser of options: there are others beside it, or
/// it is written back to front. The error says what is wrong with `-`.
pub fn file_only(text: &str) -> Result<PathBuf, String> {
    match text {
        "" => Err("a file is missing".into()),
        "-" => Err("a trace goes to a file, not to standard output; ./- is a file called -".into()),
        path => Ok(path.into()),
    }
}
