//! The CPUs of the nodes: a station's nodes share one CPU. The two ends of a link have different CPUs,
//! because the scheduler may put both on one, and then a wake-up costs a tenth.

use linux::cpu::{allowed, pin};
use plan::Planned;
use report::{Failure, Outcome};
use std::collections::BTreeMap;

/// The CPUs by station.
#[derive(Clone, Debug)]
pub struct Cpus(BTreeMap<usize, usize>);

impl Cpus {
    /// Distributes the stations of a plan over the CPUs on which the caller's thread may run.
    pub fn new(plan: &Planned) -> Self {
        let ends = plan.tunnel_links().filter_map(|link| link.link.transport.stations());
        let ends: Vec<[usize; 2]> = ends.map(|(stations, _)| stations).collect();
        let cpus = allowed();
        let of_stations = distribute(&ends, cpus.len()).into_iter();
        Self(of_stations.map(|(station, at)| (station, cpus[at])).collect())
    }

    /// Returns the CPU of a station that is an end of a link.
    ///
    /// # Panics
    /// If the station is no end of a link.
    pub fn of(&self, station: usize) -> usize {
        self.0[&station]
    }

    /// Keeps this thread on the CPU of a station.
    ///
    /// # Errors
    /// If this process may no longer run there.
    pub fn keep(&self, station: usize) -> Outcome {
        pin(self.of(station)).map_err(Failure)
    }
}

/// Gives each end of these links one of `count` CPUs: hosts and nodes behind switch nodes those with
/// even numbers in turns, the nodes between them those with odd numbers. A link comes after the link
/// above it.
fn distribute(links: &[[usize; 2]], count: usize) -> BTreeMap<usize, usize> {
    let mut all: BTreeMap<usize, usize> = BTreeMap::new();
    // Ends with even and with odd numbers.
    let mut ends = [0, 0];
    let mut next = |odd: usize| {
        ends[odd] += 1;
        if count < 2 {
            return 0;
        }
        let own = (count + 1 - odd) / 2;
        2 * ((ends[odd] - 1) % own) + odd
    };
    for [near, far] in links {
        let near = *all.entry(*near).or_insert_with(|| next(0));
        all.entry(*far).or_insert_with(|| next(1 - near % 2));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::distribute;

    #[test]
    fn the_ends_of_a_link_have_different_cpus() {
        // Two hosts with a drive each, a drive behind a switch node, a node of two hosts.
        let cases = [&[[0, 2], [1, 3]][..], &[[0, 2], [2, 1]], &[[0, 2], [0, 3], [1, 3]]];
        for links in cases {
            for count in 2..5 {
                let cpus = distribute(links, count);
                assert!(links.iter().all(|[near, far]| cpus[near] != cpus[far]), "{cpus:?}");
                assert!(cpus.values().all(|cpu| *cpu < count), "{cpus:?}");
            }
            assert!(distribute(links, 1).values().all(|cpu| *cpu == 0));
        }
        let star = distribute(&[[0, 1], [0, 2], [0, 3]], 4);
        assert_eq!(star.into_values().collect::<Vec<_>>(), [0, 1, 3, 1]);
    }
}
