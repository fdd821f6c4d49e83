//! Files after a failed start, and memory and space that a start reserves.

use crate::support::drive::{Drive, pattern};
use crate::support::node::HostNode;
use crate::support::process::Process;
use crate::support::program::{device, fails, node, one_line, prints, scratch};
use std::process::{Command, Output};

/// Runs `script` in a mount namespace, with a folder, the program and `more` as arguments. Returns
/// the output, and standard error as text.
fn with_mounts(script: &str, name: &str, more: &[&str]) -> (Output, String) {
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(scratch(&format!("media-{name}"))).arg(env!("CARGO_BIN_EXE_farlane"));
    let output = command.args(more).output().expect("unshare runs");
    let log = String::from_utf8_lossy(&output.stderr).into_owned();
    (output, log)
}

/// Runs `farlane device`, which must fail, on a new file system of 4 MiB. With `exists`, the file
/// `disk.img` of 1 MiB is there before. Returns the line on standard error, and the files that are
/// left.
fn on_a_small_file_system(name: &str, exists: bool, options: &str) -> (String, String) {
    // Errors of the script have other exit statuses than farlane.
    let script = r#"
        mount -t tmpfs -o size=4M none "$1" && cd "$1" || exit 90
        if [ "$3" = true ]; then head -c 1048576 /dev/zero > disk.img; fi
        timeout 60 "$2" device --listen 127.0.0.1:0 --namespace "file=disk.img,$4"
        status=$?
        stat -c '%n %s' * 2>/dev/null
        [ "$(df --output=used -B1 . | tail -n 1)" -le 1048576 ] || echo full
        exit $status"#;
    let (output, log) = with_mounts(script, name, &[&exists.to_string(), options]);
    assert_eq!(output.status.code(), Some(1), "{log}");
    (one_line(&output), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_file_system_that_is_too_small_is_left_as_it_was() {
    let (log, left) = on_a_small_file_system("new", false, "size=16M");
    assert!(log.contains("disk.img: cannot reserve 16777216 bytes"), "{log}");
    assert!(log.contains("sparse"), "{log}");
    assert_eq!(left, "", "the file that could not be made is gone");
    let (log, left) = on_a_small_file_system("grown", true, "size=16M");
    assert!(log.contains("cannot reserve 15728640 bytes"), "{log}");
    assert_eq!(left, "disk.img 1048576\n", "an old file has its old length");
}

/// A sparse file of 8 MiB is on a file system of 4 MiB: a write of the guest finds no space.
#[test]
fn disk_full_during_write_fails_write_and_keeps_data() {
    let script = r#"
        mount -t tmpfs -o size=4M none "$1" && cd "$1" || exit 90
        exec "$2" device --listen 127.0.0.1:0 --namespace file=disk.img,size=8M,sparse"#;
    let folder = scratch("media-full");
    let mut command = Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(scratch("media-full-mount")).arg(env!("CARGO_BIN_EXE_farlane"));
    let mut node = Process::start(&mut command, "device", &folder);
    let address = node.listens().parse().unwrap();
    let host = HostNode::start(&folder, "host", &[address], &[]);
    let mut drive = Drive::attach_to(&host.socket(0), false);
    let data = pattern(1, 128 << 10);
    // Capacity Exceeded (NVMe 1.4, figure 127), after at most 32 writes of 128 KiB.
    let full = (0..64).find(|n| match drive.try_write(n * 256, &data) {
        0 => false,
        status => {
            assert_eq!(status, 0x081);
            true
        }
    });
    let full = full.expect("8 MiB do not fit");
    assert!((16..32).contains(&full), "{full}");
    assert!(node.line("cannot write").contains("disk.img"));
    assert!((0..full).all(|n| drive.read(n * 256, 256) == data));
    drop(host);
    assert!(node.interrupt().success(), "all that was acknowledged is durable");
}

#[test]
fn a_start_that_fails_later_removes_what_it_made() {
    let folder = scratch("media-later");
    let (one, two) = (folder.join("one.img"), folder.join("two.img"));
    let one = format!("file={},size=1M", one.display());
    let fails = |arguments: &[&str], part: &str| {
        fails(&[&["device", "--namespace", &one], arguments].concat(), &[part]);
        assert!(std::fs::read_dir(&folder).unwrap().next().is_none(), "{arguments:?}");
    };
    // The start fails because of the second namespace, or because the port is in use.
    let bad = format!("file={}", two.display());
    fails(&["--listen", "127.0.0.1:0", "--namespace", &bad], "two.img");
    let uneven = format!("file={},size=1000", two.display());
    fails(&["--listen", "127.0.0.1:0", "--namespace", &uneven], "1000 bytes");
    let (_node, address) = device("ram=1M", &[]);
    fails(&["--listen", &address], "in use");
    // A successful start keeps the file, although no host has connected.
    let mut node = node(&["device", "--listen", "127.0.0.1:0", "--namespace", &one]);
    node.line("listening");
    assert!(node.interrupt().success());
    assert_eq!(std::fs::metadata(folder.join("one.img")).unwrap().len(), 1 << 20);
    assert!(folder.join("one.img.farlane").exists());
}

#[test]
fn a_folder_that_is_read_only_makes_the_contents_new_at_each_start() {
    // The folder is read-only, but the file can be written.
    let script = r#"
        mount -t tmpfs -o size=8M none "$1" && cd "$1" && mkdir folder || exit 90
        mount -t tmpfs -o size=1M none folder && : > folder/disk.img || exit 90
        head -c 1048576 /dev/zero > disk.img && mount --bind disk.img folder/disk.img || exit 90
        mount -o remount,ro folder || exit 90
        "$2" device --listen 127.0.0.1:0 --namespace file=folder/disk.img 2> log &
        until grep -q listening log; do kill -0 $! || exit 91; sleep 0.05; done
        kill -INT $! && wait $! || exit 92
        cat log >&2; ls folder
        # A record of before, that nobody could mark as dirty.
        mount -o remount,rw folder || exit 90
        "$2" device --listen 127.0.0.1:0 --namespace file=folder/disk.img 2> again &
        until grep -q listening again; do kill -0 $! || exit 91; sleep 0.05; done
        kill -INT $! && wait $! || exit 92
        mount -o remount,ro folder && test -f folder/disk.img.farlane || exit 90
        timeout 20 "$2" device --listen 127.0.0.1:0 --namespace file=folder/disk.img && exit 93
        true"#;
    let (output, log) = with_mounts(script, "read-only", &[]);
    assert!(output.status.success(), "{log}");
    assert!(log.contains("count as new at each start"), "{log}");
    let refused = log.lines().last().unwrap_or_default();
    assert!(refused.contains("disk.img.farlane cannot be replaced"), "{log}");
    assert!(refused.contains("make the folder writable"), "{log}");
    assert_eq!(output.stdout, b"disk.img\n");
}

#[test]
fn record_write_error_at_end_is_reported() {
    let folder = scratch("media-unwritable");
    let namespace = format!("file={},size=1M", folder.join("disk.img").display());
    let record = folder.join("disk.img.farlane");
    let (mut node, _) = device(&namespace, &[]);
    assert!(node.interrupt().success());
    // The record is in the state that a killed process leaves.
    let dirty = std::fs::read_to_string(&record).unwrap().replace("clean", "dirty");
    std::fs::write(&record, dirty).unwrap();
    let (mut node, _) = device(&namespace, &[]);
    std::fs::create_dir(folder.join("disk.img.farlane.new")).unwrap();
    assert!(node.interrupt().success());
    let line = node.line("cannot write the record");
    assert!(line.contains("disk.img") && line.contains("count as new"), "{line}");
    assert!(!record.exists());
}

#[test]
fn namespace_larger_than_ram_is_an_error() {
    let device = ["device", "--listen", "127.0.0.1:0", "--namespace"];
    let all = ["1125899906842624 bytes of RAM", "only "];
    fails(&[&device[..], &["ram=1024T"]].concat(), &all);
    // The sizes of all namespaces count together.
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let total: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let half = format!("ram={}K", total / 2 + 1024);
    let both = [&device[..], &[&half, "--namespace", &half]].concat();
    fails(&both, &["bytes of RAM, but "]);
}

#[test]
fn help_describes_space_that_size_reserves() {
    let help = prints(&["device", "--help"]);
    let help = help.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in ["reserves what it adds", "sparse", "PATH.farlane records"] {
        assert!(help.contains(part), "no '{part}' in: {help}");
    }
}
