//! Drives in folders: the tests create, show and serve them.

use crate::support::drive::{Drive, pattern};
use crate::support::node::HostNode;
use crate::support::program::{fails, is_refused, json, prints, run, scratch, succeeds};
use crate::support::{ANY, Node};
use serde_json::Value;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Creates a drive with these namespaces; returns the path of its folder.
#[track_caller]
pub fn create(place: &Path, capacity: &str, namespaces: &[&str]) -> String {
    let mut arguments = vec!["drive", "create", name(place), "--capacity", capacity];
    namespaces.iter().for_each(|namespace| arguments.extend(["--namespace", namespace]));
    prints(&arguments)
}

fn name(place: &Path) -> &str {
    place.to_str().expect("a plain name")
}

fn show(place: &Path) -> Value {
    json(&["drive", "show", name(place), "--json"])
}

#[test]
fn a_drive_is_made_and_shown() {
    let place = scratch("drive-shown").join("drive");
    create(&place, "64M", &["size=16M", "size=32M,block=4096,sparse"]);
    let shown = show(&place);
    assert_eq!((&shown["in_use"], &shown["format"]), (&false.into(), &2.into()));
    assert_eq!(shown["unallocated_bytes"], 16 << 20);
    let namespaces = shown["namespaces"].as_array().unwrap();
    let column = |key: &str| namespaces.iter().map(|one| one[key].clone()).collect::<Vec<_>>();
    assert_eq!(column("nsid"), [1, 2]);
    assert_eq!(column("bytes"), [16 << 20, 32 << 20]);
    assert_eq!(column("block_bytes"), [512, 4096]);
    for key in ["nguid", "eui64", "uuid", "contents"] {
        assert_ne!(column(key)[0], column(key)[1], "{key}");
    }
    let text = prints(&["drive", "show", name(&place)]);
    assert!(text.contains(shown["serial"].as_str().unwrap()), "{text}");
    assert!(text.contains("capacity 64 MiB, 16 MiB in no namespace"), "{text}");
    // Another drive has another serial number.
    let other = place.with_file_name("other");
    create(&other, "1M", &[]);
    let other = show(&other);
    assert_eq!(other["namespaces"][0]["bytes"], 1 << 20, "the whole capacity by default");
    assert_ne!(other["serial"], shown["serial"]);
}

#[test]
fn failed_create_leaves_no_files() {
    let folder = scratch("drive-bad");
    let place = folder.join("drive");
    let create = ["drive", "create", name(&place), "--capacity"];
    let large = ["64M", "--namespace", "size=128M"];
    is_refused(&[&create[..], &large].concat(), &["134217728 bytes", "--capacity 67108864"]);
    is_refused(&[&create[..], &["1000"]].concat(), &["--capacity", "block size 512"]);
    assert!(!place.exists());
    fails(&["drive", "show", name(&place)], &[name(&place)]);
    fails(&["drive", "show", name(&folder)], &[name(&folder), "is not a drive"]);
    // `create` fails in a folder with a drive or other files.
    succeeds(&[&create[..], &["1M"]].concat());
    let before = show(&place);
    fails(&[&create[..], &["1M"]].concat(), &[name(&place)]);
    assert_eq!(show(&place), before);
}

#[test]
fn a_drive_has_one_user() {
    let folder = scratch("drive-lock");
    let place = folder.join("drive");
    create(&place, "1M", &[]);
    let device = Node::drive_at(ANY, &folder, "first", &place);
    fails(
        &["device", "--listen", ANY, "--drive", name(&place)],
        &[name(&place), "another process"],
    );
    assert_eq!(show(&place)["in_use"], true);
    device.stop();
    let shown = show(&place);
    assert_eq!((&shown["in_use"], &shown["health"]["power_cycles"]), (&false.into(), &1.into()));
}

/// The drive was never in use, because no host connected.
#[test]
fn power_cycles_count_and_unsafe_shutdowns_do_not_without_a_host() {
    let folder = scratch("drive-cycles");
    let place = folder.join("drive");
    create(&place, "1M", &[]);
    for _ in 0..2 {
        let mut device = Node::drive_at(ANY, &folder, "device", &place);
        device.process.kill();
    }
    Node::drive_at(ANY, &folder, "device", &place).stop();
    let health = show(&place)["health"].clone();
    assert_eq!((&health["power_cycles"], &health["unsafe_shutdowns"]), (&3.into(), &0.into()));
}

#[test]
fn a_drive_and_namespaces_are_one_or_the_other() {
    let output = run(&["device", "--drive", "x", "--namespace", "ram=1M"]);
    assert_eq!(output.status.code(), Some(2));
}

/// After a kill of the device node no fault is found. A byte that changes in the file is one, for
/// the host and for a scrub, until the block is written.
#[test]
fn changed_byte_of_contents_with_checksums_is_an_unrecovered_read_error() {
    let folder = scratch("drive-checksums");
    let place = folder.join("drive");
    create(&place, "1M", &["size=1M,checksums=on"]);
    let serve = |name: &str| {
        let device = Node::drive_at(ANY, &folder, name, &place);
        let host = HostNode::start(&folder, &format!("{name}-host"), &[device.address()], &[]);
        let drive = Drive::attach_to(&host.socket(0), false);
        (device, host, drive)
    };
    let (mut device, host, mut drive) = serve("first");
    let data = pattern(1, 128 << 10);
    drive.write(0, &data);
    drop(drive);
    // Otherwise the next process would wait for this host.
    host.stop();
    device.process.line("detached");
    device.process.kill();
    let clean = prints(&["drive", "scrub", name(&place)]);
    assert!(clean.contains("namespace 1: 1 MiB verified, 0 bad bytes"), "{clean}");

    let contents = std::fs::read_dir(place.join("contents")).unwrap().next().unwrap().unwrap();
    let file = std::fs::OpenOptions::new().write(true).open(contents.path()).unwrap();
    file.write_all_at(&[!data[5000]], 5000).unwrap();
    let scrub = run(&["drive", "scrub", name(&place)]);
    assert_eq!(scrub.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&scrub.stdout).contains("512 bad bytes\n  block 9\n"));

    let (mut device, host, mut drive) = serve("second");
    assert_eq!(drive.critical_warning(), 0);
    assert_eq!((drive.try_read(9), drive.try_read(10)), (0x281, 0));
    assert_eq!(drive.critical_warning(), 4, "reliability is degraded");
    device.process.line("the 512 bytes at 4608 do not have their checksum");
    drive.write(9, &data[9 * 512..10 * 512]);
    assert!(drive.read(0, 256) == data);
    drop((drive, host));
    assert!(device.process.interrupt().success());
    assert_eq!(show(&place)["health"]["media_errors"], 1);
    prints(&["drive", "scrub", name(&place)]);
}
