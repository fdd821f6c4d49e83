//! `farlane latency stress` and its sink. How fast anything is depends on the machine: no test
//! looks at that.

use crate::support::Process;
use crate::support::program::{document, fails, is_refused, is_wrong_usage, node, parsed};
use latency::frame::{Frame, Kind, Window};
use serde_json::{Value, json};
use std::net::UdpSocket;

/// A sink on any port of loopback, and its address.
fn sink(options: &[&str]) -> (Process, String) {
    let arguments = ["latency", "stress", "--sink", "127.0.0.1:0", "--json"];
    let sink = node(&[&arguments[..], options].concat());
    let address = sink.listens();
    (sink, address)
}

/// What it says after Ctrl-C.
fn report(mut sink: Process) -> Value {
    assert!(sink.interrupt().success());
    parsed(&sink.stdout.text())
}

#[test]
fn every_datagram_of_every_stream_is_accounted_for() {
    let (sink, address) = sink(&[]);
    let load = ["--streams", "3", "--rate", "1M", "--size", "500", "--priority", "5"];
    let arguments = ["latency", "stress", &address, "--duration", "400ms", "--json"];
    let near = document(&[&arguments[..], &load].concat());
    let far = report(sink);
    assert_eq!((&near["end"], &near["ended"]), (&"stress".into(), &"done".into()));
    assert_eq!((&far["end"], &far["ended"]), (&"sink".into(), &"interrupted".into()));
    // 3 streams of 1 Mb/s, 400 ms, 4000 bits a datagram: 300, and one that leaves at the beginning.
    let sent = |of: &Value| of["sent"].as_u64().unwrap();
    let streams = near["streams"].as_array().unwrap();
    let all: u64 = streams.iter().map(sent).sum();
    assert!(streams.len() == 3 && all <= 301, "{near}");
    let fewest = streams.iter().map(sent).min().unwrap();
    assert!(fewest > 0 && streams.iter().all(|of| sent(of) <= fewest + 1), "in turn: {near}");
    assert_eq!(near["bytes"], all * 500);
    // By the sender's ports, which have no order: those of a stream by what it has sent.
    let came = far["streams"].as_array().unwrap();
    let received: u64 = came.iter().map(|of| of["received"].as_u64().unwrap()).sum();
    assert_eq!(
        (came.iter().map(sent).sum::<u64>(), &far["bytes"]),
        (all, &(received * 500).into())
    );
    for of in came {
        let lost = of["lost"].as_u64().unwrap();
        assert_eq!(of["received"].as_u64().unwrap() + lost, sent(of), "{far}");
    }
}

#[test]
fn losses_and_strangers_are_counted() {
    let (sink, address) = sink(&[]);
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let send = |kind, sequence| {
        let frame = Frame {
            kind,
            size: 200,
            run: 7,
            sequence,
            scheduled: 0,
            woken: 0,
            sent: 0,
            more: [0; 4],
            window: Window::default(),
            interval: 0,
        };
        let mut bytes = Vec::new();
        frame.encode(&mut bytes);
        socket.send_to(&bytes, &address).unwrap();
    };
    socket.send_to(b"hello", &address).unwrap();
    [0, 1, 4, 3].iter().for_each(|number| send(Kind::Data, *number));
    // Of eight, 2 and 5 to 7 are lost.
    send(Kind::End, 8);
    let far = report(sink);
    let from = socket.local_addr().unwrap().to_string();
    let stream = json!({ "from": from, "sent": 8, "refused": 0, "received": 4, "lost": 4 });
    assert_eq!(far["streams"], json!([stream]));
    assert_eq!((&far["strangers"], &far["bytes"]), (&1.into(), &800.into()));
}

#[test]
fn a_sink_ends_after_its_time() {
    let (mut sink, _) = sink(&["--duration", "50ms"]);
    assert!(sink.wait().success());
    let far = parsed(&sink.stdout.text());
    assert_eq!((&far["ended"], &far["streams"]), (&"done".into(), &json!([])));
}

#[test]
fn mistakes_are_named() {
    let stress = |options: &[&'static str]| [&["latency", "stress"], options].concat();
    is_refused(&stress(&["--sink", "0.0.0.0:0"]), &["--insecure"]);
    is_refused(&stress(&["raw:lo,02:00:5e:10:00:01", "--rate", "1M"]), &["streams are of UDP"]);
    fails(&stress(&["no.such.host.invalid", "--rate", "1M"]), &["no.such.host.invalid"]);
    for wrong in [
        &["localhost"][..],
        &["localhost", "--rate", "0"],
        &["localhost", "--rate", "1M", "--size", "103"],
        &["localhost", "--rate", "1M", "--streams", "0"],
        &["localhost", "--rate", "1M", "--insecure"],
        &["--sink", "localhost", "--rate", "1M"],
    ] {
        is_wrong_usage(&stress(wrong));
    }
}
