//! Standard output and standard error that are full, or that nobody reads.

use crate::process::{Node, farlane, one_line, run};
use std::fs::OpenOptions;
use std::process::Stdio;

fn plan(name: &str) -> String {
    format!("{}/../../plans/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

fn commands() -> Vec<Vec<String>> {
    let words = |line: &str| line.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let tcp = plan("tcp");
    vec![
        words(&format!("sim {tcp}")),
        words(&format!("sim {tcp} --json")),
        words(&format!("sim {tcp} --sweep drive.mps=128,256")),
        words("reproduce nvme-tsn --only table"),
        words("reproduce nvme-tsn --only table --json"),
        words("demo --samples 100"),
    ]
}

#[test]
fn a_full_disk_is_told_in_one_line() {
    for command in commands() {
        let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = farlane(&arguments).stdout(full).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{command:?}");
        let line = one_line(&output);
        assert_eq!(line, "farlane: standard output: No space left on device (os error 28)");
    }
}

#[test]
fn who_has_read_enough_is_no_fault() {
    for command in commands() {
        let arguments: Vec<&str> = command.iter().map(String::as_str).collect();
        let mut child = farlane(&arguments).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*said), (Some(0), ""), "{command:?}");
    }
}

#[test]
fn a_fault_keeps_its_status_when_nobody_reads_it() {
    let mut child = farlane(&["sim", "/nonexistent"]).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_node_outlives_the_reader_of_its_log() {
    let (mut node, address) = Node::device("ram=1M");
    node.ignore();
    for _ in 0..4 {
        let ping = run(&["ping", &address, "--count", "10"]);
        assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stderr));
    }
    assert_eq!(node.interrupt().code(), Some(0));
}
