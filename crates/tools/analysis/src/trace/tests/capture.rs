//! Captures of traces: the bytes of every TLP, and the comments.

use super::build::traces_of;
use super::{Traces, chunks, traces};
use crate::commands::Event;
use crate::export::pcapng::PSEUDO_HEADER;
use crate::export::pcapng::tests::{Read, packets};
use crate::trace::capture::{Capture, Written};
use crate::trace::{Finding, Run, Selection};
use wire::trace::{CHUNK_HEADER, ChunkHeader, Record, Records, Tap, Timed};

fn capture(run: &Run, selection: &Selection) -> (Written, Vec<Read>) {
    let (mut capture, mut number) = (Capture::default(), 0);
    run.analyse(|found, _| {
        if let Finding::Event(Event::Command(command)) = found {
            number += 1;
            capture.add(number, &command, selection.has(number, &command));
        }
    })
    .unwrap();
    let (written, file) = capture.write(run, Vec::new()).unwrap();
    (written, packets(&file))
}

const START: u64 = 1_700_000_000_000_000_000;

#[test]
fn every_tlp_is_there_with_what_it_serves() {
    let traces = traces();
    let (written, packets) = capture(&traces.run(), &Selection::default());
    assert_eq!(written, Written { tlps: packets.len() as u64, cut: 0 });
    assert_eq!(packets.len(), traces.testbed.tlps.len());
    for (packet, (at, _, tlp)) in packets.iter().zip(&traces.testbed.tlps) {
        let mut bytes = Vec::new();
        tlp.encode(&mut bytes);
        let original = packet.original - PSEUDO_HEADER;
        assert_eq!((packet.at_ns, original), (START + at.as_ns(), bytes.len()));
        assert!(packet.data[PSEUDO_HEADER..] == bytes);
    }
    let count = |start: &str| packets.iter().filter(|p| p.comment.starts_with(start)).count();
    assert_eq!(count("data write of Read 4 KiB, command 4 (queue 1 cid 18, LBA 4096 +8)"), 16);
    assert_eq!(count("SQE fetch of Write 4 KiB"), 1);
    assert!(count("data write of Identify") > 0);
    assert!(packets[0].comment.is_empty(), "enumeration serves no command");
}

#[test]
fn capture_filter_keeps_context_packets() {
    let traces = traces();
    let writes = Selection { opcode: Some("write".parse().unwrap()), ..Selection::default() };
    let (_, all) = capture(&traces.run(), &Selection::default());
    let (written, packets) = capture(&traces.run(), &writes);
    let reads = |all: &[Read]| all.iter().filter(|p| p.comment.contains("Read 4 KiB")).count();
    assert_eq!((reads(&all), reads(&packets)), (22, 0));
    assert_eq!(written.tlps as usize, all.len() - 22);
    assert!(packets.iter().any(|p| p.comment.contains("Create I/O Completion Queue")));
}

/// Returns the host's trace with at most `keep` bytes of each payload, and without its chunk
/// `missing`.
fn rewritten(traces: &Traces, keep: usize, missing: usize) -> Vec<u8> {
    let whole = std::fs::read(&traces.host).unwrap();
    let chunks = chunks(&whole);
    let mut out = whole[..chunks[0].1.start].to_vec();
    for (chunk, place) in chunks {
        let mut records = Vec::new();
        let mut last = chunk.start_ns;
        for Timed { at_ns, record } in Records::new(chunk.start_ns, &whole[place][CHUNK_HEADER..]) {
            let record = match record {
                Record::Tlp { tap: Tap::ROOT_PORT, up, length, bytes, hash, holes } => {
                    let header = if bytes[0] & 0x20 == 0 { 12 } else { 16 };
                    let bytes = &bytes[..bytes.len().min(header + keep)];
                    Record::Tlp { tap: Tap::ROOT_PORT, up, length, bytes, hash, holes }
                }
                other => other,
            };
            record.encode(at_ns - last, &mut records);
            last = at_ns;
        }
        if chunk.number as usize != missing {
            out.extend(ChunkHeader::new(chunk.number, 0, chunk.start_ns, &records).encode());
            out.extend(records);
        }
    }
    out
}

#[test]
fn cut_records_are_reported() {
    let traces = traces();
    let path = traces.file("short", &rewritten(&traces, 64, usize::MAX));
    let (written, packets) = capture(&Run::open(&[path]).unwrap(), &Selection::default());
    let cut: Vec<&Read> = packets.iter().filter(|p| p.data.len() < p.original).collect();
    assert_eq!(written.cut as usize, cut.len());
    // 16 TLPs each of the two commands and Identify.
    assert_eq!(cut.len(), 48);
    assert!(cut.iter().all(|p| p.original - p.data.len() == 256 - 64));
    assert_eq!(packets.len(), traces.testbed.tlps.len());
}

#[test]
fn entries_that_were_cut_are_no_commands() {
    let traces = traces_of(61, |testbed, drive| {
        let entry = |cid| crate::commands::tests::io(2, cid, 8, 1, 0x10_0000, 0);
        testbed.begin(drive, 1, &[entry(300), entry(301)]);
    });
    let path = traces.file("short", &rewritten(&traces, 64, usize::MAX));
    let mut io = Vec::new();
    let done = Run::open(&[path]).unwrap().analyse(|found, _| {
        if let Finding::Event(Event::Command(command)) = found {
            io.extend((command.queue != 0).then_some(command.entry.cid));
        }
    });
    assert_eq!((io, done.unwrap().0.blank_entries), (vec![300], 1));
}

#[test]
fn gap_is_reported_at_its_position() {
    let traces = traces_of(71, |testbed, drive| testbed.reads(drive, 0..30));
    let path = traces.file("gap", &rewritten(&traces, 4096, 12));
    let (_, packets) = capture(&Run::open(&[path]).unwrap(), &Selection::default());
    let gap = |p: &&Read| p.comment.starts_with("records are missing before this");
    assert_eq!(packets.iter().filter(gap).count(), 1);
    assert!(packets.len() < traces.testbed.tlps.len());
}
