//! Running the program, with every wait bounded.

use crate::cli::json_document::has_its_schema;
use crate::support::{Process, folder};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const PROGRAM: &str = env!("CARGO_BIN_EXE_farlane");

pub fn farlane(arguments: &[&str]) -> Command {
    let mut command = Command::new(PROGRAM);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs the command to its end; kills it after a time limit.
pub fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    let output = command.args(["--signal=KILL", "300", PROGRAM]).args(arguments).output();
    output.expect("timeout runs")
}

/// Standard output of a command that succeeds; stderr is ignored.
#[track_caller]
pub fn succeeds(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// What a command that succeeds prints, and nothing on stderr.
#[track_caller]
pub fn prints(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The document of a command that succeeds with an empty stderr.
#[track_caller]
pub fn json(arguments: &[&str]) -> Value {
    parsed(&prints(arguments))
}

/// The document of a command that succeeds.
#[track_caller]
pub fn document(arguments: &[&str]) -> Value {
    parsed(&succeeds(arguments))
}

/// One document, as its schema describes it.
#[track_caller]
pub fn parsed(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).expect("one JSON document");
    has_its_schema(&document);
    document
}

/// A page that a command wrote: whole, and nothing leads out of it.
#[track_caller]
pub fn page(path: impl AsRef<Path>) -> String {
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for wrong in ["NaN", "src=", "href=", "<script", "@import"] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    page
}

/// The command fails with status 1, without output, and with one line on stderr that has every part.
#[track_caller]
pub fn fails(arguments: &[&str], parts: &[&str]) {
    ends(1, arguments, parts);
}

/// [`fails`] with status 2: wrong usage that clap does not detect.
#[track_caller]
pub fn is_refused(arguments: &[&str], parts: &[&str]) {
    ends(2, arguments, parts);
}

#[track_caller]
fn ends(status: i32, arguments: &[&str], parts: &[&str]) {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(status), "{arguments:?}: {output:?}");
    let line = one_line(&output);
    assert!(line.starts_with("farlane: "), "{line}");
    parts.iter().for_each(|part| assert!(line.contains(part), "no '{part}' in: {line}"));
    assert!(output.stdout.is_empty());
}

/// Standard error of a command that fails with status 2.
#[track_caller]
pub fn is_wrong_usage(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// The only line of stderr.
#[track_caller]
pub fn one_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "one line of error, not: {text}");
    text.trim_end().to_owned()
}

/// An empty folder of that name.
pub fn scratch(name: &str) -> PathBuf {
    folder::empty("cli", name)
}

pub fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// A node that runs until it is dropped.
pub fn node(arguments: &[&str]) -> Process {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("node-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    Process::start(&mut farlane(arguments), &name, Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// A device node on any free port, with further `options`, and its address.
pub fn device(namespace: &str, options: &[&str]) -> (Process, String) {
    let arguments = ["device", "--listen", "127.0.0.1:0", "--namespace", namespace];
    let node = node(&[&arguments[..], options].concat());
    let address = node.listens();
    (node, address)
}

/// A device's address answers `farlane ping`, which measures `count` times.
#[track_caller]
pub fn ping(address: &str, count: &str) -> String {
    succeeds(&["ping", address, "--count", count])
}

/// The path of a plan that comes with the program.
pub fn plan_of(name: &str) -> String {
    format!("{}/../../plans/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}
