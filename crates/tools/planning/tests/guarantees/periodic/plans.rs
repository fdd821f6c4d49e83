//! Plans from text to lists.

use super::{bounded, built};
use farlane_planning::schedule::Limits;
use farlane_planning::schedule::document::ScheduleReport;
use farlane_planning::schedule::periodic::{self, Options};
use plan::Plan;
use sim::World;
use wire::Duration;

/// Two bridges with three stations each, 100 Mb/s. `s0` to `s2` are at the first.
const NETWORK: &str = "runtime = \"10ms\"\n[link]\nrate = \"100M\"\nvlan = 0\n\
    [bridges.a]\n[cables.ab]\na = \"a\"\nb = \"b\"\n\
    [nodes.\"s{i = 0..5}\"]\n\
    [cables.\"a{i = 0..2}\"]\na = \"a\"\nb = \"s{i}\"\n\
    [cables.\"b{i = 3..5}\"]\na = \"b\"\nb = \"s{i}\"\n[bridges.b]\n";

fn schedule(
    streams: &str,
    grain: Duration,
    entries: usize,
) -> Result<(ScheduleReport, Option<Plan>), String> {
    let (plan, planned) = built(&format!("{NETWORK}{streams}"));
    let limits = Limits { is_over: &bounded(500), grain, entries };
    let options = Options { limits, margin: Duration::ZERO, seed: 1 };
    periodic::schedule("p.toml".into(), &plan, &planned, &options)
}

/// A stream: sender, receiver, bytes, interval and deadline in microseconds.
fn stream(name: &str, [from, to, length, interval, deadline]: [u64; 5], more: &str) -> String {
    format!(
        "[traffic.{name}]\nfrom = \"s{from}\"\nto = \"s{to}\"\nlength = \"{length}B\"\n\
         interval = \"{interval}us\"\ndeadline = \"{deadline}us\"\npriority = 7\n{more}\n"
    )
}

#[test]
fn streams_that_no_search_can_place_are_refused() {
    let one = stream("one", [0, 3, 1000, 1000, 400], "");
    let us = Duration::from_us(1);
    for (streams, expected) in [
        (
            stream("one", [0, 3, 1000, 1000, 200], ""),
            "stream one: the deadline of 200us is too short: a frame takes 249202ns through an \
             empty network until the end of b port 1 to s3",
        ),
        (
            one.clone() + &stream("two", [1, 3, 1500, 130, 9999], ""),
            "a port 0 to b port 0 is overloaded: its streams need 102.0 % of the time, stream two \
             most of all",
        ),
        (
            stream("one", [0, 3, 64, 1001, 900], "") + &stream("two", [1, 4, 64, 1009, 900], ""),
            "stream two: with the period 1009us the streams and the grain 1us of a port 0 to b \
             port 0 repeat only after more than 1s",
        ),
        (
            stream("one", [0, 3, 900, 300, 900], "") + &stream("two", [1, 4, 500, 500, 900], ""),
            "streams one and two collide at a port 0 to b port 0: with the periods 300us and \
             500us they are at most 100us apart",
        ),
        (
            stream("one", [0, 3, 100, 300, 900], "jitter = \"1us\""),
            "stream one: frames of a stream with 'jitter' have no fixed times",
        ),
        (
            "mode = \"cut-through\"\n".to_owned() + &one,
            "stream one: b port 1 to s3 is a port of a cut-through bridge",
        ),
        (
            one.clone()
                + "[streams.twice]\ntraffic = \"one\"\npaths = [\"a > b\"]\n\
                eliminate = [\"s3\"]\n",
            "stream one: copies of its frames (802.1CB) at s0 to a port 1",
        ),
        (
            "[traffic.one]\nfrom = \"s0\"\nto = \"s3\"\ninterval = \"1ms\"\n".to_owned(),
            "no periodic stream has a deadline",
        ),
    ] {
        let error = schedule(&streams, us, 64).map(|_| String::new()).unwrap_or_else(|why| why);
        assert_eq!(error, expected, "{streams}");
    }
}

/// The pairs fit, but not all three: 45 us each, of 100 us.
#[test]
fn stream_without_a_place_is_named_with_its_port() {
    let streams = stream("one", [0, 3, 530, 200, 900], "")
        + &stream("two", [1, 4, 530, 300, 900], "")
        + &stream("three", [2, 5, 530, 500, 900], "");
    let (report, scheduled) = schedule(&streams, Duration::from_us(1), 64).unwrap();
    assert!(!report.feasible && scheduled.is_none() && report.schedules.is_empty());
    let missed: Vec<_> = report.missed.iter().map(|row| row.why.as_deref().unwrap()).collect();
    assert_eq!(missed, ["no time is left at a port 0 to b port 0"]);
}

/// Long frames of other classes fill the line, and delay no frame of the streams.
#[test]
fn windows_keep_background_traffic_away() {
    let streams = stream("one", [0, 3, 300, 500, 400], "")
        + &stream("two", [1, 3, 400, 1000, 300], "")
        + &stream("three", [2, 5, 500, 2000, 300], "")
        + "[traffic.\"long{i = 0..2}\"]\nfrom = \"s{i}\"\nto = \"s{i + 3}\"\nlength = \"1518B\"\n\
            rate = \"2MB/s\"\npriority = \"{i}\"\n";
    let (_, planned) = built(&format!("{NETWORK}{streams}"));
    let before = World::new(&planned.config).unwrap().run().unwrap();
    let (report, scheduled) = schedule(&streams, Duration::from_us(1), 64).unwrap();
    assert!(report.feasible, "{}", report.text());
    for row in &report.streams {
        let (_, id) = planned.streams.iter().find(|(name, _)| *name == row.name).unwrap();
        let before = before.streams.iter().find(|report| report.stream == *id).unwrap();
        assert_eq!(row.simulated_max_ns, row.latency_ns);
        assert!(row.latency_ns < before.listeners[0].latency.longest().as_ns(), "{}", row.name);
    }
    let planned = scheduled.unwrap().build().unwrap();
    let report = World::new(&planned.config).unwrap().run().unwrap();
    let names = planned.streams.iter().filter(|(name, _)| name.starts_with("long"));
    for (name, id) in names {
        let stream = report.streams.iter().find(|report| report.stream == *id).unwrap();
        assert!(stream.listeners[0].arrived > stream.sent * 9 / 10, "{name}");
    }
}

#[test]
fn short_lists_join_windows() {
    let streams: String = (0..3)
        .map(|at| {
            stream(&format!("t{at}"), [at, 3 + at, 100, [250, 500, 2000][at as usize], 250], "")
        })
        .collect();
    let us = Duration::from_us(1);
    let (long, _) = schedule(&streams, us, 64).unwrap();
    let most = long.schedules.iter().map(|schedule| schedule.entries.len()).max().unwrap();
    assert!(most > 8, "{most} entries");
    let (short, scheduled) = schedule(&streams, us, 8).unwrap();
    assert!(short.feasible && scheduled.is_some());
    assert!(short.schedules.iter().all(|schedule| schedule.entries.len() <= 8));
    assert_eq!(short.streams, long.streams, "no frame moves");
    let cycle = |report: &ScheduleReport| report.schedules.iter().map(|one| one.cycle_ns).max();
    assert_eq!(cycle(&long), Some(2_000_000));
    // What the hardware of the bridge b can run.
    let hardware = |grain: &str| format!("gate_entries = 8\ngate_grain = \"{grain}\"\n{streams}");
    let (fitting, scheduled) = schedule(&hardware("5us"), us, 64).unwrap();
    assert!(fitting.feasible && scheduled.is_some());
    for schedule in fitting.schedules.iter().filter(|schedule| schedule.node == "b") {
        assert!(schedule.entries.len() <= 8, "{schedule:?}");
        let mut times = schedule.entries.iter().filter_map(|entry| entry.rsplit(' ').next());
        assert!(times.all(|time| time.parse::<Duration>().unwrap().as_ps() % 5_000_000 == 0));
    }
    let why = schedule(&hardware("4us"), us, 64).unwrap_err();
    assert_eq!(why, "stream t0: its interval 250us is not a multiple of the grain 4us of lists");
}

#[test]
fn equal_seeds_give_equal_schedules() {
    let streams = stream("one", [0, 3, 530, 200, 900], "")
        + &stream("two", [1, 4, 530, 300, 900], "")
        + &stream("three", [2, 5, 64, 500, 900], "");
    let run = || schedule(&streams, Duration::from_us(1), 64).unwrap().0;
    assert_eq!(run().streams, run().streams);
    assert_eq!(run().schedules.len(), 7, "three stations, three ports of b, one of a");
}

/// The stream starts at its offset, but not before its start in the plan.
#[test]
fn starts_are_not_before_those_of_the_plan() {
    let one = stream("one", [0, 3, 100, 500, 400], "start = \"1700us\"");
    let (report, scheduled) = schedule(&one, Duration::from_us(1), 64).unwrap();
    assert_eq!(report.streams[0].offset_ns, 0);
    let planned = scheduled.unwrap().build().unwrap();
    assert_eq!(planned.config.network.stations[0].traffic[0].start.as_ps(), 2_000_000_000);
}
