//! `--dry-run`: scripts with the commands of the lab, which a shell can parse.

use super::{GATES, alone, gates, iperf3, sh};
use crate::support::program::{parsed, prints, scratch, text};
use std::io::Write;
use std::os::unix::fs::symlink;
use std::path::PathBuf;
use std::process::{Command, Stdio};

const GUEST: [&str; 2] = ["--guest", "tap,02:00:5e:10:00:02"];

fn script(options: &[&str]) -> String {
    prints(&[&["latency", "lab", "--dry-run"], options].concat())
}

/// Returns the errors of a shell that parses a script without running it.
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
    let options: [&[&str]; 12] = [
        &[],
        &gate,
        &[&gate[..], &["--gate-first"]].concat(),
        &stress,
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
        let is_built = options.contains(&"--boards");
        assert_eq!(script.contains("driver_override"), is_built, "{options:?}: a NIC for vfio");
        assert!(!script.contains("chrt"), "{options:?}: threads of this machine");
        let gated = options.contains(&"--gate");
        assert_eq!(script.contains("taprio"), gated, "{options:?}");
    }
    assert_ne!(syntax("if"), "", "it would say so");
}

#[test]
fn scripts_match_the_lab() {
    let file = gates("lab-dry-run-golden", GATES);
    let load = ["--gate", &file, "--stress", "3"];
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

/// Returns the scripts for two boards with one kind of bridge.
fn boards(kind: &str) -> String {
    script(&[&["--bridge", kind, "--boards", "eth1,eth2"], &GUEST[..]].concat())
}

#[test]
fn xdp_gets_all_frames_of_a_nic_with_their_tags() {
    let (promiscuous, tagged) =
        ("\nip link set eth2 promisc on\n", "\nethtool -K eth2 rxvlan off\n");
    for kind in ["xdp", "xdp-generic", "ovs-afxdp", "linux", "macvtap", "ovs", "ovs-user", "vfio"] {
        let lines = boards(kind);
        let is_xdp = ["xdp", "xdp-generic", "ovs-afxdp"].contains(&kind);
        assert_eq!(lines.contains(promiscuous), is_xdp, "{lines}");
        // Generic XDP receives frames whose tag the NIC has not removed.
        assert_eq!(lines.contains(tagged), is_xdp && kind != "xdp-generic", "{lines}");
    }
}

#[test]
fn bridges_that_no_lab_can_build_are_comments() {
    let vfio = script(&["--bridge", "vfio"]);
    assert!(
        vfio.contains("\n# Bridge: vfio\n# It is not built: vfio needs two machines"),
        "{vfio}"
    );
    assert!(!vfio.contains("ip netns"), "{vfio}");
    let macvtap = script(&["--bridge", "macvtap", "--guest", "g0,02:00:5e:10:00:02"]);
    assert!(
        macvtap.contains("# It is not built: a macvtap device is the guest's own"),
        "{macvtap}"
    );
    assert!(!macvtap.contains("ip netns"), "{macvtap}");
}

/// Creates a folder with the script and this program. Returns the folder, and a line that runs the
/// script.
fn to_run(name: &str, options: &[&str]) -> (PathBuf, String) {
    let folder = scratch(name);
    symlink(env!("CARGO_BIN_EXE_farlane"), folder.join("farlane")).unwrap();
    std::fs::write(folder.join("lab.sh"), script(options)).unwrap();
    let path = text(&folder);
    (folder, format!("out={path} PATH=\"{path}:$PATH\" sh {path}/lab.sh"))
}

/// A script removes only namespaces that it has created.
#[test]
fn script_keeps_foreign_namespaces() {
    alone("cli::lab::dry_run::script_keeps_foreign_namespaces", || {
        let (_, line) = to_run("lab-script-stranger", &["--count", "30"]);
        sh("ip netns add farlane-bridge && mkdir -p /run/farlane-lab/farlane");
        sh("echo run true >/run/farlane-lab/farlane/journal");
        sh(&format!("! {line}"));
        assert_eq!(sh("ip netns list"), "farlane-bridge\n");
        assert_eq!(sh("cat /run/farlane-lab/*/*"), "run true\n");
        sh("ip netns delete farlane-bridge && mkdir /run/farlane-lab/farlane.script");
        sh(&format!("! {line}"));
        assert_eq!(sh("ls /run/farlane-lab; ip netns list"), "farlane\nfarlane.script\n");
        sh(&format!("rmdir /run/farlane-lab/farlane.script && {line}"));
        assert_eq!(sh("ls /run/farlane-lab; ip netns list"), "farlane\n");
    });
}

#[test]
fn a_script_measures_and_leaves_nothing() {
    alone("cli::lab::dry_run::a_script_measures_and_leaves_nothing", || {
        let load = ["--stress", "1", "--stress-rate", "1M"];
        let twice = ["--bridge", "linux,linux", "--count", "30"];
        let (folder, line) = to_run("lab-script", &[&twice[..], &load].concat());
        iperf3(&folder, "exec sleep 5201");
        sh(&line);
        for run in ["idle", "loaded"] {
            for end in ["talk", "listen"] {
                let file = folder.join(format!("linux-{run}-{end}.json"));
                let document = parsed(&std::fs::read_to_string(&file).unwrap());
                assert_eq!(document["counts"]["received"], 30, "{run}: {end}");
                assert_eq!(document["label"], format!("linux, {run}"));
            }
        }
        assert_eq!(sh("ip netns list"), "");
        assert_eq!(sh("ls /run/farlane-lab"), "");
        assert_eq!(super::programs("iperf3"), []);
    });
}
