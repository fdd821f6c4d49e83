//! Gates and marks of live links (docs/guide/priority.md).

use crate::support::isolated::isolated;
use crate::support::program::{device, document, fails, is_wrong_usage, node, scratch, text};
use latency_linux::Port;
use linux::time::tai_offset_s;
use linux::{Interface, Namespace};
use std::collections::BTreeMap;

/// Gate 5 is open for 2 ms of each 20 ms, the other gates for the remaining 18 ms.
const LIST: &str = "base-time 0\nsched-entry S 20 2ms\nsched-entry S df 18ms\n";

/// Writes a gate control list to a file; returns the path.
fn list(name: &str, text_: &str) -> String {
    let path = scratch(name).join("gates.txt");
    std::fs::write(&path, text_).unwrap();
    text(&path)
}

/// Returns options for a gate from this file, with a clock that every machine has.
fn gate(file: &str) -> [&str; 6] {
    ["--gate", file, "--line-rate", "1G", "--gate-clock", "realtime"]
}

#[test]
fn mistakes_are_named() {
    let device = |options: &[&str]| {
        let always = ["device", "--listen", "127.0.0.1:0", "--namespace", "ram=1M"];
        [&always[..], options].concat().into_iter().map(str::to_owned).collect::<Vec<String>>()
    };
    let refused = |options: &[&str], says: &[&str]| {
        let arguments = device(options);
        fails(&arguments.iter().map(String::as_str).collect::<Vec<_>>(), says);
    };
    refused(&gate("/nonexistent/gates"), &["--gate /nonexistent/gates: No such file"]);
    let wrong = list("gates-wrong", "base-time 0\nsched-entry S 20 2ms\nsched-entry X df 18ms\n");
    refused(&gate(&wrong), &[&wrong, "line 3: ", "S, H or R"]);
    let good = list("gates-good", LIST);
    // Gate 5 is open for 2 ms, so a margin of 2 ms leaves no time for a frame.
    let priority = ["--priority", "5", "--gate-margin", "2ms"];
    let none = "no window of gate 5 takes a frame of 1514 bytes: it needs 2012304ns";
    refused(&[&gate(&good)[..], &priority].concat(), &[&good, none]);
    if tai_offset_s() == 0 {
        let says = ["CLOCK_TAI equals CLOCK_REALTIME", "--gate-clock realtime"];
        refused(&gate(&good)[..4], &says);
    }
    for incomplete in [
        &["--gate", &good][..],
        &["--line-rate", "1G"],
        &["--gate-margin", "1ms"],
        &["--gate", &good, "--line-rate", "fast"],
        &["--gate", &good, "--line-rate", "1G", "--gate-clock", "utc"],
    ] {
        let arguments = device(incomplete);
        is_wrong_usage(&arguments.iter().map(String::as_str).collect::<Vec<_>>());
    }
}

#[test]
fn margin_is_given_or_measured() {
    // A busy machine may wake up many milliseconds late. The window is longer than any margin.
    let file = list("gates-margin", "sched-entry S ff 400ms sched-entry S fe 1ms");
    let report = |more: &[&str]| {
        let (mut node, address) = device("ram=1M", &[&gate(&file)[..], more].concat());
        document(&["ping", &address, "--count", "5", "--json"]);
        assert!(node.interrupt().success());
        node.line("wake-up margin")
    };
    let given = report(&["--gate-margin", "1ms"]);
    assert!(given.contains("wake-up margin 1ms"), "{given}");
    let measured = report(&[]);
    assert!(!measured.contains("wake-up margin 0"), "{measured}");
}

/// Checks that both links of `ping`, one after the other, send frames through one gate.
fn ping_through_a_gate(carrier: &str, address: &str) {
    let file = list(&format!("gates-{carrier}"), LIST);
    let ping = ["ping", address, "--insecure", "--count", "20", "--json"];
    let more = ["--priority", "5", "--gate-margin", "500us"];
    let document = document(&[&ping, &gate(&file)[..], &more].concat());
    for what in ["link", "config_read"] {
        assert_eq!(document[what]["n"], 20, "{document}");
    }
}

#[test]
fn gated_frames_are_sent_over_tcp() {
    let (_device, address) = device("ram=1M", &[]);
    ping_through_a_gate("tcp", &address);
}

#[test]
fn gated_frames_are_sent_over_ethernet() {
    isolated("cli::gates::gated_frames_are_sent_over_ethernet", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        let listen = ["device", "--listen", "raw:far0", "--insecure", "--namespace", "ram=1M"];
        let far = away.enter(|| node(&listen)).unwrap();
        ping_through_a_gate("raw", &far.listens().replace("raw:far0,", "raw:near0,"));
    });
}

/// Every TCP segment with data that `ping` sends on its two links has the code point.
#[test]
fn every_link_marks_what_it_sends() {
    isolated("cli::gates::every_link_marks_what_it_sends", |home| {
        let away = Namespace::new().unwrap();
        home.cable("near0", &away, "far0").unwrap();
        home.run("ip address add 10.9.0.1/24 dev near0").unwrap();
        away.run("ip address add 10.9.0.2/24 dev far0").unwrap();
        let listen = ["device", "--listen", "10.9.0.2:0", "--insecure", "--namespace", "ram=1M"];
        let (far, tap) = away.enter(|| (node(&listen), ipv4("far0"))).unwrap();
        let address = far.listens();
        document(&["ping", &address, "--insecure", "--count", "5", "--json", "--dscp", "46"]);
        let mut marks: BTreeMap<u16, Vec<u8>> = BTreeMap::new();
        let mut buffer = [0; 2048];
        while let Some(received) = tap.receive(&mut buffer).unwrap() {
            let packet = &buffer[tap.payload_at()..][..received.bytes];
            if let Some((port, mark)) = sent_data(packet) {
                marks.entry(port).or_default().push(mark);
            }
        }
        assert_eq!(marks.len(), 2, "two links: {marks:?}");
        // DSCP 46 is in the upper six bits (RFC 2474, section 3).
        assert!(marks.values().flatten().all(|mark| *mark == 46 << 2), "{marks:?}");
    });
}

/// Returns a port that receives the IPv4 frames of an interface.
fn ipv4(interface: &str) -> Port {
    Port::ethernet(&Interface::find(interface).unwrap(), 0x0800).unwrap()
}

/// Returns source port and type of service of an IPv4 packet without options that contains a TCP
/// segment with data (RFC 791, section 3.1; RFC 9293, section 3.1). Returns `None` for other
/// packets.
fn sent_data(packet: &[u8]) -> Option<(u16, u8)> {
    let [version, service, high, low, ..] = *packet else { return None };
    let tcp = packet.get(20..).filter(|_| version == 0x45 && packet[9] == 6)?;
    let header = usize::from(tcp.get(12)? >> 4) * 4;
    let has_data = usize::from(u16::from_be_bytes([high, low])) > 20 + header;
    has_data.then(|| (u16::from_be_bytes([tcp[0], tcp[1]]), service))
}
