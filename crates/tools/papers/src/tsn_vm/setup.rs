//! The article's two boards: a sender and a receiver on one cable.

use crate::tsn_ports::{CaseLab, Observed};
use report::Failure;
use sim::ethernet::Rate;
use sim::ethernet::nic::Tagging;
use sim::ethernet::traffic::{Pattern, StreamId};
use sim::network::{ClockNode, Place, TimeConfig, TrafficConfig, Tree};
use tsn::gptp::{
    ClockConfig, DomainConfig, NodeConfig, ServoConfig, Stamping, SystemIdentity, Walk,
};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates, StepPolicy};
use wire::{Duration, Instant};

/// Settings of the article: interval of packets, cycle of gates, and the packets' window of 20 %.
pub const INTERVAL: Duration = Duration::from_ms(1);
pub const CYCLE: Duration = Duration::from_us(500);
pub const SLOT: Duration = Duration::from_us(100);

const VLAN: u16 = 5;
/// Propagation time of two metres of copper.
const CABLE: Duration = Duration::from_ns(10);
/// Bytes of a packet without its tag.
const LENGTH: usize = 64;
/// Gate states. The packets have class 0, PTP has class 7, which is always open, and the load has
/// class 3.
const PACKETS: u8 = 0x81;
const LOAD: u8 = 0x88;

/// A sender and a receiver.
pub struct Boards {
    tree: Tree,
    /// Clocks of sender and receiver.
    clocks: [ClockNode; 2],
    packets: StreamId,
}

impl Boards {
    /// Creates boards whose packets are created `late` after the start of each slot, by the
    /// sender's clock (`own_clock`) or by a clock with true time.
    pub fn new(late: Duration, own_clock: bool) -> Self {
        let mut tree = Tree::new(Rate::G1, CABLE);
        let [sender, receiver] = [tree.station(), tree.station()];
        let wire = tree.link(sender, receiver);
        let entries = [(PACKETS, SLOT), (LOAD, CYCLE - SLOT)];
        let entries = entries.map(|(states, time)| Entry::set(GateStates(states), time));
        let list = GateControlList::of_entries(Instant::ZERO, &entries).expect("a valid list");
        tree.port(wire).gates = Some(Gates::new(list, Clock::default()));
        for station in &mut tree.network().stations {
            station.tagging = Some(Tagging::vlan(VLAN));
        }
        let start = Instant::ZERO + late;
        let traffic = TrafficConfig::new(1, LENGTH, 0, Pattern::Periodic(INTERVAL));
        let packets = tree.stream(sender, TrafficConfig { start, own_clock, ..traffic });
        debug_assert_eq!(sender, Place::Station(0));
        let clock = || ClockNode::new(ClockConfig::default());
        Self { tree, clocks: [clock(), clock()], packets }
    }

    /// Sets the sender's clock back at `at`. Its gates do not change.
    pub fn stalled(mut self, at: Instant, by: Duration) -> Self {
        self.clocks[0].on_step = StepPolicy::Frozen;
        self.clocks[0].steps = vec![(at, -(by.as_ps() as i64))];
        self
    }

    /// Sets oscillators at ±`ppm` without PTP. Their frequency wanders with `walk`.
    pub fn drifting(mut self, ppm: i64, walk: Option<Walk>) -> Self {
        for (clock, sign) in self.clocks.iter_mut().zip([1, -1]) {
            clock.clock.drift_ppt = sign * ppm * 1_000_000;
            clock.clock.walk = walk;
        }
        self
    }

    /// Adds PTP as in linuxptp's automotive profile, with the sender as grandmaster. The mean delay
    /// of software time stamps is `noise`.
    pub fn synchronised(mut self, stamping: Stamping, noise: Duration) -> Self {
        for (place, clock) in self.clocks.iter_mut().enumerate() {
            let name = TimeConfig::identity(place);
            let own = SystemIdentity::new([1, u8::MAX][place], name);
            // operLogSyncInterval and operLogPdelayReqInterval.
            let domain = DomainConfig { log_sync: 0, ..DomainConfig::new(0, own) };
            let servo = ServoConfig::new(stamping, 0);
            clock.stamping = stamping;
            clock.noise = noise;
            clock.node = Some(NodeConfig {
                clock: name,
                domains: vec![domain],
                log_delay: 2,
                // asCapable is true, whatever the delay.
                most_delay: Duration::from_ms(1_000),
                servo: ServoConfig { step: Duration::from_ms(1_000), ..servo },
            });
        }
        self
    }

    /// Runs the boards.
    ///
    /// # Errors
    /// If the simulation fails.
    pub fn run(
        mut self,
        lab: CaseLab<'_>,
        runtime: Duration,
    ) -> Result<(Observed, StreamId), Failure> {
        let stations = self.clocks.to_vec();
        let sample = Duration::from_ms(125);
        self.tree.network().time = Some(TimeConfig { stations, bridges: Vec::new(), sample });
        Ok((lab.run(&mut self.tree, runtime)?, self.packets))
    }
}
