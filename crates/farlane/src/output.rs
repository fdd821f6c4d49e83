//! Standard output and standard error that may be closed or full.
//!
//! `print!` and its kin of the standard library panic then, and a node would
//! die with its guests because somebody ended the `head` that read its log. The macros here have
//! their names and take their place in this crate: what cannot be written to standard error is
//! lost, and a fault of standard output is remembered until the command ends, which then fails.

use clap::builder::{PossibleValuesParser, TypedValueParser};
use report::FAIL;
use report::target::Target;
use std::env;
use std::ffi::OsString;
use std::fmt::{Arguments, Display};
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

/// Exit status of a command that is used in a wrong way, as that of clap.
const WRONG_USAGE: i32 = 2;

/// Ends the process because of a mistake in its options, before anything has begun: one line on
/// standard error.
pub fn wrong_usage<T>(failure: impl Display) -> T {
    error(format_args!("farlane: {failure}\n"));
    std::process::exit(WRONG_USAGE)
}

/// Says on standard error that something may not be as the user wants it.
pub fn warning(text: impl Display) {
    eprintln!("{} {text}", coloured(io::stderr().is_terminal(), "warning:", 33));
}

/// Says something on standard error that is worth knowing.
pub fn note(text: impl Display) {
    eprintln!("note: {text}");
}

/// A text for standard error, red where there are colours.
pub fn red(text: &str) -> String {
    coloured(io::stderr().is_terminal(), text, 31)
}

/// Tables for standard output: rows that end in FAIL have it in red where there are colours.
pub fn failures_in_red(tables: &str) -> String {
    let fail = coloured(io::stdout().is_terminal(), FAIL, 31);
    tables.replace(&format!("{FAIL}\n"), &format!("{fail}\n"))
}

/// With a colour of ECMA-48, 8.3.117 (SGR).
fn coloured(is_terminal: bool, text: &str, colour: u8) -> String {
    match has_colours(is_terminal, |name| env::var_os(name)) {
        true => format!("\x1b[{colour}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// Whether there are colours, by <https://no-color.org> and <https://bixense.com/clicolors>.
fn has_colours(is_terminal: bool, variable: impl Fn(&str) -> Option<OsString>) -> bool {
    let is_set = |name| variable(name).is_some_and(|value| !value.is_empty());
    let is_zero = |name| variable(name).is_some_and(|value| value == "0");
    let forced = is_set("CLICOLOR_FORCE") && !is_zero("CLICOLOR_FORCE");
    !is_set("NO_COLOR") && (forced || is_terminal && !is_zero("CLICOLOR"))
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
/// Ends the process if two options have the target `-`.
pub fn assign_stdout(json: bool, options: &[(&str, Option<&Target>)]) {
    let writers = options.iter().filter(|(_, target)| *target == Some(&Target::Stdout));
    let mut writers: Vec<&str> = writers.map(|(name, _)| *name).collect();
    if writers.is_empty() {
        return;
    }
    SUPPRESSED.store(true, Ordering::Relaxed);
    writers.extend(json.then_some("--json"));
    if writers.len() > 1 {
        wrong_usage(format!(
            "{} cannot share standard output; give a file to all but one",
            writers.join(" and ")
        ))
    }
}

/// The parser of an option whose values have names: clap lists them in help texts and errors.
pub fn one_of<T: Copy + Send + Sync + 'static, const N: usize>(
    values: [T; N],
    name: fn(T) -> &'static str,
) -> impl TypedValueParser<Value = T> {
    PossibleValuesParser::new(values.map(name))
        .map(move |text| values.into_iter().find(|one| name(*one) == text).expect("a value"))
}

/// A file that cannot be standard output, for the parser of options: there are others beside it, or
/// it is written back to front. The error says what is wrong with `-`.
pub fn file_only(text: &str) -> Result<PathBuf, String> {
    match text {
        "" => Err("expected the name of a file".into()),
        "-" => Err("a trace cannot go to standard output; write ./- for a file named -".into()),
        path => Ok(path.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_follow_terminal_and_environment() {
        for (terminal, variables, colours) in [
            (true, &[][..], true),
            (false, &[], false),
            (true, &[("NO_COLOR", "1")], false),
            (true, &[("NO_COLOR", "")], true),
            (true, &[("CLICOLOR", "0")], false),
            (true, &[("CLICOLOR", "1")], true),
            (false, &[("CLICOLOR", "1")], false),
            (false, &[("CLICOLOR_FORCE", "1")], true),
            (false, &[("CLICOLOR_FORCE", "0")], false),
            (true, &[("CLICOLOR", "0"), ("CLICOLOR_FORCE", "1")], true),
            (true, &[("NO_COLOR", "1"), ("CLICOLOR_FORCE", "1")], false),
        ] {
            let value = |name: &str| {
                let found = variables.iter().find(|(known, _)| *known == name);
                found.map(|(_, value)| OsString::from(value))
            };
            assert_eq!(has_colours(terminal, value), colours, "{terminal} {variables:?}");
        }
    }
}
