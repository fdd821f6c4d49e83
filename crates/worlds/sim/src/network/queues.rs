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
            if let Some((_, way)) = station.cables {
                let port = queue_stats(station.nic.port(), now);
                all[way] = QueueStats {
                    offered: port.offered + station.overflowed,
                    dropped: port.dropped + station.overflowed,
                    ..port
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
