//! Labels of a picture of a port over time.

use super::view::View;
use crate::simulate::timeline::Piece;
use report::lanes::Words;
use report::{round_time, time};
use sim::ethernet::Mac;
use sim::ethernet::port::Algorithm;
use sim::ethernet::traffic::StreamId;
use wire::{Duration, Instant};

pub(super) const WORDS: Words = Words {
    bands: ["gate open", "gate closed", "preemptable frames held"],
    kinds: ["frame", "preemptable frame", "the frame that waited longest"],
    overhead: "preamble and mCRC",
    joined: "interrupted",
    crosses: "dropped, the queue was full",
};

impl View<'_> {
    /// Describes the frame of the picture.
    pub fn words(&self) -> String {
        let begins = format!("The picture begins at {}", moment(self.from));
        let cycle = match self.config.gates {
            Some(_) => format!("; the gate cycle is {}", span(self.port.period)),
            None => String::new(),
        };
        let Some(frame) = &self.timeline.frame else { return begins + &cycle + "." };
        let early = match arrived(frame) < self.from {
            true => format!(", {} after the frame came", span(self.from - arrived(frame))),
            false => String::new(),
        };
        format!(
            "The longest wait: {} of {} B in class {} waited {} until {}. {begins}{early}{cycle}.",
            self.owner(frame),
            frame.length,
            frame.class,
            span(frame.waited),
            moment(frame.start),
        )
    }

    pub fn heading(&self, class: usize) -> String {
        let mut words = format!("class {class}");
        if self.config.preemption.is_some() {
            words += if self.express(class) { ", express" } else { ", preemptable" };
        }
        let rate = |bits: u64| format!("{} Mb/s", bits as f64 / 1e6);
        words += &match &self.config.classes[class].algorithm {
            Algorithm::StrictPriority | Algorithm::Own(_) => String::new(),
            Algorithm::CreditBased(shaper) => {
                format!(", credit-based, idle slope {}", rate(shaper.idle_slope))
            }
            Algorithm::Ats(shaper) => {
                format!(", asynchronous shaping at {}", rate(shaper.committed.rate))
            }
            Algorithm::Ets { weight } => format!(", weight {weight} %"),
        };
        if self.config.cqf.iter().any(|pair| pair.classes.contains(&(class as u8))) {
            words += ", cyclic queuing";
        }
        words
    }

    /// Returns the stream's name, `802.1AS` or `tunnel`.
    pub fn short(&self, piece: &Piece) -> String {
        let stream = StreamId::of_frame(piece.id);
        let found = self.subject.words.streams.iter().find(|(_, id)| stream == Some(*id));
        match (found, stream) {
            (Some((name, _)), _) => name.clone(),
            (None, Some(StreamId { station, number })) => format!("stream {station}.{number}"),
            (None, None) if sim::network::is_ptp(piece.id) => "802.1AS".into(),
            (None, None) => "tunnel".into(),
        }
    }

    /// Returns the stream's name, or the name of the tunnel.
    pub fn owner(&self, piece: &Piece) -> String {
        if StreamId::of_frame(piece.id).is_some() {
            return format!("a frame of {}", self.short(piece));
        }
        if sim::network::is_ptp(piece.id) {
            return "a message of 802.1AS".into();
        }
        let [Some(from), Some(to)] = piece.addresses.map(|mac| self.station(mac)) else {
            return "a frame of a tunnel".into();
        };
        let way = (self.subject.words.named)(&format!("station {from} to station {to}"));
        format!("a frame of the tunnel from {way}")
    }

    fn station(&self, mac: Mac) -> Option<usize> {
        let network = &self.subject.config.network;
        (0..network.stations.len()).find(|station| network.mac(*station) == mac)
    }
}

pub(super) fn span(span: Duration) -> String {
    time(span.as_ns() as f64)
}

/// Formats a time, rounded to 10 ns.
fn moment(at: Instant) -> String {
    round_time((at.as_ps() / 10_000) as f64 * 10.0)
}

pub(super) fn arrived(frame: &Piece) -> Instant {
    Instant::from_ps(frame.start.as_ps().saturating_sub(frame.waited.as_ps()))
}
