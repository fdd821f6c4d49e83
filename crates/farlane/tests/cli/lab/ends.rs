//! The lab removes everything that it created, however it ends.

use super::{FOLDER, alone, iperf3, journal, lab, nothing_is_left, programs, sh};
use crate::support::Process;
use crate::support::process::wait_until;
use crate::support::program::{farlane, node, one_line, parsed, run, scratch, text};
use rustix::process::{Pid, Signal, kill_process};
use std::io::Write;
use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Command};
use std::time::Duration;

/// Starts a lab, and waits until talker and listener run and are in the journal.
fn at_work(options: &[&str]) -> Process {
    let lab = node(&[&["latency", "lab"], options].concat());
    wait_until("talker and listener", || {
        std::thread::sleep(Duration::from_millis(10));
        let ends = ["talk", "listen"].iter().all(|word| programs(word).len() == 1);
        ends && journal().iter().filter(|line| line.starts_with("kill ")).count() == 2
    });
    lab
}

#[test]
fn an_interrupted_lab_prints_what_it_has_and_a_second_one_waits_for_its_name() {
    let name = "cli::lab::ends::\
                an_interrupted_lab_prints_what_it_has_and_a_second_one_waits_for_its_name";
    alone(name, || {
        let mut first = at_work(&["--count", "100000", "--json"]);
        let second = lab(&["--count", "10"]);
        assert_eq!(second.status.code(), Some(1));
        assert!(one_line(&second).contains("a lab of this name is running"));
        assert_eq!(programs("talk").len(), 1, "the first one goes on");
        let other = lab(&["--count", "10", "--name", "other"]);
        assert!(other.status.success(), "{}", String::from_utf8_lossy(&other.stderr));
        assert!(first.interrupt().success());
        let document = parsed(&first.stdout.text());
        let bridge = &document["bridges"][0];
        assert_eq!([&document["ended"], &bridge["outcome"]], ["interrupted"; 2]);
        let talk = &bridge["runs"][0]["talk"];
        assert_eq!(talk["ended"], "interrupted");
        assert!(talk["counts"]["received"].as_u64() > Some(0), "{}", talk["counts"]);
        nothing_is_left();
    });
}

#[test]
fn a_program_that_is_killed_is_named() {
    alone("cli::lab::ends::a_program_that_is_killed_is_named", || {
        for (word, says) in [("talk", "the talker"), ("listen", "the listener")] {
            // Without a listener, the talker sends all its frames, so there are few.
            let mut lab = at_work(&["--count", if word == "talk" { "100000" } else { "500" }]);
            kill_process(programs(word)[0], Signal::KILL).unwrap();
            assert_eq!(lab.wait().code(), Some(1));
            lab.line(&format!("farlane: linux: failed: idle: {says}: signal: 9 (SIGKILL)"));
            nothing_is_left();
        }
    });
}

/// Starts a process that does nothing. Also returns its start time (proc_pid_stat(5), field 22).
fn sleeper() -> (Child, u64) {
    let child = Command::new("sleep").arg("1000").spawn().unwrap();
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", child.id())).unwrap();
    (child, stat.split(' ').nth(21).unwrap().parse().unwrap())
}

#[test]
fn next_lab_removes_rest_of_killed_lab() {
    alone("cli::lab::ends::next_lab_removes_rest_of_killed_lab", || {
        let mut killed = at_work(&["--count", "100000"]);
        killed.kill();
        let left: Vec<Pid> = ["talk", "listen"].map(programs).concat();
        assert_eq!((left.len(), sh("ip netns list").lines().count()), (2, 3));
        let [(mut own, start), (mut other, later)] = [sleeper(), sleeper()];
        let path = format!("{FOLDER}/journal");
        let mut file = std::fs::OpenOptions::new().append(true).open(path).unwrap();
        // The second line has the number of a process that started at another time.
        writeln!(file, "kill {} {start}\nkill {} {}", own.id(), other.id(), later + 1).unwrap();
        let next = run(&["latency", "lab", "--count", "20"]);
        // Seven actions: three namespaces, talker, listener, and two lines of this test.
        let errors = String::from_utf8_lossy(&next.stderr);
        assert!(next.status.success(), "{errors}");
        assert!(errors.contains("took down what an earlier lab left (7 things)"), "{errors}");
        assert!(String::from_utf8_lossy(&next.stdout).contains("linux   passes"));
        assert_eq!(own.wait().unwrap().signal(), Some(9));
        assert!(other.try_wait().unwrap().is_none(), "not the lab's");
        other.kill().unwrap();
        nothing_is_left();
    });
}

#[test]
fn a_namespace_that_is_not_the_labs_stays_as_it_is() {
    alone("cli::lab::ends::a_namespace_that_is_not_the_labs_stays_as_it_is", || {
        sh("ip netns add farlane-bridge && ip -n farlane-bridge link set lo up");
        let before = sh("ip -n farlane-bridge address");
        let output = lab(&["--count", "10"]);
        assert_eq!(output.status.code(), Some(1));
        let error = one_line(&output);
        let says = "the namespace farlane-bridge is not a lab's";
        assert!(error.contains(says) && error.contains("--name"), "{error}");
        assert_eq!(sh("ip -n farlane-bridge address"), before);
        assert_eq!(sh("ip netns list | wc -l").trim(), "1");
    });
}

#[test]
fn a_load_that_fails_is_named() {
    alone("cli::lab::ends::a_load_that_fails_is_named", || {
        let path = iperf3(&scratch("lab-load"), "echo no route >&2; exit 1");
        let load = ["latency", "lab", "--count", "50", "--stress", "1"];
        let output = farlane(&load).env("PATH", path).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert!(one_line(&output).contains("linux: failed: loaded: the load: no route"));
        nothing_is_left();
    });
}

#[test]
fn iperf3_that_is_missing_is_named_with_its_package() {
    alone("cli::lab::ends::iperf3_that_is_missing_is_named_with_its_package", || {
        let folder = scratch("lab-no-iperf3");
        for program in ["sh", "ip"] {
            let path = sh(&format!("command -v {program}"));
            std::os::unix::fs::symlink(path.trim(), folder.join(program)).unwrap();
        }
        let load = ["latency", "lab", "--count", "50", "--stress", "1"];
        let output = farlane(&load).env("PATH", text(&folder)).output().unwrap();
        assert_eq!(output.status.code(), Some(1));
        let missing = "iperf3 is missing: install the package iperf3";
        assert_eq!(one_line(&output), format!("farlane: linux: refused: {missing}"));
    });
}
