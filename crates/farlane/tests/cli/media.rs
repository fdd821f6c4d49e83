//! What a start that fails leaves, and what memory and space it asks for.

use crate::support::program::{device, fails, farlane, node, one_line, scratch};

/// Runs `farlane device` with the file `disk.img` of 1 MiB, or none, on a file system of 4 MiB that
/// is this namespace's own; what it says, and what is there afterwards.
fn on_a_small_file_system(name: &str, exists: bool, options: &str) -> (String, String) {
    // An error ends the script with another status than farlane's own.
    let script = r#"
        mount -t tmpfs -o size=4M none "$1" && cd "$1" || exit 90
        if [ "$3" = true ]; then head -c 1048576 /dev/zero > disk.img; fi
        timeout 60 "$2" device --listen 127.0.0.1:0 --namespace "file=disk.img,$4"
        status=$?
        stat -c '%n %s' * 2>/dev/null
        [ "$(df --output=used -B1 . | tail -n 1)" -le 1048576 ] || echo full
        exit $status"#;
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(scratch(&format!("media-{name}"))).arg(env!("CARGO_BIN_EXE_farlane"));
    let output = command.args([&exists.to_string(), options]).output().expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(1), "{said}");
    (one_line(&output), String::from_utf8(output.stdout).unwrap())
}

#[test]
fn a_file_system_that_is_too_small_is_left_as_it_was() {
    let (said, left) = on_a_small_file_system("new", false, "size=16M");
    assert!(said.contains("disk.img: cannot reserve 16777216 bytes"), "{said}");
    assert!(said.contains("sparse"), "{said}");
    assert_eq!(left, "", "the file that could not be made is gone");
    let (said, left) = on_a_small_file_system("grown", true, "size=16M");
    assert!(said.contains("cannot reserve 15728640 bytes"), "{said}");
    assert_eq!(left, "disk.img 1048576\n", "an old file has its old length");
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
    // The second namespace is bad, or the port in use.
    let bad = format!("file={}", two.display());
    fails(&["--listen", "127.0.0.1:0", "--namespace", &bad], "two.img");
    let uneven = format!("file={},size=1000", two.display());
    fails(&["--listen", "127.0.0.1:0", "--namespace", &uneven], "1000 bytes");
    let (_node, address) = device("ram=1M", &[]);
    fails(&["--listen", &address], "in use");
    // A start that succeeds keeps it, though no host ever came.
    let mut node = node(&["device", "--listen", "127.0.0.1:0", "--namespace", &one]);
    node.line("listening");
    assert!(node.interrupt().success());
    assert_eq!(std::fs::metadata(folder.join("one.img")).unwrap().len(), 1 << 20);
    assert!(folder.join("one.img.farlane").exists());
}

#[test]
fn a_folder_that_is_read_only_makes_the_contents_new_at_each_start() {
    // The file itself may be written.
    let script = r#"
        mount -t tmpfs -o size=8M none "$1" && cd "$1" && mkdir folder || exit 90
        mount -t tmpfs -o size=1M none folder && : > folder/disk.img || exit 90
        head -c 1048576 /dev/zero > disk.img && mount --bind disk.img folder/disk.img || exit 90
        mount -o remount,ro folder || exit 90
        "$2" device --listen 127.0.0.1:0 --namespace file=folder/disk.img 2> said &
        until grep -q listening said; do kill -0 $! || exit 91; sleep 0.05; done
        kill -INT $! && wait $! || exit 92
        cat said >&2; ls folder
        # A record of before, that nobody could mark as dirty.
        mount -o remount,rw folder || exit 90
        "$2" device --listen 127.0.0.1:0 --namespace file=folder/disk.img 2> again &
        until grep -q listening again; do kill -0 $! || exit 91; sleep 0.05; done
        kill -INT $! && wait $! || exit 92
        mount -o remount,ro folder && test -f folder/disk.img.farlane || exit 90
        timeout 20 "$2" device --listen 127.0.0.1:0 --namespace file=folder/disk.img && exit 93
        true"#;
    let mut command = std::process::Command::new("unshare");
    command.args(["--user", "--map-root-user", "--mount", "sh", "-c", script, "sh"]);
    command.arg(scratch("media-read-only")).arg(env!("CARGO_BIN_EXE_farlane"));
    let output = command.output().expect("unshare runs");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    assert!(said.contains("count as new at each start"), "{said}");
    let refused = said.lines().last().unwrap_or_default();
    assert!(refused.contains("disk.img.farlane cannot be replaced"), "{said}");
    assert!(refused.contains("make the folder writable"), "{said}");
    assert_eq!(output.stdout, b"disk.img\n");
}

#[test]
fn a_record_that_cannot_be_written_at_the_end_is_told() {
    let folder = scratch("media-unwritable");
    let namespace = format!("file={},size=1M", folder.join("disk.img").display());
    let record = folder.join("disk.img.farlane");
    let (mut node, _) = device(&namespace, &[]);
    assert!(node.interrupt().success());
    // As a killed process leaves it.
    let dirty = std::fs::read_to_string(&record).unwrap().replace("clean", "dirty");
    std::fs::write(&record, dirty).unwrap();
    let (mut node, _) = device(&namespace, &[]);
    std::fs::create_dir(folder.join("disk.img.farlane.new")).unwrap();
    assert!(node.interrupt().success());
    let line = node.line("no record can be written");
    assert!(line.contains("disk.img") && line.contains("count as new"), "{line}");
    assert!(!record.exists());
}

#[test]
fn memory_that_is_not_there_is_refused() {
    let device = ["device", "--listen", "127.0.0.1:0", "--namespace"];
    let all = ["1125899906842624 bytes of RAM", "only "];
    fails(&[&device[..], &["ram=1024T"]].concat(), &all);
    // All namespaces together count.
    let text = std::fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("MemTotal:")).unwrap();
    let total: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    let half = format!("ram={}K", total / 2 + 1024);
    let both = [&device[..], &[&half, "--namespace", &half]].concat();
    fails(&both, &["bytes of RAM for namespaces: only"]);
}

#[test]
fn the_help_says_what_size_reserves() {
    let output = farlane(&["device", "--help"]).output().unwrap();
    let help = String::from_utf8(output.stdout).unwrap();
    let words: Vec<&str> = help.split_whitespace().collect();
    let help = words.join(" ");
    for part in ["reserves what it adds", "sparse", "PATH.farlane records"] {
        assert!(help.contains(part), "no '{part}' in: {help}");
    }
}
