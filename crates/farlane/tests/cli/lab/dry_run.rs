//! `--dry-run`: scripts that a shell takes, and that do what the lab does.

use super::{GATES, alone, gates, sh};
use crate::support::program::{parsed, prints, scratch, text};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::process::{Command, Stdio};

const GUEST: [&str; 2] = ["--guest", "tap,02:00:5e:10:00:02"];

fn script(options: &[&str]) -> String {
    prints(&[&["latency", "lab", "--dry-run"], options].concat())
}

/// What a shell says of a script that it only reads.
fn syntax(script: &str) -> String {
    let mut shell = Command::new("sh");
    shell.arg("-n").stdin(Stdio::piped()).stderr(Stdio::piped());
    let mut shell = shell.spawn().unwrap();
    shell.stdin.take().unwrap().write_all(script.as_bytes()).unwrap();
    let output = shell.wait_with_output().unwrap();
    String::from_utf8_lossy(&output.stderr).into_owned()
        + if output.status.success() { "" } else { "!" }
}

#[test]
fn a_shell_takes_every_script() {
    let file = gates("lab-dry-run", GATES);
    let gate = ["--gate", &file];
    let stress = ["--stress", "3"];
    let boards = [&["--boards", "eth1,eth2"], &GUEST[..]].concat();
    let options: [&[&str]; 14] = [
        &[],
        &gate,
        &[&gate[..], &["--gate-first"]].concat(),
        &stress,
        &["--stress", "2", "--stress-by", "iperf3"],
        &["--stress", "2", "--stress-by", "netperf"],
        &["--drive"],
        &[&gate[..], &stress, &["--drive", "--gate-margin", "1ms"]].concat(),
        &GUEST,
        &["--guest", "g0,02:00:5e:10:00:02", "--stress", "1"],
        &boards,
        &[&boards[..], &gate, &stress].concat(),
        &["--isolate", "0", "--kernel-fifo", "50", "--drop", "10", "--keep", "/a folder"],
        &["--talk", "--fifo 80 --cpu 1", "--listen", "--lock-memory"],
    ];
    for options in options {
        let script = script(&[&["--bridge", "all"], options].concat());
        assert_eq!(syntax(&script), "", "{options:?}: {script}");
        for kind in ["linux", "macvtap", "xdp", "ovs", "ovs-user", "ovs-afxdp", "vfio"] {
            assert!(script.contains(&format!("# Bridge: {kind}\n")), "{options:?}: {kind}");
        }
        let gated = options.contains(&"--gate");
        assert_eq!(script.contains("taprio"), gated, "{options:?}");
    }
    assert_ne!(syntax("if"), "", "it would say so");
}

#[test]
fn scripts_are_those_of_the_lab() {
    let file = gates("lab-dry-run-golden", GATES);
    let load = ["--gate", &file, "--stress", "3", "--stress-by", "built-in"];
    let boards = [&["--boards", "eth1,eth2"], &GUEST[..], &load[..2]].concat();
    for (options, golden) in [
        (vec![], include_str!("golden/linux.sh")),
        ([&["--bridge", "ovs"], &load[..]].concat(), include_str!("golden/ovs.sh")),
        ([&["--bridge", "macvtap"], &boards[..]].concat(), include_str!("golden/boards.sh")),
    ] {
        let script = script(&options);
        assert_eq!(script, golden, "{script}");
    }
}

#[test]
fn a_script_measures_and_leaves_nothing() {
    alone("cli::lab::dry_run::a_script_measures_and_leaves_nothing", || {
        let folder = scratch("lab-script");
        symlink(env!("CARGO_BIN_EXE_farlane"), folder.join("farlane")).unwrap();
        let load = ["--stress", "2", "--stress-rate", "1M", "--stress-by", "built-in"];
        let script = script(&[&["--count", "30"], &load[..]].concat());
        std::fs::write(folder.join("lab.sh"), script).unwrap();
        let path = text(&folder);
        sh(&format!("out={path} PATH=\"{path}:$PATH\" sh {path}/lab.sh"));
        for run in ["idle", "loaded"] {
            for end in ["talk", "listen"] {
                let file = folder.join(format!("linux-{run}-{end}.json"));
                let document = parsed(&std::fs::read_to_string(&file).unwrap());
                assert_eq!(document["counts"]["received"], 30, "{run}: {end}");
                assert_eq!(document["label"], format!("linux, {run}"));
            }
        }
        assert_eq!(sh("ip netns list"), "");
        assert_eq!(sh(&format!("ls {}", super::FOLDER)), "");
        assert_eq!(super::programs("stress"), []);
    });
}
