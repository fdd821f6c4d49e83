//! The trait through which traces and captures receive events.

use super::{Breakdown, PortSample};
use crate::ethernet::{Frame, LineEvent, Transmission};
use node::faults::Fault;
use nvme::initiator::Op;
use wire::Instant;
use wire::frame::FrameReport;
use wire::tlp::Tlp;

/// The place at which an event was observed.
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
    /// This wire of the network, one direction of a cable.
    Wire(u16),
}

/// A change of a tunnel link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// It came up, with a new session.
    Up,
    /// It has lost its connection, and its session waits for another one.
    Interrupted,
    /// Its session goes on over another connection.
    Resumed,
    /// It went down, and its session is lost.
    Down,
}

/// A finished NVMe command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandRecord {
    /// Number of the host.
    pub host: u16,
    /// Number of the drive at the host.
    pub drive: u16,
    /// Submission queue.
    pub queue: u16,
    /// Command identifier.
    pub id: u16,
    /// The operation.
    pub op: Op,
    /// First byte on the drive.
    pub offset: u64,
    /// Bytes of the command.
    pub length: u64,
    /// When the application submitted the command.
    pub since: Instant,
    /// When the application had the result.
    pub until: Instant,
    /// The time from `since` to `until`, by stage.
    pub breakdown: Breakdown,
}

/// Observes a simulation without changing it.
#[expect(unused_variables, reason = "nobody has to look")]
pub trait Observer {
    /// The first byte of a TLP passes `point`, towards the root complex if `up`. Times at one point
    /// and in one direction never decrease.
    fn tlp(&mut self, at: Instant, point: Point, up: bool, tlp: &Tlp) {}

    /// Bytes leave an end of a link (`sent`) or arrive there. Sent bytes are whole tunnel frames;
    /// received bytes may be any part of the stream.
    fn stream(&mut self, at: Instant, point: Point, sent: bool, bytes: &[u8]) {}

    /// A tunnel frame leaves an end of a link, or has arrived there completely.
    fn tunnel_frame(&mut self, at: Instant, point: Point, frame: &FrameReport) {}

    /// The state of a tunnel link changed.
    fn link(&mut self, at: Instant, point: Point, change: LinkChange) {}

    /// A planned fault began to act at this port.
    fn fault(&mut self, at: Instant, point: Point, fault: &Fault) {}

    /// A command has finished. The commands of a host are reported in the order in which they
    /// finish.
    fn command(&mut self, record: &CommandRecord) {}

    /// An Ethernet frame, without its FCS, starts on a wire. Called for each frame on every wire,
    /// even if `Self::mpacket` reports the frame too.
    fn ethernet_frame(&mut self, at: Instant, point: Point, bytes: &[u8]) {}

    /// A frame or fragment begins on a wire, or is interrupted.
    fn line(&mut self, at: Instant, point: Point, event: &LineEvent) {}

    /// A frame, or its header if the receiver is a cut-through bridge, has passed a wire at `at`.
    fn delivered(&mut self, at: Instant, point: Point, sent: &Transmission) {}

    /// A frame of a stream, or a copy of it, has arrived at a listener: the station with the number
    /// `station`.
    fn arrival(&mut self, at: Instant, station: usize, frame: &Frame) {}

    /// An mPacket (IEEE 802.3-2022, 99.3), preamble to FCS or mCRC, whose first bit passed at
    /// `at`: each packet on a wire whose sender supports preemption. A preemptable frame or
    /// fragment is reported when it has ended; times of one wire never decrease.
    fn mpacket(&mut self, at: Instant, point: Point, bytes: &[u8]) {}

    /// Whether [`Self::port`] is called for the sender of this wire. Called once, when the observer
    /// is set.
    fn follows(&self, wire: Point) -> bool {
        false
    }

    /// The port that sends onto a wire has changed. Times never decrease.
    fn port(&mut self, at: Instant, wire: Point, sample: &PortSample<'_>) {}
}
