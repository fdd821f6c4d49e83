//! Tests with histories for which all allowed orders of the commands are known.

use super::*;
use crate::commands::{Direction, Step, Transfer};
use wire::Instant;
use wire::nvme::{self, Status as NvmeStatus, StatusCode};

/// An I/O command between two packets; `data` for Read and Write.
fn command(opcode: u8, slba: u64, blocks: u32, data: Option<&[u8]>, span: (u64, u64)) -> Command {
    let step = |kind, number| Step {
        at: Instant::from_ns(number),
        number,
        kind,
        direction: Direction::Down,
        tlp: "MWr32",
        address: 0,
        bytes: 0,
        length: 0,
        tag: None,
        status: wire::tlp::Status::Success,
        from_push: false,
    };
    let entry = nvme::Command {
        opcode,
        nsid: 1,
        cdw10: slba as u32,
        cdw12: blocks - 1,
        ..Default::default()
    };
    let bytes = data.map_or(0, |data| data.len() as u64);
    Command {
        queue: 1,
        entry,
        transfer: if opcode == 2 { Transfer::ToHost(bytes) } else { Transfer::ToDevice(bytes) },
        block_size: Some(4),
        status: Some(NvmeStatus::SUCCESS),
        closed: span.1,
        steps: vec![step(StepKind::SqeData, span.0), step(StepKind::CqeWrite, span.1)],
        moved: bytes,
        data: data.map(<[u8]>::to_vec),
        ..Command::default()
    }
}

fn write(slba: u64, data: &[u8], span: (u64, u64)) -> Command {
    command(1, slba, data.len() as u32 / 4, Some(data), span)
}

fn read(slba: u64, data: &[u8], span: (u64, u64)) -> Command {
    command(2, slba, data.len() as u32 / 4, Some(data), span)
}

fn check(initial: Initial, commands: impl IntoIterator<Item = Command>) -> Report {
    let mut replay = Replay::new(initial);
    commands.into_iter().for_each(|command| replay.add(command));
    replay.check()
}

#[test]
fn the_last_write_counts() {
    let story = |seen: &[u8]| {
        let before = [write(8, b"aaaabbbb", (1, 2)), write(9, b"cccc", (3, 4))];
        check(Initial::Zero, before.into_iter().chain([read(7, seen, (5, 6))]))
    };
    let report = story(b"\0\0\0\0aaaacccc\0\0\0\0");
    assert_eq!((report.blocks_checked, report.blocks_wrong), (4, 0), "{report:?}");
    assert_eq!((report.bytes_written, report.bytes_read), (12, 16));
    let report = story(b"\0\0\0\0aaaabbbb\0\0\0\0");
    let mismatch = report.first_mismatch.unwrap();
    assert_eq!((mismatch.block, mismatch.offset, mismatch.candidates), (9, 36, 1));
    assert_eq!(story(b"\0\0\0\0aaaacccc\0\0\0x").first_mismatch.unwrap().offset, 43);
}

#[test]
fn overlapping_writes_leave_one_value_per_block() {
    let writes = [write(0, b"aaaaaaaa", (1, 10)), write(0, b"bbbbbbbb", (2, 9))];
    let right = [b"aaaaaaaa", b"bbbbbbbb", b"aaaabbbb", b"bbbbaaaa"].map(|seen| (seen, 0));
    for (seen, wrong) in right.into_iter().chain([(b"\0\0\0\0aaaa", 1), (b"aabbaaaa", 1)]) {
        let report = check(Initial::Zero, writes.iter().cloned().chain([read(0, seen, (11, 12))]));
        assert_eq!(report.blocks_wrong, wrong, "{seen:?}");
    }
}

#[test]
fn reads_that_overlap_a_write_see_old_or_new() {
    for (seen, wrong) in [(b"old!", 0), (b"new!", 0), (b"\0\0\0\0", 1)] {
        let story = [write(0, b"old!", (1, 2)), write(0, b"new!", (5, 9)), read(0, seen, (6, 7))];
        assert_eq!(check(Initial::Zero, story).blocks_wrong, wrong);
    }
}

#[test]
fn failed_and_lost_writes_may_have_happened() {
    for status in [None, Some(NvmeStatus::fail(StatusCode::WRITE_FAULT))] {
        for (seen, wrong) in [(b"old!", 0), (b"new!", 0), (b"yet?", 1)] {
            let mut second = write(0, b"new!", (5, 6));
            second.status = status;
            let story = [write(0, b"old!", (1, 2)), second, read(0, seen, (7, 8))];
            assert_eq!(check(Initial::Zero, story).blocks_wrong, wrong);
        }
    }
}

#[test]
fn zeroes_and_deallocated_blocks_read_as_zeroes() {
    let mut ranges = Vec::new();
    for (slba, blocks) in [(4, 2), (1 << 40, 1 << 31)] {
        ranges.extend(DsmRange { attributes: 0, blocks, slba }.encode());
    }
    let mut dsm = command(9, 1, 1, Some(&ranges), (5, 6));
    (dsm.entry.cdw10, dsm.entry.cdw11) = (1, 4);
    let story = [
        write(0, &[7; 40], (1, 2)),
        command(8, 8, 2, None, (3, 4)),
        dsm,
        read(0, &[[7; 16], [0; 16], [0; 16]].concat()[..40], (7, 8)),
    ];
    let report = check(Initial::Zero, story);
    // Blocks 6 and 7 still hold sevens.
    assert_eq!((report.blocks_wrong, report.first_mismatch.unwrap().block), (2, 6));
    assert_eq!(report.commands["Dataset Management"], 1);
}

#[test]
fn unknown_contents_are_learnt_once() {
    let story = [
        read(0, b"what", (1, 2)),
        read(0, b"what", (3, 4)),
        write(0, b"new!", (5, 6)),
        read(0, b"new!", (7, 8)),
        read(5, b"xxxx", (9, 10)),
        read(5, b"yyyy", (11, 12)),
    ];
    let report = check(Initial::Unknown, story);
    assert_eq!((report.blocks_unknown, report.blocks_wrong), (2, 1));
    assert_eq!(report.first_mismatch.unwrap().block, 5);
}

#[test]
fn later_connections_replay_later() {
    let mut replay = Replay::new(Initial::Zero);
    replay.add(write(0, b"one!", (50, 60)));
    replay.next_connection();
    replay.add(write(0, b"two!", (5, 6)));
    replay.next_connection();
    replay.add(read(0, b"one!", (1, 2)));
    replay.add_final(1, 0, 4, Bytes::from_static(b"two!\0\0\0\0"));
    let report = replay.check();
    assert_eq!((report.blocks_checked, report.blocks_wrong), (3, 1));
}

#[test]
fn records_are_compared_as_multisets() {
    let issued = |cid| {
        Issued::from(&Command {
            entry: nvme::Command { cid, ..write(0, b"aaaa", (1, 2)).entry },
            ..write(0, b"aaaa", (1, 2))
        })
    };
    assert_eq!(issued(1).blocks, Some((0, 1)));
    let difference = compare([1, 2, 2, 3].map(issued), [3, 2, 4, 1].map(issued));
    assert_eq!(difference.missing, [issued(2)]);
    assert_eq!(difference.extra, [issued(4)]);
}
