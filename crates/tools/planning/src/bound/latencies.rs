//! The bounds that a search of phases compares with.

use super::{Bounds, ListenerBound, Method, StreamBound, bound};
use plan::run::LatencyBounds;
use plan::{Planned, listener_name};
use wire::Duration;

/// Returns the [`latencies`](Bounds::latencies) of the best bounds of a plan.
pub fn latency_bounds(planned: &Planned) -> LatencyBounds {
    bound(planned, Method::Best).latencies()
}

impl Bounds {
    /// Returns the bound of each stream at each listener, and for each host the largest bound of
    /// its commands, by the names in results of phases. The error says why there is no bound.
    pub fn latencies(&self) -> LatencyBounds {
        let ns = |bound: &Result<Duration, String>| {
            bound.clone().map(|time| time.as_ps().div_ceil(1000))
        };
        let listener = |stream: &StreamBound, listener: &ListenerBound| {
            let name = listener_name(&stream.name, stream.listeners.len(), &listener.name);
            (format!("stream {name}"), ns(&listener.bound))
        };
        let streams = self.streams.iter();
        let streams =
            streams.flat_map(|stream| stream.listeners.iter().map(move |at| listener(stream, at)));
        let mut bounds: LatencyBounds = streams.collect();
        for command in &self.commands {
            let largest = bounds.entry(format!("host {}", command.host)).or_insert(Ok(0));
            *largest = largest.clone().and_then(|known| Ok(known.max(ns(&command.bound)?)));
        }
        bounds
    }
}
