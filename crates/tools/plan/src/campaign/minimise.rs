//! Finds a smaller scenario with the same failure.

use super::fault::Fault;
use super::laws;
use super::scenario::Scenario;

/// The fewest transfers per job that are tried.
const FEWEST: u64 = 4;

/// Takes away faults and transfers while a law is still broken (Zeller, Hildebrandt, "Simplifying
/// and isolating failure-inducing input", IEEE TSE 28(2), 2002). Returns the scenario, and how it
/// fails.
pub(super) fn minimise(scenario: &Scenario, broken: String) -> (Scenario, String) {
    let mut least = (scenario.clone(), broken);
    let mut parts = 2;
    while parts <= least.0.faults.len().max(1) {
        let faults = &least.0.faults;
        let size = faults.len().div_ceil(parts).max(1);
        let without = |part: usize| -> Vec<Fault> {
            let range = part * size..((part + 1) * size).min(faults.len());
            let kept = faults.iter().enumerate().filter(|(at, _)| !range.contains(at));
            kept.map(|(_, fault)| fault.clone()).collect()
        };
        let fewer = (0..faults.len().div_ceil(size))
            .find_map(|part| fails(least.0.with(without(part), u64::MAX)));
        parts = match fewer {
            Some(fewer) => {
                least = fewer;
                (parts - 1).max(2)
            }
            None if size == 1 => break,
            None => parts * 2,
        };
    }
    if least.0.faults.len() == 1
        && let Some(fewer) = fails(least.0.with(Vec::new(), u64::MAX))
    {
        least = fewer;
    }
    let mut transfers = least.0.most_transfers() / 2;
    while transfers >= FEWEST
        && let Some(fewer) = fails(least.0.with(least.0.faults.clone(), transfers))
    {
        least = fewer;
        transfers /= 2;
    }
    least
}

fn fails(scenario: Scenario) -> Option<(Scenario, String)> {
    laws::run(&scenario).broken.map(|broken| (scenario, broken))
}
