//! Bounds of the shipped plans against their simulation.

use farlane_planning::bound::{Bounds, Method, bound_with, known_commands};
use plan::Plan;
use sim::World;
use std::path::Path;

/// Keys that shorten the simulation of a plan.
const SHORT: [(&str, &str, &str); 2] =
    [("mesh-of-rings", "runtime", "2ms"), ("clocks", "runtime", "2s")];

/// A plan with 10,000 streams.
const LARGE: &str = "mesh-of-rings";

#[test]
fn no_shipped_plan_exceeds_its_bounds() {
    let median = check(|name| name != LARGE);
    // One run each, as the plans are: few frames meet their worst case.
    assert!(median < 3.5, "the median bound is {median} times the longest latency");
}

mod long {
    use super::{LARGE, check};

    #[test]
    fn no_stream_of_a_large_plan_exceeds_its_bound() {
        check(|name| name == LARGE);
    }
}

/// Checks the plans with these names. Returns the median of bounds over longest latencies.
fn check(is_wanted: impl Fn(&str) -> bool) -> f64 {
    let folder = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../../plans"));
    let mut ratios = Vec::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
        if path.extension().is_none_or(|ending| ending != "toml") || !is_wanted(&name) {
            continue;
        }
        let mut plan = Plan::read(&path).unwrap();
        for (_, key, value) in SHORT.iter().filter(|(plan, ..)| *plan == name) {
            plan = plan.with(key, value, "--set").unwrap();
        }
        let planned = plan.build().unwrap();
        let commands = known_commands(&planned);
        let [sfa, plp, bounds] = [Method::Sfa, Method::Plp, Method::Best]
            .map(|method| bound_with(&planned, &commands, method));
        let report = World::new(&planned.config).unwrap().run().unwrap();
        let mut check = |what: &str, bound: Option<u64>, seen: u64| {
            let Some(bound) = bound.filter(|_| seen > 0) else { return };
            assert!(seen <= bound, "{name}: {what}: {seen} > {bound} ps");
            ratios.push(bound as f64 / seen as f64);
        };
        for (host, report) in planned.hosts.iter().zip(&report.hosts) {
            let own = bounds.commands.iter().filter(|command| command.host == *host);
            let longest = own.map(|command| command.bound.as_ref().ok().map(|one| one.as_ps()));
            let most = longest.reduce(|one, other| Some(one?.max(other?))).flatten();
            check(host, most, report.latency.longest().as_ps());
        }
        let streams = |bounds: Bounds| bounds.streams.into_iter().zip(&planned.streams);
        for (bound, (stream, id)) in [sfa, plp, bounds].into_iter().flat_map(streams) {
            let seen = &report.stream(*id).unwrap().listeners;
            for (bound, seen) in bound.listeners.iter().zip(seen) {
                let most = bound.bound.as_ref().ok().map(|one| one.as_ps());
                check(stream, most, seen.latency.longest().as_ps());
            }
        }
    }
    ratios.sort_by(f64::total_cmp);
    ratios[ratios.len() / 2]
}
