//! Tests with artificial traces, with known locations.

mod build;
mod capture;
mod charts;
mod files;
mod merging;
mod payloads;
mod push;
mod reports;

use crate::commands::{Command, Event};
use crate::trace::{Anomalies, Finding, Run};
use build::{OFFSET, Traces, traces};
use std::ops::Range;
use wire::trace::{CHUNK_HEADER, ChunkHeader, Header};

/// Returns all commands and anomalies of a run. Every TLP must be readable.
fn commands(run: &Run) -> (Vec<Command>, Anomalies) {
    let (mut commands, mut anomalies) = (Vec::new(), Anomalies::default());
    let done = run.analyse(|found, counters| {
        anomalies.observe(&found);
        if let Finding::Tlp(_, _, tlp, _) = &found {
            anomalies.count(counters, tlp.mnemonic());
        }
        if let Finding::Event(Event::Command(command)) = found {
            commands.push(*command);
        }
    });
    let (counters, unreadable) = done.unwrap();
    assert_eq!(unreadable, 0);
    anomalies.count(&counters, "the end");
    anomalies.finish(run);
    (commands, anomalies)
}

/// Returns the host's trace and the ranges of its chunks.
fn host_trace(traces: &Traces) -> (Vec<u8>, Vec<Range<usize>>) {
    let whole = std::fs::read(&traces.host).unwrap();
    let places = chunks(&whole).into_iter().map(|(_, place)| place).collect();
    (whole, places)
}

/// Returns the chunks of a whole file and their ranges.
fn chunks(file: &[u8]) -> Vec<(ChunkHeader, Range<usize>)> {
    let (_, mut at) = Header::decode(file).unwrap();
    let mut chunks = Vec::new();
    while at < file.len() {
        let chunk = ChunkHeader::decode(&file[at..]).unwrap();
        let end = at + CHUNK_HEADER + chunk.length as usize;
        chunks.push((chunk, at..end));
        at = end;
    }
    chunks
}
