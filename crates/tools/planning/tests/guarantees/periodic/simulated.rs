//! Every simulated frame has the latency of its placement.

use super::{built, checked, problem};
use farlane_planning::schedule::periodic::{capacity, lists};
use farlane_planning::schedule::windows;
use plan::StreamStart;
use sim::World;
use stats::random::Random;
use std::fmt::Write;
use wire::Duration;

/// A row or ring of bridges with stations, and periodic streams with deadlines among others. Clocks
/// are up to `error` ns before true time.
fn network(random: &mut Random, streams: u64, dense: bool, error: u64) -> String {
    let mut text = "runtime = \"8ms\"\n[link]\nvlan = 0\ntx_ring = 16\n".to_owned();
    let mut add = |line: String| writeln!(text, "{line}").unwrap();
    let (bridges, stations) = (2 + random.below(3), 4 + random.below(5));
    let ring = random.below(2) == 0 && bridges > 2;
    let mut clocks = Random::for_component(error, "clocks");
    let mut clock = || format!("clock_offset = \"{}ns\"", clocks.below(error + 1));
    for at in 0..bridges {
        let queues = ["", "queues = 4\n"][random.below(2) as usize];
        let delay = 500 + random.below(3000);
        add(format!("[bridges.b{at}]\ndelay = \"{delay}ns\"\n{queues}{}", clock()));
        if at > 0 || ring {
            let rate = ["1G", "100M", "2.5G"][random.below(3) as usize];
            let other = (at + bridges - 1) % bridges;
            add(format!(
                "[cables.r{at}]\na = \"b{other}\"\nb = \"b{at}\"\nrate = \"{rate}\"\n\
                 propagation = \"{}ns\"",
                random.below(300)
            ));
        }
    }
    for at in 0..stations {
        let (bridge, delay) = (random.below(bridges), random.below(2000));
        let rate = ["1G", "100M"][random.below(2) as usize];
        add(format!(
            "[nodes.n{at}]\ntx_delay = \"{delay}ns\"\nrx_delay = \"{}ns\"\n{}\n\
             [cables.n{at}]\na = \"n{at}\"\nb = \"b{bridge}\"\nrate = \"{rate}\"",
            random.below(2000),
            clock()
        ));
    }
    // Short frames that fill the lines between the windows.
    for at in (0..stations).filter(|_| dense) {
        let (to, length) = ((at + 1) % stations, 60 + random.below(60));
        let interval = 1 + random.below(6);
        add(format!(
            "[traffic.fill{at}]\nfrom = \"n{at}\"\nto = \"n{to}\"\nlength = \"{length}B\"\n\
             interval = \"{interval}us\""
        ));
    }
    for at in 0..streams {
        let from = random.below(stations);
        let to = (from + 1 + random.below(stations - 1)) % stations;
        let third = (from + 1 + random.below(stations - 1)) % stations;
        let to = match third == to {
            true => format!("\"n{to}\""),
            false => format!("[\"n{to}\", \"n{third}\"]"),
        };
        let intervals = if dense { [500, 500, 750, 1000] } else { [500, 1000, 2000, 4000] };
        let interval = intervals[random.below(4) as usize];
        let burst = [1, 1, 1, 3][random.below(4) as usize];
        let deadline = match random.below(8) {
            0 => String::new(),
            _ => format!("deadline = \"{}us\"", 400 + random.below(2000)),
        };
        let priority = if deadline.is_empty() { random.below(3) } else { 5 + random.below(3) };
        add(format!(
            "[traffic.s{at}]\nfrom = \"n{from}\"\nto = {to}\npaths = [\"shortest\"]\n\
             length = \"{}B\"\nburst = {burst}\ninterval = \"{interval}us\"\n\
             priority = {priority}\n{deadline}",
            60 + random.below(900)
        ));
    }
    text
}

/// Schedules and simulates a plan. Returns the numbers of placed streams and of waiting hops.
fn run(text: &str, margin: Duration, grain: Duration) -> (usize, usize) {
    let (plan, planned) = built(text);
    let problem = problem(&planned, margin, grain);
    let Ok(cycles) = capacity::cycles(&problem) else { return (0, 0) };
    let found = checked(&problem, 300);
    if problem.streams.is_empty() || !found.blocked.is_empty() {
        return (0, 0);
    }
    let lists = lists::lists(&found, &cycles, 4096).unwrap();
    let placed = problem.streams.iter().zip(&found.board.placed);
    let starts: Vec<StreamStart> = placed
        .clone()
        .map(|(stream, placed)| {
            let placed = placed.as_ref().unwrap();
            let start = Duration::from_ps(placed.release);
            StreamStart { stream: stream.name.clone(), start, priority: placed.priority }
        })
        .collect();
    let (_, scheduled) = plan
        .with_schedule(&planned, &windows::apply(&planned, &lists), &starts)
        .unwrap_or_else(|error| panic!("{error}\n{text}"));
    let report = World::new(&scheduled.config).unwrap().run().unwrap();
    let mut waiting = 0;
    for (stream, placed) in placed {
        let placed = placed.as_ref().unwrap();
        let report = report.streams.iter().find(|one| one.stream == stream.id).unwrap();
        let burst = planned.config.network.stream(stream.id).burst;
        for (end, listener) in stream.ends.iter().zip(&report.listeners) {
            let expected = Duration::from_ps(placed.starts[end.hop] - placed.release + end.after);
            let latency = &listener.latency;
            assert!(listener.arrived > 0, "{}\n{text}", stream.name);
            let waits = placed.starts[end.hop] > placed.release + stream.earliest()[end.hop];
            if waits && margin > Duration::ZERO {
                assert!(latency.longest() <= expected + margin, "{}\n{text}", stream.name);
            } else {
                assert_eq!(latency.longest(), expected, "{}\n{text}", stream.name);
            }
            if burst == 1 && margin == Duration::ZERO {
                let sum = u128::from(latency.count()) * u128::from(expected.as_ps());
                assert_eq!(latency.sum_ps(), sum, "{}\n{text}", stream.name);
            }
            assert_eq!((listener.late, listener.lost), (0, 0), "{}", stream.name);
        }
        let arrival = |at: Option<usize>| at.map_or(placed.release, |before| placed.starts[before]);
        let hops = stream.hops.iter().zip(&placed.starts);
        waiting += hops.filter(|(hop, start)| **start > arrival(hop.before) + hop.after).count();
    }
    (problem.streams.len(), waiting)
}

#[test]
fn simulated_latency_of_every_frame_is_that_of_its_placement() {
    let mut sums = [0; 2];
    for seed in 0..60 {
        let mut random = Random::for_component(seed, "periodic network");
        let dense = seed % 2 == 0;
        let streams = if dense { 12 } else { 3 } + random.below(14);
        let grain = [1, 100, 1000][(seed % 3) as usize];
        let margin = [0, 0, 500][(seed / 3 % 3) as usize];
        let text = network(&mut random, streams, dense, margin);
        let (placed, waiting) = run(&text, Duration::from_ns(margin), Duration::from_ns(grain));
        sums = [sums[0] + placed, sums[1] + waiting];
    }
    eprintln!("{sums:?}");
    assert!(sums[0] > 300 && sums[1] > 10, "{sums:?} placed streams and waiting hops");
}
