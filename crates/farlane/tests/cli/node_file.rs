//! Files of nodes: `farlane run` and `farlane check`.

use crate::support::HostNode;
use crate::support::drive::Drive;
use crate::support::process::wait_until;
use crate::support::program::{json, node, one_line, prints, run, scratch, text};
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::time::{Duration, Instant};

/// Writes a file; returns its path.
fn file(folder: &Path, name: &str, contents: &str) -> String {
    let path = folder.join(name);
    std::fs::write(&path, contents).unwrap();
    text(&path)
}

/// Checks that both commands refuse the file with status 2 and these lines, without the file's name.
#[track_caller]
fn refuses(path: &str, lines: &[&str]) {
    for command in ["check", "run"] {
        let output = run(&[command, path]);
        assert_eq!(output.status.code(), Some(2), "{command}: {output:?}");
        assert!(output.stdout.is_empty());
        let found = String::from_utf8(output.stderr).unwrap();
        let found = found.strip_prefix("farlane: ").unwrap_or(&found).replace(path, "");
        let found: Vec<_> = found.lines().collect();
        assert_eq!(found.len(), lines.len(), "{found:#?}");
        for (found, line) in found.iter().zip(lines) {
            assert!(found.starts_with(line), "expected {line}\nfound {found}");
        }
    }
}

#[test]
fn nodes_of_files_serve() {
    let folder = scratch("node-file");
    let device = file(
        &folder,
        "device.toml",
        "role = \"device\"\nlisten = [\"127.0.0.1:0\"]\nmps = 512\nrate_limit = \"1G\"\n\
         aggregation = \"per-tlp\"\nspin = 2\ndoorbell_buffer = false\n\
         [[namespaces]]\nfile = \"disk.img\"\nsize = \"1M\"\nblock = 4096\nsparse = true\n\
         [[namespaces]]\nram = \"1M\"\nro = true\n",
    );
    assert_eq!(prints(&["check", &device]), "");
    assert!(!folder.join("disk.img").exists(), "check changes nothing");
    let device = node(&["run", &device]);
    let address = device.listens();
    // Relative to the file.
    assert_eq!(folder.join("disk.img").metadata().unwrap().len(), 1 << 20);
    let switch = file(
        &folder,
        "switch.toml",
        &format!(
            "role = \"switch\"\nlisten = \"127.0.0.1:0\"\nconnect = \"{address}\"\np2p = true\n"
        ),
    );
    let switch = node(&["run", &switch]);
    let host = file(
        &folder,
        "host.toml",
        &format!("role = \"host\"\nconnect = [\"{}\"]\nvfio_user = \"vms\"\n", switch.listens()),
    );
    let host = node(&["run", &host]);
    host.line("ready");
    assert!(folder.join("vms/0/cntrl").exists());
}

#[test]
fn all_mistakes_of_a_file_have_their_places() {
    let folder = scratch("node-file-mistakes");
    let path = file(
        &folder,
        "device.toml",
        "role = \"device\"\nqeues = 5\nmps = 300\npriority = 9\ncipher = \"aes\"\ninsecure = \"yes\"\n\
         serial = [\"a\", \"b\"]\nkey = \"k\"\npeers = \"p\"\n[[namespaces]]\nsze = \"10G\"\n\
         [[namespaces]]\nram = \"lots\"\n[[namespaces]]\nram = \"1M\"\nro = \"on\"\n",
    );
    refuses(
        &path,
        &[
            ":2:1: unknown key 'qeues'; did you mean 'queues'? There are: access,",
            ":3:7: mps: invalid size '300': expected 128, 256, 512, 1024, 2048 or 4096",
            ":4:12: priority: invalid value '9': 9 is not in 0..=7",
            ":5:10: cipher: unknown value 'aes'. There are: aes128-gcm, aes256-gcm,",
            ":6:12: insecure: expected true or false",
            ":7:10: serial: expected one value",
            ":11:1: unknown key of [[namespaces]] 'sze'; did you mean 'size'? There are: file, ram,",
            ":12:1: namespaces: invalid value 'ram=lots': ",
            ":16:6: ro: expected true or false",
        ],
    );
    for (contents, lines) in [
        (
            "mps = 512",
            &[":1:1: missing key 'role': expected \"device\", \"switch\" or \"host\""][..],
        ),
        ("role = \"hots\"", &[":1:8: unknown role 'hots'. There are: device, switch, host"]),
        ("role = \"device\"\nrate_limit = 1G", &[":2:14: write \"1G\" in quotes"]),
        ("role = \"host\"", &[":1:1: missing keys: connect, vfio_user"]),
        ("role = \"device\"", &[":1:1: missing keys: namespaces or drive"]),
        (
            "role = \"device\"\ndrive = \"d\"\nserial = \"x\"",
            &[":2:9: drive: cannot be used with serial"],
        ),
        ("role = \"device\"\nnamespaces = \"ram=1M\"", &[":2:14: namespaces: expected tables"]),
        (
            "role = \"device\"\n[[namespaces]]\nfile = \"a,b\"",
            &[":3:8: file: expected a text without"],
        ),
    ] {
        refuses(&file(&folder, "other.toml", contents), lines);
    }
}

#[test]
fn check_reads_what_a_file_names() {
    let folder = scratch("node-file-names");
    let device = "role = \"device\"\nlisten = \"a..b:1\"\nkey = \"k\"\npeers = \"p\"\n\
        queues_per_link = 1\nqueues = 100\n";
    let namespaces = "[[namespaces]]\nfile = \"x\"\n[[namespaces]]\nfile = \"no/x\"\nsize = \"1M\"\n\
        [[namespaces]]\nfile = \".\"\n";
    std::fs::write(folder.join("p"), "x").unwrap();
    let drive = file(&folder, "drive.toml", "role = \"device\"\ndrive = \"no-drive\"\n");
    let host = "role = \"host\"\nconnect = \"192.0.2.1\"\nvfio_user = \"x\"\nsurvive = \"29s\"\n";
    let host = file(&folder, "host.toml", host);
    let none = text(&folder.join("none.toml"));
    let device = file(&folder, "device.toml", &format!("{device}{namespaces}"));
    let output = run(&["check", &device, &drive, &host, &none]);
    assert_eq!(output.status.code(), Some(2));
    let found = String::from_utf8(output.stderr).unwrap();
    let found: Vec<_> = found.lines().collect();
    let expected = [
        (&device, "k: No such file"),
        (&device, "p:1: expected a key"),
        (&device, "'a..b:1'"),
        (&device, "needs 100 connections"),
        (&device, "x: cannot open: No such file"),
        (&device, "no/x: cannot create it: No such file"),
        (&device, "is neither a regular file nor a block device"),
        (&drive, "no-drive: "),
        (&host, "--survive 29"),
        (&host, "--insecure"),
        (&none, "No such file"),
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (line, (file, part)) in found.iter().zip(expected) {
        assert!(line.contains(file.as_str()) && line.contains(part), "'{part}' in {line}");
    }
    let gate = "role = \"switch\"\nconnect = \"127.0.0.1:1\"\ngate = \"p\"\nline_rate = \"1G\"\n";
    let output = run(&["check", &file(&folder, "gate.toml", gate)]);
    assert!(one_line(&output).contains("gate.toml: --gate "), "{output:?}");
}

#[test]
fn hangup_changes_what_a_running_node_can_change_and_keeps_its_link() {
    let folder = scratch("node-file-again");
    let control = text(&folder.join("control"));
    let write = |keys: &str| {
        let always = "role = \"device\"\nlisten = \"127.0.0.1:0\"\n";
        let keys = format!("{always}control = \"{control}\"\n{keys}[[namespaces]]\nram = \"1M\"\n");
        file(&folder, "device.toml", &keys)
    };
    let status = || json(&["status", &control, "--interval", "1ms", "--json"])["nodes"][0].clone();
    let limit = || status()["limits"]["rate_limit_bits_per_s"].clone();
    let sent = || status()["links"][0]["traffic"]["bytes_sent"].as_u64().expect("a counter");
    let device = node(&["run", &write("rate_limit = \"1G\"\ntrace = \"device.trace\"\n")]);
    let host = HostNode::start(&folder, "host", &[device.listens().parse().unwrap()], &[]);
    let mut drive = Drive::attach_to(&host.socket(0), false);
    drive.read(0, 128);

    write("rate_limt = \"2M\"\n");
    device.signal(Signal::HUP);
    let line = device.line("the earlier values stay in force");
    assert!(line.contains(":4:1: unknown key 'rate_limt'; did you mean 'rate_limit'?"), "{line}");
    assert_eq!(limit(), 1_000_000_000);

    write("rate_limit = \"8M\"\nqueues = 3\n");
    device.signal(Signal::HUP);
    device.line(":5:10: queues: takes effect at the next start");
    device.line("read the file of the node again; rate limit: 8M");
    wait_until("the trace stops", || device.stderr.text().contains("device.trace stopped"));
    assert_eq!(limit(), 8_000_000);
    let begin = Instant::now();
    (0..8).for_each(|_| _ = drive.read(0, 128));
    // 512 KiB take 0.5 s, of which a burst saves less than a half.
    assert!(begin.elapsed() > Duration::from_millis(200), "{:?}", begin.elapsed());

    write("log_level = \"warn\"\ntrace = \"device.trace\"\n");
    device.signal(Signal::HUP);
    wait_until("no limit", || limit() == Value::Null);
    write("log_level = \"info\"\nrate_limit = \"3G\"\ntrace = \"device.trace\"\n");
    device.signal(Signal::HUP);
    device.line("rate limit: 3G");

    assert!(!device.stderr.text().contains("rate limit: none"), "not at level warn");

    // Frames that wait for a much too low limit leave when it is mended.
    write("rate_limit = \"1k\"\n");
    device.signal(Signal::HUP);
    device.line("rate limit: 1k");
    let before = sent();
    std::thread::scope(|scope| {
        scope.spawn(|| (0..8).for_each(|_| _ = drive.read(0, 128)));
        wait_until("a burst is sent", || sent() > before + 4096);
        write("");
        device.signal(Signal::HUP);
    });
    assert!(!device.stderr.text().contains("detached"));
    drop(drive);
    host.stop();
}
