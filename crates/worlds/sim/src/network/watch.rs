//! The waits of frames at one port of a bridge.

use super::Network;
use crate::measure::Latency;
use wire::Duration;

/// The waits at one port of a bridge.
#[derive(Debug)]
pub(super) struct Watch {
    bridge: usize,
    port: usize,
    waits: Latency,
    /// The longest wait since the last call of [`Network::longest_wait`].
    longest: Duration,
}

impl Watch {
    /// Records the wait of a frame that starts, if the port is the watched one.
    pub(super) fn starts(&mut self, bridge: usize, port: usize, waited: Duration) {
        if (bridge, port) == (self.bridge, self.port) {
            self.waits.record(waited);
            self.longest = self.longest.max(waited);
        }
    }
}

impl Network {
    /// Watches a port: records the waits of its frames from now on.
    pub(crate) fn watch(&mut self, bridge: usize, port: usize) {
        let waits = Latency::default();
        self.watch = Some(Watch { bridge, port, waits, longest: Duration::ZERO });
    }

    /// Waits at the watched port, and the number of frames dropped there because a queue was full.
    /// `None` if no port is watched.
    pub(crate) fn watched(&self) -> Option<(Latency, u64)> {
        let watch = self.watch.as_ref()?;
        let counters = self.bridges[watch.bridge].bridge.port(watch.port).counters();
        Some((watch.waits.clone(), counters.full.iter().sum()))
    }

    /// The longest wait at the watched port since the last call of this function.
    pub(crate) fn longest_wait(&mut self) -> Duration {
        let longest = self.watch.as_mut().map(|watch| std::mem::take(&mut watch.longest));
        longest.unwrap_or_default()
    }
}
