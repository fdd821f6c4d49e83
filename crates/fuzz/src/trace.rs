//! Arbitrary trace files of a host and a device, through all functions of
//! `farlane trace`.

use analysis::commands::{Event, intervals};
use analysis::trace::capture::Capture;
use analysis::trace::{Anomalies, Finding, Run, Statistics, TraceFile, chart, path, perfetto};
use std::path::Path;
use testkit::Source;
use wire::trace::{ChunkHeader, Header, NodeRole};

/// The most commands to draw diagrams of.
const MAX_CHARTS: u64 = 4;

pub fn run(data: &[u8]) {
    let mut source = Source(data);
    let how = source.byte();
    if how & 1 != 0 {
        // The raw bytes as a file; wrong checksums hide most code, so see below.
        if let Ok(file) = TraceFile::from_bytes(Path::new("file"), source.0.to_vec()) {
            check_run(Run::from_files(vec![file]));
        }
        return;
    }
    let length = usize::from(source.byte()) << 8 | usize::from(source.byte());
    let host = source.take(length.min(source.0.len())).to_vec();
    let far = if how & 2 == 0 { NodeRole::Device } else { NodeRole::Switch };
    let near = file("host", NodeRole::Host, &host, how);
    let far = file("far", far, source.0, how);
    check_run(Run::from_files(vec![near]));
    check_run(Run::from_files(vec![far]));
    let near = file("host", NodeRole::Host, &host, how);
    let far = file("far", NodeRole::Device, source.0, how);
    check_run(Run::from_files(vec![far, near]));
}

/// A file with these records, in two chunks with a gap between them if `how`
/// says so.
fn file(name: &str, role: NodeRole, records: &[u8], how: u8) -> TraceFile {
    let mut out = Vec::new();
    let clock = String::new();
    let (ring, instance, start_unix_ns, snap) = (how & 4 != 0, 1, 0, 0);
    let header = Header { role, ring, instance, start_unix_ns, snap, key: 1, clock };
    header.encode(&mut out);
    let (first, second) = records.split_at(if how & 8 != 0 { records.len() / 2 } else { 0 });
    let gap = u32::from(how >> 4 & 1);
    for (number, records) in [(0, first), (1 + gap, second)] {
        out.extend(ChunkHeader::new(number, gap, u64::from(how >> 5) << 58, records).encode());
        out.extend(records);
    }
    TraceFile::from_bytes(Path::new(name), out).expect("our own header")
}

fn check_run<E>(run: Result<Run, E>) {
    let Ok(run) = run else { return };
    let (mut statistics, mut anomalies) = (Statistics::default(), Anomalies::default());
    let (mut capture, mut number) = (Capture::default(), 0);
    let mut events = perfetto::Writer::new(Vec::new()).expect("memory");
    let done = run.analyse(|found, counters| {
        anomalies.observe(&found);
        if let Finding::Tlp(number, _, tlp, _) = &found {
            anomalies.count(counters, tlp.mnemonic());
            assert!(!run.locations(*number).is_empty(), "every TLP was somewhere");
        }
        let Finding::Event(Event::Command(command)) = found else { return };
        number += 1;
        let legs = path(&run, &command);
        if let Some(total) = command.duration_ns() {
            let parts: u64 = intervals::split(&command).iter().map(|part| part.ns).sum();
            assert_eq!(parts, total, "segments add up");
            let lanes: u64 = legs.iter().map(|leg| leg.to_ns.abs_diff(leg.from_ns)).sum();
            assert_eq!(lanes, total, "lanes add up");
        }
        statistics.add(&command, &legs);
        events.add(number, &command, &legs, run.in_drive(&command));
        capture.add(number, &command, number % 2 == 0);
        if number <= MAX_CHARTS {
            assert!(chart::chart(&run, &command).ends_with("</svg>\n"));
        }
    });
    assert!(done.is_ok(), "memory can be read");
    anomalies.finish(&run);
    let _ = (statistics.table(), anomalies.text());
    events.finish().expect("memory");
    let Ok((written, _)) = capture.write(&run, Vec::new()) else { panic!("memory can be written") };
    assert!(written.cut <= written.tlps && written.tlps <= run.root().index.tlps() as u64);
}
