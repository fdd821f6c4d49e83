//! The parts of the JSON document about hops and causes of streams.

use crate::Planned;
use crate::simulate::places;
use crate::simulate::stream_hops::{Along, Behind, Cause, Hop, ListenerHops, Sums, Worst};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::ethernet::traffic::StreamId;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Nanoseconds by cause (docs/results.md#where-the-time-of-a-frame-goes). Causes without time are
/// left out. Their sum is the whole time.
pub type CausesNs = BTreeMap<Cow<'static, str>, u64>;

/// A hop of a stream: from the previous port to the end of the cable.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct StreamHop {
    /// The port, and the far end of its cable.
    pub port: String,
    /// Frames that came this way.
    pub frames: u64,
    /// Mean time at the hop.
    pub mean_ns: u64,
    /// Maximum time at the hop.
    pub max_ns: u64,
    /// Mean time at the hop by cause.
    pub causes_ns: CausesNs,
}

/// The frame with the longest latency.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct WorstFrame {
    /// Number of the frame in the stream, from 0.
    pub number: u64,
    /// When the application sent the frame.
    pub sent_ns: u64,
    /// The latency.
    pub latency_ns: u64,
    /// The hops, in order.
    pub hops: Vec<WorstHop>,
}

/// A hop of the frame with the longest latency.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct WorstHop {
    /// The port, and the far end of its cable.
    pub port: String,
    /// Time at the hop.
    pub ns: u64,
    /// Time at the hop by cause.
    pub causes_ns: CausesNs,
    /// The last 16 frames behind which the frame waited, in the order of the line.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub behind: Vec<BehindFrame>,
}

/// A frame behind which another one waited.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct BehindFrame {
    /// Name of the stream, or `tunnel or flow`, `802.1AS` or `MAC`.
    pub stream: String,
    /// Number of the frame in the stream, from 0; 0 for other frames.
    pub number: u64,
    /// Class of the frame at the port.
    pub class: u8,
    /// For how long the line carried the frame, or the gap behind it, while the other one waited.
    pub ns: u64,
}

/// Latency along time: arrived frames in bins of equal length, from the start of the simulation.
/// The lists have one number per bin; bins without frames have zeros.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct AlongTime {
    /// Length of a bin.
    pub bin_ns: u64,
    /// Number of frames.
    pub frames: Vec<u64>,
    /// Minimum latency.
    pub min_ns: Vec<u64>,
    /// Mean latency.
    pub mean_ns: Vec<u64>,
    /// Maximum latency.
    pub max_ns: Vec<u64>,
}

/// Where the frames of a stream at one listener spent their time. Only of the first run, and not of
/// sweeps.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct StreamTime {
    /// Mean time by cause.
    pub causes_ns: CausesNs,
    /// The hops. A stream with several paths has the hops of all paths.
    pub hops: Vec<StreamHop>,
    /// The frame with the longest latency; only if a frame arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub worst: Option<WorstFrame>,
    /// Latency along time.
    pub along: AlongTime,
}

/// Names of ports and streams.
pub(super) struct Names<'a> {
    planned: &'a Planned,
    streams: BTreeMap<StreamId, &'a str>,
}

impl<'a> Names<'a> {
    pub fn new(planned: &'a Planned) -> Self {
        let streams = planned.streams.iter().map(|(name, id)| (*id, name.as_str()));
        Self { planned, streams: streams.collect() }
    }

    fn port(&self, wire: usize) -> String {
        let ends = places::wire(&self.planned.config.network, wire);
        ends.map_or_else(String::new, |ends| self.planned.link_name(&places::between(ends)))
    }

    fn behind(&self, behind: &Behind) -> BehindFrame {
        let id = StreamId::of_frame(behind.frame);
        let known = id.and_then(|id| Some((*self.streams.get(&id)?, id.first_frame())));
        let (stream, number) = known
            .map_or((Behind::SENDERS[behind.sender()], 0), |(name, first)| {
                (name, behind.frame - first)
            });
        BehindFrame { stream: stream.to_owned(), number, class: behind.class, ns: behind.ps / 1000 }
    }

    fn hop(&self, (wire, sums): &(usize, Sums)) -> StreamHop {
        let mean_ns = sums.mean_ns();
        StreamHop {
            port: self.port(*wire),
            frames: sums.count,
            mean_ns: mean_ns.iter().sum(),
            max_ns: sums.longest / 1000,
            causes_ns: causes(mean_ns),
        }
    }

    fn worst(&self, worst: &Worst) -> WorstFrame {
        let hop = |hop: &Hop| {
            let ns = super::in_ns(hop.causes.0.map(u128::from), 1);
            WorstHop {
                port: self.port(hop.wire),
                ns: ns.iter().sum(),
                causes_ns: causes(ns),
                behind: hop.behind.iter().map(|frame| self.behind(frame)).collect(),
            }
        };
        WorstFrame {
            number: worst.number,
            sent_ns: worst.sent.as_ns(),
            latency_ns: worst.latency / 1000,
            hops: worst.hops.iter().map(hop).collect(),
        }
    }

    pub fn time(&self, hops: &ListenerHops) -> StreamTime {
        StreamTime {
            causes_ns: causes(hops.all.mean_ns()),
            hops: hops.hops.iter().map(|hop| self.hop(hop)).collect(),
            worst: hops.worst.as_ref().map(|worst| self.worst(worst)),
            along: AlongTime::from(&hops.along),
        }
    }
}

impl From<&Along> for AlongTime {
    fn from(along: &Along) -> Self {
        let bins = || along.bins.iter();
        Self {
            bin_ns: along.width / 1000,
            frames: bins().map(|bin| bin.count).collect(),
            min_ns: bins().map(|bin| bin.least / 1000).collect(),
            mean_ns: bins().map(|bin| bin.mean() / 1000).collect(),
            max_ns: bins().map(|bin| bin.most / 1000).collect(),
        }
    }
}

fn causes(ns: [u64; Cause::COUNT]) -> CausesNs {
    let all = Cause::ALL.iter().zip(ns).filter(|(_, ns)| *ns > 0);
    all.map(|(cause, ns)| (cause.name().into(), ns)).collect()
}
