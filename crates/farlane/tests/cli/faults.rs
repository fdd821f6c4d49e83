//! Faults at planned times: `--fault`.

use crate::support::process::wait_until;
use crate::support::program::{device, document, is_wrong_usage, ping, prints, run, scratch, text};
use std::time::Instant;

const LOAD: [&str; 8] = ["--rw", "randread", "--bs", "4k", "--size", "1M", "--number_ios", "200"];

fn load(address: &str) -> (bool, String) {
    let output = run(&[&["io", "--connect", address], &LOAD[..]].concat());
    (output.status.success(), String::from_utf8_lossy(&output.stderr).into_owned())
}

#[test]
fn invalid_faults_are_wrong_usage() {
    for (command, fault, parts) in [
        ("device", "latte=5ms", &["'latte'; did you mean 'late'?", "lost-completion"][..]),
        ("device", "error=medi", &["did you mean 'media'?", "no-space"]),
        ("device", "late=5", &["late=5: expected a time such as 5ms"]),
        ("switch", "poison", &["a fault of a drive: expected link-down or stop"]),
    ] {
        let error = is_wrong_usage(&[command, "--fault", fault]);
        let option = format!("invalid value '{fault}' for '--fault <FAULT>'");
        for part in [&[&option[..]], parts].concat() {
            assert!(error.contains(part), "{part}: {error}");
        }
    }
}

#[test]
fn an_error_of_the_media_fails_the_command_and_is_in_the_trace() {
    let trace = text(&scratch("faults").join("device.trace"));
    let options =
        ["--fault", "error=media,count=1", "--fault", "late=1ms,nsid=2", "--trace", &trace];
    let (mut node, address) = device("ram=1M", &options);
    let (ran, log) = load(&address);
    assert!(!ran && log.contains("UNRECOVERED_READ_ERROR"), "{log}");
    node.line("fault begins: error=media,count=1");
    assert!(load(&address).0, "the fault is used up");
    assert!(node.interrupt().success());
    assert!(!node.stderr.text().contains("late"), "no namespace 2");
    let shown = prints(&["trace", &trace, "--limit", "1"]);
    assert!(shown.contains("1  planned fault\n"), "{shown}");
    assert!(shown.contains(": error=media,count=1 ("), "{shown}");
}

/// Not only when the node next sends a keepalive, which is after 100 ms.
#[test]
fn a_late_access_begins_when_it_is_due() {
    let (_node, address) = device("ram=1M", &["--fault", "late=3ms"]);
    let found = document(&["io", "--connect", &address, "--rw", "read", "--bs", "64k", "--json"]);
    let fastest = found["sections"][0]["all"]["min_ns"].as_u64().unwrap();
    assert!((3_000_000..50_000_000).contains(&fastest), "{fastest} ns");
}

#[test]
fn a_link_that_is_down_comes_back() {
    let (mut node, address) = device("ram=1M", &["--fault", "link-down,at=50ms,for=1s"]);
    node.line("fault begins: link-down,at=50ms,for=1s");
    assert!(!run(&["ping", &address, "--count", "1"]).status.success());
    wait_until("the link is up", || run(&["ping", &address, "--count", "1"]).status.success());
    assert!(node.interrupt().success());
}

#[test]
fn a_stopped_node_is_silent_and_ends_at_a_signal() {
    let (mut node, address) = device("ram=1M", &["--fault", "stop,at=500ms"]);
    ping(&address, "1");
    node.line("fault begins: stop,at=500ms");
    let begin = Instant::now();
    let silent = run(&["ping", &address, "--count", "1"]);
    assert!(!silent.status.success() && begin.elapsed().as_millis() > 500, "{silent:?}");
    let begin = Instant::now();
    assert!(node.interrupt().success());
    assert!(begin.elapsed().as_millis() < 900, "it does not wait");
}

#[test]
fn nothing_happens_without_the_option() {
    let (mut node, address) = device("ram=1M", &[]);
    assert!(load(&address).0);
    assert!(node.interrupt().success());
    assert!(!node.stderr.text().contains("fault"));
}
