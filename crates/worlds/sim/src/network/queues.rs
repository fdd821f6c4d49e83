//! Statistics of the queues at the ports.

use super::Network;
use crate::ethernet::port::Port;
use crate::measure::{ClassStats, QueueStats};
use wire::Instant;

impl Network {
    /// For each direction of a cable, the statistics of the sender's queues until `now`.
    pub(crate) fn queues(&self, now: Instant) -> Vec<QueueStats> {
        let mut all = vec![QueueStats::default(); self.directions.len()];
        for station in &self.stations {
            for (port, cables) in station.cables.iter().enumerate() {
                let Some((_, way)) = *cables else { continue };
                let stats = queue_stats(station.nic.port(port), now);
                let overflowed = if port == 0 { station.overflowed } else { 0 };
                all[way] = QueueStats {
                    offered: stats.offered + overflowed,
                    dropped: stats.dropped + overflowed,
                    ..stats
                };
            }
        }
        for switching in &self.bridges {
            for (port, cables) in switching.cables.iter().enumerate() {
                if let Some((_, way)) = cables {
                    all[*way] = queue_stats(switching.bridge.port(port), now);
                }
            }
        }
        all
    }
}

fn queue_stats(port: &Port, now: Instant) -> QueueStats {
    let counters = port.counters();
    QueueStats {
        offered: counters.offered,
        frame_ps: port.occupancy_at(now),
        left: port.queued_frames() as u64,
        dropped: counters.dropped(),
        suspended: counters.suspended,
        overrun: counters.overrun,
        classes: std::array::from_fn(|class| {
            let (most_frames, most_bytes) = port.most_queued(class);
            let credit = port.credit_extremes(class);
            ClassStats { most_frames, most_bytes, full: counters.full[class], credit }
        }),
    }
}
