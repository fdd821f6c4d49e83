//! The causes of latency against the simulator's sums, and against waits computed by hand.

use super::*;
use crate::simulate::{Observers, Shared};
use crate::{Plan, Planned};
use proptest::prelude::*;
use sim::World;
use sim::world::Report;
use std::fmt::Write;
use std::path::Path;

fn built(text: &str) -> Planned {
    let plan = Plan::parse("p.toml", text).unwrap_or_else(|error| panic!("{error}"));
    plan.build().unwrap_or_else(|error| panic!("{error}\n{text}"))
}

fn run(planned: &Planned) -> (Report, StreamHops) {
    let hops = Shared::new(StreamHops::new(&planned.config).expect("there is a stream"));
    let mut world = World::new(&planned.config).unwrap();
    world.observe(Box::new(Observers(vec![Box::new(hops.clone())])));
    let report = world.run().unwrap_or_else(|error| panic!("{error}"));
    let hops = hops.0.borrow().clone();
    (report, hops)
}

/// Runs a plan. Every picosecond of every frame that arrived has a cause and a hop.
#[track_caller]
fn checked(planned: &Planned) -> (Report, StreamHops) {
    let (report, hops) = run(planned);
    for stream in &report.streams {
        for (at, own) in stream.listeners.iter().enumerate() {
            let found = hops.listener(stream.stream, at).expect("every listener");
            assert_eq!(found.all.count, own.arrived);
            assert_eq!(found.all.ps.iter().sum::<u128>(), own.latency.sum_ps());
            for cause in 0..Cause::COUNT {
                let sum: u128 = found.hops.iter().map(|(_, hop)| hop.ps[cause]).sum();
                assert_eq!(sum, found.all.ps[cause]);
            }
            assert_eq!(found.along.bins.iter().map(|bin| bin.count).sum::<u64>(), own.arrived);
            let Some(worst) = &found.worst else {
                assert_eq!(own.arrived, 0);
                continue;
            };
            assert_eq!(worst.latency, own.latency.longest().as_ps());
            assert_eq!(worst.hops.iter().map(|hop| hop.causes.total()).sum::<u64>(), worst.latency);
            for hop in worst.hops.iter().filter(|hop| hop.behind.len() < 16) {
                let behind = [Cause::OwnClass, Cause::HigherClass, Cause::LowerClass];
                let waited: u64 = behind.iter().map(|cause| hop.causes[*cause]).sum();
                assert_eq!(hop.behind.iter().map(|frame| frame.ps).sum::<u64>(), waited);
            }
        }
    }
    (report, hops)
}

/// At bridge `x`, the first frame of `t` delays `u`, which delays the second one.
#[test]
fn waits_of_two_streams_into_one_port_are_as_computed_by_hand() {
    let planned = built(
        "runtime = \"5ms\"\n[nodes.a]\n[nodes.b]\n[nodes.c]\n[bridges.x]\n[link]\nrate = \"1G\"\n\
         vlan = 1\n[traffic.t]\nfrom = \"a\"\nto = \"c\"\nstart = \"1ms\"\ninterval = \"10ms\"\n\
         length = \"1000B\"\nburst = 2\npriority = 3\n\
         [traffic.u]\nfrom = \"b\"\nto = \"c\"\nstart = \"1ms\"\ninterval = \"10ms\"\n\
         length = \"1500B\"\npriority = 7\n",
    );
    let (_, hops) = checked(&planned);
    // Preamble, frame and tag, at 8 ns per byte.
    let line = |length: u64| (8 + length + 4) * 8_000;
    let gap = 96_000;
    let [t, u] = [0, 1].map(|at| hops.listener(planned.streams[at].1, 0).unwrap());
    let spent = |listener: &ListenerHops, cause: Cause| {
        let worst = listener.worst.as_ref().unwrap();
        worst.hops.iter().map(|hop| hop.causes[cause]).collect::<Vec<_>>()
    };
    assert_eq!(t.worst.as_ref().unwrap().number, 1);
    assert_eq!(spent(t, Cause::OwnClass), [line(1000) + gap, 0]);
    assert_eq!(spent(t, Cause::HigherClass), [0, line(1500) + gap]);
    assert_eq!(spent(t, Cause::LowerClass), [0, 0]);
    assert_eq!(spent(t, Cause::Transmission), [line(1000); 2]);
    // Both first frames are sent at once, and the shorter one reaches the port first.
    assert_eq!(spent(u, Cause::LowerClass), [0, 2 * line(1000) + gap - line(1500)]);
    let [behind] = &u.worst.as_ref().unwrap().hops[1].behind[..] else { panic!("one frame") };
    assert_eq!(StreamId::of_frame(behind.frame), Some(planned.streams[0].1));
    assert_eq!((behind.class, behind.ps), (3, spent(u, Cause::LowerClass)[1]));
    // Only one of the two frames of `t` waited.
    assert_eq!(t.all.ps[Cause::HigherClass as usize], u128::from(line(1500) + gap));
}

#[test]
fn closed_gates_and_shapers_are_causes_also_for_frames_behind_the_first() {
    let text = |keys: &str| {
        format!(
            "runtime = \"6ms\"\n[nodes.a]\n[nodes.b]\n[bridges.x]\n[link]\nrate = \"1G\"\n\
             vlan = 1\n[bridges.x.ports.b]\n{keys}\n[shapers.c]\nalgorithm = \"cbs\"\n\
             idle_slope = \"100Mb/s\"\n[schedules.s]\nentries = [\"S 01 500us\", \"S ff 500us\"]\n[traffic.t]\nfrom = \"a\"\nto = \"b\"\n\
             start = \"1ms\"\ninterval = \"1ms\"\nlength = \"1000B\"\nburst = 10\npriority = 6\n"
        )
    };
    for (keys, cause) in [("schedule = \"s\"", Cause::Gate), ("shapers = [\"6 c\"]", Cause::Shaper)]
    {
        let planned = built(&text(keys));
        let (_, hops) = checked(&planned);
        let sums = hops.listener(planned.streams[0].1, 0).unwrap().hops[1].1;
        let waited = sums.ps[cause as usize] / u128::from(sums.count);
        assert!(waited > 200_000_000, "{keys}: {waited} ps");
        assert_eq!(sums.ps[Cause::Other as usize], 0, "{keys}");
    }
}

#[test]
fn plans_of_all_kinds_have_no_time_without_a_cause() {
    for (name, settings) in [
        ("shapers", &[("workload.runtime", "3ms")][..]),
        ("zonal-vehicle", &[]),
        ("industrial-cell", &[]),
        ("dual-homed-drive", &[("workload.runtime", "4ms")]),
    ] {
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../plans/{name}.toml"));
        let plan = settings.iter().fold(Plan::read(&file).unwrap(), |plan, (key, value)| {
            plan.with(key, value, "test").unwrap()
        });
        checked(&plan.build().unwrap());
    }
}

/// The cable of the shorter path is cut at 5 ms.
#[test]
fn hops_are_those_of_the_path_over_which_the_first_copy_came() {
    let mut text = "runtime = \"10ms\"\n[nodes.a]\n[nodes.z]\n".to_owned();
    ["p", "q", "r", "s"].iter().for_each(|name| writeln!(text, "[bridges.{name}]").unwrap());
    for (a, b) in [("a", "p"), ("p", "q"), ("p", "r"), ("r", "s"), ("s", "q"), ("q", "z")] {
        writeln!(text, "[cables.{a}{b}]\na = \"{a}\"\nb = \"{b}\"").unwrap();
        let cut = if (a, b) == ("p", "q") { "cuts = [\"5ms..\"]\n" } else { "" };
        text += cut;
    }
    text += "[traffic.t]\nfrom = \"a\"\nto = \"z\"\nstart = \"500us\"\ninterval = \"1ms\"\n\
             [streams.s]\ntraffic = \"t\"\npaths = [\"p > q\", \"p > r > s > q\"]\n\
             eliminate = [\"q\"]\nhistory = 64\n";
    let (_, hops) = checked(&built(&text));
    let found = hops.listener(StreamId::new(0, 0), 0).unwrap();
    // The wires in the order of the cables.
    let counts: Vec<_> = found.hops.iter().map(|(wire, sums)| (*wire, sums.count)).collect();
    assert_eq!(counts, [(0, 10), (2, 5), (10, 10), (4, 5), (6, 5), (8, 5)]);
    assert_eq!(found.worst.as_ref().unwrap().hops.len(), 5);
}

fn traffic() -> impl Strategy<Value = String> {
    let listeners = prop::collection::btree_set(1..6usize, 1..4);
    (0..5usize, listeners, 0..8u8, 64..1500u32, 1..4u8, 100..400u32).prop_map(
        |(from, to, priority, length, burst, interval)| {
            let to: Vec<_> = to.iter().map(|to| format!("\"n{}\"", (from + to) % 6)).collect();
            format!(
                "from = \"n{from}\"\nto = [{}]\npriority = {priority}\nlength = \"{length}B\"\n\
                 burst = {burst}\ninterval = \"{interval}us\"\nstart = \"{}us\"\n",
                to.join(", "),
                interval / 7
            )
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    /// A random tree of bridges, each with a station, and streams with several listeners.
    #[test]
    fn random_networks_have_no_time_without_a_cause(
        above in prop::collection::vec(0..6usize, 5),
        streams in prop::collection::vec(traffic(), 1..8),
        preempts: bool,
        is_cut_through: bool,
    ) {
        let port = if preempts { "express = [5, 6, 7]\nverify = \"off\"\n" } else { "" };
        let mut text = format!("runtime = \"2ms\"\n[link]\nrate = \"1G\"\nvlan = 1\n{port}");
        for at in 0..6 {
            write!(text, "[nodes.n{at}]\n[bridges.b{at}]\n{port}").unwrap();
            text += if is_cut_through { "mode = \"cut-through\"\n" } else { "" };
            writeln!(text, "[cables.n{at}]\na = \"n{at}\"\nb = \"b{at}\"").unwrap();
        }
        for (at, above) in (1..).zip(above) {
            let above = above % at;
            writeln!(text, "[cables.b{at}]\na = \"b{at}\"\nb = \"b{above}\"").unwrap();
        }
        for (at, stream) in streams.iter().enumerate() {
            write!(text, "[traffic.t{at}]\n{stream}").unwrap();
        }
        let (_, hops) = checked(&built(&text));
        for listener in hops.streams.iter().flatten().flat_map(|stream| &stream.listeners) {
            // Frames wait only for frames.
            for cause in [Cause::Gate, Cause::Shaper, Cause::Other] {
                prop_assert_eq!(listener.all.ps[cause as usize], 0);
            }
            prop_assert!(preempts || listener.all.ps[Cause::Preempted as usize] == 0);
        }
    }
}
