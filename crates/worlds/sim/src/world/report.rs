//! The results of a simulation.

use crate::ethernet::traffic::StreamId;
use crate::measure::{Breakdown, Latency, Load, Pushed, QueueStats};
use crate::network::{BulkReport, Handled, StreamReport, TimeReport};
use wire::{Duration, Instant};

/// The results of a simulation.
#[derive(Clone, Debug)]
pub struct Report {
    /// Digest of all events.
    pub digest: u64,
    /// Wake-ups of components.
    pub events: u64,
    /// Virtual time at the end.
    pub time: Instant,
    /// The results of each host.
    pub hosts: Vec<HostReport>,
    /// The load of each direction of every link and wire.
    pub links: Vec<LinkReport>,
    /// The load of each direction of every tunnel link.
    pub tunnels: Vec<TunnelReport>,
    /// The results of each stream, in the order of station and number.
    pub streams: Vec<StreamReport>,
    /// The results of each flow over TCP.
    pub bulk: Vec<BulkReport>,
    /// Counters of the handling of streams, in the order of stream and node.
    pub handled: Vec<Handled>,
    /// Number of TCP segments with data and raw data frames that stations retransmitted.
    pub retransmitted: u64,
    /// For each direction of a cable, statistics of the queues of the sending port.
    pub queues: Vec<QueueStats>,
    /// Results for the clocks, if clocks are simulated.
    pub time_of_nodes: Option<TimeReport>,
}

/// The results for a host.
#[derive(Clone, Debug)]
pub struct HostReport {
    /// Latency of the application's transfers, from call to result.
    pub latency: Latency,
    /// Latency of commands at the root port, from the start of the submission doorbell to the
    /// acknowledgement of the completion head doorbell, as in the NVMe/TSN paper (MLE, "Latency
    /// Analysis for NVMe/TSN", section 4.2.1).
    pub root_port: Latency,
    /// Latency of configuration reads at the root port, from the start of the request to the start
    /// of its completion (section 4.1.1 of the paper).
    pub config_reads: Latency,
    /// Sum of the latencies of all NVMe commands, by stage.
    pub breakdown: Breakdown,
    /// Number of NVMe commands.
    pub commands: u64,
    /// Sum of the latencies of all NVMe commands, equal to the sum of `breakdown`.
    pub total: Duration,
    /// Bytes moved by the application.
    pub bytes: u64,
    /// Bytes moved by the application, by drive.
    pub drive_bytes: Vec<u64>,
    /// Number of blocks that were compared with their expected contents.
    pub verified: u64,
    /// Number of transfers or blocks with unexpected contents.
    pub mismatches: u64,
    /// Completion entries that match no outstanding command, of jobs.
    pub spurious: u64,
    /// Commands with an error status, or lost with their drive's link, and
    /// configuration reads that returned all ones.
    pub failures: u64,
    /// Failed commands that a reservation of another host forbids: status Reservation Conflict.
    pub conflicts: u64,
    /// Push counters during the workload. A drive that moved counts at its last host.
    pub pushed: Pushed,
    /// When the workload began.
    pub began: Instant,
    /// Run time of the workload.
    pub span: Duration,
}

impl HostReport {
    /// Bytes per second that the application moved.
    pub fn throughput(&self) -> u64 {
        per_second(self.bytes, self.span)
    }
}

impl Report {
    /// The results for a stream.
    pub fn stream(&self, id: StreamId) -> Option<&StreamReport> {
        let found = self.streams.binary_search_by_key(&id, |stream| stream.stream);
        found.ok().map(|at| &self.streams[at])
    }

    /// The time from the start of the first workload to the end of the last one.
    pub fn span(&self) -> Duration {
        let began = self.hosts.iter().map(|host| host.began).min();
        let ended = self.hosts.iter().map(|host| host.began + host.span).max();
        ended.unwrap_or_default() - began.unwrap_or_default()
    }

    /// Bytes per second of all hosts together, over [`span`](Self::span).
    pub fn throughput(&self) -> u64 {
        per_second(self.hosts.iter().map(|host| host.bytes).sum(), self.span())
    }

    /// Transfers per second of all applications together, over [`span`](Self::span).
    pub fn transfers_per_second(&self) -> u64 {
        per_second(self.hosts.iter().map(|host| host.latency.count()).sum(), self.span())
    }
}

fn per_second(count: u64, span: Duration) -> u64 {
    (u128::from(count) * 1_000_000_000_000 / u128::from(span.as_ps().max(1))) as u64
}

/// The load of one direction of a link or wire while the workloads ran.
#[derive(Clone, Debug)]
pub struct LinkReport {
    /// Name of the direction.
    pub name: String,
    /// Busy time, packets and bytes.
    pub load: Load,
    /// Share of the time during which the link was busy, in parts per million.
    pub utilisation_ppm: u64,
}

/// The load of one direction of a tunnel link while the workloads ran.
#[derive(Clone, Debug, Default)]
pub struct TunnelReport {
    /// Name of the direction.
    pub name: String,
    /// Frames with TLPs, copies included.
    pub frames: u64,
    /// TLPs in these frames.
    pub tlps: u64,
    /// How often the sender's other path took over from a silent or lost one.
    pub failovers: u64,
    /// Frames that the receiver dropped because another path had delivered them.
    pub copies: u64,
}
