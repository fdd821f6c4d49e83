//! Finds streams that offer more than gates, shaper or line can carry, by arithmetic, before the
//! simulation runs.

use crate::simulate::places::{self, Egress};
use sim::ethernet::frame::{GAP, PREAMBLE, TAG};
use sim::ethernet::port::{Algorithm, Counted};
use sim::ethernet::traffic::StreamId;
use sim::network::{CableEnd, NetworkConfig, TrafficConfig, Wiring};
use std::collections::BTreeMap;
use tsn::{GateStates, QUEUES};
use wire::{Duration, Instant};

/// Classes of a port to which the streams offer more than the port can carry.
#[derive(Clone, Debug, PartialEq)]
pub struct Overload {
    /// The port.
    pub place: CableEnd,
    /// The class that starves, then the classes with precedence that leave too little for it.
    pub classes: Vec<usize>,
    /// Offered load of these classes in bits per second, preamble and gap included.
    pub offered: u64,
    /// Bits per second that the port can carry for these classes.
    pub limit: u64,
    /// Streams of the class that starves.
    pub streams: Vec<StreamId>,
}

/// Offered shares of a line's time, by queue.
#[derive(Default)]
struct Offered {
    share: [f64; QUEUES],
    streams: [Vec<StreamId>; QUEUES],
    /// Longest time of a frame on the line, preamble included.
    frame: [Duration; QUEUES],
    /// Whether frames have different lengths.
    mixed: [bool; QUEUES],
}

/// Returns every overloaded class, by port.
pub(super) fn find(network: &NetworkConfig) -> Vec<Overload> {
    let wiring = network.wiring();
    let mut ports: BTreeMap<CableEnd, (Egress<'_>, Offered)> = BTreeMap::new();
    for (station, config) in network.stations.iter().enumerate() {
        for (number, traffic) in config.traffic.iter().enumerate() {
            let stream = StreamId::new(station, number);
            for egress in places::stream_routes(&wiring, stream) {
                let tagged = network.stream_tag(stream).is_some();
                let place = ports.entry(egress.place);
                let (_, offered) = place.or_insert_with(|| (egress.clone(), Offered::default()));
                offered.add(&egress, stream, traffic, tagged);
            }
        }
    }
    let overloads = |(egress, offered): (Egress<'_>, Offered)| {
        let express = express(&wiring, &egress);
        offered.overloads(&egress, express)
    };
    ports.into_values().flat_map(overloads).collect()
}

/// Returns the classes with precedence over all others if preemption becomes active at the port
/// (IEEE 802.3-2022, 99.4.7); otherwise all classes.
fn express(wiring: &Wiring<'_>, egress: &Egress<'_>) -> GateStates {
    let answers = || {
        let partner = wiring.across(egress.place).map(|(_, end)| wiring.network.port(end));
        partner.is_some_and(|partner| partner.preemption.is_some())
    };
    let active = egress.port.preemption.filter(|own| !own.verify.enabled || answers());
    GateStates(active.map_or(0xff, |preemption| preemption.express))
}

impl Offered {
    fn add(
        &mut self,
        egress: &Egress<'_>,
        stream: StreamId,
        traffic: &TrafficConfig,
        tagged: bool,
    ) {
        let tag = if tagged { TAG } else { 0 };
        let more = PREAMBLE + tag + usize::from(egress.port.security);
        let line = |length: usize| egress.rate.duration(length + more);
        let (frame, mean) = (line(traffic.length), line(traffic.mean_length() + GAP));
        let burst = mean.as_ps() as f64 * f64::from(traffic.burst);
        self.share[egress.queue] += burst / traffic.pattern.interval().as_ps() as f64;
        self.streams[egress.queue].push(stream);
        let longest = &mut self.frame[egress.queue];
        self.mixed[egress.queue] |= *longest > Duration::ZERO && *longest != frame;
        *longest = frame.max(*longest);
    }

    /// Returns every overloaded class once. A class is overloaded if its streams offer more than
    /// its windows can carry, alone or together with the classes that have precedence. Express
    /// classes have precedence over preemptable ones.
    fn overloads(mut self, egress: &Egress<'_>, express: GateStates) -> Vec<Overload> {
        let mut found = Vec::new();
        let mut classes = Vec::new();
        let used = (0..QUEUES).rev().filter(|queue| !self.streams[*queue].is_empty());
        let (first, then): (Vec<_>, Vec<_>) = used.partition(|queue| express.is_open(*queue));
        for list in [first, then] {
            let (weighted, strict): (Vec<usize>, Vec<usize>) =
                list.into_iter().partition(|queue| weight(egress, *queue).is_some());
            for queue in strict {
                classes.insert(0, queue);
                found.extend(self.strict(egress, &classes));
            }
            found.extend(self.weighted(egress, &classes, weighted.clone()));
            classes.splice(0..0, weighted);
        }
        found
    }

    /// Checks whether the first of these classes can carry less than its streams offer, because of
    /// the other classes. An overloaded class takes no more time from the classes after it.
    fn strict(&mut self, egress: &Egress<'_>, classes: &[usize]) -> Option<Overload> {
        let (queue, before) = (classes[0], &classes[1..]);
        let limit = self.limit(egress, &[queue]);
        let alone = (self.share[queue] > limit).then(|| self.overload(egress, &[queue], limit));
        self.share[queue] = self.share[queue].min(limit);
        let all = self.limit(egress, classes);
        let left = all - before.iter().map(|class| self.share[*class]).sum::<f64>();
        let behind = (self.share[queue] > left).then(|| self.overload(egress, classes, all));
        self.share[queue] = self.share[queue].min(left.max(0.0));
        alone.or(behind)
    }

    /// Checks classes with weights that can carry less than their streams offer. The classes in
    /// `above` have precedence; the classes with weights share the rest, and unused shares go to
    /// the others.
    fn weighted(
        &mut self,
        egress: &Egress<'_>,
        above: &[usize],
        mut of: Vec<usize>,
    ) -> Vec<Overload> {
        if of.is_empty() {
            return Vec::new();
        }
        let all = self.limit(egress, &[&of[..], above].concat());
        let mut left = all - above.iter().map(|class| self.share[*class]).sum::<f64>();
        loop {
            let weights: f64 = of.iter().filter_map(|class| weight(egress, *class)).sum();
            let part = |class: &usize| {
                let own = weight(egress, *class).unwrap_or(0.0) * left.max(0.0) / weights;
                own.min(self.limit(egress, &[*class]))
            };
            let Some(at) = of.iter().position(|class| self.share[*class] <= part(class)) else {
                let parts: Vec<_> = of.iter().map(|class| (*class, part(class))).collect();
                let starving = parts.into_iter().map(|(class, part)| {
                    let starving = self.overload(egress, &[class], part);
                    self.share[class] = part;
                    starving
                });
                return starving.collect();
            };
            left -= self.share[of.swap_remove(at)];
        }
    }

    /// Returns the share of the line's time in which the port can carry these classes.
    fn limit(&self, egress: &Egress<'_>, classes: &[usize]) -> f64 {
        /// Rates are rounded to a picosecond per frame.
        const ROUNDING: f64 = 1.0 + 1e-6;
        let shaped = classes.iter().map(|class| self.shaped(egress, *class)).sum::<f64>();
        let whole = gated(egress, classes, self.frame[classes[0]]);
        // Windows may be made for shorter frames than the longest.
        let gated = match classes {
            [class] if self.mixed[*class] && whole > 0.0 => fitted(egress, *class).unwrap_or(whole),
            _ => whole,
        };
        gated.min(shaped) * ROUNDING
    }

    fn shaped(&self, egress: &Egress<'_>, class: usize) -> f64 {
        let gap = egress.rate.duration(GAP);
        let line = |rate: u64, counted: Counted| {
            let frame = self.frame[class];
            let overhead = egress.rate.duration(PREAMBLE) + gap;
            let of_line = match counted {
                Counted::FrameOnly if frame > Duration::ZERO => {
                    let all = (frame + gap).as_ps() as f64;
                    all / (all - overhead.as_ps() as f64)
                }
                _ => 1.0,
            };
            rate as f64 * of_line / egress.rate.bits_per_second() as f64
        };
        match &egress.port.classes[class].algorithm {
            Algorithm::CreditBased(shaper) => line(shaper.idle_slope, shaper.counted),
            Algorithm::Ats(shaper) => {
                let own: BTreeMap<_, _> = shaper.streams.iter().copied().collect();
                let rate = |stream| own.get(stream).unwrap_or(&shaper.committed).rate;
                line(self.streams[class].iter().map(rate).sum(), shaper.counted)
            }
            Algorithm::StrictPriority | Algorithm::Ets { .. } | Algorithm::Own(_) => 1.0,
        }
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

/// Returns the share of the line's time that the windows of these classes contain for frames of
/// duration `frame`, in the gate control list with the smallest share.
pub(super) fn gated(egress: &Egress<'_>, classes: &[usize], frame: Duration) -> f64 {
    let Some(gates) = egress.gates else { return 1.0 };
    // Cyclic queues use two classes in turn.
    let pair = |class: &usize| {
        let pairs = egress.port.cqf.iter().map(|pair| pair.classes.map(usize::from));
        pairs.into_iter().find(|pair| pair.contains(class)).unwrap_or([*class; 2])
    };
    let both = classes.iter().flat_map(pair);
    let states = GateStates(both.fold(0, |states, class| states | 1 << class));
    let gap = egress.rate.duration(GAP);
    let mut least: f64 = 1.0;
    let mut from = Some(Instant::ZERO);
    while let Some(now) = from {
        let open = gates.list_at(classes[0], now).open_share(states, frame, gap);
        // The last frame of a window must end in the window. With several classes, frames of other
        // classes may fill the rest.
        let share = if classes.len() == 1 { open.whole_frames } else { open.time };
        least = least.min(share);
        from = gates.next_list(now);
    }
    least
}

/// Returns the share of the line's time in the windows of a class, with the gap after each window.
/// `None` without gates, and if lists change.
fn fitted(egress: &Egress<'_>, class: usize) -> Option<f64> {
    let windows = egress.gates?.cycle_windows(class)?;
    let open = windows.open.iter().map(|(from, to)| (*to - *from).as_ps());
    let gaps = windows.open.len() as u64 * egress.rate.duration(GAP).as_ps();
    Some(((open.sum::<u64>() + gaps) as f64 / windows.cycle.as_ps() as f64).min(1.0))
}

/// Formats a rate.
pub(super) fn megabits(bits: u64) -> String {
    format!("{:.1} Mb/s", bits as f64 / 1e6)
}

fn weight(egress: &Egress<'_>, class: usize) -> Option<f64> {
    match egress.port.classes[class].algorithm {
        Algorithm::Ets { weight } => Some(f64::from(weight)),
        _ => None,
    }
}
