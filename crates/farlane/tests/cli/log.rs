//! The log of nodes: lines with time and level, JSON, the form for systemd's journal.

use crate::support::process::LIMIT;
use crate::support::program::{farlane, ping, scratch, text};
use crate::support::{ANY, HostNode, Node, Process};
use chrono::{DateTime, SubsecRound, Utc};
use rustix::process::Signal;
use serde_json::{Map, Value};
use std::fmt::Display;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::process::Command;
use std::time::SystemTime;

/// Sends bytes of another protocol. Returns the address of the sender.
fn intrude(address: impl Display) -> SocketAddr {
    let mut stream = TcpStream::connect(address.to_string()).unwrap();
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    stream.local_addr().unwrap()
}

/// Returns the text that a node has written to stderr.
fn log(folder: &Path, name: &str) -> String {
    std::fs::read_to_string(folder.join(format!("{name}.err"))).unwrap()
}

/// Returns time, level and message of each line.
#[track_caller]
fn lines(log: &str) -> Vec<(DateTime<Utc>, &str, &str)> {
    let parts = |line| {
        let mut parts = str::splitn(line, 3, ' ');
        let [time, level, message] = [(); 3].map(|()| parts.next().expect(line));
        let form = "2026-11-28T21:30:00.123Z";
        assert!(time.len() == form.len() && time.ends_with('Z'), "{line}");
        (time.parse().expect("a time of RFC 3339"), level, message)
    };
    log.lines().map(parts).collect()
}

/// The time in milliseconds.
fn now() -> DateTime<Utc> {
    DateTime::<Utc>::from(SystemTime::now()).trunc_subsecs(3)
}

#[test]
fn lines_of_a_node_begin_with_time_and_level() {
    let folder = scratch("log-text");
    let begin = now();
    let device = Node::device_at(ANY, &folder, "device", &["ram=1M"], &["--log-level", "debug"]);
    let intruder = intrude(device.address());
    device.process.line("rejected ");
    ping(&device.address().to_string(), "1");
    device.process.line(" detached");
    device.process.signal(Signal::USR1);
    device.process.line("uplink: rejected: ");
    device.stop();
    let log = log(&folder, "device");
    let lines = lines(&log);
    assert!(lines.is_sorted_by_key(|(time, ..)| *time), "{log}");
    assert!(lines[0].0 >= begin && lines.last().unwrap().0 <= now(), "{log}");
    for (level, begin) in [
        ("DEBUG", "ready, status for the service manager: listening on 127.0.0.1:"),
        ("INFO", "listening on 127.0.0.1:"),
        ("WARN", &format!("rejected {intruder}: the far side does not use farlane's protocol")),
        ("INFO", "host 127.0.0.1:"),
        ("INFO", "uplink: rejected: turned_away 1"),
        ("INFO", "all data are on the media"),
    ] {
        let found = lines.iter().find(|(.., message)| message.starts_with(begin));
        assert_eq!(found.map(|found| found.1), Some(level), "'{begin}' in {log}");
    }
}

#[test]
fn log_level_leaves_out_less_severe_events() {
    let folder = scratch("log-level");
    let device = Node::device(&folder, "device", &["ram=1M"]);
    let (far, sockets) = (device.address().to_string(), text(&folder.join("sockets")));
    let options = ["host", "--connect", &far, "--vfio-user", &sockets, "--log-level", "warn"];
    let mut host = Process::start(&mut farlane(&options), "host", &folder);
    host.stdout.wait_for("-device", LIMIT);
    device.stop();
    host.line("port 0: link down: ");
    // Another drive at this address.
    let again = Node::device_at(&far, &folder, "again", &["ram=1M"], &[]);
    host.line("endpoint 0: has changed");
    assert!(host.interrupt().success());
    again.stop();
    let host = log(&folder, "host");
    for (_, level, message) in lines(&host) {
        let changed = message.starts_with("endpoint 0: has changed");
        assert_eq!(level, if changed { "ERROR" } else { "WARN" }, "{host}");
    }
    assert!(!log(&folder, "device").contains(" DEBUG "), "the default is info");
}

#[test]
fn json_log_has_an_object_per_line() {
    let folder = scratch("log-json");
    let json = ["--log-format", "json"];
    let options = [&json[..], &["--listen", ANY]].concat();
    let arguments = [&["device", "--listen", ANY, "--namespace", "ram=1M"], &options[..]].concat();
    let mut device = Process::start(&mut farlane(&arguments), "device", &folder);
    let listening = |line: String| -> SocketAddr {
        let line: Map<String, Value> = serde_json::from_str(&line).expect("an object");
        let message = line["message"].as_str().unwrap();
        message.split_once("listening on ").unwrap().1.parse().unwrap()
    };
    let addresses = [(); 2].map(|()| listening(device.line("listening on ")));
    let host = HostNode::start(&folder, "host", &addresses, &json);
    device.line("controller 1: host ");
    let intruder = intrude(addresses[1]);
    device.line("rejected ");
    assert!(device.interrupt().success());
    host.process.line("port 1: link down: ");
    host.stop();
    let [device, host] = ["device", "host"].map(|name| {
        let parsed = |line: &str| serde_json::from_str::<Map<_, _>>(line).expect("an object");
        log(&folder, name).lines().map(parsed).collect::<Vec<Map<String, Value>>>()
    });
    for line in device.iter().chain(&host) {
        let time = line["time"].as_str().expect("a time");
        assert!(time.parse::<DateTime<Utc>>().is_ok_and(|time| time <= now()), "{time}");
        assert!(["INFO", "WARN"].contains(&line["level"].as_str().unwrap()), "{line:?}");
    }
    let found = |lines: &[Map<String, Value>], begin: &str| {
        let begins = |line: &&Map<_, _>| line["message"].as_str().unwrap().starts_with(begin);
        let mut line = lines.iter().find(begins).unwrap_or_else(|| panic!("{begin}")).clone();
        ["time", "message"].iter().for_each(|key| drop(line.remove(*key)));
        Value::Object(line)
    };
    let rejected = found(&device, "controller 2: rejected ");
    let expected =
        serde_json::json!({"level": "WARN", "controller": 2, "peer": intruder.to_string()});
    assert_eq!(rejected, expected);
    let attached = found(&device, "controller 1: host ");
    assert!(attached["peer"].as_str().unwrap().starts_with("127.0.0.1:"), "{attached}");
    let level = serde_json::json!({"level": "INFO"});
    assert_eq!(found(&host, "ready"), level, "no further fields");
    let endpoint = serde_json::json!({"level": "INFO", "endpoint": 1});
    assert_eq!(found(&host, "endpoint 1: PCI address "), endpoint);
    let port = serde_json::json!({"level": "WARN", "port": 1});
    assert_eq!(found(&host, "port 1: link down: "), port);
}

/// Starts a device node whose JOURNAL_STREAM is the result of a shell command.
fn with_journal_stream(folder: &Path, name: &str, stream: &str) -> Process {
    let script = format!("JOURNAL_STREAM=$({stream}) exec \"$@\"");
    let node = farlane(&["device", "--listen", ANY, "--namespace", "ram=1M"]);
    let mut command = Command::new("sh");
    command.args(["-c", &script, "sh"]).arg(node.get_program()).args(node.get_args());
    Process::start(&mut command, name, folder)
}

#[test]
fn journal_receives_priorities_instead_of_times() {
    let folder = scratch("log-journal");
    let mut node = with_journal_stream(&folder, "journal", "stat -L -c %d:%i /dev/stderr");
    intrude(node.listens());
    node.line("rejected ");
    assert!(node.interrupt().success());
    let journal = log(&folder, "journal");
    for line in journal.lines() {
        let priority = if line.contains("rejected ") { "<4>rejected " } else { "<6>" };
        assert!(line.starts_with(priority), "{line}");
    }
    // Stderr is not the stream: for example, a shell has redirected it.
    let mut node = with_journal_stream(&folder, "other", "stat -L -c %d:%i /");
    node.listens();
    assert!(node.interrupt().success());
    assert!(!lines(&log(&folder, "other")).is_empty());
}

#[test]
fn control_characters_of_a_name_make_no_line() {
    let folder = scratch("log-names");
    let trace = folder.join("x\n2026-11-28T21:30:00.123Z INFO forged\r\x1b[2K\u{9b}1A");
    let device = Node::device_at(ANY, &folder, "device", &["ram=1M"], &["--trace", &text(&trace)]);
    device.process.signal(Signal::USR2);
    let line = device.process.line("SIGUSR2 starts it again");
    let name = "/x\\n2026-11-28T21:30:00.123Z INFO forged\\r\\u{1b}[2K\\u{9b}1A stopped";
    assert!(line.contains(name), "{line}");
    device.stop();
    let log = log(&folder, "device");
    assert!(lines(&log).iter().all(|(.., message)| !message.starts_with("forged")), "{log}");
}
