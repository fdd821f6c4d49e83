//! `farlane latency lab` on the kernel of this machine. Times depend on the machine: no test looks at
//! how long anything took.

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
/// Where a lab without a name keeps its files.
const FOLDER: &str = "/run/farlane-lab/farlane";
/// Gate 3 is open for the second half of each 20 ms, and all others but gate 7 for the first one;
/// gate 7 is always open, and gate 6 never.
const GATES: &str = "base-time 0\nsched-entry S b7 10ms\nsched-entry S 88 10ms\n";

/// Runs the body of the test `name` in namespaces of its own for networks, mounts and processes, with
/// an empty /run. Whatever it leaves ends with them.
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
    // Whoever is not root may make the others in a user namespace.
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
    // Written around the harness, which hides the output of tests that pass.
    let missing = errors.lines().filter(|line| line.starts_with("NOT TESTED"));
    missing.for_each(|line| drop(writeln!(std::io::stderr(), "{line}")));
}

fn lab(options: &[&str]) -> Output {
    run(&[&["latency", "lab"], options].concat())
}

/// A file of gates.
fn gates(name: &str, list: &str) -> String {
    let path = scratch(name).join("gates.txt");
    std::fs::write(&path, list).unwrap();
    text(&path)
}

/// What a line of a shell prints.
#[track_caller]
fn sh(line: &str) -> String {
    let output = Command::new("timeout").args(["60", "sh", "-c", line]).output().unwrap();
    assert!(output.status.success(), "{line}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

/// A program in iperf3's place in a folder: its server listens, and this is what its client does. The
/// path of programs that begins with the folder.
fn iperf3(folder: &Path, client: &str) -> String {
    let program = folder.join("iperf3");
    let server = "echo Server listening; exec sleep 5201";
    let script = format!("#!/bin/sh\n[ $1 = -c ] || {{ {server}; }}\n{client}\n");
    std::fs::write(&program, script).unwrap();
    std::fs::set_permissions(&program, Permissions::from_mode(0o755)).unwrap();
    format!("{}:{}", text(folder), std::env::var("PATH").unwrap())
}

/// Running programs of the lab: `farlane latency` with this word, or the server of `iperf3`.
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

/// Every line of the lab's journal.
fn journal() -> Vec<String> {
    let text = std::fs::read_to_string(format!("{FOLDER}/journal")).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// No namespace, no process, no file but an empty journal.
#[track_caller]
fn nothing_is_left() {
    assert_eq!(sh("ip netns list"), "");
    for word in ["talk", "listen", "redirect", "iperf3"] {
        assert_eq!(programs(word), [], "{word}");
    }
    let files = sh(&format!("ls {FOLDER}"));
    assert_eq!((&files[..], journal().len()), ("journal\n", 0), "{:?}", journal());
}
