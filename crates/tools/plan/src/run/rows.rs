//! The parts of the JSON document of `--json`.

use super::hops::StreamTime;
use crate::Recording;
use crate::simulate::requirements;
use crate::traffic::listener_name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use sim::world::HostReport;
use std::borrow::Cow;

/// A latency in nanoseconds, all zero without samples. No sample is left out.
#[derive(Clone, Copy, Debug, Default, Deserialize, JsonSchema, Serialize)]
pub struct SimLatency {
    /// Number of samples.
    pub n: u64,
    /// Minimum.
    pub min: u64,
    /// Arithmetic mean, rounded down.
    pub mean: u64,
    /// Median, to three significant digits.
    pub p50: u64,
    /// 90th percentile, to three significant digits.
    pub p90: u64,
    /// 99th percentile, to three significant digits.
    pub p99: u64,
    /// 99.9th percentile, to three significant digits.
    pub p99_9: u64,
    /// Maximum.
    pub max: u64,
    /// Mean difference between consecutive samples of a host or stream.
    pub jitter: u64,
    /// Maximum less minimum.
    pub peak_to_peak: u64,
}

/// A stream of `[traffic.NAME]`, from the beginning of the simulation.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Stream {
    /// Name of the stream.
    pub name: String,
    /// Frames that the application of the sender sent.
    pub sent: u64,
    /// Maximum number of bytes in flight at once, header to FCS without tag. A frame is in flight
    /// until it has reached all listeners.
    pub backlog_bytes: u64,
    /// The listeners, in the order of the plan.
    pub listeners: Vec<Listener>,
}

/// A stream at one of its listeners. Frames that are neither in `arrived` nor in `lost` were in
/// flight at the end.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Listener {
    /// Name of the station.
    pub station: String,
    /// Frames that reached the application of the station.
    pub arrived: u64,
    /// Frames that were dropped: a queue was full, a gate had no window for the frame, the frame
    /// exceeded the maximum length or residence time of its class, a cable was faulty, or a station
    /// had no power.
    pub lost: u64,
    /// Frames that missed the deadline: they arrived later, were lost, or were still in flight
    /// after the deadline.
    pub late: u64,
    /// Copies of frames that the application had received before.
    pub duplicates: u64,
    /// Frames in `arrived` that arrived after a frame that was sent later.
    pub overtaken: u64,
    /// Latency of the frames in `arrived`.
    pub latency_ns: SimLatency,
    /// Distribution of the latency: the least and the largest latency with the same three
    /// significant digits, and the number of frames. Only of the first run, and not of sweeps.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub histogram_ns: Vec<[u64; 3]>,
    /// Where the frames in `arrived` spent their time, without those that more than 64 later frames
    /// overtook. Only of the first run, and not of sweeps.
    #[serde(flatten, default, skip_serializing_if = "Option::is_none")]
    pub time: Option<StreamTime>,
}

impl Stream {
    /// Returns each listener with its name in tables: that of the stream, followed by the station
    /// if there are several.
    pub fn rows(&self) -> impl Iterator<Item = (String, &Listener)> {
        self.listeners.iter().map(|listener| {
            (listener_name(&self.name, self.listeners.len(), &listener.station), listener)
        })
    }
}

/// A class of a port to which streams offer more than the port can carry, according to the plan
/// alone.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Overload {
    /// The port, and the far end of its cable.
    pub port: String,
    /// The class that starves, then the classes with precedence if it starves only because of them.
    pub classes: Vec<usize>,
    /// Offered load of these classes in bits per second, preamble and gap included.
    pub offered_bits_per_s: u64,
    /// Bits per second that the port can carry for these classes.
    pub limit_bits_per_s: u64,
    /// The streams of the class that starves.
    pub streams: Vec<String>,
}

/// A port of a station or bridge, from the beginning of the simulation.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Port {
    /// The station, or the bridge and its port, and the far end of the cable.
    pub name: String,
    /// Frames given to the port.
    pub offered: u64,
    /// Frames that the port dropped: the queue of a class, or of a stream at its station, was full;
    /// no window was long enough; the frame was longer than `max_sdu`; or the frame waited longer
    /// than `max_residence`.
    pub dropped: u64,
    /// Number of times that an express frame or a hold interrupted a preemptable frame.
    pub interrupted: u64,
    /// Interrupted frames whose remainder was still on the line after their gate had closed.
    pub overrun: u64,
    /// The classes in which frames waited.
    pub classes: Vec<PortClass>,
}

/// A class of a port in which frames waited.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct PortClass {
    /// Number of the class, 0 to 7.
    pub class: usize,
    /// Maximum number of frames that waited at once.
    pub most_frames: usize,
    /// Maximum number of bytes (header to FCS) that waited at once.
    pub most_bytes: usize,
    /// Frames dropped because the queue of the class was full.
    pub full: u64,
    /// Only with a credit-based shaper: lowest and highest credit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub credit_bits: Option<Credit>,
}

/// The extremes of a credit.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Credit {
    /// The lowest credit in bits.
    pub lowest: f64,
    /// The highest credit in bits.
    pub highest: f64,
}

/// A host of a simulation.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Host {
    /// Name of the host.
    pub host: String,
    /// Latency of the application's transfers or configuration reads, from call to answer.
    pub latency_ns: SimLatency,
    /// Latency of commands at the root port, from the submission doorbell to the acknowledgement of
    /// the head doorbell, as in the NVMe/TSN paper.
    pub root_port_ns: SimLatency,
    /// Configuration reads at the root port, enumeration included.
    pub config_read_ns: SimLatency,
    /// NVMe commands.
    pub commands: u64,
    /// Bytes that the application moved.
    pub bytes: u64,
    /// Duration of the workload.
    pub span_ns: u64,
    /// Transfers per second.
    pub iops: u64,
    /// Bytes moved per second.
    pub bytes_per_s: u64,
    /// Blocks of 512 bytes that were read and compared.
    pub verified_blocks: u64,
    /// Transfers that returned other data than expected.
    pub mismatches: u64,
    /// Commands with an error status, or lost with their drive's link; configuration reads that
    /// returned all ones.
    pub failures: u64,
    /// Only if there are any: failed commands with the status Reservation Conflict.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reservation_conflicts: Option<u64>,
    /// Only if push is on and the host had commands: pushes in front of doorbells (docs/push.md)
    /// while the workloads ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pushed: Option<SimPush>,
    /// Only with `replay`: the recording.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recorded: Option<Replayed>,
}

/// Pushes of a host, and their use by its device nodes.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct SimPush {
    /// Messages sent, including those that only invalidate pushed bytes.
    pub messages: u64,
    /// Submission queue entries in the messages.
    pub entries: u64,
    /// Submission queue entries whose doorbell was sent without a push of the entry.
    pub unpushed_entries: u64,
    /// Bytes of entries, lists and data in the messages.
    pub bytes: u64,
    /// Reads of drives that device nodes answered.
    pub hits: u64,
    /// Bytes of the reads in `hits`.
    pub hit_bytes: u64,
    /// Reads of drives that went to the host.
    pub misses: u64,
    /// Bytes that were invalidated before a drive read them.
    pub unused_bytes: u64,
    /// Commands that were not pushed, or pushed only in part, by reason.
    pub not_pushed: Vec<SimNotPushed>,
}

/// Commands that were not pushed, or pushed only in part, for one reason.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct SimNotPushed {
    /// The reason (docs/push.md#why-a-command-is-not-pushed).
    pub reason: Cow<'static, str>,
    /// Number of commands.
    pub commands: u64,
}

impl SimPush {
    pub(super) fn from_host(host: &HostReport) -> Option<Self> {
        let sim::measure::Pushed { messages, entries, unpushed, bytes, .. } = host.pushed;
        let sim::measure::Pushed { hits, hit_bytes, misses, unused_bytes, .. } = host.pushed;
        let pushed = Self {
            messages,
            entries,
            unpushed_entries: unpushed,
            bytes,
            hits,
            hit_bytes,
            misses,
            unused_bytes,
            not_pushed: host
                .pushed
                .not_pushed
                .iter()
                .map(|(reason, commands)| SimNotPushed { reason: reason.name().into(), commands })
                .collect(),
        };
        (messages > 0 || !pushed.not_pushed.is_empty()).then_some(pushed)
    }
}

/// A recording that was replayed.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct Replayed {
    /// The files of the recording.
    pub files: Vec<String>,
    /// Point at which the TLPs were recorded: `root port`, `switch` or `device port`.
    pub at: Cow<'static, str>,
    /// Latency of the recorded commands at that point, from the submission doorbell to the
    /// completion head doorbell, to compare with `root_port_ns`.
    pub latency_ns: SimLatency,
    /// Commands that were replayed.
    pub commands: u64,
    /// Commands that were not replayed: they failed, or simulated drives do not implement them.
    pub left_out: u64,
    /// Places where records are missing.
    pub gaps: u64,
}

impl From<&Recording> for Replayed {
    fn from(recording: &Recording) -> Self {
        Self {
            files: recording.files.iter().map(|file| file.display().to_string()).collect(),
            at: recording.at.into(),
            latency_ns: recording.latency.summary().into(),
            commands: recording.operations.len() as u64,
            left_out: recording.left_out,
            gaps: recording.gaps,
        }
    }
}

/// The time of commands by segment. The sum of the `ns` of each list is exactly its total.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct SimSegments {
    /// Mean over all commands.
    pub mean: Vec<SimSegment>,
    /// Segments of one command whose time is the median, within 0.05 %.
    pub median: Vec<SimSegment>,
    /// Segments of one command whose time is the 99th percentile, within 0.05 %.
    pub p99: Vec<SimSegment>,
    /// The time of the whole command.
    pub total_ns: SegmentTotals,
}

/// Sums of segments, in nanoseconds.
#[derive(Clone, Copy, Debug, Deserialize, JsonSchema, Serialize)]
pub struct SegmentTotals {
    /// Sum of `mean`.
    pub mean: u64,
    /// Sum of `median`.
    pub median: u64,
    /// Sum of `p99`.
    pub p99: u64,
}

/// The time in one segment. Segments without time are left out.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct SimSegment {
    /// Name of the segment (docs/model.md#where-the-time-of-a-command-goes).
    pub segment: Cow<'static, str>,
    /// Time in the segment.
    pub ns: u64,
}

/// One direction of a PCIe link or cable, while the workloads ran.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct SimLink {
    /// Sender and receiver, with the names of the plan.
    pub link: String,
    /// Share of the time in which the link was busy, in parts per million.
    pub utilisation_ppm: u64,
    /// TLPs or Ethernet frames.
    pub packets: u64,
    /// Bytes on the wire, framing included.
    pub bytes: u64,
    /// Time in which the link was busy.
    pub busy_ns: u64,
}

/// One direction of a tunnel, while the workloads ran.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct SimTunnel {
    /// The drive, or the switch node as `NODE@HOST`, at the end of the tunnel, and the direction.
    pub tunnel: String,
    /// Frames with TLPs, copies included.
    pub frames: u64,
    /// TLPs in the frames.
    pub tlps: u64,
    /// How often the sender's other path took over from a silent or lost one.
    #[serde(default)]
    pub failovers: u64,
    /// Frames that the receiver dropped because the other path had delivered them.
    #[serde(default)]
    pub copies: u64,
    /// TLPs per frame, to two decimals, rounded down.
    pub tlps_per_frame: f64,
}

/// A run with a further seed.
#[derive(Clone, Debug, Deserialize, JsonSchema, Serialize)]
pub struct SimRun {
    /// Seed of all random numbers.
    pub seed: u64,
    /// Digest of everything that happened, 16 hexadecimal digits.
    pub digest: String,
    /// Wake-ups of components.
    pub events: u64,
    /// Latency of the application's transfers or configuration reads on all hosts, from call to
    /// answer.
    pub latency_ns: SimLatency,
    /// Transfers per second of all hosts.
    pub iops: u64,
    /// Bytes moved per second by all hosts.
    pub bytes_per_s: u64,
    /// The plan's requirements, and whether the run met them.
    pub requirements: Vec<requirements::Row>,
}

impl From<stats::Summary> for SimLatency {
    fn from(summary: stats::Summary) -> Self {
        let stats::Summary { n, min_ns: min, mean_ns: mean, p50_ns: p50, p90_ns: p90, .. } =
            summary;
        let stats::Summary { p99_ns: p99, p99_9_ns: p99_9, max_ns: max, .. } = summary;
        let (jitter, peak_to_peak) = (summary.jitter_ns, max - min);
        Self { n, min, mean, p50, p90, p99, p99_9, max, jitter, peak_to_peak }
    }
}
