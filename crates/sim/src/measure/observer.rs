//! What may be watched from outside: the hook for traces and captures.

use super::Breakdown;
use nvme::initiator::Op;
use wire::Instant;
use wire::frame::FrameReport;
use wire::tlp::Tlp;

/// Where something was seen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Point {
    /// The link below the root port of this host.
    RootPort(u16),
    /// The link below the downstream port of this device node.
    DevicePort(u16),
    /// The host's end of this tunnel link.
    TunnelHost(u16),
    /// The device node's end of this tunnel link.
    TunnelDevice(u16),
    /// This network wire.
    Wire(u16),
}

/// An NVMe command that is over for its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// Number of the host.
    pub host: u16,
    /// Drive of that host.
    pub drive: u16,
    /// Submission queue.
    pub queue: u16,
    /// Command identifier.
    pub id: u16,
    /// What it did.
    pub op: Op,
    /// First byte on the drive.
    pub offset: u64,
    /// Bytes.
    pub length: u64,
    /// When the application asked for it, and when it has its answer.
    pub since: Instant,
    /// See `since`.
    pub until: Instant,
    /// Where the time between went.
    pub breakdown: Breakdown,
}

/// Watches a simulation; it can change nothing.
#[expect(unused_variables, reason = "nobody has to look")]
pub trait Observer {
    /// A TLP whose first byte passes `point`; `up` towards the root complex.
    /// Times of one point and direction do not go back.
    fn tlp(&mut self, at: Instant, point: Point, up: bool, tlp: &Tlp) {}

    /// Bytes of whole tunnel frames leave (`sent`), or bytes of the stream
    /// arrive, at an end of a link.
    fn stream(&mut self, at: Instant, point: Point, sent: bool, bytes: &[u8]) {}

    /// A tunnel frame leaves an end of a link, or has come there as a whole.
    fn tunnel_frame(&mut self, at: Instant, point: Point, frame: &FrameReport) {}

    /// A tunnel link came up or went down.
    fn link(&mut self, at: Instant, point: Point, up: bool) {}

    /// A command is over. Those of a host come in the order of their ends.
    fn command(&mut self, record: &CommandRecord) {}

    /// An Ethernet frame, without its FCS, starts on a wire.
    fn ethernet_frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {}
}
