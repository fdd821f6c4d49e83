//! The analyser explains all TLPs of a correct driver and drive.

use super::testbed::{DRIVE, Drive, GAP, Testbed, io};
use crate::commands::{
    AnalyserCounters, AnalyserSettings, Command, Direction, HostRequestKind, StepKind, Transfer,
    intervals,
};
use bytes::Bytes;
use wire::nvme::{SglDescriptor, SglKind};
use wire::tlp::{Packet, Status as TlpStatus, Tlp};
use wire::{Bdf, Duration};

pub fn testbed() -> (Testbed, Drive) {
    Testbed::with_drive(
        AnalyserSettings { collect_data: true, ..AnalyserSettings::default() },
        GAP,
        2,
    )
}

fn pattern(length: usize) -> Vec<u8> {
    (0..length).map(|i| (i / 7) as u8).collect()
}

fn kinds(command: &Command) -> Vec<(StepKind, usize)> {
    let mut kinds: Vec<(StepKind, usize)> = Vec::new();
    for step in &command.steps {
        match kinds.last_mut() {
            Some((kind, n)) if *kind == step.kind => *n += 1,
            _ => kinds.push((step.kind, 1)),
        }
    }
    kinds
}

/// Counters that are zero when everything is explained.
#[track_caller]
fn explained(testbed: &Testbed) {
    let seen = testbed.analyser.counters();
    let AnalyserCounters { down, up, config, registers, reads, .. } = *seen;
    assert_eq!(
        *seen,
        AnalyserCounters { down, up, config, registers, reads, ..AnalyserCounters::default() }
    );
}

#[test]
fn bring_up_is_explained() {
    let (testbed, drive) = testbed();
    explained(&testbed);
    let names: Vec<_> = testbed.commands.iter().map(|c| c.name().into_owned()).collect();
    let pair = ["Create I/O Completion Queue", "Create I/O Submission Queue"];
    assert_eq!(names, [&["Identify"][..], &pair, &pair].concat());
    let identify = &testbed.commands[0];
    assert_eq!(identify.transfer, Transfer::ToHost(4096));
    assert!(identify.is_whole());
    let config = &testbed.requests[0];
    assert_eq!((config.kind, config.target), (HostRequestKind::ConfigRead, Some(drive.bdf)));
    assert_eq!((config.value, config.latency), (0x0010_1b36, Duration::from_ns(100)));
    let csts = testbed.requests.last().unwrap();
    assert_eq!(
        (csts.kind, csts.address, csts.value),
        (HostRequestKind::MemoryRead, 0xe000_001c, 1)
    );
}

#[test]
fn a_read_has_all_its_tlps() {
    let (mut testbed, mut drive) = testbed();
    testbed.begin(&mut drive, 1, &[io(2, 7, 2048, 8, 0x10_0000, 0)]);
    testbed.write_host(&drive, 0x10_0000, &pattern(4096));
    testbed.end(&mut drive, 1, 7, 0);
    let command = testbed.commands.pop().unwrap();
    assert_eq!(
        kinds(&command),
        [
            (StepKind::SqDoorbell, 1),
            (StepKind::SqeFetch, 1),
            (StepKind::SqeData, 1),
            (StepKind::DataWrite, 16),
            (StepKind::CqeWrite, 1),
            (StepKind::MsiX, 1),
            (StepKind::CqDoorbell, 1)
        ]
    );
    assert_eq!((command.queue, command.name().as_ref()), (1, "Read"));
    assert_eq!((command.slba(), command.blocks()), (Some(2048), Some(8)));
    assert_eq!(command.duration_ns(), Some(2100));
    assert_eq!(command.data, Some(pattern(4096)));
    assert!(command.status.unwrap().is_success() && command.is_whole());
    explained(&testbed);
}

#[test]
fn a_command_of_ten_years_has_exact_times() {
    const DAYS: u64 = 3_652;
    let (mut testbed, mut drive) = testbed();
    let mut read = |days| {
        testbed.begin(&mut drive, 1, &[io(2, 7, 0, 8, 0x10_0000, 0)]);
        (0..days).for_each(|_| testbed.now += Duration::from_ms(86_400_000));
        testbed.write_host(&drive, 0x10_0000, &pattern(4096));
        testbed.end(&mut drive, 1, 7, 0);
        let command = testbed.commands.pop().unwrap();
        let ns = intervals::split(&command).iter().map(|interval| interval.ns).collect::<Vec<_>>();
        (command.duration_ns().unwrap(), ns)
    };
    let (short, _) = read(0);
    let (long, parts) = read(DAYS);
    assert_eq!(long, short + DAYS * 86_400_000_000_000);
    assert_eq!(parts.iter().sum::<u64>(), long);
    assert!(parts.iter().all(|ns| *ns > 0), "{parts:?}");
}

#[test]
fn a_long_write_follows_its_list() {
    let (mut testbed, mut drive) = testbed();
    // 32 KiB from an odd start: 9 pages, the list across a page boundary.
    let entry = io(1, 9, 0, 64, 0x20_0200, 0x40_0fe8);
    let data = pattern(32 << 10);
    testbed.begin(&mut drive, 1, &[entry]);
    let pages: Vec<u64> = (0..8).map(|i| 0x50_0000 + i * 0x3000).collect();
    let list: Vec<u8> =
        [pages[0], pages[1], 0x41_0000].iter().flat_map(|p| p.to_le_bytes()).collect();
    testbed.read_host(&drive, 0x40_0fe8, &list);
    let list: Vec<u8> = pages[2..].iter().flat_map(|p| p.to_le_bytes()).collect();
    testbed.read_host(&drive, 0x41_0000, &list);
    testbed.read_host(&drive, 0x20_0200, &data[..0xe00]);
    for (i, page) in pages.iter().enumerate().rev() {
        let from = 0xe00 + i * 4096;
        testbed.read_host(&drive, *page, &data[from..data.len().min(from + 4096)]);
    }
    testbed.end(&mut drive, 1, 9, 0);
    let command = testbed.commands.pop().unwrap();
    assert_eq!(command.data, Some(data));
    assert!(command.is_whole());
    assert_eq!(kinds(&command).iter().filter(|(k, _)| *k == StepKind::ListFetch).count(), 2);
    explained(&testbed);
}

#[test]
fn a_write_with_an_sgl_follows_its_segments() {
    let (mut testbed, mut drive) = testbed();
    let descriptor = |kind: SglKind, address, length| SglDescriptor {
        address,
        length,
        subtype: 0,
        kind: kind as u8,
    };
    let segment =
        |all: &[SglDescriptor]| -> Vec<u8> { all.iter().flat_map(|one| one.encode()).collect() };
    let entry = io(1, 9, 0, 16, 0, 0).with_sgl1(descriptor(SglKind::Segment, 0x40_0ff0, 32));
    let data = pattern(8 << 10);
    testbed.begin(&mut drive, 1, &[entry]);
    let first = segment(&[
        descriptor(SglKind::DataBlock, 0x50_0ffc, 12),
        descriptor(SglKind::LastSegment, 0x41_0000, 16),
    ]);
    // The data cross a boundary that requests do not cross.
    testbed.read_host(&drive, 0x40_0ff0, &first[..16]);
    testbed.read_host(&drive, 0x40_1000, &first[16..]);
    let last = segment(&[descriptor(SglKind::DataBlock, 0x60_0004, 8180)]);
    testbed.read_host(&drive, 0x41_0000, &last);
    testbed.read_host(&drive, 0x60_0004, &data[12..12 + 4092]);
    testbed.read_host(&drive, 0x60_1000, &data[12 + 4092..]);
    testbed.read_host(&drive, 0x50_0ffc, &data[..4]);
    testbed.read_host(&drive, 0x50_1000, &data[4..12]);
    testbed.end(&mut drive, 1, 9, 0);
    let command = testbed.commands.pop().unwrap();
    assert_eq!(command.data, Some(data));
    assert!(command.is_whole());
    explained(&testbed);
}

#[test]
fn entries_are_fetched_in_batches_around_the_end_of_the_ring() {
    let (mut testbed, mut drive) = testbed();
    for cid in 0..5 {
        testbed.run(&mut drive, 1, io(0, cid, 0, 1, 0, 0));
    }
    // Entries 5, 6, 7 and 0, 1 behind two doorbells.
    let entries: Vec<_> =
        (0..5).map(|i| io(2, 40 + i, u64::from(i), 1, 0x10_0000 + 512 * u64::from(i), 0)).collect();
    let index = testbed.submit(&mut drive, 1, &entries[..2]);
    testbed.submit(&mut drive, 1, &entries[2..]);
    testbed.fetch(&drive, 1, index, &entries);
    for i in [3, 1, 4, 0, 2] {
        testbed.write_host(&drive, 0x10_0000 + 512 * i, &[i as u8; 512]);
        testbed.post(&mut drive, 1, 1, 40 + i as u16, 0);
    }
    testbed.interrupt(&drive, 1);
    testbed.take(&mut drive, 1, 2);
    testbed.take(&mut drive, 1, 3);
    let done = testbed.commands.split_off(testbed.commands.len() - 5);
    let ids: Vec<u16> = done.iter().map(|c| c.entry.cid).collect();
    assert_eq!(ids, [43, 41, 44, 40, 42]);
    let with_id = |cid| done.iter().find(|c| c.entry.cid == cid).unwrap();
    let doorbell = |cid| with_id(cid).steps[0].number;
    assert_eq!(doorbell(40), doorbell(41));
    assert_ne!(doorbell(41), doorbell(42));
    assert_eq!((with_id(40).steps[1], with_id(42).steps[1].bytes), (with_id(42).steps[1], 192));
    assert_eq!(with_id(43).steps[1].bytes, 128);
    for (i, command) in (0..5).map(|i| (i, with_id(40 + i))) {
        assert_eq!(command.data.as_deref(), Some(&[i as u8; 512][..]));
        assert_eq!(command.steps.iter().filter(|s| s.kind == StepKind::MsiX).count(), 1);
    }
    explained(&testbed);
}

#[test]
fn equal_buffers_of_concurrent_commands_are_distinguished() {
    let (mut testbed, mut drive) = testbed();
    let entries = [io(1, 1, 0, 8, 0x30_0000, 0), io(1, 2, 8, 8, 0x30_0000, 0)];
    testbed.begin(&mut drive, 2, &entries);
    let data = pattern(4096);
    for piece in 0..8 {
        for _ in 0..2 {
            let at = 0x30_0000 + piece * 512;
            testbed.read_host(&drive, at, &data[piece as usize * 512..][..512]);
        }
    }
    testbed.post(&mut drive, 2, 2, 2, 0);
    testbed.post(&mut drive, 2, 2, 1, 0x281);
    testbed.take(&mut drive, 2, 2);
    testbed.interrupt(&drive, 2);
    let [second, first] = &testbed.commands[testbed.commands.len() - 2..] else { panic!() };
    for command in [first, second] {
        assert_eq!(command.data.as_ref(), Some(&data));
    }
    assert_eq!(first.status.unwrap().code.kind(), 2);
    assert_eq!(testbed.analyser.counters().idle_interrupts, 1);
    assert_eq!(testbed.analyser.counters().orphans, 0);
}

#[test]
fn blocks_are_as_long_as_identify_says() {
    let mut testbed = Testbed::new(AnalyserSettings::default());
    let mut drive = Drive::new(DRIVE, 0x20_e000_0000, 0x7_0001_0000);
    drive.stride = 2;
    testbed.enumerate(&drive);
    testbed.bring_up(&mut drive, 1, 12);
    testbed.begin(&mut drive, 1, &[io(2, 1, 5, 2, 0x10_0000, 0x12_3000)]);
    testbed.write_host(&drive, 0x10_0000, &[1; 4096]);
    testbed.write_host(&drive, 0x12_3000, &[2; 4096]);
    testbed.end(&mut drive, 1, 1, 0);
    let command = testbed.commands.pop().unwrap();
    assert_eq!((command.block_size, command.moved), (Some(4096), 8192));
    assert!(command.data.is_none(), "not asked to collect");
    assert_eq!(command.steps[0].tlp, "MWr64");
    explained(&testbed);
}

#[test]
fn two_drives_do_not_disturb_each_other() {
    let (mut testbed, mut first) = testbed();
    let mut second = Drive::new(Bdf::new(4, 0, 0), 0xe010_0000, 0x8_0000);
    testbed.enumerate(&second);
    testbed.bring_up(&mut second, 1, 9);
    let entry = io(2, 3, 0, 1, 0x10_0000, 0);
    for drive in [&mut first, &mut second] {
        testbed.begin(drive, 1, &[entry]);
    }
    testbed.write_host(&second, 0x10_0000, &[2; 512]);
    testbed.write_host(&first, 0x10_0000, &[1; 512]);
    for drive in [&mut first, &mut second] {
        testbed.end(drive, 1, 3, 0);
    }
    let [a, b] = &testbed.commands[testbed.commands.len() - 2..] else { panic!() };
    assert_eq!((a.device, a.data.as_ref().unwrap()[0]), (first.bdf, 1));
    assert_eq!((b.device, b.data.as_ref().unwrap()[0]), (second.bdf, 2));
    explained(&testbed);
}

#[test]
fn reset_ends_commands_in_flight() {
    let (mut testbed, mut drive) = testbed();
    testbed.begin(&mut drive, 1, &[io(2, 3, 0, 1, 0x10_0000, 0)]);
    testbed.write(drive.bar + 0x14, 0);
    let lost = testbed.commands.pop().unwrap();
    assert_eq!((lost.status, lost.end), (None, None));
    assert_eq!((testbed.resets, testbed.analyser.counters().lost_commands), (1, 1));
    drive = Drive::new(drive.bdf, drive.bar, drive.memory);
    testbed.bring_up(&mut drive, 1, 9);
    testbed.run(&mut drive, 1, io(0, 1, 0, 1, 0, 0));
    assert_eq!(testbed.commands.pop().unwrap().name(), "Flush");
    // A function level reset also clears the BAR.
    testbed.config_write(drive.bdf, 0x88, 1 << 15);
    assert_eq!(testbed.resets, 2);
    testbed.write(drive.bar + 0x1008, 1);
    assert_eq!(testbed.analyser.counters().foreign, 1);
}

#[test]
fn refused_reads_show_their_status() {
    let (mut testbed, mut drive) = testbed();
    testbed.begin(&mut drive, 1, &[io(1, 3, 0, 1, 0x10_0000, 0)]);
    let request = testbed.read_request(&drive, 0x10_0000, 512);
    let mut c = super::testbed::completion(Bdf::new(0, 1, 0), DRIVE, request.tag, 512, 0);
    c.status = TlpStatus::UnsupportedRequest;
    testbed.send(Direction::Down, Tlp::new(Packet::Completion(c), Bytes::new()));
    testbed.send(Direction::Down, Tlp::new(Packet::Completion(c), Bytes::new()));
    testbed.end(&mut drive, 1, 3, 4);
    let command = testbed.commands.pop().unwrap();
    assert!(!command.is_whole());
    let refused = command.steps.iter().find(|s| s.kind == StepKind::DataCompletion).unwrap();
    assert_eq!((refused.status, refused.tlp), (TlpStatus::UnsupportedRequest, "Cpl"));
    let counters = testbed.analyser.counters();
    assert_eq!((counters.unsupported_requests, counters.unexpected_completions), (2, 1));
}
