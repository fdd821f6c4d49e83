use super::LatencyBounds;
use crate::run::phases::{self, Phases};
use crate::run::sweep::{Combinations, Grid, Sweep, SweepOptions};
use crate::run::{RunOptions, Seeds, Shifts, Watch, once};
use crate::simulate::OutputFiles;
use crate::simulate::limits::Assumptions;
use crate::{Plan, Planned};
use std::collections::BTreeMap;

/// Two streams with a common port. Each sends a frame every 20 ms.
const TWO: &str = "runtime = \"100ms\"\n[nodes.a]\n[nodes.b]\n[nodes.c]\n[bridges.x]\n[link]\n\
    rate = \"1G\"\nvlan = 1\n[traffic.t]\nfrom = \"a\"\nto = \"c\"\ninterval = \"20ms\"\n\
    length = \"500B\"\npriority = 3\n[traffic.u]\nfrom = \"b\"\nto = \"c\"\nstart = \"7ms\"\n\
    interval = \"20ms\"\nlength = \"1000B\"\npriority = 3\n";

const WATCH: Watch<'_> = Watch { is_stopped: &|| false, progress: &|_| {} };

fn bounds(_: &Planned) -> LatencyBounds {
    BTreeMap::from([
        ("stream t".to_owned(), Ok(1_000_000)),
        ("stream u".to_owned(), Err("no reason".to_owned())),
    ])
}

fn shifts(trials: u64, search: Option<fn(&Planned) -> LatencyBounds>, keys: &[&str]) -> Shifts {
    Shifts { trials, keys: keys.iter().map(|key| (*key).to_owned()).collect(), search }
}

/// Runs trials, and compares each named trial with the plan and its `--set` options.
fn tried(text: &str, shifts: &Shifts) -> Phases {
    let plan = Plan::parse("p.toml", text).unwrap();
    let options = RunOptions {
        name: "p.toml".to_owned(),
        requested: OutputFiles::default(),
        assumed: Assumptions::default(),
        text: String::new(),
        phases: None,
        tables: None,
    };
    let run = phases::run(&plan, (&Seeds::default(), shifts), options, &WATCH);
    let (document, _) = run.unwrap_or_else(|error| panic!("{error:?}"));
    let phases = document.phases.expect("it ended");
    for trial in &phases.trials {
        let set = |plan: Plan, (key, value): (&String, &String)| plan.with(key, value, "--set");
        let again = trial.set.iter().try_fold(plan.clone(), set).unwrap().build().unwrap();
        let (again, _) = once(&again, &|| false).unwrap();
        assert_eq!(again.digest, trial.digest, "trial {}", trial.trial);
    }
    phases
}

fn searched(text: &str, trials: u64) -> Phases {
    tried(text, &shifts(trials, Some(bounds), &Plan::SHIFTED))
}

/// Returns how much longer than in trial 0 the frame with the longest latency took.
fn more_ns(phases: &Phases, row: usize) -> u64 {
    phases.observed[row].largest_ns - phases.observed[row].as_written_ns
}

/// The frame of `u` takes 1024 bytes of the line with tag, preamble and gap, that of `t` 524.
#[test]
fn search_finds_the_collision_that_random_trials_miss() {
    let random = tried(TWO, &shifts(10, None, &Plan::SHIFTED));
    assert_eq!([more_ns(&random, 0), more_ns(&random, 1)], [0, 0]);
    assert_eq!((random.observed[0].bound_ns, &random.observed[0].why), (None, &None));
    let found = searched(TWO, 10);
    assert!((8_191..=8_192).contains(&more_ns(&found, 0)), "{found:?}");
    assert!((4_191..=4_192).contains(&more_ns(&found, 1)), "{found:?}");
    let [t, u] = [&found.observed[0], &found.observed[1]];
    let ratio = 1_000_000.0 / t.largest_ns as f64;
    assert!((t.tightness.unwrap() - ratio).abs() < 0.001 && t.why.is_none());
    assert_eq!((u.bound_ns, u.tightness, u.why.as_deref()), (None, None, Some("no reason")));
}

#[test]
fn the_same_seed_gives_the_same_trials() {
    let found = |seed: u64| format!("{:?}", searched(&format!("seed = {seed}\n{TWO}"), 9));
    assert_eq!(found(1), found(1));
    assert_ne!(found(1), found(2));
}

/// At each of three bridges a further stream joins for one cable.
#[test]
fn search_finds_a_collision_at_every_bridge() {
    let mut plan = "runtime = \"100ms\"\n[nodes.a]\n[nodes.z]\n[link]\nrate = \"1G\"\nvlan = 1\n\
                    [bridges.\"x{i = 0..3}\"]\n[nodes.\"b{i = 0..2}\"]\n[nodes.\"c{i = 0..2}\"]\n\
                    [cables.a]\na = \"a\"\nb = \"x0\"\n[cables.z]\na = \"x3\"\nb = \"z\"\n"
        .to_owned();
    for (name, a, b) in
        [("x", "x{i}", "x{i + 1}"), ("b", "b{i}", "x{i}"), ("c", "c{i}", "x{i + 1}")]
    {
        plan += &format!("[cables.\"{name}{{i = 0..2}}\"]\na = \"{a}\"\nb = \"{b}\"\n");
    }
    plan += "[traffic.t]\nfrom = \"a\"\nto = \"z\"\ninterval = \"20ms\"\nlength = \"500B\"\n\
             [traffic.\"u{i = 0..2}\"]\nfrom = \"b{i}\"\nto = \"c{i}\"\ninterval = \"20ms\"\n\
             start = \"{5 * i + 3}ms\"\nlength = \"1000B\"\n";
    let found = searched(&plan, 24);
    assert!((3 * 8_191..=3 * 8_192).contains(&more_ns(&found, 0)), "{found:?}");
}

/// A frame of 516 bytes with tag and preamble waits while the gate is closed, and for the end of
/// the window before, into which it does not fit. Either the clock or the stream moves.
#[test]
fn search_finds_the_frame_that_just_misses_its_window() {
    let gated = TWO.replace("[link]\n", "schedule = \"s\"\n[link]\n").replace("7ms", "1s");
    let gated = gated + "[schedules.s]\nentries = [\"S 08 200us\", \"S f7 300us\"]\n";
    let open = tried(&TWO.replace("7ms", "1s"), &shifts(2, None, &Plan::SHIFTED));
    for key in ["clock_offset", "start"] {
        let found = tried(&gated, &shifts(12, Some(bounds), &[key]));
        let wait = found.observed[0].largest_ns - open.observed[0].as_written_ns;
        assert!((304_095..=304_096).contains(&wait), "{key}: {wait} {found:?}");
    }
}

#[test]
fn each_combination_of_a_sweep_is_searched() {
    let plan = Plan::parse("p.toml", TWO).unwrap();
    let sweep: Sweep = "traffic.t.length=500B,200B".parse().unwrap();
    let shifts = shifts(8, Some(bounds), &Plan::SHIFTED);
    let grid = Grid::product(&[sweep]);
    let all = Combinations::new(&plan, &grid, &Seeds::default(), Some(&shifts));
    let mut all = all.unwrap_or_else(|error| panic!("{error:?}"));
    let options = SweepOptions { name: "p.toml", text: "", tables: None };
    let document = all.run(&options, &WATCH);
    for (combination, length) in document.combinations.iter().zip(["500B", "200B"]) {
        let alone = tried(&TWO.replace("500B", length), &shifts);
        assert_eq!(format!("{:?}", combination.phases), format!("{:?}", Some(alone)));
    }
}
