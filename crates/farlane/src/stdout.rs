//! Which option writes to standard output.

use crate::output;
use report::target::Target;
use report::{Failure, Outcome};
use std::path::PathBuf;

/// Decides at the start of a command what is written to standard output: the document of the option
/// with the target `-`, else the command's own text or `--json`.
/// Fails if two options have the target `-`.
pub fn assign_stdout(json: bool, options: &[(&str, Option<&Target>)]) -> Outcome {
    let wants = options.iter().filter(|(_, target)| *target == Some(&Target::Stdout));
    let mut wants: Vec<&str> = wants.map(|(name, _)| *name).collect();
    if wants.is_empty() {
        return Ok(());
    }
    output::suppress_text();
    wants.extend(json.then_some("--json"));
    match wants[..] {
        [_] => Ok(()),
        _ => Err(Failure(format!(
            "{} cannot share standard output: only one of them may be -",
            wants.join(" and ")
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
