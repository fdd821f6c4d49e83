//! Standard output and standard error that are full or closed.

use crate::support::program::{farlane, one_line, ping, plan_of as plan, scratch};
use crate::support::transcript::message;
use std::fs::OpenOptions;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

fn commands() -> [String; 6] {
    let tcp = plan("tcp");
    [
        format!("sim {tcp}"),
        format!("sim {tcp} --json"),
        format!("sim {tcp} --sweep drive.mps=128,256"),
        "reproduce nvme-tsn --only table".to_owned(),
        "reproduce nvme-tsn --only table --json".to_owned(),
        "demo --count 100".to_owned(),
    ]
}

/// Returns the command for this line.
fn command(line: &str) -> Command {
    farlane(&line.split(' ').collect::<Vec<_>>())
}

#[test]
fn full_disk_is_a_one_line_error() {
    for line in commands() {
        let full = OpenOptions::new().write(true).open("/dev/full").unwrap();
        let child = command(&line).stdout(full).spawn().unwrap();
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{line}");
        let wanted = "farlane: standard output: No space left on device (os error 28)";
        assert_eq!(one_line(&output), wanted, "{line}");
    }
}

#[test]
fn closed_pipe_is_no_error() {
    for line in commands() {
        let mut child = command(&line).spawn().unwrap();
        drop(child.stdout.take());
        let output = child.wait_with_output().unwrap();
        let log = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), &*log), (Some(0), ""), "{line}");
    }
}

#[test]
fn exit_status_is_kept_with_closed_stderr() {
    let mut child = farlane(&["sim", "/nonexistent"]).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    assert_eq!(child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_node_outlives_the_reader_of_its_log() {
    let arguments = ["device", "--listen", "127.0.0.1:0", "--namespace", "ram=1M"];
    let mut node = farlane(&arguments).spawn().unwrap();
    let mut lines = BufReader::new(node.stderr.take().unwrap()).lines().map_while(Result::ok);
    let address =
        lines.find_map(|line| Some(message(&line).strip_prefix("listening on ")?.to_owned()));
    drop(lines);
    (0..4).for_each(|_| _ = ping(address.as_ref().expect("an address"), "10"));
    let pid = rustix::process::Pid::from_child(&node);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    assert_eq!(node.wait().unwrap().code(), Some(0));
}

/// Returns the document that a command prints on standard output.
#[track_caller]
fn document(folder: &Path, line: &str) -> Vec<u8> {
    let output = command(line).current_dir(folder).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success() && errors.is_empty(), "{line}: {errors}");
    output.stdout
}

#[test]
fn dash_writes_to_standard_output() {
    let folder = scratch("dash");
    let tcp = plan("tcp");
    document(&folder, &format!("sim {tcp} --trace run.trace"));
    for (line, first, last) in [
        (&*format!("sim {tcp} --html -"), "<!doctype html>", "</html>\n"),
        (&format!("sim {tcp} --sweep drive.mps=128,256 --html -"), "<!doctype html>", "</html>\n"),
        (&format!("sim {tcp} --set workload.count=7 --dump -"), "transport = ", "count = 7\n"),
        ("reproduce nvme-tsn --only table --html -", "<!doctype html>", "</html>\n"),
        ("trace run.trace --svg -", "<svg ", "</svg>\n"),
        ("trace run.trace --html -", "<!doctype html>", "</html>\n"),
        ("trace run.trace --perfetto -", "{", "}\n"),
    ] {
        let text = String::from_utf8(document(&folder, line)).expect("UTF-8");
        let both = text.starts_with(first) && text.ends_with(last);
        assert!(both, "{line}: {:?}", text.chars().take(40).collect::<String>());
    }
    for line in [&*format!("sim {tcp} --pcapng -"), "trace run.trace --pcapng -"] {
        // The section header (pcapng, section 4.1).
        assert!(document(&folder, line).starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]), "{line}");
    }
    let files: Vec<_> =
        std::fs::read_dir(&folder).unwrap().map(|f| f.unwrap().file_name()).collect();
    assert!(!files.contains(&"-".into()), "{files:?}");
}

#[test]
fn dump_with_the_extension_of_graphviz_is_a_graph() {
    let folder = scratch("dot");
    document(&folder, &format!("sim {} --dump net.dot", plan("tcp")));
    let graph = std::fs::read_to_string(folder.join("net.dot")).unwrap();
    assert!(graph.starts_with("graph {\n  \"host\" [shape=box]\n"), "{graph}");
}

#[test]
fn two_documents_on_standard_output_are_wrong_usage() {
    let folder = scratch("owner");
    let tcp = plan("tcp");
    let plan = "[workload]\nconfigreads = 1\n[record]\nreport = \"-\"\n";
    std::fs::write(folder.join("p.toml"), plan).unwrap();
    for (line, status, wanted) in [
        (&*format!("sim {tcp} --json --html -"), 2, "--html and --json cannot share standard"),
        ("trace x --svg - --html -", 2, "--svg and --html cannot share standard output"),
        (&format!("sim {tcp} --trace -"), 2, "a trace cannot go to standard output"),
        ("device --namespace ram=1M --trace -", 2, "a trace cannot go to standard output"),
        ("sim p.toml", 1, "p.toml:4:10: report: expected a file"),
    ] {
        let output = command(line).current_dir(&folder).output().unwrap();
        let errors = String::from_utf8_lossy(&output.stderr).into_owned();
        assert_eq!(output.status.code(), Some(status), "{line}: {errors}");
        assert!(errors.contains(wanted) && output.stdout.is_empty(), "{line}: {errors}");
    }
    // A terminal gets no bytes of a capture.
    let terminal = OpenOptions::new().read(true).write(true).open("/dev/ptmx").unwrap();
    let child = farlane(&["sim", &tcp, "--pcapng", "-"]).stdout(terminal).spawn().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(
        one_line(&output),
        "farlane: standard output is a terminal, and the output is not text"
    );
}
