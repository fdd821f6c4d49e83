//! Positions of rings, and TLPs and bytes of a command.

use super::testbed::{DRIVE, Drive, GAP, Testbed, io};
use crate::commands::{AnalyserSettings, Ring, RingState, Traffic};
use wire::Instant;

fn testbed() -> (Testbed, Drive) {
    Testbed::with_drive(
        AnalyserSettings { follow_rings: true, ..AnalyserSettings::default() },
        GAP,
        1,
    )
}

fn ring_events(testbed: &mut Testbed) -> Vec<Ring> {
    let all = std::mem::take(&mut testbed.rings).into_iter();
    all.filter(|state| state.queue == 1).map(|state| state.ring).collect()
}

const fn submission(outstanding: u64, tail: u32, head: u32) -> Ring {
    Ring::Submission { entries: 8, outstanding, tail: Some(tail), head: Some(head) }
}

const fn completion(tail: u32, head: u32, phase: bool) -> Ring {
    Ring::Completion { entries: 8, tail: Some(tail), head: Some(head), phase }
}

fn flush(cid: u16) -> wire::nvme::Command {
    wire::nvme::Command { opcode: 0, cid, nsid: 1, ..Default::default() }
}

#[test]
fn rings_move_with_doorbells_and_completion_entries() {
    let (mut testbed, mut drive) = testbed();
    assert_eq!(
        ring_events(&mut testbed),
        [completion(0, 0, false), submission(0, 0, 0)],
        "created"
    );
    testbed.begin(&mut drive, 1, &[flush(1), flush(2), flush(3)]);
    assert_eq!(ring_events(&mut testbed), [submission(3, 3, 0)]);
    testbed.complete(&mut drive, 1, 1, 2, 0);
    assert_eq!(ring_events(&mut testbed), [completion(1, 0, true), submission(3, 3, 3)]);
    testbed.complete(&mut drive, 1, 1, 1, 0);
    assert_eq!(ring_events(&mut testbed), [completion(2, 0, true), submission(3, 3, 3)]);
    let at = testbed.now + GAP;
    testbed.take(&mut drive, 1, 2);
    let state = |ring| RingState { at, device: DRIVE, queue: 1, ring };
    assert_eq!(testbed.rings, [state(completion(2, 2, true)), state(submission(1, 3, 3))]);
    testbed.end(&mut drive, 1, 3, 0);
    ring_events(&mut testbed);
    // Five more: the tail and the completion entries begin a second round.
    for cid in 4..9 {
        testbed.run(&mut drive, 1, flush(cid));
    }
    let last = [completion(0, 7, true), submission(1, 0, 0), completion(0, 0, true)];
    let all = ring_events(&mut testbed);
    assert_eq!(all.len(), 5 * 5);
    assert_eq!(all[21..24], last);
    testbed.run(&mut drive, 1, flush(9));
    let second = [submission(1, 1, 0), completion(1, 0, false), submission(1, 1, 1)];
    assert_eq!(ring_events(&mut testbed)[..3], second, "phase 0");
}

#[test]
fn rings_are_unknown_where_tlps_are_missing_and_gone_after_a_reset() {
    let (mut testbed, mut drive) = testbed();
    testbed.begin(&mut drive, 1, &[flush(1), flush(2)]);
    ring_events(&mut testbed);
    testbed.analyser.gap();
    testbed.submit(&mut drive, 1, &[flush(3)]);
    let (tail, head, entries) = (None, None, 8);
    let unknown = Ring::Submission { entries, outstanding: 0, tail, head };
    let rings = Ring::Completion { entries, tail, head, phase: false };
    let one = Ring::Submission { entries, outstanding: 1, tail: Some(3), head };
    assert_eq!(ring_events(&mut testbed), [unknown, rings, one]);
    testbed.write(drive.bar + 0x14, 0);
    assert_eq!(ring_events(&mut testbed), [Ring::Gone]);
    assert!(testbed.rings.iter().all(|state| state.at > Instant::ZERO));
}

#[test]
fn ring_events_need_follow_rings() {
    let (testbed, _) = Testbed::with_drive(AnalyserSettings::default(), GAP, 1);
    assert!(testbed.rings.is_empty() && testbed.commands.len() == 3);
}

/// Headers of 12 bytes below 4 GiB (PCIe Base 4.0, section 2.2.1).
#[test]
fn a_command_counts_its_tlps_and_their_bytes() {
    let (mut testbed, mut drive) = testbed();
    testbed.begin(&mut drive, 1, &[io(2, 5, 8, 8, 0x10_0000, 0)]);
    testbed.write_host(&drive, 0x10_0000, &[5; 4096]);
    testbed.end(&mut drive, 1, 5, 0);
    // Down: doorbell 16, the entry 12 + 64, head doorbell 16.
    // Up: fetch 12, 16 writes of 12 + 256, completion entry 12 + 16, MSI-X 12 + 4.
    let read = Traffic { tlps_down: 3, bytes_down: 108, tlps_up: 19, bytes_up: 4344 };
    let command = testbed.commands.last().unwrap();
    assert_eq!(command.traffic, read);
    assert_eq!((read.tlps(), read.bytes()), (22, 4452));
    assert_eq!(command.steps.len() as u64, read.tlps());
}
