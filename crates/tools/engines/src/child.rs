//! A program that runs until it ends or is stopped.

use super::{LOOK, show};
use plan::run::Watch;
use plan::run::points::Folder;
use report::{Failure, Outcome, last_line};
use rustix::process::{Pid, Signal, kill_process};
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// Runs a program whose errors go to the file `log`. A stop interrupts it (SIGINT) and waits.
///
/// # Errors
/// If the program cannot start, or fails: its last line.
pub fn run(command: &mut Command, log: &Path, folder: &Folder, watch: &Watch<'_>) -> Outcome {
    let program = Path::new(command.get_program()).display().to_string();
    let failed = |error: std::io::Error| Failure(format!("cannot run {program}: {error}"));
    let errors = File::create(log);
    let errors =
        errors.map_err(|error| Failure(format!("cannot write {}: {error}", log.display())))?;
    let command = command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(errors);
    let mut child = command.spawn().map_err(failed)?;
    let mut is_interrupted = false;
    loop {
        if let Some(status) = child.try_wait().map_err(failed)? {
            return match status.success() || is_interrupted {
                true => Ok(()),
                false => Err(Failure(format!("{program}: {}", last_message(log)))),
            };
        }
        if (watch.is_stopped)() && !is_interrupted {
            is_interrupted = true;
            // The program may have ended meanwhile.
            let _ = kill_process(Pid::from_child(&child), Signal::INT);
        }
        show(folder, watch);
        std::thread::sleep(LOOK);
    }
}

/// Returns the output of a program that ends soon.
///
/// # Errors
/// If the program cannot start, or fails: what it prints.
pub fn output(command: &mut Command) -> Result<String, Failure> {
    let program = Path::new(command.get_program()).display().to_string();
    let output = command.stderr(Stdio::piped()).output();
    let output = output.map_err(|error| Failure(format!("cannot run {program}: {error}")))?;
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(Failure(format!("{program}: {}", errors.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Returns the last line of the file `log` that has text.
pub fn last_message(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    last_line(&String::from_utf8_lossy(&text), "ended without a message")
}
