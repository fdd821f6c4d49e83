//! Senders around one bridge, and one receiver. The port to the receiver is the bottleneck.

use sim::ethernet::bridge::Mode;
use sim::ethernet::traffic::Pattern;
use sim::ethernet::{Rate, port};
use sim::network::{Place, TrafficConfig, Tree};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// Propagation time of a cable in the showcases: 10 m.
pub(super) const CABLE: Duration = Duration::from_ns(50);

/// A star at 100 Mb/s.
pub(super) struct Star {
    pub tree: Tree,
    /// Stations of the senders. The receiver is station 0.
    pub senders: Vec<Place>,
    /// Direction from the bridge to the receiver.
    pub bottleneck: usize,
}

impl Star {
    /// Creates a star whose bridge delays frames by `delay`.
    pub fn new(senders: usize, delay: Duration) -> Self {
        let mut tree = Tree::new(Rate::M100, CABLE);
        let receiver = tree.station();
        let senders: Vec<_> = (0..senders).map(|_| tree.station()).collect();
        let bridge = tree.bridge(Mode::StoreAndForward, delay);
        for sender in &senders {
            tree.link(*sender, bridge);
        }
        let bottleneck = tree.link(bridge, receiver);
        Self { tree, senders, bottleneck }
    }

    /// Returns the port to the receiver.
    pub fn port(&mut self) -> &mut port::Config {
        self.tree.port(self.bottleneck)
    }
}

/// Returns gates that begin at time zero. Each entry has the open queues as bits, and a time in
/// microseconds.
pub(super) fn gates(entries: &[(u8, f64)]) -> Gates {
    let entry = |(states, us): &(u8, f64)| {
        Entry::set(GateStates(*states), Duration::from_ps((us * 1e6).round() as u64))
    };
    let entries: Vec<_> = entries.iter().map(entry).collect();
    let list = GateControlList::of_entries(Instant::ZERO, &entries).expect("a list of the program");
    Gates::new(list, Clock::default())
}

/// Returns a stream with one frame to the receiver; `length` is without tag.
pub(super) fn once(length: usize, priority: u8, start: Instant) -> TrafficConfig {
    let never_again = Pattern::Periodic(Duration::from_ms(1000));
    TrafficConfig { start, ..TrafficConfig::new(0, length, priority, never_again) }
}

/// Converts microseconds to a time.
pub(super) fn at(us: f64) -> Instant {
    Instant::from_ps((us * 1e6).round() as u64)
}
