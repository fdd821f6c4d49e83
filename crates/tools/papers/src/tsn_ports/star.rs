//! Senders around one bridge, and one receiver: the port to it is the bottleneck.

use sim::ethernet::bridge::Mode;
use sim::ethernet::traffic::Pattern;
use sim::ethernet::{Rate, port};
use sim::network::{Place, TrafficConfig, Tree};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// What a cable of the showcases takes: 10 m.
pub(super) const CABLE: Duration = Duration::from_ns(50);

/// A star at 100 Mb/s.
pub(super) struct Star {
    pub tree: Tree,
    /// The receiver is station 0.
    pub senders: Vec<Place>,
    /// The direction from the bridge to the receiver.
    pub bottleneck: usize,
}

impl Star {
    /// With a bridge that takes `delay`.
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

    /// The port to the receiver.
    pub fn port(&mut self) -> &mut port::Config {
        self.tree.port(self.bottleneck)
    }
}

/// A list of open queues, as bits, and times in microseconds, which begins at time zero.
pub(super) fn gates(entries: &[(u8, f64)]) -> Gates {
    let entry = |(states, us): &(u8, f64)| {
        Entry::set(GateStates(*states), Duration::from_ps((us * 1e6).round() as u64))
    };
    let entries: Vec<_> = entries.iter().map(entry).collect();
    let list = GateControlList::of_entries(Instant::ZERO, &entries).expect("a list of the program");
    Gates::new(list, Clock::default())
}

/// One frame to the receiver; its length is without tag.
pub(super) fn once(length: usize, priority: u8, start: Instant) -> TrafficConfig {
    let never_again = Pattern::Periodic(Duration::from_ms(1000));
    TrafficConfig { start, ..TrafficConfig::new(0, length, priority, never_again) }
}

/// A time in microseconds.
pub(super) fn at(us: f64) -> Instant {
    Instant::from_ps((us * 1e6).round() as u64)
}
