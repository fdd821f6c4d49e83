//! `farlane latency lab` on the kernel of this machine. No test checks how long anything took,
//! because times depend on the machine.

mod bridges;
mod dry_run;
mod ends;
mod guests;
mod mistakes;

use crate::support::program::{run, scratch, text};
use rustix::process::Pid;
use std::fs::Permissions;
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::{Command, Output};

const INSIDE: &str = "FARLANE_TEST_ALONE";
/// Folder with the files of a lab without a name.
const FOLDER: &str = "/run/farlane-lab/farlane";
/// In a cycle of 20 ms, gate 3 is open in the second half and gate 7 always. Gate 6 is never open.
/// The other gates are open in the first half.
const GATES: &str = "base-time 0\nsched-entry S b7 10ms\nsched-entry S 88 10ms\n";

/// Runs the body of the test `name` in its own namespaces for networks, mounts and processes, with
/// an empty /run. Everything that the body leaves ends with the namespaces.
fn alone(name: &str, body: impl FnOnce()) {
    if std::env::var_os(INSIDE).is_some() {
        return body();
    }
    let unshare = |user: &[&str]| {
        let mut command = Command::new("unshare");
        command.args(user).args(["--net", "--mount", "--pid", "--fork", "--kill-child"]);
        command.args(["--mount-proc", "sh", "-c", "mount -t tmpfs none /run && exec \"$@\"", "sh"]);
        command
    };
    // Users other than root can create these namespaces in a user namespace.
    let ways = [&[][..], &["--user", "--map-root-user"]];
    let works =
        |user: &&&[&str]| unshare(user).arg("true").output().is_ok_and(|o| o.status.success());
    let way = ways.iter().find(works).expect("namespaces can be made (unshare of util-linux)");
    let mut again = unshare(way);
    again.arg(std::env::current_exe().unwrap()).args(["--exact", name, "--nocapture"]);
    let output = again.env(INSIDE, "1").output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && said.contains("1 passed"), "{said}{errors}");
    // Printed directly, because the test harness hides the output of tests that pass.
    let missing = errors.lines().filter(|line| line.starts_with("NOT TESTED"));
    missing.for_each(|line| drop(writeln!(std::io::stderr(), "{line}")));
}

fn lab(options: &[&str]) -> Output {
    run(&[&["latency", "lab"], options].concat())
}

/// Writes a gate control list to a file; returns the path.
fn gates(name: &str, list: &str) -> String {
    let path = scratch(name).join("gates.txt");
    std::fs::write(&path, list).unwrap();
    text(&path)
}

/// Returns the standard output of a shell line.
#[track_caller]
fn sh(line: &str) -> String {
    let output = Command::new("timeout").args(["60", "sh", "-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// Creates a program in `folder` that replaces iperf3: the server listens, and the client runs the
/// shell line `client`. Returns PATH with the folder first.
fn iperf3(folder: &Path, client: &str) -> String {
    let program = folder.join("iperf3");
    let server = "echo Server listening; exec sleep 5201";
    let script = format!("#!/bin/sh\n[ $1 = -c ] || {{ {server}; }}\n{client}\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", text(folder), std::env::var("PATH").unwrap())
}

/// Returns the running programs of the lab: `farlane latency` with this word, or the server of
/// `iperf3`.
fn programs(word: &str) -> Vec<Pid> {
    let is_one = |path: &Path| {
        let line = std::fs::read_to_string(path.join("cmdline")).unwrap_or_default();
        let words: Vec<&str> = line.split('\0').collect();
        match words[..] {
            ["farlane", "latency", found, ..] => found == word,
            ["sleep", "5201", ""] => word == "iperf3",
            _ => false,
        }
    };
    let all = std::fs::read_dir("/proc").unwrap().map(|entry| entry.unwrap().path());
    let found = all.filter(|path| is_one(path));
    found.filter_map(|path| Pid::from_raw(path.file_name()?.to_str()?.parse().ok()?)).collect()
}

/// Returns all lines of the lab's journal.
fn journal() -> Vec<String> {
    let text = std::fs::read_to_string(format!("{FOLDER}/journal")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Checks that the lab has left no namespace, no process, and no file except an empty journal.
#[track_caller]
fn nothing_is_left() {
    assert_eq!(sh("ip netns list"), "");
    for word in ["talk", "listen", "redirect", "iperf3"] {
        assert_eq!(programs(word), [], "{word}");
    }
    let files = sh(&format!("ls {FOLDER}"));
    assert_eq!((&files[..], journal().len()), ("journal\n", 0), "{:?}", journal());
}
