//! Bounds of the shipped plans against their simulation in the worst phases that a search finds.

use farlane_planning::bound::{Method, bound_with, known_commands, latency_bounds};
use plan::Plan;
use plan::run::phases::{self, latencies};
use plan::run::{RunOptions, Seeds, Shifts, Watch, once};
use plan::simulate::OutputFiles;
use plan::simulate::limits::Assumptions;
use std::path::Path;

/// Keys that shorten the simulation of a plan.
const SHORT: [(&str, &str, &str); 3] = [
    ("mesh-of-rings", "runtime", "2ms"),
    ("clocks", "runtime", "500ms"),
    ("scale-out", "workload.runtime", "1ms"),
];

/// A plan with 10,000 streams.
const LARGE: &str = "mesh-of-rings";

/// Hosts and streams with their longest latency in nanoseconds.
type Seen = Vec<(String, u64)>;

#[test]
fn no_plan_exceeds_its_bounds_in_a_short_search() {
    let median = check(|name, plan| (name != LARGE).then(|| searched(plan, 3)).flatten());
    assert!(median < 2.0, "the median bound is {median} times the longest latency");
}

#[test]
fn no_plan_without_phases_exceeds_its_bounds() {
    check(|_, plan| keys_of_phases(plan).is_none().then(|| simulated(plan)));
}

mod long {
    use super::{LARGE, check, searched};

    #[test]
    fn no_plan_exceeds_its_bounds_in_a_long_search() {
        let median = check(|name, plan| (name != LARGE).then(|| searched(plan, 40)).flatten());
        assert!(median < 1.2, "the median bound is {median} times the longest latency");
    }

    #[test]
    fn no_stream_of_a_large_plan_exceeds_its_bound() {
        check(|name, plan| (name == LARGE).then(|| searched(plan, 4)).flatten());
    }
}

/// Compares the shipped plans for which `simulate` returns latencies with the bounds of all
/// methods. Returns the median of the best bounds over the longest latencies.
fn check(simulate: impl Fn(&str, &Plan) -> Option<Seen>) -> f64 {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../plans"));
    let mut ratios = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|ending| ending != "toml") {
            continue;
        }
        let name = path.file_stem().unwrap().to_str().unwrap();
        let mut plan = Plan::read(&path).unwrap();
        for (_, key, value) in SHORT.iter().filter(|(plan, ..)| *plan == name) {
            plan = plan.with(key, value, "--set").unwrap();
        }
        let Some(seen) = simulate(name, &plan) else { continue };
        let planned = plan.build().unwrap();
        let commands = known_commands(&planned);
        for method in [Method::Sfa, Method::Plp, Method::Best] {
            let bounds = bound_with(&planned, &commands, method).latencies();
            for (subject, seen) in &seen {
                let Some(Ok(bound)) = bounds.get(subject).filter(|_| *seen > 0) else { continue };
                assert!(seen <= bound, "{name}: {method:?}: {subject}: {seen} > {bound} ns");
                ratios.extend((method == Method::Best).then_some(*bound as f64 / *seen as f64));
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}

/// Returns the keys of phases; `None` if nothing in the plan repeats.
fn keys_of_phases(plan: &Plan) -> Option<Vec<String>> {
    let keys = Plan::SHIFTED.map(str::to_owned).to_vec();
    plan.phases(1, 1, &keys).is_ok().then_some(keys)
}

/// Searches the worst of `trials` phases.
fn searched(plan: &Plan, trials: u64) -> Option<Seen> {
    let shifts = Shifts { trials, keys: keys_of_phases(plan)?, search: Some(latency_bounds) };
    let options = RunOptions {
        name: String::new(),
        requested: OutputFiles::default(),
        assumed: Assumptions::default(),
        text: String::new(),
        phases: None,
        tables: None,
    };
    let watch = Watch { is_stopped: &|| false, progress: &|_| {} };
    let run = phases::run(plan, (&Seeds::default(), &shifts), options, &watch);
    let (document, _) = run.unwrap_or_else(|error| panic!("{error:?}"));
    let rows = document.phases.unwrap().observed.into_iter();
    Some(rows.map(|row| (row.name, row.largest_ns)).collect())
}

/// Simulates the plan as written.
fn simulated(plan: &Plan) -> Seen {
    let (document, _) = once(&plan.build().unwrap(), &|| false).unwrap();
    latencies(&document)
}
