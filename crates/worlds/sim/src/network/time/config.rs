//! The configuration of clocks and 802.1AS for each node.

use stats::random::Random;
use tsn::StepPolicy;
use tsn::gptp::{ClockConfig, ClockIdentity, NodeConfig, Stamping};
use wire::{Duration, Instant};

use super::super::config::mac;
use crate::ensure;

/// Drifting clocks, and messages of 802.1AS between them.
#[derive(Clone, Debug)]
pub struct TimeConfig {
    /// The clocks of each station.
    pub stations: Vec<ClockNode>,
    /// The clocks of each bridge.
    pub bridges: Vec<ClockNode>,
    /// Interval between recorded offsets, and length of measurement intervals; above 0.
    pub sample: Duration,
}

/// The clocks of a node, and its participation in 802.1AS.
#[derive(Clone, Debug)]
pub struct ClockNode {
    /// The parameters of oscillator and clock.
    pub clock: ClockConfig,
    /// The parameters of 802.1AS. `None`: the node does not participate, and its clock runs freely.
    pub node: Option<NodeConfig>,
    /// The traffic class of the node's messages of 802.1AS, 0 to 7.
    pub class: u8,
    /// The place where time stamps are taken.
    pub stamping: Stamping,
    /// Mean delay of software time stamps, exponentially distributed.
    pub noise: Duration,
    /// The reaction of gates to a step of the clock.
    pub on_step: StepPolicy,
    /// Times at which the clock is set, in order, each with the step in picoseconds.
    pub steps: Vec<(Instant, i64)>,
}

impl ClockNode {
    /// A node with these clocks that does not participate in 802.1AS.
    pub fn new(clock: ClockConfig) -> Self {
        Self {
            clock,
            node: None,
            class: 7,
            stamping: Stamping::Hardware,
            noise: Duration::ZERO,
            on_step: StepPolicy::Rederived,
            steps: Vec::new(),
        }
    }
}

impl TimeConfig {
    /// The clock identity of a node: an EUI-64 made from a MAC address (IEEE 802.1AS-2020,
    /// 8.5.2.2). `place` counts all stations, then all bridges.
    pub fn identity(place: usize) -> ClockIdentity {
        let [a, b, c, d, e, f] = mac(place).0;
        ClockIdentity(u64::from_be_bytes([a, b, c, 0xff, 0xfe, d, e, f]))
    }

    /// Gives the clock of each node its own seed, derived from `seed`.
    pub(super) fn seeded(mut self, seed: u64) -> Self {
        for (number, node) in self.stations.iter_mut().chain(&mut self.bridges).enumerate() {
            node.clock.seed = Random::for_component(seed, &format!("clock {number}")).bits();
        }
        self
    }

    pub(in super::super) fn check(&self, stations: usize, bridges: usize) -> Result<(), String> {
        let each = (self.stations.len(), self.bridges.len()) == (stations, bridges);
        ensure(each, "every station and bridge needs a clock".to_owned())?;
        ensure(
            self.sample > Duration::ZERO,
            "the interval of clock samples must be above 0".to_owned(),
        )?;
        for (number, node) in self.stations.iter().chain(&self.bridges).enumerate() {
            let at = |reason: &str| format!("clock {number}: {reason}");
            ensure(node.class < 8, at("the class of its messages must be 0 to 7"))?;
            ensure(
                node.clock.grain > Duration::ZERO,
                at("the grain of its time stamps must be above 0"),
            )?;
            let walks = node.clock.walk.is_none_or(|walk| walk.every > Duration::ZERO);
            ensure(walks, at("the interval of its random walk must be above 0"))?;
            let domains = node.node.as_ref().is_none_or(|node| !node.domains.is_empty());
            ensure(domains, at("it needs at least one gPTP domain"))?;
        }
        Ok(())
    }
}
