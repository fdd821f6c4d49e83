//! Trace files of a host and a device that say anything, through everything
//! that `farlane trace` does with them.

use crate::world::operations::Source;
use bytes::Bytes;
use farlane::analyse::{Event, segments};
use farlane::trace::capture::Capture;
use farlane::trace::{Found, Run, Statistics, TraceFile, Troubles, chart, path, perfetto};
use std::path::Path;
use wire::frame::{Control, Grant, Hello, Role};
use wire::tlp::{MemoryRequest, Tlp};
use wire::trace::{ChunkHeader, HEAD, Header, LinkState, NodeRole, Record, Tap, encode_tlp};
use wire::{Bdf, Tag};

/// Commands of which a diagram is drawn.
const MOST_CHARTS: u64 = 4;

pub fn run(data: &[u8]) {
    let mut source = Source(data);
    let how = source.byte();
    if how & 1 != 0 {
        // The file itself; behind wrong checksums nothing is reached.
        if let Ok(file) = TraceFile::of_bytes(Path::new("file"), source.0.to_vec()) {
            look(Run::of(vec![file]));
        }
        return;
    }
    let length = usize::from(source.byte()) << 8 | usize::from(source.byte());
    let host = source.take(length.min(source.0.len())).to_vec();
    let far = if how & 2 == 0 { NodeRole::Device } else { NodeRole::Switch };
    let near = file("host", NodeRole::Host, &host, how);
    let far = file("far", far, source.0, how);
    look(Run::of(vec![near]));
    look(Run::of(vec![far]));
    let near = file("host", NodeRole::Host, &host, how);
    let far = file("far", NodeRole::Device, source.0, how);
    look(Run::of(vec![far, near]));
}

/// A file with these records, in two chunks with a gap between them if `how`
/// says so.
fn file(name: &str, role: NodeRole, records: &[u8], how: u8) -> TraceFile {
    let mut out = Vec::new();
    let clock = String::new();
    let header = Header { role, ring: how & 4 != 0, instance: 1, start_unix_ns: 0, snap: 0, clock };
    header.encode(&mut out);
    let (first, second) = records.split_at(if how & 8 != 0 { records.len() / 2 } else { 0 });
    let gap = u32::from(how >> 4 & 1);
    for (number, records) in [(0, first), (1 + gap, second)] {
        out.extend(ChunkHeader::new(number, gap, u64::from(how >> 5) << 58, records).encode());
        out.extend(records);
    }
    TraceFile::of_bytes(Path::new(name), out).expect("our own header")
}

fn look<E>(run: Result<Run, E>) {
    let Ok(run) = run else { return };
    let (mut statistics, mut troubles) = (Statistics::default(), Troubles::default());
    let (mut capture, mut number) = (Capture::default(), 0);
    let mut events = perfetto::Writer::new(Vec::new()).expect("memory");
    let done = run.analyse(|found, counters| {
        troubles.look(&found);
        if let Found::Tlp(number, _, tlp, _) = &found {
            troubles.count(counters, tlp.mnemonic());
            assert!(!run.journey(*number).is_empty(), "every TLP was somewhere");
        }
        let Found::Event(Event::Command(command)) = found else { return };
        number += 1;
        let legs = path(&run, &command);
        if let Some(total) = command.duration() {
            let parts: u64 = segments::split(&command).iter().map(|part| part.ns).sum();
            assert_eq!(parts, total.as_ns(), "segments add up");
            let lanes: u64 = legs.iter().map(|leg| leg.to_ns.abs_diff(leg.from_ns)).sum();
            assert_eq!(lanes, total.as_ns(), "lanes add up");
        }
        statistics.add(&command, &legs);
        events.add(number, &command, &legs, run.in_drive(&command));
        capture.add(number, &command, number % 2 == 0);
        if number <= MOST_CHARTS {
            assert!(chart::chart(&run, &command).ends_with("</svg>\n"));
        }
    });
    assert!(done.is_ok(), "memory can be read");
    let _ = (statistics.table(), troubles.text());
    events.finish().expect("memory");
    let Ok((written, _)) = capture.write(&run, Vec::new()) else { panic!("memory can be written") };
    assert!(written.cut <= written.tlps && written.tlps <= run.root().index.tlps() as u64);
}

/// A read on the admin queue's doorbell and what follows, in both files; links
/// and clocks; what is cut, unknown and wrong.
pub fn seeds() -> Vec<Vec<u8>> {
    let tap = Tap::link(0);
    let mut host = greeting(tap, false);
    let mut far = greeting(Tap::UPLINK, true);
    let request = |address, length| {
        MemoryRequest::for_bytes(Bdf::new(3, 0, 0), Tag::truncate(1), address, length)
    };
    let fetch = Tlp::memory_read(request(0x10_0000, 64).expect("a page"));
    let bell = request(0xe000_1000, 4).expect("a page");
    let bell = Tlp::memory_write(bell, Bytes::from_static(&[1, 0, 0, 0]));
    for (up, tlp) in [(false, bell), (true, fetch)] {
        let mut heads = Vec::new();
        tlp.encode(&mut heads);
        let bytes = heads.len() as u32 + 12;
        heads.resize(HEAD, 0);
        encode_tlp(Tap::ROOT_PORT, up, &tlp, 64, 300, &mut host);
        encode_tlp(Tap::FUNCTION, up, &tlp, 2, 5, &mut far);
        let frame = |tap| Record::Frame { tap, up, sequence: 0, bytes, tlps: 1, heads: &heads };
        frame(tap).encode(7, &mut host);
        frame(Tap::UPLINK).encode(9, &mut far);
    }
    Record::Link { tap, state: LinkState::Down("silent") }.encode(1 << 40, &mut host);
    Record::Unknown { kind: 77, bytes: b"new" }.encode(1, &mut host);
    let pair = |how: u8, host: &[u8], far: &[u8]| {
        let length = host.len() as u16;
        [&[how][..], &length.to_be_bytes(), host, far].concat()
    };
    let mut raw = vec![1];
    let clock = "monotonic".to_owned();
    let role = NodeRole::Host;
    Header { role, ring: true, instance: 5, start_unix_ns: 9, snap: 64, clock }.encode(&mut raw);
    raw.extend(ChunkHeader::new(3, 1, 77, &host).encode());
    raw.extend(&host);
    vec![
        pair(0, &host, &far),
        pair(8, &host, &far),
        pair(0x1e, &host, &far[..far.len() - 3]),
        pair(0xe4, &far, &host),
        raw,
    ]
}

/// The records of a connection that stands.
fn greeting(tap: Tap, device: bool) -> Vec<u8> {
    let mut out = Vec::new();
    Record::Link { tap, state: LinkState::Connected }.encode(0, &mut out);
    for (up, role, instance) in [(false, Role::Host, 4), (true, Role::Device, 6)] {
        let credits = [Grant { headers: 64, data: 1024 }; 3];
        let version = wire::frame::VERSION;
        let hello = Hello { version, role, max_payload: 256, group: 0, instance, credits };
        let mut payload = Vec::new();
        Control::Hello(hello).encode(&mut payload);
        let delta = if up == device { 0 } else { 5_000 };
        Record::Control { tap, up, kind: 1, payload: &payload }.encode(delta, &mut out);
    }
    out
}
