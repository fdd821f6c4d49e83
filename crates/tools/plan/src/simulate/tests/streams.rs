//! Streams and requirements of plans.

use crate::simulate::requirements::{Deadlines, Row, rows};
use crate::simulate::{Observers, Shared};
use crate::{Plan, Planned};
use sim::World;
use sim::network::{ListenerReport, StreamReport};
use sim::world::Report;
use std::collections::BTreeMap;

/// A tunnel and the stream `t` from `a` to `b`, both through the bridge `x` with the schedule `s`.
fn planned(stream: &str, more: &str) -> Planned {
    let text = format!(
        "transport = \"tsn\"\n[nodes.store]\n[nodes.a]\n[bridges.x]\nschedule = \"s\"\n\
         [drive]\nnode = \"store\"\n[workload]\nrw = \"randread\"\nruntime = \"30ms\"\ntime_based = \"on\"\n\
         [traffic.t]\nfrom = \"a\"\nto = \"b\"\n{stream}\n{more}"
    );
    let plan = Plan::parse("p.toml", &text).unwrap_or_else(|error| panic!("{error}"));
    plan.build().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(planned: &Planned) -> (Report, BTreeMap<String, Row>) {
    let deadlines = Shared::new(Deadlines::new(&planned.requirements));
    let mut world = World::new(&planned.config).unwrap();
    world.observe(Box::new(Observers(vec![Box::new(deadlines.clone())])));
    let report = world.run().unwrap_or_else(|error| panic!("{error}"));
    let rows = rows(&deadlines.0.borrow(), &report);
    (report, rows.into_iter().map(|row| (row.name.clone(), row)).collect())
}

const OPEN: &str = "[nodes.b]\n[schedules.s]\nentries = [\"S ff 500us\"]\n";

/// Every frame is counted once, as arrived or lost. All frames have time to arrive after the last
/// one is sent.
#[test]
fn every_frame_arrives_or_is_lost() {
    // Bursts at 2 ms, 2.05 ms and so on to 21.95 ms, three frames each.
    let stream = "interval = \"50us\"\nburst = 3\nstart = \"2ms\"\nstop = \"22ms\"";
    const SENT: u64 = 3 * 400;
    let node = |name: &str| OPEN.replace("[nodes.b]", &format!("[nodes.b]\noutages = [{name}]"));
    let cases = [
        ("nothing happens", OPEN.to_owned(), 0..=0),
        ("frames are corrupted", format!("{OPEN}[link]\ncorruption = \"1%\"\n"), 5..=60),
        ("the cable is cut", format!("{OPEN}[link]\ncuts = [\"9ms..10ms\"]\n"), 57..=66),
        ("the receiver has no power", node("\"12ms..14ms\""), 117..=123),
        ("the receiver is gone", node("\"12ms..\""), 597..=603),
    ];
    for (name, more, expected) in cases {
        let (report, rows) = run(&planned(&format!("{stream}\nloss = \"5%\""), &more));
        let [StreamReport { sent, backlog_bytes, listeners, .. }] = &report.streams[..] else {
            panic!("{name}: one stream")
        };
        let [ListenerReport { arrived, lost, latency, .. }] = &listeners[..] else {
            panic!("{name}: one listener")
        };
        assert_eq!(*sent, SENT, "{name}");
        assert_eq!(arrived + lost, *sent, "{name}: {lost} lost");
        assert!(expected.contains(lost), "{name}: {lost} lost");
        assert_eq!(latency.count(), *arrived, "{name}");
        assert!(*backlog_bytes >= 3 * 1518, "{name}: {backlog_bytes}");
        let row = &rows["stream t loss"];
        assert_eq!((row.count, row.late, row.holds), (SENT, *lost, *lost <= SENT / 20), "{name}");
    }
}

/// A gate that is open for 3 us of every 500 us passes one frame of 1 kB per cycle.
#[test]
fn starved_stream_misses_its_deadline() {
    let stream = "interval = \"100us\"\nlength = \"300B\"\nstop = \"20ms\"\npriority = 7\n\
                  deadline = \"1ms\"\nloss = \"0%\"";
    let gates = "[nodes.b]\n[schedules.s]\nentries = [\"S 80 3us\", \"S 7f 497us\"]\n";
    let planned = planned(&format!("{stream}\n"), &format!("{gates}[link]\npriority = 3\n"));
    let [overload] = &planned.overload_sentences()[..] else { panic!("one overload") };
    assert_eq!(
        overload,
        "class 7 is overloaded from x port 3 to b: t offer 25.9 Mb/s, gates, shaper and line let 5.2 Mb/s \
         through"
    );
    let (report, rows) = run(&planned);
    let stream = &report.streams[0];
    // One frame per cycle, of about 60 cycles.
    assert_eq!((stream.sent, stream.lost()), (200, 0));
    assert!((55..70).contains(&stream.arrived()), "{stream:?}");
    let row = &rows["stream t"];
    // The first two or three arrive in time. Frames that still wait are late.
    assert!(!row.holds && (195..200).contains(&row.late), "{row:?}");
    assert!(row.worst_ns > Some(20_000_000) && row.margin_ns < Some(-19_000_000), "{row:?}");
    assert!(rows["stream t loss"].holds, "they wait, none is lost");
    assert_eq!(stream.backlog_bytes % 300, 0);
    assert!(stream.backlog_bytes > 150 * 300, "{stream:?}");
}

/// Compares the offered load of streams with windows, at the bridge's port to `b`.
#[test]
fn overloads_are_found_before_the_run() {
    let gates = |entries: &str| format!("[nodes.b]\n[schedules.s]\nentries = [{entries}]\n");
    // A frame of 1518 B with tag, preamble and gap takes 12.336 us at 1 Gb/s.
    let cases = [
        ("the line is enough", "\"S ff 1ms\"", "12.4us", ""),
        ("the line is not enough", "\"S ff 1ms\"", "12.3us", "class 5 "),
        ("two frames fit into the window", "\"S 20 25us\", \"S df 25us\"", "25us", ""),
        ("a third does not", "\"S 20 36us\", \"S df 14us\"", "24us", "class 5 "),
        ("others' windows do not count", "\"S 1f 75us\", \"S ff 25us\"", "40us", "class 5 "),
    ];
    for (name, entries, interval, found) in cases {
        let stream = format!("interval = \"{interval}\"\npriority = 5");
        let sentences = planned(&stream, &gates(entries)).overload_sentences().join("\n");
        assert!(sentences.starts_with(found), "{name}: {sentences}");
        assert_eq!(sentences.is_empty(), found.is_empty(), "{name}: {sentences}");
    }
    // A lower class gets the time that higher classes leave.
    let more = "[traffic.u]\nfrom = \"a\"\nto = \"b\"\ninterval = \"20us\"\npriority = 2\n";
    let both = planned("interval = \"20us\"\npriority = 5", &format!("{OPEN}{more}"));
    let classes: Vec<_> = both.overloads.iter().map(|found| found.classes.clone()).collect();
    // The station's port and the bridge's port, both with lines of 1 Gb/s.
    assert_eq!(classes, [[2, 5], [2, 5]]);
}

/// Deadlines of hosts and drives count commands.
#[test]
fn commands_meet_deadlines_or_not() {
    let more = |host: &str, drive: &str| {
        let drive = format!("[drives.d]\nnode = \"store\"\ndeadline = \"{drive}\"\n");
        format!("{OPEN}[host]\ndeadline = \"{host}\"\n{drive}")
    };
    for (host, drive) in [("1us", "1s"), ("1s", "1us")] {
        let (report, rows) = run(&planned("interval = \"1ms\"", &more(host, drive)));
        let commands = report.hosts[0].latency.count();
        for (name, limit) in [("host host", host), ("drive d", drive)] {
            let row = &rows[name];
            let late = if limit == "1us" { commands } else { 0 };
            assert_eq!((row.count, row.late, row.holds), (commands, late, late == 0), "{name}");
            assert_eq!(row.worst_ns, Some(report.hosts[0].latency.summary().max_ns), "{name}");
        }
    }
}

#[test]
fn inapplicable_requirement_is_an_error() {
    let fails = |text: &str| {
        let plan = Plan::parse("p.toml", text).unwrap();
        plan.build().expect_err(text).to_string()
    };
    assert_eq!(
        fails("[workload]\nconfigreads = 5\n[host]\ndeadline = \"1ms\"\n"),
        "p.toml:4:12: 'deadline' applies only to commands, and configreads has none"
    );
    assert_eq!(
        fails(
            "[workload]\nrw = \"read\"\n[traffic.t]\nfrom = \"host\"\nto = \"device\"\n\
             interval = \"1ms\"\nstart = \"2ms\"\nstop = \"2ms\"\n"
        ),
        "p.toml:8:8: stop: expected a time later than start"
    );
}
