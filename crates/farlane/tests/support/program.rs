//! Runs the program with a time limit for every wait.

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

/// Runs the command to its end, and kills it after a time limit.
pub fn run(arguments: &[&str]) -> Output {
    let mut command = Command::new("timeout");
    let output = command.args(["--signal=KILL", "300", PROGRAM]).args(arguments).output();
    output.expect("timeout runs")
}

/// Returns the standard output of a command that succeeds. Standard error is ignored.
#[track_caller]
pub fn succeeds(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the standard output of a command that succeeds and prints nothing on stderr.
#[track_caller]
pub fn prints(arguments: &[&str]) -> String {
    let output = run(arguments);
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && errors.is_empty(), "{arguments:?}: {errors}");
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// Returns the document of a command that succeeds and prints nothing on stderr.
#[track_caller]
pub fn json(arguments: &[&str]) -> Value {
    parsed(&prints(arguments))
}

/// Returns the document of a command that succeeds.
#[track_caller]
pub fn document(arguments: &[&str]) -> Value {
    parsed(&succeeds(arguments))
}

/// Parses a document, and checks it against its schema.
#[track_caller]
pub fn parsed(text: &str) -> Value {
    let document: Value = serde_json::from_str(text).expect("one JSON document");
    has_its_schema(&document);
    document
}

/// Returns a page that a command wrote. Checks that the page is complete and refers to no other
/// file.
#[track_caller]
pub fn page(path: impl AsRef<Path>) -> String {
    let page = std::fs::read_to_string(path).unwrap();
    assert!(page.starts_with("<!doctype html>") && page.ends_with("</html>\n"));
    for wrong in ["NaN", "src=", "href=", "<script", "@import"] {
        assert!(!page.contains(wrong), "{wrong}");
    }
    page
}

/// Checks that the command fails with status 1, without output, and with one line on stderr that
/// has every part.
#[track_caller]
pub fn fails(arguments: &[&str], parts: &[&str]) {
    ends(1, arguments, parts);
}

/// As [`fails`], with status 2: wrong usage that clap does not detect.
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

/// Returns the standard error of a command that fails with status 2.
#[track_caller]
pub fn is_wrong_usage(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}");
    assert!(output.stdout.is_empty() && !output.stderr.is_empty());
    String::from_utf8(output.stderr).expect("UTF-8")
}

/// Returns the only line of standard error.
#[track_caller]
pub fn one_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "one line of error, not: {text}");
    text.trim_end().to_owned()
}

/// Creates an empty folder with this name.
pub fn scratch(name: &str) -> PathBuf {
    folder::empty("cli", name)
}

pub fn text(path: &Path) -> String {
    path.to_str().unwrap().to_owned()
}

/// Starts a node that runs until the value is dropped.
pub fn node(arguments: &[&str]) -> Process {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let name = format!("node-{}", COUNT.fetch_add(1, Ordering::Relaxed));
    Process::start(&mut farlane(arguments), &name, Path::new(env!("CARGO_TARGET_TMPDIR")))
}

/// Starts a device node on a free port, with further `options`. Returns the node and its address.
pub fn device(namespace: &str, options: &[&str]) -> (Process, String) {
    let arguments = ["device", "--listen", "127.0.0.1:0", "--namespace", namespace];
    let node = node(&[&arguments[..], options].concat());
    let address = node.listens();
    (node, address)
}

/// Runs `farlane ping` with `count` measurements, which must succeed. Returns the output.
#[track_caller]
pub fn ping(address: &str, count: &str) -> String {
    succeeds(&["ping", address, "--count", count])
}

/// Returns the path of a plan in `plans`.
pub fn plan_of(name: &str) -> String {
    format!("{}/../../plans/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}
