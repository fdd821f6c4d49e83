//! Tests of the record's text, and of the comparison with a file.

use super::*;
use proptest::prelude::*;

fn record() -> Record {
    Record {
        checksums: false,
        incarnation: 0x1234_5678_9abc_def0,
        size: 1 << 20,
        file: Some(Identity { inode: 42, birth: "1700000000.000000001".into() }),
        dirty: true,
        boot: "b0077000-0000-4000-8000-000000000001".into(),
    }
}

fn found() -> Found {
    let Record { file, size, .. } = record();
    Found { file, length: size, device: false }
}

const GOLDEN: &str = "\
# Which contents the file beside this one has: written by farlane device.
# Without it the contents count as new.
version = 1
incarnation = 123456789abcdef0
size = 1048576
inode = 42
birth = 1700000000.000000001
state = dirty
boot = b0077000-0000-4000-8000-000000000001
";

#[test]
fn record_text_matches_golden() {
    assert_eq!(record().to_string(), GOLDEN);
    assert_eq!(Record::parse(GOLDEN.as_bytes()), Ok(record()));
}

#[test]
fn in_a_drive_the_text_is_that_of_the_document() {
    let in_drive = Record { file: None, ..record() };
    let text = in_drive.to_string();
    let document = include_str!("../../../../../docs/drive.md");
    let example = format!("```\n{text}```\n");
    assert!(document.contains(&example), "{text}");
    assert_eq!(Record::parse(text.as_bytes()), Ok(in_drive));
}

#[test]
fn other_texts_are_refused() {
    let with = |from: &str, to: &str| Record::parse(GOLDEN.replace(from, to).as_bytes());
    for (from, to, says) in [
        ("version = 1", "version = 2", "version '2', but this program reads 1"),
        ("version = 1\n", "", "lacks 'version'"),
        ("inode = 42\n", "", "lacks 'inode'"),
        ("boot =", "boots =", "invalid key 'boots'"),
        ("state = dirty", "state = wet", "invalid state 'wet'"),
        ("size = 1048576", "size = -1", "invalid size '-1'"),
        ("size = 1048576", "size =", "an empty or a second 'size'"),
        ("size = 1048576", "size = 1\nsize = 2", "an empty or a second 'size'"),
        ("state = dirty", "state dirty", "invalid line 'state dirty'"),
    ] {
        let error = with(from, to).unwrap_err();
        assert!(error.contains(says), "{error}");
    }
    assert!(Record::parse(&[0xff]).unwrap_err().contains("not UTF-8"));
    assert!(Record::parse(b"").unwrap_err().contains("lacks 'version'"));
}

/// The result of the comparison: whether the contents are the same, and the size.
fn same(change: impl FnOnce(&mut Record, &mut Found), boot: &str) -> Result<(bool, u64), String> {
    let (mut record, mut found) = (record(), found());
    change(&mut record, &mut found);
    let boot = if boot == "same" { record.boot.clone() } else { boot.to_owned() };
    compare(Some(&record), &found, &boot).map(|comparison| (comparison.same, comparison.size))
}

#[test]
fn record_comparison_covers_every_case() {
    const SIZE: u64 = 1 << 20;
    assert_eq!(compare(None, &found(), "any").map(|j| (j.same, j.size)), Ok((false, SIZE)));
    // Clean: the boot has no effect.
    assert_eq!(same(|record, _| record.dirty = false, "other"), Ok((true, SIZE)));
    // Dirty: a killed process, or a crash of the machine.
    assert_eq!(same(|_, _| {}, "same"), Ok((true, SIZE)));
    assert_eq!(same(|_, _| {}, "other"), Ok((false, SIZE)));
    // The boot is not known.
    assert_eq!(same(|record, _| record.boot = UNKNOWN.into(), "same"), Ok((false, SIZE)));
    // Another file, even with the inode number of the former file.
    let file = |inode, birth: &str| Some(Identity { inode, birth: birth.into() });
    let birth = "1700000000.000000001";
    assert_eq!(same(|_, found| found.file = file(43, birth), "same"), Ok((false, SIZE)));
    assert_eq!(same(|_, found| found.file = file(42, "9.0"), "same"), Ok((false, SIZE)));
    assert_eq!(same(|_, found| found.file = file(42, UNKNOWN), "same"), Ok((true, SIZE)));
    // In a drive the identity of the file has no effect. A record of an image does not match
    // contents of a drive.
    let in_drive =
        |record: &mut Record, found: &mut Found| (record.file, found.file) = (None, None);
    assert_eq!(same(in_drive, "same"), Ok((true, SIZE)));
    assert_eq!(same(in_drive, "other"), Ok((false, SIZE)));
    assert_eq!(same(|_, found| found.file = None, "same"), Ok((false, SIZE)));
    // A longer file: the rest is not used, unless it is another file.
    assert_eq!(same(|_, found| found.length = 2 * SIZE, "same"), Ok((true, SIZE)));
    let other = |_: &mut Record, found: &mut Found| {
        (found.file, found.length) = (file(43, birth), 2 * SIZE);
    };
    assert_eq!(same(other, "same"), Ok((false, 2 * SIZE)));
    // A shorter file is an error, even if it is another file.
    let error = same(|_, found| found.length = 512, "same").unwrap_err();
    assert!(error.contains("gives 1048576 bytes, but the file has only 512"), "{error}");
    assert!(same(|_, found| (found.file, found.length) = (file(43, birth), 512), "same").is_err());
    // After a restart of the machine, the node of a block device does not identify the disk.
    let device = |record: &mut Record, found: &mut Found| {
        (record.dirty, found.device) = (false, true);
    };
    assert_eq!(same(device, "same"), Ok((true, SIZE)));
    assert_eq!(same(device, "other"), Ok((false, SIZE)));
}

#[test]
fn this_machine_has_a_boot_id() {
    let id = boot_id();
    assert_eq!((id.len(), boot_id()), (36, id.clone()), "{id}");
}

proptest! {
    #[test]
    fn a_text_gives_its_record_back(
        incarnation: u64, size: u64, inode: u64, dirty: bool,
        birth in "[0-9]{1,10}\\.[0-9]{9}|-", boot in "[0-9a-f-]{36}|-", in_drive: bool,
        checksums: bool,
    ) {
        let file = (!in_drive).then_some(Identity { inode, birth });
        let checksums = checksums && file.is_none();
        let record = Record { incarnation, size, file, dirty, boot, checksums };
        prop_assert_eq!(Record::parse(record.to_string().as_bytes()), Ok(record));
    }

    #[test]
    fn any_bytes_do_not_panic(
        bytes: Vec<u8>, cut in 0..GOLDEN.len(), at in 0..GOLDEN.len(), byte: u8,
    ) {
        let _ = Record::parse(&bytes);
        let mut text = GOLDEN.as_bytes().to_vec();
        text[at] = byte;
        text.truncate(cut);
        let _ = Record::parse(&text);
    }
}
