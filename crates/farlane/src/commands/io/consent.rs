//! `--destructive` and `--yes`: the permission to overwrite data.

use super::Args;
use crate::output::wrong_usage;
use live::Stop;
use load::io::{Request, Section, Session};
use report::span::size;
use report::{Failure, Outcome};
use std::io::{IsTerminal, stdin};
use std::sync::mpsc::{self, RecvTimeoutError};

/// Ends the process for sections that write, unless `--destructive` is set. The error names the
/// section.
pub fn check(args: &Args, request: &Request) {
    let Some(section) = request.sections.iter().find(|section| section.writes()) else {
        return;
    };
    if !args.destructive {
        let mistake = format!("{} overwrites data of the drive; add --destructive", section.name);
        wrong_usage(section.origin.fail(mistake))
    }
    if !args.yes && !stdin().is_terminal() {
        wrong_usage(
            "--destructive needs a confirmation, but standard input is not a terminal; add --yes",
        )
    }
}

/// Prints the ranges that the run overwrites and waits for `yes`. Fails with another answer.
pub fn ask(args: &Args, sessions: &mut [Session], request: &Request, stop: &Stop) -> Outcome {
    let mut any = false;
    let writes = request.sections.iter().filter(|section| section.writes());
    for (section, session) in writes.flat_map(|section| sessions.iter().map(move |s| (section, s)))
    {
        any = true;
        let on = if sessions.len() > 1 { format!(" on {}", session.name) } else { String::new() };
        eprintln!("{}", sentence(&on, session, section)?);
    }
    if !any || args.yes {
        return Ok(());
    }
    eprint!("Type yes to continue: ");
    match answer(sessions, stop)?.trim() {
        "yes" => Ok(()),
        _ => Err(Failure("nothing was written: the answer is not yes".into())),
    }
}

/// Reads a line of the terminal. Pumps the targets meanwhile, so that their links stay up.
fn answer(sessions: &mut [Session], stop: &Stop) -> Result<String, Failure> {
    let (typed, line) = mpsc::channel();
    std::thread::spawn(move || {
        let mut line = String::new();
        typed.send(stdin().read_line(&mut line).map(|_| line))
    });
    loop {
        match line.recv_timeout(std::time::Duration::from_millis(20)) {
            Ok(line) => return Ok(line?),
            Err(RecvTimeoutError::Disconnected) => return Ok(String::new()),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if stop.is_set() {
            return Err(Failure("interrupted".into()));
        }
        for session in &mut *sessions {
            session.machine.pump()?;
        }
    }
}

/// Describes the range that a section overwrites on a target, as a sentence.
fn sentence(on: &str, session: &Session, section: &Section) -> Result<String, Failure> {
    let namespace = session.namespace(section)?;
    let shift = namespace.block_shift;
    let fio = section.fio(namespace.blocks << shift).expect("it writes");
    let range = fio.range();
    let (first, end, bytes) = (range.start, range.end, range.end - range.start);
    Ok(format!(
        "{}{on} overwrites data: drive {}, serial number {}, namespace {}, {} from byte {first} to \
         {}, LBA {} to {}",
        section.name,
        session.slot.node().bdf,
        session.driver().serial(),
        namespace.nsid,
        size(bytes),
        end.saturating_sub(1),
        first >> shift,
        (end >> shift).saturating_sub(1),
    ))
}
