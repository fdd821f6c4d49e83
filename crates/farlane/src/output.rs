//! Standard output and standard error that may be closed or full.
//!
//! `print!` and similar macros of the standard library panic on write errors: a node, and with it
//! its guests, would end when the reader of its log ends. The macros of this module replace them in
//! this crate. They ignore errors of standard error. An error of standard output makes the command
//! fail at its end.

use crate::log;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use report::target::Target;
use report::{FAIL, Failure};
use std::env;
use std::ffi::OsString;
use std::fmt::{Arguments, Display};
use std::io::{self, ErrorKind, IsTerminal, Write};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

/// The first error of standard output.
static FAULT: OnceLock<io::Error> = OnceLock::new();
/// Whether text is suppressed because a document is written to standard output.
static SUPPRESSED: AtomicBool = AtomicBool::new(false);

/// `print!` without panics.
macro_rules! print {
    ($($part:tt)*) => { $crate::output::out(format_args!($($part)*)) };
}

/// `println!` without panics.
macro_rules! println {
    ($($part:tt)*) => { $crate::output::out(format_args!("{}\n", format_args!($($part)*))) };
}

/// `eprint!` without panics.
macro_rules! eprint {
    ($($part:tt)*) => { $crate::output::error(format_args!($($part)*)) };
}

/// `eprintln!` without panics.
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

/// Whether text is suppressed because a document is written to standard output.
pub(crate) fn is_suppressed() -> bool {
    SUPPRESSED.load(Ordering::Relaxed)
}

/// Exit status of wrong usage, as of clap.
const WRONG_USAGE: u8 = 2;

/// The payload of the unwinding of [`wrong_usage`].
struct WrongUsage(String);

/// Ends the process with one line on standard error, for a mistake in options before the command
/// starts. Unwinds up to [`with_usage`], so that temporary files are removed.
pub fn wrong_usage<T>(failure: impl Display) -> T {
    resume_unwind(Box::new(WrongUsage(failure.to_string())))
}

/// Runs the program. Returns its exit status.
pub fn with_usage(program: fn() -> ExitCode) -> ExitCode {
    caught(program).unwrap_or_else(|failure| {
        error(format_args!("farlane: {failure}\n"));
        ExitCode::from(WRONG_USAGE)
    })
}

/// Runs a function that may call [`wrong_usage`]. Fails with the message of the call.
pub fn caught<T>(function: impl FnOnce() -> T) -> Result<T, Failure> {
    // After an unwinding nothing uses what the function changed.
    catch_unwind(AssertUnwindSafe(function)).map_err(|panic| {
        let WrongUsage(text) = *panic.downcast().unwrap_or_else(|other| resume_unwind(other));
        Failure(text)
    })
}

/// Prints a warning on standard error, in the log if the command is a node.
pub fn warning(text: impl Display) {
    if log::is_started() {
        return tracing::warn!("{text}");
    }
    eprintln!("{} {text}", coloured(io::stderr().is_terminal(), "warning:", 33));
}

/// Prints further information on standard error, in the log if the command is a node.
pub fn note(text: impl Display) {
    if log::is_started() {
        return tracing::info!("{text}");
    }
    eprintln!("note: {text}");
}

/// Text for standard error, in red if colours are enabled.
pub fn red(text: &str) -> String {
    coloured(io::stderr().is_terminal(), text, 31)
}

/// Tables for standard output, with FAIL at the end of rows in red if colours are enabled.
pub fn failures_in_red(tables: &str) -> String {
    let fail = coloured(io::stdout().is_terminal(), FAIL, 31);
    tables.replace(&format!("{FAIL}\n"), &format!("{fail}\n"))
}

/// Text with a colour of ECMA-48, 8.3.117 (SGR), if colours are enabled.
fn coloured(is_terminal: bool, text: &str, colour: u8) -> String {
    match has_colours(is_terminal, |name| env::var_os(name)) {
        true => format!("\x1b[{colour}m{text}\x1b[0m"),
        false => text.to_owned(),
    }
}

/// Whether colours are enabled, by <https://no-color.org> and <https://bixense.com/clicolors>.
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

/// Flushes standard output at the end of a command. Fails with the first error of standard output,
/// except for a closed pipe.
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

/// Selects what is written to standard output: the document of the option with the target `-`;
/// without such an option, the text or the `--json` document. Ends the process if there are two
/// writers.
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

/// Parses a file that cannot be standard output, because further files have names derived from it
/// or because the command seeks in it.
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
