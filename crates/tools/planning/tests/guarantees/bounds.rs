//! Bounds of random networks against their simulation.

use farlane_planning::bound::{Bounds, Method, bound};
use farlane_planning::schedule::verify;
use plan::{Plan, Planned};
use sim::network::{CableEnd, NetworkConfig};
use sim::{World, world::Report};
use stats::random::Random;
use std::fmt::Write;

/// What ports of a random network have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Feature {
    Priorities,
    Gates,
    Credit,
    CreditAndGates,
    Asynchronous,
    Preemption,
    PreemptionAndGates,
    Cyclic,
    Weights,
    Ring,
    Redundant,
    Metered,
    Clocks,
    Slow,
    Line,
    CreditLine,
    /// Each port has its own.
    Mixed,
}

const FEATURES: [Feature; 17] = [
    Feature::Priorities,
    Feature::Gates,
    Feature::Credit,
    Feature::CreditAndGates,
    Feature::Asynchronous,
    Feature::Preemption,
    Feature::PreemptionAndGates,
    Feature::Cyclic,
    Feature::Weights,
    Feature::Ring,
    Feature::Redundant,
    Feature::Metered,
    Feature::Clocks,
    Feature::Slow,
    Feature::Line,
    Feature::CreditLine,
    Feature::Mixed,
];

const METHODS: [Method; 4] = [Method::Tfa, Method::Sfa, Method::Plp, Method::Best];

/// A row of bridges with stations, and streams with random starts.
fn network(feature: Feature, random: &mut Random) -> String {
    let mut text = "runtime = \"4ms\"\n[link]\nvlan = 0\n".to_owned();
    let fast = random.below(2) == 0;
    let bridges = 1 + random.below(3) as usize;
    let stations = 3 + random.below(4) as usize;
    let clocks = if feature == Feature::Clocks { "40ms" } else { "4ms" };
    text = text.replace("4ms", clocks);
    let has_drive = feature == Feature::Mixed && random.below(2) == 0;
    if has_drive {
        text = format!("transport = \"tsn\"\n{text}priority = {}\n", random.below(8));
    }
    let mut add = |line: String| writeln!(text, "{line}").unwrap();
    let modes = ["store-and-forward", "cut-through"];
    let mode = modes[(random.below(4) == 0) as usize];
    let all_ports = match feature {
        Feature::Gates => "schedule = \"list\"",
        Feature::Credit | Feature::CreditLine => "shapers = [\"6 a\", \"5 b\"]",
        Feature::CreditAndGates => "schedule = \"list\"\nshapers = [\"6 c\", \"5 d\"]",
        Feature::Asynchronous => "shapers = [\"6 tokens\", \"5 tokens\"]",
        Feature::Preemption => "express = [7, 6]",
        Feature::PreemptionAndGates => "schedule = \"list\"\nexpress = [7, 6]",
        Feature::Cyclic => "shapers = [\"6 turns\", \"5 turns\"]",
        Feature::Weights => "shapers = [\"6 half\", \"5 quarter\", \"0 quarter\"]",
        Feature::Clocks => "schedule = \"list\"\nclock_drift = \"40ppm\"",
        _ => "",
    };
    let ring = matches!(feature, Feature::Ring | Feature::Redundant);
    let long = matches!(feature, Feature::Line | Feature::CreditLine);
    let bridges = if long { 3 + random.below(6) as usize } else { bridges };
    let bridges = if ring { 3 + random.below(3) as usize } else { bridges };
    let mode =
        if feature == Feature::Priorities || feature == Feature::Ring { mode } else { modes[0] };
    if feature == Feature::Clocks {
        add("[clocks]".to_owned());
    }
    for at in 0..bridges {
        let jitter = if random.below(3) == 0 { "jitter = \"50ns\"" } else { "" };
        let offset = random.below(300_000);
        let mixed = if feature == Feature::Mixed { mixture(random) } else { String::new() };
        add(format!(
            "[bridges.b{at}]\nmode = \"{mode}\"\ndelay = \"{}ns\"\n{jitter}\n{all_ports}{mixed}\n\
             clock_offset = \"{offset}ns\"",
            500 + random.below(3000)
        ));
    }
    for at in 1..bridges {
        let rate = ["1G", "100M"][random.below(2) as usize];
        let steps = match feature {
            Feature::Mixed if random.below(8) == 0 => "rate_steps = [\"1ms 60M\"]",
            Feature::Slow => "rate_steps = [\"0ns 60M\", \"1ms 45M\"]",
            _ => "",
        };
        add(format!(
            "[cables.r{at}]\na = \"b{}\"\nb = \"b{at}\"\nrate = \"{rate}\"\n{steps}",
            at - 1
        ));
    }
    if ring {
        add(format!("[cables.ring]\na = \"b{}\"\nb = \"b0\"\nrate = \"1G\"", bridges - 1));
    }
    let mut homes = Vec::new();
    for at in 0..stations {
        let mixed = match feature {
            Feature::Mixed if random.below(3) == 0 => mixture(random),
            _ => String::new(),
        };
        add(format!("[nodes.n{at}]\n{mixed}"));
        let rate = if fast { "1G" } else { "100M" };
        let to = if ring { at as u64 % bridges as u64 } else { random.below(bridges as u64) };
        homes.push(to);
        add(format!("[cables.n{at}]\na = \"n{at}\"\nb = \"b{to}\"\nrate = \"{rate}\""));
    }
    if has_drive {
        add(drive(bridges as u64, random));
    }
    add(list(random));
    add("[shapers.a]\nalgorithm = \"cbs\"\nidle_slope = \"30Mb/s\"\n\
         [shapers.b]\nalgorithm = \"cbs\"\nidle_slope = \"40Mb/s\"\n\
         [shapers.c]\nalgorithm = \"cbs\"\nidle_slope = \"15Mb/s\"\n\
         [shapers.d]\nalgorithm = \"cbs\"\nidle_slope = \"20Mb/s\"\n\
         [shapers.tokens]\nalgorithm = \"ats\"\nrate = \"20Mb/s\"\nburst = \"3100B\"\n\
         [shapers.turns]\nalgorithm = \"cqf\"\ncycle = \"500us\"\n\
         [shapers.half]\nalgorithm = \"ets\"\nweight = 50\n\
         [filters.limit]\nrate = \"30Mb/s\"\nburst = \"4KiB\"\n\
         [shapers.quarter]\nalgorithm = \"ets\"\nweight = 25"
        .to_owned());
    let shaped = random.below(2) == 0;
    for at in 0..2 + random.below(8) {
        let from = random.below(stations as u64);
        let to = (from + 1 + random.below(stations as u64 - 1)) % stations as u64;
        let interval = 400 + random.below(1600);
        let priority = match feature {
            _ if long => 5 + random.below(2),
            Feature::Cyclic | Feature::Credit | Feature::Asynchronous if shaped => {
                5 + random.below(2)
            }
            _ => [7, 6, 5, 5, 4, 0][random.below(6) as usize],
        };
        // Streams of long lines meet.
        let start = random.below(if long { 40_000 } else { interval * 1000 });
        let burst = 1 + random.below(3);
        let length =
            if random.below(2) == 0 { 64 + random.below(200) } else { 64 + random.below(1400) };
        let to = match feature {
            Feature::Ring if random.below(2) == 0 => {
                let other = (to + 1) % stations as u64;
                let both = if other == from { String::new() } else { format!(", \"n{other}\"") };
                format!("[\"n{to}\"{both}]\npaths = [\"shortest\"]")
            }
            _ => format!("\"n{to}\""),
        };
        if feature == Feature::Redundant
            && homes[from as usize] != homes[(from as usize + 1) % stations]
        {
            let to = (from + 1) % stations as u64;
            let (a, b) = (homes[from as usize], homes[to as usize]);
            let count = bridges as u64;
            let way = |step: u64| {
                let mut at = a;
                let mut way = vec![format!("b{at}")];
                while at != b {
                    at = (at + step) % count;
                    way.push(format!("b{at}"));
                }
                way.join(" > ")
            };
            add(format!(
                "[streams.f{at}]\nfrom = \"n{from}\"\nto = \"n{to}\"\nidentification = \"priority\"\npriority = 6\npaths = [\"{}\", \"{}\"]\n\
                 eliminate = [\"b{b}\"]\nhistory = 64",
                way(1),
                way(count - 1)
            ));
        }
        let metered = match feature {
            Feature::Mixed => random.below(4) == 0,
            _ => feature == Feature::Metered,
        };
        if metered && at < stations as u64 {
            add(format!(
                "[streams.m{at}]\nfrom = \"n{at}\"\nidentification = \"source\"\npolice = [\"b{} limit\"]",
                homes[at as usize]
            ));
        }
        let pattern = match random.below(4) {
            0 => "pattern = \"envelope\"",
            1 if burst == 1 => "jitter = \"150us\"",
            _ => "",
        };
        add(format!(
            "[traffic.s{at}]\nfrom = \"n{from}\"\nto = {to}\ninterval = \"{interval}us\"\n\
             length = \"{length}B\"\nburst = {burst}\npriority = {priority}\nstart = \"{start}ns\"\n{pattern}"
        ));
    }
    text
}

/// What the ports of a node have in a network of mixed mechanisms.
fn mixture(random: &mut Random) -> String {
    let shapers = [
        "",
        "",
        "shapers = [\"6 a\", \"5 b\"]\n",
        "shapers = [\"6 c\"]\n",
        "shapers = [\"6 tokens\", \"5 b\"]\n",
        "shapers = [\"6 turns\", \"5 turns\"]\n",
        "shapers = [\"6 half\", \"5 quarter\", \"0 quarter\"]\n",
    ];
    let mut text = shapers[random.below(shapers.len() as u64) as usize].to_owned();
    for (one_of, more) in
        [(3, "schedule = \"list\"\n"), (4, "express = [7, 6]\n"), (4, "clock_drift = \"30ppm\"\n")]
    {
        if random.below(one_of) == 0 {
            text += more;
        }
    }
    text
}

/// A host and a drive.
fn drive(bridges: u64, random: &mut Random) -> String {
    let push = ["off", "entries", "all"][random.below(3) as usize];
    let rw = ["randread", "randwrite"][random.below(2) as usize];
    let [host, drive] = [(); 2].map(|()| random.below(bridges));
    let depth = 1 + random.below(3);
    format!(
        "[hosts.h]\npush = \"{push}\"\n[nodes.d]\n[drive]\nnode = \"d\"\npreset = \"ram\"\n\
         [workload]\nrw = \"{rw}\"\nbs = \"4KiB\"\niodepth = {depth}\nruntime = \"4ms\"\n\
         [cables.h]\na = \"h\"\nb = \"b{host}\"\nrate = \"1G\"\n\
         [cables.d]\na = \"d\"\nb = \"b{drive}\"\nrate = \"1G\""
    )
}

/// A gate control list in which each class has a window.
fn list(random: &mut Random) -> String {
    let lists = [
        "\"S 80 100us\", \"S 60 150us\", \"S 1f 150us\"",
        "\"S 80 100us\", \"S ff 300us\"",
        "\"S c0 150us\", \"S ff 250us\"",
        "\"S 20 140us\", \"S df 260us\"",
        "\"H c0 150us\", \"R ff 250us\"",
    ];
    let list = lists[random.below(lists.len() as u64) as usize];
    format!("[schedules.list]\nentries = [{list}]")
}

/// The streams and listeners whose longest simulated latency exceeds the bound, and the number of
/// bounds.
pub fn exceeded(
    (planned, report): (&Planned, &Report),
    bounds: &Bounds,
    lossy: bool,
) -> (Vec<String>, Vec<f64>) {
    let (mut wrong, mut ratios) = (Vec::new(), Vec::new());
    for (bound, (_, id)) in bounds.streams.iter().zip(&planned.streams) {
        let stream = report.streams.iter().find(|stream| stream.stream == *id).unwrap();
        for (bound, seen) in bound.listeners.iter().zip(&stream.listeners) {
            let longest = seen.latency.longest();
            let Ok(most) = bound.bound else { continue };
            if seen.arrived == 0 || (stream.lost() > 0 && !lossy) {
                continue;
            }
            ratios.push(most.as_ps() as f64 / longest.as_ps() as f64);
            for hop in &bound.hops {
                let (port, class) = hop.place;
                let wires = 0..report.queues.len();
                let wire = wires
                    .into_iter()
                    .find(|wire| wire_of(&planned.config.network, *wire) == Some(port));
                let queued = report.queues[wire.unwrap()].classes[class].most_bytes as u64;
                if hop.backlog.is_some_and(|most| queued > most) {
                    wrong.push(format!("{}: {queued} B > {:?}", hop.port, hop.backlog));
                }
            }
            if longest > most {
                wrong.push(format!("{}: {longest:?} > {most:?}", stream.stream.number));
            }
        }
    }
    (wrong, ratios)
}

/// The commands that take longer than their bound.
pub fn longer_commands(planned: &Planned, bounds: &Bounds) -> Vec<String> {
    if planned.hosts.is_empty() {
        return Vec::new();
    }
    let longest = verify::longest(planned, 1).unwrap();
    let mut wrong = Vec::new();
    for command in &bounds.commands {
        let Ok(most) = command.bound else { continue };
        let host = planned.hosts.iter().position(|host| *host == command.host).unwrap();
        if let Some(longest) = longest.get(&(host, command.kind)).filter(|longest| **longest > most)
        {
            wrong.push(format!("{}: {longest:?} > {most:?}", command.kind.name()));
        }
    }
    wrong
}

/// The port that sends onto a wire.
fn wire_of(network: &NetworkConfig, wire: usize) -> Option<CableEnd> {
    plan::simulate::places::wire(network, wire).map(|(from, _)| from)
}

fn check(feature: Feature, seeds: std::ops::Range<u64>) {
    let mut all = [const { Vec::new() }; METHODS.len()];
    let networks = seeds.clone().count();
    for seed in seeds {
        let mut random = Random::for_component(seed, &format!("{feature:?}"));
        let text = network(feature, &mut random);
        // A window may be too short for a frame.
        let Ok(planned) = Plan::parse("random", &text).and_then(|plan| plan.build()) else {
            continue;
        };
        // A drive behind a slow shaper does not boot.
        let Ok(report) = World::new(&planned.config).unwrap().run() else {
            assert_eq!(feature, Feature::Mixed);
            continue;
        };
        for (method, ratios) in METHODS.into_iter().zip(&mut all) {
            // The longest two take turns.
            if method == [Method::Plp, Method::Best][seed as usize % 2] {
                continue;
            }
            let bounds = bound(&planned, method);
            let lossy = matches!(feature, Feature::Metered | Feature::Mixed);
            let (mut wrong, found) = exceeded((&planned, &report), &bounds, lossy);
            ratios.extend(found);
            wrong.extend(longer_commands(&planned, &bounds));
            assert!(wrong.is_empty(), "{feature:?}, seed {seed}, {method:?}: {wrong:?}\n{text}");
        }
    }
    if feature == Feature::Mixed {
        // Many mixtures have no bound.
        assert!(all[0].len() > networks, "{} bounds", all[0].len());
        return;
    }
    let [all, ..] = &mut all;
    all.sort_by(f64::total_cmp);
    assert!(all.len() > 2 * networks, "{feature:?}: {} bounds", all.len());
    // Starts are random, so that few frames meet their worst case.
    let median = all[all.len() / 2];
    assert!(median < 2.5, "{feature:?}: the median bound is {median} times the longest latency");
}

#[test]
fn no_simulated_latency_exceeds_its_bound() {
    for feature in FEATURES {
        let networks = match feature {
            Feature::Clocks => 8,
            Feature::Line | Feature::CreditLine => 4,
            _ => 20,
        };
        check(feature, 0..networks);
    }
}

/// Frames that wait for an asynchronous shaper are in the queue; a stream that exceeds its rate
/// makes the backlog unbounded.
#[test]
fn backlogs_have_the_frames_that_wait_for_their_shaper() {
    check(Feature::Asynchronous, 1_075..1_085);
}

/// Cyclic queues send all frames of a cycle at once. Lower classes wait for them.
#[test]
fn lower_classes_wait_for_all_frames_of_a_cycle() {
    check(Feature::Cyclic, 2_820..2_830);
}

mod long {
    use super::{FEATURES, Feature, check};

    #[test]
    fn no_simulated_latency_of_many_networks_exceeds_its_bound() {
        for feature in FEATURES {
            let end = match feature {
                Feature::Clocks => 1_200,
                Feature::Mixed => 1_500,
                _ => 3_000,
            };
            check(feature, 1_000..end);
        }
    }
}
