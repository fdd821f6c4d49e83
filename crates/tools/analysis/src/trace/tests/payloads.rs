//! Traces whose payloads were left out.

use super::build::{hashed, traces_of};
use super::commands;
use crate::commands::tests::{Drive, Testbed, io};
use crate::trace::file::Item;
use crate::trace::{Anomalies, Run};
use bytes::Bytes;
use proptest::prelude::*;
use wire::nvme;
use wire::tlp::Tlp;
use wire::trace::{NodeRole, PayloadKey, Record};

const KEY: PayloadKey = PayloadKey::new([5; 32]);
const SECRET: u8 = 0x5a;
const WRITE: u8 = 1;
const READ: u8 = 2;

fn same(_: NodeRole, tlp: &Tlp) -> Tlp {
    tlp.clone()
}

/// Writes eight blocks from `slba` on; all bytes are equal.
fn write(testbed: &mut Testbed, drive: &mut Drive, cid: u16, slba: u64, byte: u8) {
    testbed.begin(drive, 1, &[io(WRITE, cid, slba, 8, 0x20_0000, 0)]);
    testbed.read_host(drive, 0x20_0000, &[byte; 4096]);
    testbed.end(drive, 1, cid, 0);
}

fn read(testbed: &mut Testbed, drive: &mut Drive, cid: u16, slba: u64, byte: u8) {
    testbed.begin(drive, 1, &[io(READ, cid, slba, 8, 0x30_0000, 0)]);
    testbed.write_host(drive, 0x30_0000, &[byte; 4096]);
    testbed.end(drive, 1, cid, 0);
}

/// Returns the anomalies of `work` in a trace with the default settings.
fn unexplained(work: impl FnOnce(&mut Testbed, &mut Drive)) -> Anomalies {
    commands(&hashed(same, [KEY; 2], work).run()).1
}

#[track_caller]
fn assert_only(anomalies: &Anomalies, expected: &[(&str, u64)]) {
    let found: Vec<_> =
        anomalies.unexplained.iter().map(|(name, anomaly)| (*name, anomaly.count)).collect();
    assert_eq!(found, expected, "{}", anomalies.text());
}

const OTHER: &str = "read returned other data than was written";

/// Runs a write through a PRP list and a read of the same blocks.
fn listed(testbed: &mut Testbed, drive: &mut Drive) {
    let pages = [0x40_0000u64, 0x41_0000];
    let list: Vec<u8> = pages.iter().flat_map(|page| page.to_le_bytes()).collect();
    testbed.begin(drive, 1, &[io(WRITE, 4, 0, 24, 0x3f_0000, 0x50_0000)]);
    testbed.read_host(drive, 0x50_0000, &list);
    for page in [0x3f_0000, pages[0], pages[1]] {
        testbed.read_host(drive, page, &[SECRET; 4096]);
    }
    testbed.end(drive, 1, 4, 0);
    read(testbed, drive, 5, 0, SECRET);
}

#[test]
fn commands_are_found_without_data_of_users() {
    let traces = hashed(same, [KEY; 2], listed);
    let run = traces.run();
    let (found, anomalies) = commands(&run);
    assert_only(&anomalies, &[]);
    let [.., write, read] = &found[..] else { panic!("two commands") };
    assert_eq!((write.moved, write.unrecorded, write.is_whole()), (12288, 12288, true));
    assert_eq!((read.moved, read.unrecorded), (4096, 4096));
    assert!(write.data_hash().is_some() && write.data_hash() != read.data_hash());
    let mut plain = found.clone();
    for command in &mut plain {
        command.prints.clear();
        command.unrecorded = 0;
    }
    assert_eq!(plain, traces.testbed.commands, "as from whole TLPs");
    // No file contains four bytes of the user data.
    for path in [&traces.host, &traces.device] {
        let bytes = std::fs::read(path).unwrap();
        assert!(!bytes.windows(4).any(|four| four == [SECRET; 4]), "{}", path.display());
    }
}

#[test]
fn a_byte_that_changes_on_the_way_is_found() {
    let change = |role, tlp: &Tlp| {
        let mut tlp = tlp.clone();
        if role == NodeRole::Device && tlp.data.len() == 256 && tlp.data[255] == 9 {
            let mut data = tlp.data.to_vec();
            data[100] ^= 1;
            tlp.data = Bytes::from(data);
        }
        tlp
    };
    let work = |testbed: &mut Testbed, drive: &mut Drive| {
        write(testbed, drive, 1, 0, 8);
        testbed.begin(drive, 1, &[io(WRITE, 2, 8, 1, 0x20_0000, 0)]);
        testbed.read_host(drive, 0x20_0000, &[[8; 256], [9; 256]].concat());
        testbed.end(drive, 1, 2, 0);
    };
    let traces = hashed(change, [KEY; 2], work);
    let (_, anomalies) = commands(&traces.run());
    assert_only(&anomalies, &[("payload differs between two nodes", 1)]);
    let (_, packet, description) =
        &anomalies.unexplained["payload differs between two nodes"].places[0];
    assert!(
        *packet > 0
            && description.starts_with("CplD, data completion of Write queue 1 command 2: ")
    );
    assert!(
        description.ends_with(&format!("host and {}", traces.device.display())),
        "{description}"
    );
    // Hashes with different keys cannot be compared.
    let other = hashed(change, [KEY, PayloadKey::new([6; 32])], work);
    assert_only(&commands(&other.run()).1, &[]);
}

#[test]
fn a_read_of_other_data_than_were_written_is_found() {
    let anomalies = unexplained(|testbed, drive| {
        write(testbed, drive, 1, 64, 1);
        read(testbed, drive, 2, 64, 1);
        // 256 bytes a TLP: two make a block.
        testbed.begin(drive, 1, &[io(READ, 3, 64, 8, 0x30_0000, 0)]);
        let mut data = [1; 4096];
        data[3 * 512 + 300] = 2;
        testbed.write_host(drive, 0x30_0000, &data);
        testbed.end(drive, 1, 3, 0);
    });
    assert_only(&anomalies, &[(OTHER, 1)]);
    let description = &anomalies.unexplained[OTHER].places[0].2;
    assert_eq!(description, "Read queue 1 command 3, namespace 1: 1 block from LBA 67");
}

/// Reads with a possible explanation are no anomaly.
#[test]
fn explainable_reads_are_no_anomaly() {
    type Work = fn(&mut Testbed, &mut Drive);
    let cases: [(&str, Work); 7] = [
        ("written again", |testbed, drive| {
            write(testbed, drive, 1, 0, 1);
            write(testbed, drive, 2, 0, 2);
            read(testbed, drive, 3, 0, 2);
        }),
        ("a write beside the read, which ends later", |testbed, drive| {
            write(testbed, drive, 1, 0, 1);
            testbed.begin(drive, 1, &[io(WRITE, 2, 4, 1, 0x20_0000, 0)]);
            testbed.read_host(drive, 0x20_0000, &[2; 512]);
            testbed.begin(drive, 1, &[io(READ, 3, 4, 1, 0x30_0000, 0)]);
            testbed.write_host(drive, 0x30_0000, &[2; 512]);
            testbed.end(drive, 1, 3, 0);
            testbed.end(drive, 1, 2, 0);
        }),
        ("two writes beside each other", |testbed, drive| {
            testbed.begin(drive, 1, &[io(WRITE, 1, 0, 1, 0x20_0000, 0)]);
            testbed.begin(drive, 1, &[io(WRITE, 2, 0, 1, 0x21_0000, 0)]);
            testbed.read_host(drive, 0x20_0000, &[1; 512]);
            testbed.read_host(drive, 0x21_0000, &[2; 512]);
            testbed.end(drive, 1, 1, 0);
            testbed.end(drive, 1, 2, 0);
            testbed.begin(drive, 1, &[io(READ, 3, 0, 1, 0x30_0000, 0)]);
            testbed.write_host(drive, 0x30_0000, &[1; 512]);
            testbed.end(drive, 1, 3, 0);
        }),
        ("write zeroes", |testbed, drive| {
            write(testbed, drive, 1, 0, 1);
            testbed.run(drive, 1, io(8, 2, 0, 8, 0, 0));
            read(testbed, drive, 3, 0, 0);
        }),
        ("format", |testbed, drive| {
            write(testbed, drive, 1, 0, 1);
            testbed.run(
                drive,
                0,
                nvme::Command { opcode: 0x80, cid: 9, nsid: 1, ..Default::default() },
            );
            read(testbed, drive, 3, 0, 0);
        }),
        ("begun before the write ended", |testbed, drive| {
            testbed.begin(drive, 1, &[io(WRITE, 1, 0, 1, 0x20_0000, 0)]);
            testbed.read_host(drive, 0x20_0000, &[1; 512]);
            testbed.begin(drive, 1, &[io(READ, 3, 0, 1, 0x30_0000, 0)]);
            testbed.end(drive, 1, 1, 0);
            testbed.write_host(drive, 0x30_0000, &[0; 512]);
            testbed.end(drive, 1, 3, 0);
        }),
        ("divided otherwise", |testbed, drive| {
            testbed.completion_size = 128;
            write(testbed, drive, 1, 0, 1);
            read(testbed, drive, 3, 0, 2);
        }),
    ];
    for (name, work) in cases {
        let anomalies = unexplained(work);
        assert!(!anomalies.unexplained.contains_key(OTHER), "{name}: {}", anomalies.text());
    }
}

/// Runs Set Features of an optional feature, as Linux does at each start, and its refusal.
fn refused(testbed: &mut Testbed, drive: &mut Drive, cid: u16, feature: u32) {
    let entry = nvme::Command { opcode: 9, cid, cdw10: feature, ..Default::default() };
    testbed.begin(drive, 0, &[entry]);
    // Invalid Field in Command, do not retry.
    testbed.end(drive, 0, cid, 0x4002);
}

#[test]
fn refusals_that_every_start_has_are_normal() {
    const NORMAL: &str = "optional admin command refused, before the first I/O and not repeated";
    let work = |testbed: &mut Testbed, drive: &mut Drive| {
        refused(testbed, drive, 30, 0x10);
        testbed.begin(drive, 1, &[io(READ, 1, 0, 1, 0x30_0000, 0)]);
        testbed.end(drive, 1, 1, 0x281);
    };
    let (all, anomalies) = commands(&traces_of(81, work).run());
    let normal = all.iter().filter(|command| anomalies.is_normal_refusal(command));
    assert_eq!(normal.map(|command| command.entry.cid).collect::<Vec<_>>(), [30]);
    assert_only(&anomalies, &[("command failed", 1)]);
    let failed = &anomalies.unexplained["command failed"].places[0].2;
    assert!(failed.starts_with("Read queue 1 command 1: "), "{failed}");
    assert_eq!(
        anomalies.notes[NORMAL].places[0].2,
        "Set Features queue 0 command 30: INVALID_FIELD"
    );
    for (work, failed) in [
        // The feature is mandatory.
        ((|testbed, drive| refused(testbed, drive, 30, 7)) as fn(&mut Testbed, &mut Drive), 1),
        // The host repeats the command.
        (
            |testbed, drive| {
                refused(testbed, drive, 30, 0x10);
                refused(testbed, drive, 31, 0x10);
            },
            2,
        ),
        // The refusal is not at the start.
        (
            |testbed, drive| {
                testbed.reads(drive, 1..2);
                refused(testbed, drive, 30, 0x10);
            },
            1,
        ),
    ] {
        assert_only(&commands(&traces_of(82, work).run()).1, &[("command failed", failed)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// No part of the user data is in the files, and all commands are found.
    #[test]
    fn user_data_is_not_recorded(
        blocks in 1u32..16, offset in 0u64..1024, writes: bool, size in prop_oneof![Just(64usize), Just(128), Just(256)],
    ) {
        let traces = hashed(same, [KEY; 2], |testbed, drive| {
            testbed.completion_size = size;
            let address = 0x20_0000 + offset * 4;
            let first = 4096 - offset as usize * 4;
            // The largest transfer of two PRP entries.
            let blocks = blocks.min((first + 4096) as u32 / 512);
            let data = vec![SECRET; blocks as usize * 512];
            let (near, far) = data.split_at(first.min(data.len()));
            let (opcode, other) = (if writes { WRITE } else { READ }, 0x40_0000);
            testbed.begin(drive, 1, &[io(opcode, 4, 0, blocks, address, other)]);
            (testbed.read_request, testbed.max_payload) = (128, 128);
            for (at, part) in [(address, near), (other, far)] {
                match writes {
                    true => testbed.read_host(drive, at, part),
                    false => testbed.write_host(drive, at, part),
                }
            }
            testbed.max_payload = 256;
            testbed.end(drive, 1, 4, 0);
        });
        for path in [&traces.host, &traces.device] {
            let bytes = std::fs::read(path).unwrap();
            prop_assert!(!bytes.windows(4).any(|four| four == [SECRET; 4]));
        }
        let (found, _) = commands(&traces.run());
        prop_assert_eq!(found.last().unwrap().entry.cid, 4);
    }
}

/// Files of version 1 have no hashes, and zeroes in place of the key.
#[test]
fn files_of_version_1_are_read() {
    let traces = traces_of(91, listed);
    let expected = commands(&traces.run());
    let old = [&traces.host, &traces.device].map(|path| {
        let mut bytes = std::fs::read(path).unwrap();
        bytes[8..10].copy_from_slice(&1u16.to_be_bytes());
        assert_eq!(bytes[32..40], [0; 8]);
        traces.file(&format!("old.{}", path.file_name().unwrap().display()), &bytes)
    });
    let found = commands(&Run::open(&old).unwrap());
    assert_eq!(found.0, expected.0);
    assert_only(&found.1, &[]);
    assert!(found.0.iter().all(|command| command.unrecorded == 0 && command.data_hash().is_none()));
}

/// Only payloads that are left out have a hash.
#[test]
fn a_record_has_all_of_a_payload_or_its_hash() {
    let traces = hashed(same, [KEY; 2], listed);
    let run = Run::open(std::slice::from_ref(&traces.host)).unwrap();
    let (mut whole, mut left_out) = (0, 0);
    let read = run.root().file.read(|item| {
        let Item::Record(timed) = item else { panic!("a gap") };
        let Record::Tlp { length, bytes, hash, .. } = timed.record else { return };
        let header = if bytes[0] & 0x20 == 0 { 12 } else { 16 };
        match hash {
            None => assert_eq!(bytes.len(), usize::from(length)),
            Some(hash) => {
                assert_eq!(bytes.len(), header);
                assert_eq!(hash, KEY.hash(&vec![SECRET; usize::from(length) - header]));
            }
        }
        *(if hash.is_some() { &mut left_out } else { &mut whole }) += 1;
    });
    assert_eq!(read.unwrap(), 0);
    // 12 KiB written and 4 KiB read, in pieces of 256 bytes.
    assert!(left_out == 64 && whole > 100, "{left_out} {whole}");
}
