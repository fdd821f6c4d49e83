//! The table of accesses, row by row, compared with the documents.

use super::*;

/// The outcome of an access at client and function. The client's side answers by presence.
fn observe(condition: Condition, access: Access) -> Outcome {
    let mut world = World::to(condition);
    let faults = world.slot.faults;
    match (access, world.presence) {
        (Access::ConfigRead, Presence::Absent)
        | (Access::BarRead, Presence::Absent | Presence::ConfigOnly) => return Outcome::AllOnes,
        (Access::ConfigWrite, Presence::Absent)
        | (Access::BarWrite, Presence::Absent | Presence::ConfigOnly) => return Outcome::Dropped,
        _ => {}
    }
    let by_client = !matches!(access, Access::MemoryRead | Access::MemoryWrite | Access::Interrupt);
    if by_client && !world.slot.accepts() {
        world.settle();
        assert!(world.slot.accepts(), "it waits no longer");
        return Outcome::Waits;
    }
    match access {
        Access::ConfigRead => world.slot.config_read(Instant::ZERO, 1, 0x40, 4),
        Access::ConfigWrite => world.slot.config_write(1, 0x40, 4, 5),
        Access::BarRead => world.slot.bar_read(Instant::ZERO, 1, 0, (0x10, 4)),
        Access::BarWrite => world.slot.bar_write(0, 0x10, &[1; 4]),
        Access::Msix => world.slot.set_msix(true),
        Access::Reset => world.slot.reset(1),
        Access::MemoryRead => {
            let read = read(&mut world, 0x1000);
            return if read == ReadOutcome::Done(None) {
                Outcome::Refused
            } else {
                Outcome::Passes
            };
        }
        Access::MemoryWrite => {
            world.slot.memory_write(Instant::ZERO, &mut world.client, 0x1000, &[1; 4]);
            let refused = world.client.memory.is_empty() && world.slot.faults > faults;
            return if refused { Outcome::Refused } else { Outcome::Passes };
        }
        Access::Interrupt => {
            world.slot.interrupt(&mut world.client, 1);
            let passes = world.client.signals == [1];
            return if passes { Outcome::Passes } else { Outcome::Dropped };
        }
    }
    world.turn();
    let bdf = world.slot.node().bdf;
    let identifies = Request::ConfigRead { target: bdf, offset: 0, size: 4 };
    let outcome = match world.requests.first() {
        None if matches!(access, Access::Msix | Access::Reset) => Outcome::Remembered,
        None => Outcome::Answered,
        Some(request) if *request == identifies => Outcome::Identifies,
        Some(_) => Outcome::Passes,
    };
    world.settle();
    let replied = !matches!(access, Access::BarWrite | Access::Msix);
    assert_eq!(world.replies.len(), usize::from(replied), "{access:?}: one answer");
    // The slot passes it on, and the link below holds it.
    if condition == Condition::Interrupted && outcome != Outcome::Remembered {
        return Outcome::Held;
    }
    outcome
}

macro_rules! rows {
    ($($name:ident: $access:ident,)*) => {
        $(#[test]
        fn $name() {
            for condition in CONDITIONS {
                let expected = condition.outcome(Access::$access);
                assert_eq!(observe(condition, Access::$access), expected, "{condition:?}");
            }
        })*
    };
}

rows! {
    config_read: ConfigRead,
    config_write: ConfigWrite,
    bar_read: BarRead,
    bar_write: BarWrite,
    msix: Msix,
    reset: Reset,
    memory_read: MemoryRead,
    memory_write: MemoryWrite,
    interrupt: Interrupt,
}

#[test]
fn the_document_has_the_table() {
    let row = |access: Access| {
        let outcomes = CONDITIONS.map(|condition| match condition.outcome(access) {
            Outcome::Passes => "passes",
            Outcome::Held => "held",
            Outcome::Answered => "answered",
            Outcome::Waits => "waits",
            Outcome::AllOnes => "all ones",
            Outcome::Dropped => "dropped",
            Outcome::Remembered => "remembered",
            Outcome::Identifies => "identifies",
            Outcome::Refused => "refused",
        });
        let name = match access {
            Access::ConfigRead => "read of configuration space",
            Access::ConfigWrite => "write to configuration space",
            Access::BarRead => "read of a BAR",
            Access::BarWrite => "write to a BAR",
            Access::Msix => "MSI-X enabled or disabled",
            Access::Reset => "reset",
            Access::MemoryRead => "read of the client's memory",
            Access::MemoryWrite => "write to the client's memory",
            Access::Interrupt => "interrupt",
        };
        format!("| {name} | {} |", outcomes.join(" | "))
    };
    let head = "| access | attached | interrupted | preparing | awaited | link down | new contents | detached |";
    let document = include_str!("../../../../../../docs/architecture.md");
    let mut lines = document.lines().skip_while(|line| *line != head).skip(2);
    let accesses = [
        Access::ConfigRead,
        Access::ConfigWrite,
        Access::BarRead,
        Access::BarWrite,
        Access::Msix,
        Access::Reset,
        Access::MemoryRead,
        Access::MemoryWrite,
        Access::Interrupt,
    ];
    for access in accesses {
        assert_eq!(lines.next(), Some(&*row(access)), "docs/architecture.md");
    }
    assert_eq!(lines.next(), Some(""));
}
