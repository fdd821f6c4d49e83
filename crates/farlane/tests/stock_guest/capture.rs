//! Compares the connection that a relay recorded with the commands that the guest's driver issued,
//! and with the disk.

use std::fs;
use std::path::Path;

use analysis::commands::replay::{Initial, Issued, Replay, compare};
use analysis::commands::stream::LinkAnalyser;
use analysis::commands::{AnalyserCounters, AnalyserSettings, Command, Event};
use bytes::Bytes;
use wire::nvme::opcode;

use crate::support::Recording;

/// Size of a block of the drives in bytes.
const BLOCK: u32 = 512;

/// Checks that every command that the driver `issued` passed the tunnel with all its data, and that
/// the written data make up `disk`, which began with zeros. Panics otherwise.
pub fn check(recordings: &[Recording], issued: &[Issued], disk: &Path) {
    let mut replay = Replay::new(Initial::Zero);
    let mut captured = Vec::new();
    for recording in recordings {
        let commands = decode(recording);
        captured.extend(commands.iter().map(Issued::from));
        for command in commands {
            let complete = command.is_whole() || command.status.is_none_or(|s| !s.is_success());
            assert!(complete, "data that did not pass: {command:#?}");
            replay.add(command);
        }
        replay.next_connection();
    }
    let difference = compare(issued.iter().copied(), captured.iter().copied());
    assert!(difference.missing.is_empty(), "not in the capture: {:#?}", difference.missing);
    // Other commands are from the firmware before the driver, are Asynchronous Event Requests of
    // the driver, which its trace leaves out, or belong to the shutdown after the trace.
    for extra in &difference.extra {
        let read = extra.queue == 1 && extra.opcode == opcode::nvm::READ;
        assert!(extra.queue == 0 || read, "nobody issued {extra:?}");
    }

    replay.add_final(1, 0, BLOCK, Bytes::from(fs::read(disk).expect("the disk")));
    let report = replay.check();
    println!(
        "capture: {} commands issued, all found, and {} others; {} bytes written, {} read, \
         {} blocks compared",
        issued.len(),
        difference.extra.len(),
        report.bytes_written,
        report.bytes_read,
        report.blocks_checked,
    );
    println!("capture: {:?}", report.commands);
    let blocks_of = |opcode| {
        let these = issued.iter().filter(|command| command.queue != 0 && command.opcode == opcode);
        these.filter_map(|command| command.blocks).map(|(_, blocks)| u64::from(blocks)).sum()
    };
    let bytes = u64::from(BLOCK);
    let (written, read): (u64, u64) = (blocks_of(opcode::nvm::WRITE), blocks_of(opcode::nvm::READ));
    assert_eq!(report.bytes_written, written * bytes);
    assert!(report.bytes_read >= read * bytes);
    assert_eq!((report.blocks_wrong, report.incomplete, report.lost), (0, 0, 0), "{report:#?}");
}

/// Returns the commands of one connection.
fn decode(recording: &Recording) -> Vec<Command> {
    let mut link =
        LinkAnalyser::new(AnalyserSettings { collect_data: true, ..AnalyserSettings::default() });
    let mut events = Vec::new();
    let ranges = recording.ranges.clone();
    link.run(&recording.down, &recording.up, ranges, |event| events.push(event))
        .unwrap_or_else(|error| panic!("the tunnel's stream: {error}"));
    link.finish().unwrap_or_else(|error| panic!("the tunnel's stream: {error}"));
    events.extend(std::iter::from_fn(|| link.analyser.next_event()));
    let seen = *link.analyser.counters();
    // All other counters must be 0: the analyser explains everything.
    let good = AnalyserCounters {
        down: seen.down,
        up: seen.up,
        config: seen.config,
        registers: seen.registers,
        messages: seen.messages,
        pushes: seen.pushes,
        pushed_bytes: seen.pushed_bytes,
        reads: seen.reads,
        unsupported_requests: seen.unsupported_requests,
        idle_interrupts: seen.idle_interrupts,
        resets: seen.resets,
        lost_commands: seen.lost_commands,
        // The host node may end before the answer to its last request for the function arrives.
        unanswered: seen.unanswered.min(1),
        ..AnalyserCounters::default()
    };
    assert_eq!(seen, good);
    let commands = events.into_iter().filter_map(|event| match event {
        Event::Command(command) => Some(*command),
        Event::Request(_) | Event::Reset { .. } | Event::Ring(_) => None,
    });
    commands.collect()
}
