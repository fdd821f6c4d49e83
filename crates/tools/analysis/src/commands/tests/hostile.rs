//! No order of TLPs makes the analyser panic or grow.

use super::testbed::{DRIVE, GAP, Testbed, completion, io};
use crate::commands::{Analyser, AnalyserSettings, Direction, Limits};
use bytes::Bytes;
use proptest::prelude::*;
use wire::tlp::{MemoryRequest, Packet, Tlp};
use wire::{Bdf, Instant, Tag};

const SMALL: Limits = Limits { commands: 8, steps: 64, events: 16, data: 4096 };

fn stream() -> Vec<(Direction, Tlp)> {
    let (mut testbed, mut drive) = Testbed::with_drive(AnalyserSettings::default(), GAP, 1);
    for (cid, opcode) in [(1, 1), (2, 2)] {
        testbed.begin(&mut drive, 1, &[io(opcode, cid, 8, 40, 0x10_0000, 0x20_0000)]);
        let list: Vec<u8> = (0..4u64).flat_map(|i| (0x30_0000 + i * 4096).to_le_bytes()).collect();
        testbed.read_host(&drive, 0x20_0000, &list);
        for page in [0x10_0000, 0x30_0000, 0x30_1000, 0x30_2000, 0x30_3000] {
            match opcode {
                1 => testbed.read_host(&drive, page, &[7; 4096]),
                _ => testbed.write_host(&drive, page, &[7; 4096]),
            }
        }
        testbed.end(&mut drive, 1, cid, 0);
    }
    testbed.config_write(drive.bdf, 0x88, 1 << 15);
    testbed.tlps.into_iter().map(|(_, direction, tlp)| (direction, tlp)).collect()
}

#[derive(Clone, Debug)]
enum Change {
    Drop(usize),
    Repeat(usize),
    Swap(usize, usize),
    Turn(usize),
    Byte(usize, usize, u8),
}

fn change(length: usize) -> impl Strategy<Value = Change> {
    let at = 0..length;
    prop_oneof![
        at.clone().prop_map(Change::Drop),
        at.clone().prop_map(Change::Repeat),
        (at.clone(), at.clone()).prop_map(|(a, b)| Change::Swap(a, b)),
        at.clone().prop_map(Change::Turn),
        (at, 0..80usize, any::<u8>()).prop_map(|(a, b, c)| Change::Byte(a, b, c)),
    ]
}

fn apply(tlps: &mut Vec<(Direction, Tlp)>, change: &Change) {
    let n = tlps.len();
    match *change {
        Change::Drop(at) => drop(tlps.remove(at % n)),
        Change::Repeat(at) => tlps.push(tlps[at % n].clone()),
        Change::Swap(a, b) => tlps.swap(a % n, b % n),
        Change::Turn(at) => tlps[at % n].0 = tlps[at % n].0.opposite(),
        Change::Byte(at, byte, value) => {
            let mut bytes = Vec::new();
            tlps[at % n].1.encode(&mut bytes);
            let byte = byte % bytes.len();
            bytes[byte] = value;
            if let Ok(tlp) = Tlp::decode(&mut Bytes::from(bytes)) {
                tlps[at % n].1 = tlp;
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]
    #[test]
    fn disturbed_tlp_streams_do_not_panic(
        changes in prop::collection::vec(change(300), 0..60),
        collect_data: bool,
    ) {
        let mut tlps = stream();
        changes.iter().for_each(|change| apply(&mut tlps, change));
        let mut analyser = Analyser::new(AnalyserSettings { collect_data, follow_rings: true, limits: SMALL });
        for (i, (direction, tlp)) in tlps.iter().enumerate() {
            analyser.push(Instant::from_ns(i as u64), *direction, tlp);
        }
        analyser.finish();
        let (mut events, mut steps) = (0, 0);
        while let Some(event) = analyser.next_event() {
            events += 1;
            if let crate::commands::Event::Command(command) = event {
                steps += command.steps.len();
                prop_assert!(command.data.is_none_or(|data| data.len() <= SMALL.data));
            }
        }
        prop_assert!(events <= SMALL.events && steps <= SMALL.steps);
    }
}

/// Entries are submitted and never completed, reads are never answered.
#[test]
fn memory_is_bounded_without_completions() {
    let settings = AnalyserSettings { collect_data: true, follow_rings: true, limits: SMALL };
    let (mut testbed, mut drive) = Testbed::with_drive(settings, GAP, 1);
    for i in 0..20_000u32 {
        testbed.begin(&mut drive, 1, &[io(1, i as u16, 0, 65536, 0x10_0000, 0x20_0000)]);
        let (requester, tag) = (Bdf::from_bits((i >> 4) as u16), Tag::truncate(i as u16));
        let request = MemoryRequest::for_bytes(requester, tag, 0x5000_0000, 64);
        testbed.send(Direction::Up, Tlp::memory_read(request.unwrap()));
        testbed.tlps.clear();
        testbed.commands.clear();
    }
    let counters = *testbed.analyser.counters();
    assert!(counters.dropped > 10_000, "{counters:?}");
    let c = completion(Bdf::default(), DRIVE, Tag::default(), 4, 0);
    testbed.send(Direction::Down, Tlp::new(Packet::Completion(c), Bytes::new()));
}
