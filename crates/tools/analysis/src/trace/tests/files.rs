//! Files that are cut off, damaged, or not traces.

use super::{host_trace, traces};
use crate::commands::Event;
use crate::trace::compare::{Side, compare, sentence};
use crate::trace::rings::Rings;
use crate::trace::{Anomalies, Finding, Run, Selection, TraceFile, measures};
use proptest::prelude::*;
use std::path::Path;
use wire::trace::{CHUNK_HEADER, ChunkHeader};

/// Returns the number of commands that ended with a head doorbell, and of gaps.
fn read(path: &Path) -> Result<(usize, usize), String> {
    let run = Run::open(&[path.to_owned()]).map_err(|error| error.to_string())?;
    let (mut commands, mut gaps) = (0, 0);
    let done = run.analyse(|found, _| match found {
        Finding::Event(Event::Command(command)) => commands += usize::from(command.end.is_some()),
        Finding::Gap(_) => gaps += 1,
        _ => {}
    });
    done.map(|_| (commands, gaps)).map_err(|error| error.to_string())
}

#[test]
fn a_file_that_is_cut_off_is_read_to_its_end() {
    let traces = traces();
    let file = std::fs::read(&traces.host).unwrap();
    let all = traces.testbed.commands.len();
    let mut before = 0;
    for end in (0..file.len()).step_by(211).chain([file.len()]) {
        let path = traces.file("cut", &file[..end]);
        match read(&path) {
            Ok((commands, 0)) => {
                assert!(commands >= before && commands <= all, "cut at {end}");
                before = commands;
            }
            Ok(_) => panic!("no gap in what is there"),
            Err(error) => assert!(end < 60 && error.contains("header"), "{error}"),
        }
    }
    assert_eq!(before, all);
    let path = traces.file("cut", &file[..file.len() - 5]);
    assert!(TraceFile::open(&path).unwrap().cut);
}

#[test]
fn a_trace_given_twice_is_refused() {
    let traces = traces();
    let copy = traces.file("copy", &std::fs::read(&traces.host).unwrap());
    for second in [&traces.host, &copy] {
        let error = Run::open(&[traces.host.clone(), second.clone()]).err().unwrap().to_string();
        assert!(error.ends_with("are traces of the same node; give each trace once"), "{error}");
    }
}

#[test]
fn a_chunk_that_is_missing_or_damaged_is_a_gap() {
    let traces = traces();
    let (whole, chunks) = host_trace(&traces);
    assert!(chunks.len() > 8);
    // The missing chunk is after the bring-up, which the analyser needs.
    let missing = chunks[chunks.len() - 2].clone();
    let without = [&whole[..missing.start], &whole[missing.end..]].concat();
    let mut damaged = whole.clone();
    damaged[missing.start + CHUNK_HEADER + 7] ^= 0x10;
    let all = traces.testbed.commands.len();
    for (name, bytes) in [("without", without), ("damaged", damaged)] {
        let path = traces.file(name, &bytes);
        let (commands, gaps) = read(&path).unwrap();
        assert_eq!(gaps, 1, "{name}");
        assert!(commands < all && commands + 2 >= all, "{name}: {commands} of {all}");
        let file = TraceFile::open(&path).unwrap();
        assert_eq!(file.damaged, if name == "damaged" { missing.len() as u64 } else { 0 });
    }
}

#[test]
fn commands_after_a_gap_are_followed() {
    let traces = super::build::traces_of(5, |testbed, drive| testbed.reads(drive, 0..30));
    let (whole, chunks) = host_trace(&traces);
    let (first, second) = (&chunks[chunks.len() - 8], &chunks[chunks.len() - 5]);
    let ring = [&whole[..first.start], &whole[second.start..]].concat();
    let run = Run::open(&[traces.file("ring", &ring)]).unwrap();
    let (mut anomalies, mut last) = (Anomalies::default(), None);
    let (counters, _) = run
        .analyse(|found, counters| {
            anomalies.observe(&found);
            anomalies.count(counters, "");
            if let Finding::Event(Event::Command(command)) = found {
                last = Some(command.entry.cid);
            }
        })
        .unwrap();
    assert_eq!(last, Some(29));
    assert_eq!(anomalies.unexplained["records missing in the trace"].count, 1);
    assert_eq!((counters.bad_doorbells, counters.skipped_entries), (0, 0), "{counters:?}");
}

#[test]
fn chunks_of_a_ring_are_read_in_order() {
    let traces = traces();
    let (whole, chunks) = host_trace(&traces);
    let middle = chunks[chunks.len() / 2].start;
    let start = chunks[0].start;
    // The newer half of the chunks was written over the beginning of the ring. Remains of an
    // overwritten chunk are between the newer and the older half.
    let ring = [&whole[..start], &whole[middle..], &b"FLCK rest"[..], &whole[start..middle]];
    let path = traces.file("ring", &ring.concat());
    assert_eq!(read(&path), Ok((traces.testbed.commands.len(), 0)));
}

#[test]
fn chunk_numbers_of_a_ring_wrap() {
    let traces = traces();
    let (whole, chunks) = host_trace(&traces);
    let first = u32::MAX - chunks.len() as u32 / 2;
    let mut bytes = whole.clone();
    for (number, place) in (0..).zip(&chunks) {
        let (head, records) = bytes[place.clone()].split_at_mut(CHUNK_HEADER);
        let old = ChunkHeader::decode(head).unwrap();
        let number = first.wrapping_add(number);
        let new = ChunkHeader::new(number, old.lost, old.start_ns, records);
        head.copy_from_slice(&new.encode());
    }
    let gap_at_the_start = 1;
    let all = traces.testbed.commands.len();
    assert_eq!(read(&traces.file("wrapped", &bytes)), Ok((all, gap_at_the_start)));
}

#[test]
fn file_of_other_format_is_an_error() {
    let traces = traces();
    for (bytes, why) in [
        (&b"\x0a\x0d\x0d\x0a\x1c\0\0\0"[..], "not a farlane trace"),
        (b"", "ends inside its header"),
        (
            b"FLTRACE\0\x00\x07\x00\x30\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0",
            "version 7",
        ),
    ] {
        let path = traces.file("other", bytes);
        let error = read(&path).unwrap_err();
        assert!(error.contains(why) && error.contains("other"), "{error}");
    }
    assert!(read(&traces.folder.path().join("none")).unwrap_err().contains("No such file"));
    assert!(read(traces.folder.path()).is_err(), "a folder");
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(24) })]

    #[test]
    fn damaged_files_do_not_panic(
        changes in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..40)
    ) {
        let traces = traces();
        let mut bytes = std::fs::read(&traces.host).unwrap();
        for (at, value) in changes {
            // With correct checksums the damaged bytes reach the rest of the reader.
            let at = at.index(bytes.len());
            bytes[at] = value;
        }
        let bytes = checksummed(&bytes);
        let path = traces.file("damaged", &bytes);
        let _ = read(&path);
        if let Ok(run) = Run::open(&[path, traces.device.clone()]) {
            let mut rings = Rings::new(&Selection::default());
            let mut side = Side::default();
            let _ = run.analyse(|found, _| {
                rings.observe(&found);
                if let Finding::Event(Event::Command(command)) = found {
                    let path = crate::trace::path(&run, &command);
                    let _ = crate::trace::chart::chart(&run, &command);
                    let _ = measures::values(&command, &path);
                    side.add(&command, &path);
                }
            });
            for (_, _, queue) in rings.queues() {
                prop_assert!(queue.rings.iter().all(|ring| ring.most <= ring.entries));
                prop_assert!(queue.depth().busy_ns <= queue.depth().life_ns);
            }
            let compared = compare(&side, &side, true);
            prop_assert!(sentence(&compared).starts_with("Nothing differs") || compared.pairs.is_empty());
        }
    }
}

/// Returns the file with corrected checksums of all chunks that are found.
fn checksummed(bytes: &[u8]) -> Vec<u8> {
    let mut out = bytes.to_vec();
    let mut at = 0;
    while at + CHUNK_HEADER <= out.len() {
        let Some(chunk) = ChunkHeader::decode(&out[at..]) else {
            at += 1;
            continue;
        };
        let start = at + CHUNK_HEADER;
        let end = (start + chunk.length as usize).min(out.len());
        let ChunkHeader { number, lost, start_ns, .. } = chunk;
        let header = ChunkHeader::new(number, lost, start_ns, &out[start..end]);
        out[at..start].copy_from_slice(&header.encode());
        at = end;
    }
    out
}
