//! Traces made by hand, with journeys that are known.

mod build;
mod capture;
mod charts;
mod files;
mod merging;
mod reports;

use crate::analyse::{Command, Event};
use crate::trace::{Found, Run, Troubles};
use build::{OFFSET, Traces, traces};

/// All commands of a run, and what stands out; every TLP can be read.
fn commands(run: &Run) -> (Vec<Command>, Troubles) {
    let (mut commands, mut troubles) = (Vec::new(), Troubles::default());
    let done = run.analyse(|found, counters| {
        troubles.look(&found);
        if let Found::Tlp(_, _, tlp, _) = &found {
            troubles.count(counters, tlp.mnemonic());
        }
        if let Found::Event(Event::Command(command)) = found {
            commands.push(*command);
        }
    });
    let (counters, unreadable) = done.unwrap();
    assert_eq!(unreadable, 0);
    troubles.count(&counters, "the end");
    (commands, troubles)
}
