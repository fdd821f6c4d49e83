//! Filters, statistics, anomalies, and Perfetto documents.

use super::build::{Traces, traces_of};
use super::{chunks, commands, traces};
use crate::commands::tests::io;
use crate::commands::{Command, Event};
use crate::trace::measures::{self, MeasureKind};
use crate::trace::perfetto::Writer;
use crate::trace::{Finding, Run, Selection, Statistics, path};
use serde_json::Value;
use wire::Duration;
use wire::trace::{ChunkHeader, LinkState, Record, Tap};

/// Returns the identifiers of the selected I/O commands.
fn selected(commands: &[Command], selection: &Selection) -> Vec<u16> {
    let numbered = commands.iter().zip(1..);
    numbered
        .filter(|(command, number)| !command.is_admin() && selection.has(*number, command))
        .map(|(command, _)| command.entry.cid)
        .collect()
}

#[test]
fn filters_narrow_down() {
    let run = traces().run();
    let (commands, _) = commands(&run);
    let has = |selection: Selection| selected(&commands, &selection);
    let none = Selection::default;
    assert_eq!(has(none()), [18, 17]);
    assert_eq!(has(Selection { opcode: Some("write".parse().unwrap()), ..none() }), [17]);
    assert_eq!(has(Selection { opcode: Some("0x02".parse().unwrap()), ..none() }), [18]);
    assert_eq!(has(Selection { cid: Some(17), ..none() }), [17]);
    assert_eq!(has(Selection { queue: Some(2), ..none() }), [0; 0]);
    assert_eq!(has(Selection { lba: Some("4100+1".parse().unwrap()), ..none() }), [18]);
    assert_eq!(has(Selection { lba: Some("4104".parse().unwrap()), ..none() }), [0; 0]);
    assert_eq!(has(Selection { address: Some("0x100f00".parse().unwrap()), ..none() }), [18]);
    let number = commands.len() as u64;
    let last = Some(crate::trace::Span(number..=number));
    assert_eq!(has(Selection { command: last, ..none() }), [17]);
    let tag = commands.last().unwrap().steps.iter().find_map(|step| step.tag).unwrap();
    assert_eq!(has(Selection { tag: Some(tag.get()), ..none() }), [17]);
    let start = commands.last().unwrap().start.as_ns();
    assert_eq!(has(Selection { from_ns: Some(start), ..none() }), [17]);
    assert_eq!(has(Selection { to_ns: Some(start - 1), ..none() }), [18]);
    assert_eq!(has(Selection { drive: Some(wire::Bdf::new(9, 0, 0)), ..none() }), [0; 0]);
}

fn statistics(run: &Run, commands: &[Command]) -> Statistics {
    let mut statistics = Statistics::default();
    for command in commands {
        statistics.add(command, &path(run, command));
    }
    statistics
}

#[test]
fn statistics_are_by_type() {
    let run = traces().run();
    let (commands, _) = commands(&run);
    let statistics = statistics(&run, &commands);
    let kinds = statistics.kinds();
    let names: Vec<&str> = kinds.iter().map(|kind| kind.kind.as_str()).collect();
    assert_eq!(
        names,
        [
            "Create I/O Completion Queue",
            "Create I/O Submission Queue",
            "Identify 4 KiB",
            "Read 4 KiB",
            "Write 4 KiB"
        ]
    );
    let write = &kinds[4];
    assert_eq!((write.latency.n, write.failed, write.lost), (1, 1, 0));
    assert_eq!(write.intervals_p50.len(), 6);
    assert!(statistics.table().lines().all(|line| line.chars().count() <= 130));
}

#[test]
fn anomalies_of_a_faulty_trace_are_listed() {
    let run = traces().run();
    let (_, anomalies) = commands(&run);
    let names: Vec<_> = anomalies.unexplained.keys().copied().collect();
    assert_eq!(names, ["command failed"], "{}", anomalies.text());
    assert!(anomalies.text().contains("Write queue 1 command 17: WRITE_FAULT"));
    let traces = traces_of(3, |testbed, drive| {
        // A read that belongs to no command and has no answer.
        testbed.read_request(drive, 0x77_0000, 64);
        testbed.write_host(drive, 0x66_0000, &[0; 64]);
        testbed.post(drive, 1, 1, 999, 0);
        // The requester has timed out.
        testbed.now += Duration::from_ms(51);
        testbed.begin(drive, 1, &[io(2, 5, 8, 1, 0x10_0000, 0)]);
    });
    let (_, anomalies) = commands(&traces.run());
    let count = |start: &str| {
        let found = anomalies.unexplained.iter().find(|(name, _)| name.starts_with(start));
        found.map_or(0, |(_, anomaly)| anomaly.count)
    };
    assert_eq!(count("orphan"), 2, "{}", anomalies.text());
    assert_eq!(count("request without a completion"), 1);
    assert_eq!(count("completion entry of an unknown"), 1);
    assert_eq!(count("command without a completion"), 1);
    let (at, packet, description) = &anomalies.unexplained.values().last().unwrap().places[0];
    assert!(*at > 0 && *packet > 0 && !description.is_empty());
}

#[test]
fn a_request_right_before_the_end_is_not_late() {
    let traces = traces_of(24, |testbed, drive| {
        testbed.read_request(drive, 0x77_0000, 64);
    });
    let text = commands(&traces.run()).1.text();
    assert!(!text.contains("timeout"), "{text}");
    assert!(
        text.contains("1  request that the end of the trace left without a completion (normal)")
    );
}

/// The host may have crashed, or the driver ignored the completion.
#[test]
fn unacknowledged_completion_is_counted_as_anomaly() {
    let traces = traces_of(23, |testbed, drive| {
        testbed.begin(drive, 1, &[io(2, 5, 8, 1, 0x10_0000, 0)]);
        testbed.write_host(drive, 0x10_0000, &[5; 512]);
        testbed.complete(drive, 1, 1, 5, 0);
    });
    let run = traces.run();
    let (found, anomalies) = commands(&run);
    let last = found.last().unwrap();
    assert!(last.status.is_some_and(|status| status.is_success()) && last.end.is_none());
    let anomaly = &anomalies.unexplained["completion entry whose head doorbell was never rung"];
    assert_eq!((anomaly.count, anomaly.places[0].2.as_str()), (1, "Read queue 1 command 5"));
    assert_eq!(anomalies.unexplained.len(), 1, "{}", anomalies.text());
    let statistics = statistics(&run, &found);
    let kinds = statistics.kinds();
    let read = kinds.iter().find(|kind| kind.kind == "Read 512 B").unwrap();
    assert_eq!((read.commands, read.latency.n), (1, 0));
    assert_eq!((read.failed, read.lost, read.unacknowledged), (0, 0, 1));
    let table = statistics.table();
    let line = table.lines().find(|line| line.starts_with("Read")).unwrap();
    let words: Vec<&str> = line.split_whitespace().collect();
    assert_eq!((words[3], &words[7..]), ("1", &["0", "0", "1"][..]), "{table}");
}

/// Builds traces with a read in flight and two commands that are not fetched.
fn interrupted() -> Traces {
    traces_of(13, |testbed, drive| {
        let entry = io(2, 5, 8, 2, 0x10_0000, 0);
        testbed.begin(drive, 1, &[entry]);
        testbed.write_host(drive, 0x10_0000, &[5; 512]);
        testbed.write_host(drive, 0x10_0000, &[5; 512]);
        // Two more commands that are never fetched.
        testbed.submit(drive, 1, &[entry, entry]);
    })
}

/// Returns the host's trace with one more chunk, which records that the link went down.
fn with_link_down(traces: &Traces, end: u64) -> Vec<u8> {
    let mut bytes = std::fs::read(&traces.host).unwrap();
    let next = chunks(&bytes).last().unwrap().0.number + 1;
    let mut records = Vec::new();
    let state = LinkState::Down("silent for 800 ms");
    Record::Link { tap: Tap::link(0), state }.encode(0, &mut records);
    bytes.extend(ChunkHeader::new(next, 0, end, &records).encode());
    bytes.extend(records);
    bytes
}

/// The commands did not time out: the recording ended before their completions.
#[test]
fn commands_in_flight_at_the_cut_are_no_timeouts() {
    let traces = interrupted();
    let mut bytes = with_link_down(&traces, 1_000_000_000);
    bytes.truncate(bytes.len() - 5);
    let run = Run::open(&[traces.file("cut", &bytes)]).unwrap();
    assert!(run.root().file.cut);
    let (_, anomalies) = commands(&run);
    let names: Vec<_> = anomalies.unexplained.keys().copied().collect();
    assert_eq!(names, ["data transferred once more (retry)"], "{}", anomalies.text());
    assert_eq!(anomalies.notes["on its way when the recording was cut off"].count, 3);
}

#[test]
fn lost_device_is_an_anomaly() {
    let traces = interrupted();
    let end = traces.testbed.tlps.last().unwrap().0.as_ns() + 800_000_000;
    let bytes = with_link_down(&traces, end);
    let (commands, anomalies) = commands(&Run::open(&[traces.file("lost", &bytes)]).unwrap());
    let last = commands.last().unwrap();
    assert_eq!((last.entry.cid, last.status, last.end), (5, None, None));
    let names: Vec<(&str, u64)> =
        anomalies.unexplained.iter().map(|(name, anomaly)| (*name, anomaly.count)).collect();
    assert_eq!(
        names,
        [
            ("command without a completion entry", 1),
            ("data transferred once more (retry)", 2),
            ("link down", 1),
            ("submission entry rung for and never fetched (timeout)", 2),
        ]
    );
    let down = &anomalies.unexplained["link down"].places[0];
    assert_eq!((down.0, down.2.as_str()), (end, "link 0: silent for 800 ms"));
}

#[test]
fn perfetto_gets_slices_that_nest() {
    let run = traces().run();
    let (commands, _) = commands(&run);
    let mut out = Vec::new();
    let mut writer = Writer::new(&mut out).unwrap();
    for (command, number) in commands.iter().zip(1..) {
        writer.add(number, command, &path(&run, command), run.in_drive(command));
    }
    run.analyse(|found, _| {
        if let Finding::Event(Event::Ring(state)) = found {
            writer.ring(&state);
        }
    })
    .unwrap();
    writer.finish().unwrap();
    let document: Value = serde_json::from_slice(&out).unwrap();
    let events = document["traceEvents"].as_array().unwrap();
    let slices: Vec<&Value> = events.iter().filter(|event| event["ph"] == "X").collect();
    let ns = |value: &Value| (value.as_f64().unwrap() * 1000.0).round() as i64;
    let whole: Vec<_> = slices.iter().filter(|slice| slice["args"]["cid"].is_u64()).collect();
    assert_eq!(whole.len(), commands.len());
    for command in whole {
        let (start, length) = (ns(&command["ts"]), ns(&command["dur"]));
        let parts = slices.iter().filter(|slice| {
            slice["tid"] == command["tid"]
                && slice["pid"] == command["pid"]
                && slice["args"]["cid"].is_null()
                && (start..start + length).contains(&ns(&slice["ts"]))
        });
        assert_eq!(parts.map(|slice| ns(&slice["dur"])).sum::<i64>(), length);
    }
    // Slices on a stage's track do not overlap.
    let mut names: Vec<&str> = events
        .iter()
        .filter(|event| event["name"] == "thread_name" && event["pid"] == 1)
        .map(|event| event["args"]["name"].as_str().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["downstream", "drive", "host", "network", "upstream"], "one at a time");
    let counter = |name: &str| -> Vec<i64> {
        let all = events.iter().filter(|event| event["ph"] == "C" && event["name"] == name);
        all.map(|event| event["args"]["value"].as_i64().unwrap()).collect()
    };
    // A read and a write, one after the other.
    assert_eq!(counter("queue 1 depth"), [0, 1, 0, 1, 0]);
    assert_eq!(counter("queue 1 SQ tail"), [0, 1, 2]);
    assert_eq!(
        (counter("queue 1 CQ head"), counter("queue 1 CQ phase")),
        (vec![0, 1, 2], vec![0, 1])
    );
}

/// A read of 4 KiB with 20 us between TLPs: doorbell, fetch, entry, 16 writes, completion entry,
/// MSI-X, doorbell.
#[test]
fn a_command_is_measured() {
    let run = traces().run();
    let (commands, _) = commands(&run);
    let read = commands.iter().find(|command| command.name() == "Read").unwrap();
    let values = measures::values(read, &path(&run, read));
    let named = || measures::ALL.iter().zip(values);
    let value = |column: &str| named().find(|(m, _)| m.column == column).unwrap().1;
    assert_eq!(value("duration_ns"), Some(21 * 20_000));
    assert_eq!(value("segment_data_written_ns"), Some(15 * 20_000));
    assert_eq!((value("segment_to_data_request_ns"), value("drive_media_ns")), (None, None));
    let sum = |kind| named().filter(|(m, _)| m.kind == kind).filter_map(|(_, value)| value).sum();
    assert_eq!((sum(MeasureKind::Segment), sum(MeasureKind::Stage)), (420_000u64, 420_000u64));
    // The same numbers as in the test of a command's TLPs and bytes.
    let traffic = ["tlps_down", "tlps_up", "bytes_down", "bytes_up"].map(value);
    assert_eq!(traffic, [3, 19, 108, 4344].map(Some));
}
