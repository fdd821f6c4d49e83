//! Streams that offer more than their gates or their line let through: found by arithmetic,
//! before the simulation runs.

use crate::simulate::places::{self, Egress};
use sim::ethernet::frame::{GAP, PREAMBLE, TAG};
use sim::ethernet::traffic::StreamId;
use sim::network::{CableEnd, NetworkConfig, TrafficConfig};
use std::collections::BTreeMap;
use tsn::{GateStates, QUEUES};
use wire::Duration;

/// Classes of a port to which the streams offer more than it lets through.
#[derive(Clone, Debug, PartialEq)]
pub struct Overload {
    /// The port.
    pub place: CableEnd,
    /// The class that starves, and after it those above which leave too little for it.
    pub classes: Vec<usize>,
    /// Bits a second that the streams of these classes offer, preamble and gap counted.
    pub offered: u64,
    /// Bits a second that the port lets through for them.
    pub limit: u64,
    /// Streams of the class that starves.
    pub streams: Vec<StreamId>,
}

/// Shares of a line's time, by queue.
#[derive(Default)]
struct Offered {
    share: [f64; QUEUES],
    streams: [Vec<StreamId>; QUEUES],
    /// The longest time that a frame takes, preamble counted.
    frame: [Duration; QUEUES],
}

/// Every class that is overloaded, by port.
pub(super) fn find(network: &NetworkConfig) -> Vec<Overload> {
    let mut ports: BTreeMap<CableEnd, (Egress<'_>, Offered)> = BTreeMap::new();
    for (station, config) in network.stations.iter().enumerate() {
        for (number, traffic) in config.traffic.iter().enumerate() {
            let stream = StreamId { station: station as u16, number: number as u8 };
            for egress in places::route(network, station, traffic.to, traffic.priority) {
                let tagged = config.tagging.is_some();
                let place = ports.entry(egress.place);
                let (_, offered) = place.or_insert((egress.clone(), Offered::default()));
                offered.add(&egress, stream, traffic, tagged);
            }
        }
    }
    ports.into_values().flat_map(|(egress, offered)| offered.overloads(&egress)).collect()
}

impl Offered {
    fn add(&mut self, egress: &Egress<'_>, stream: StreamId, of: &TrafficConfig, tagged: bool) {
        let bytes = PREAMBLE + of.length + if tagged { TAG } else { 0 };
        let frame = egress.rate.duration(bytes);
        let burst = (frame + egress.rate.duration(GAP)).as_ps() as f64 * f64::from(of.burst);
        self.share[egress.queue] += burst / of.pattern.interval().as_ps() as f64;
        self.streams[egress.queue].push(stream);
        self.frame[egress.queue] = self.frame[egress.queue].max(frame);
    }

    /// Every class whose streams offer more than its windows hold, or with those of the classes
    /// above more than all their windows.
    fn overloads(mut self, egress: &Egress<'_>) -> Vec<Overload> {
        let mut found = Vec::new();
        let mut classes = Vec::new();
        for queue in (0..QUEUES).rev().filter(|queue| !self.streams[*queue].is_empty()) {
            classes.insert(0, queue);
            let limit = self.limit(egress, &[queue]);
            if self.share[queue] > limit {
                found.push(self.overload(egress, &[queue], limit));
                // It takes no more from the classes below.
                self.share[queue] = limit;
            }
            let all = self.limit(egress, &classes);
            if classes.iter().map(|class| self.share[*class]).sum::<f64>() > all {
                found.push(self.overload(egress, &classes, all));
                let above: f64 = classes[1..].iter().map(|class| self.share[*class]).sum();
                self.share[queue] = (all - above).max(0.0);
            }
        }
        found
    }

    /// The share of the line's time that the port lets through for these classes.
    fn limit(&self, egress: &Egress<'_>, classes: &[usize]) -> f64 {
        /// Rates are rounded to a picosecond a frame.
        const ROUNDING: f64 = 1.0 + 1e-6;
        let limit = egress.gates.map_or(1.0, |gates| {
            let states = classes.iter().fold(0, |states, class| states | 1 << class);
            let frame = self.frame[classes[0]];
            let open =
                gates.list().open_share(GateStates(states), frame, egress.rate.duration(GAP));
            // The last frame of a window ends in it. Frames of other classes may fill the rest.
            if classes.len() == 1 { open.whole_frames } else { open.time }
        });
        limit * ROUNDING
    }

    fn overload(&self, egress: &Egress<'_>, classes: &[usize], limit: f64) -> Overload {
        let bits = |share: f64| (share * egress.rate.bits_per_second() as f64) as u64;
        Overload {
            place: egress.place,
            classes: classes.to_vec(),
            offered: bits(classes.iter().map(|class| self.share[*class]).sum()),
            limit: bits(limit),
            streams: self.streams[classes[0]].clone(),
        }
    }
}
