//! Transports, which carry a link's byte stream between two nodes.

mod encapsulation;
mod pipe;
mod stream;

pub use encapsulation::Encapsulation;
pub use pipe::{Pipe, PipeConfig, Script};
pub(crate) use stream::Stream;

use crate::ethernet::{FrameLatency, FrameStage};
use crate::kernel::Kernel;
use crate::measure::{Load, Stage};
use crate::network::{EndId, Network};
use crate::processor::Processor;
use bytes::Bytes;
use switch::raw;
use wire::Instant;

/// The transport of one link.
#[derive(Clone, Debug)]
pub enum TransportConfig {
    /// A dedicated wire with a rate and a latency, without protocol and loss.
    Pipe(PipeConfig),
    /// A TCP connection between two stations of the network.
    Tcp(TcpConfig),
    /// Raw Ethernet frames between two stations of the network.
    Raw(RawConfig),
}

/// A connection over raw Ethernet.
#[derive(Clone, Copy, Debug)]
pub struct RawConfig {
    /// The station of the host, and the station of the device node.
    pub stations: [usize; 2],
    /// Priority of its frames, 0 to 7.
    pub priority: u8,
    /// Settings of both ends; the world sets the connection identifier and the overhead of a tag.
    pub settings: raw::Settings,
}

impl TransportConfig {
    /// The connected stations, host first, and the priority of the frames; `None` without a
    /// network.
    pub fn stations(&self) -> Option<([usize; 2], u8)> {
        match self {
            Self::Pipe(_) => None,
            Self::Tcp(tcp) => Some((tcp.stations, tcp.priority)),
            Self::Raw(raw) => Some((raw.stations, raw.priority)),
        }
    }

    /// The most bytes of the tunnel that the transport accepts at once.
    pub fn max_send(&self) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.script.map_or(pipe.max_packet, |script| script.room),
            Self::Tcp(tcp) => tcp.burst,
            Self::Raw(raw) => raw.settings.segment,
        }
    }
}

/// A TCP connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TcpConfig {
    /// The station of the host, and the station of the device node.
    pub stations: [usize; 2],
    /// Priority of its frames, 0 to 7.
    pub priority: u8,
    /// The most bytes of the tunnel that the socket accepts when it has no unsent bytes: at least
    /// the largest TLP and 12 bytes. With the payload of a segment (1460 bytes), each tunnel frame
    /// is one frame on the wire.
    pub burst: usize,
}

/// An end of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum End {
    /// The host's end.
    Host = 0,
    /// The device node's end.
    Device = 1,
}

/// Number of stages in [`Arrived`].
const STEPS: usize = 1 + FrameStage::COUNT;

/// Received bytes. `stages` has each stage of the last byte and the end of the stage.
#[derive(Debug)]
pub(crate) struct Arrived {
    pub bytes: Bytes,
    pub stages: [(Instant, Stage); STEPS],
}

impl Arrived {
    /// Bytes received over a dedicated wire.
    pub(crate) fn over_pipe(bytes: Bytes, steps: [(Instant, Stage); 3]) -> Self {
        let mut stages = [(Instant::ZERO, Stage::Tcp); STEPS];
        stages[..3].copy_from_slice(&steps);
        Self { bytes, stages }
    }

    /// Bytes received in a frame with this latency. `before` is the stage until the frame was
    /// created. The lengths of the stages are exact. Their order is fixed, and may differ from the
    /// order on the path.
    pub(crate) fn in_frame(bytes: Bytes, latency: &FrameLatency, before: Stage) -> Self {
        let mut at = latency.created();
        let mut stages = [(at, before); STEPS];
        for (step, stage) in stages[1..].iter_mut().zip(FrameStage::ALL) {
            at += latency.spent(stage);
            *step = (at, of_frame(stage));
        }
        Self { bytes, stages }
    }
}

const fn of_frame(stage: FrameStage) -> Stage {
    match stage {
        FrameStage::Nic => Stage::Nic,
        FrameStage::Queue => Stage::EgressQueue,
        FrameStage::Gate => Stage::GateWait,
        FrameStage::Shaper => Stage::ShaperWait,
        FrameStage::Preempted => Stage::Preempted,
        FrameStage::Serialisation => Stage::Serialisation,
        FrameStage::Propagation => Stage::Propagation,
        FrameStage::Bridge => Stage::Bridge,
    }
}

/// The transport of a link.
#[derive(Debug)]
pub(crate) enum Transport {
    Pipe(Box<Pipe>),
    /// A connection between stations; TCP signals new room, raw Ethernet does not.
    Network {
        ends: [EndId; 2],
        raw: bool,
    },
}

impl Transport {
    fn pipe(&self) -> Option<&Pipe> {
        match self {
            Self::Pipe(pipe) => Some(pipe),
            Self::Network { .. } => None,
        }
    }

    /// Whether `end` is connected.
    pub(crate) fn is_connected(&self, now: Instant, end: End, network: &Network) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_connected(now, end),
            Self::Network { ends, .. } => network.is_connected(ends[end as usize]),
        }
    }

    /// Whether the connection of `end`, or its attempt to connect, has ended.
    pub(crate) fn is_closed(&self, now: Instant, end: End, network: &Network) -> bool {
        match self {
            Self::Pipe(pipe) => pipe.is_closed(now, end),
            Self::Network { ends, .. } => network.is_closed(ends[end as usize]),
        }
    }

    /// Closes the connection of `end`.
    pub(crate) fn close(&self, now: Instant, end: End, network: &mut Network, kernel: &mut Kernel) {
        if let Self::Network { ends, .. } = self {
            kernel.arm_by(network.close(now, ends[end as usize]), now);
        }
    }

    /// Makes `end` connect or listen again.
    pub(crate) fn reopen(
        &self,
        now: Instant,
        end: End,
        network: &mut Network,
        kernel: &mut Kernel,
    ) {
        match self {
            Self::Pipe(pipe) => pipe.reopen(now, end),
            Self::Network { ends, .. } => {
                kernel.arm_by(network.reopen(now, ends[end as usize]), now);
            }
        }
    }

    /// Connects the host's end again if its connection has ended. The first connection opens by
    /// itself.
    pub(crate) fn connect(&self, now: Instant, network: &mut Network, kernel: &mut Kernel) {
        if self.is_closed(now, End::Host, network) {
            self.reopen(now, End::Host, network, kernel);
        }
    }

    /// The station of the device node, if it has one.
    pub(crate) fn device_station(&self) -> Option<usize> {
        match self {
            Self::Pipe(_) => None,
            Self::Network { ends, .. } => Some(ends[End::Device as usize].station),
        }
    }

    /// The processors at both ends.
    pub(crate) fn processors(&self, network: &Network) -> [Option<Processor>; 2] {
        match self {
            Self::Pipe(_) => [None, None],
            Self::Network { ends, .. } => ends.map(|end| network.processor(end.station)),
        }
    }

    /// Whether the transport is raw Ethernet.
    pub(crate) fn is_raw(&self) -> bool {
        matches!(self, Self::Network { raw: true, .. })
    }

    /// Bytes that `end` may send now.
    pub(crate) fn room(&self, now: Instant, end: End, network: &mut Network) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.room(now, end),
            Self::Network { ends, .. } => network.room(now, ends[end as usize]),
        }
    }

    /// Bytes that `end` may send now. Does not wake the owner of the end later.
    pub(crate) fn peek_room(&self, now: Instant, end: End, network: &Network) -> usize {
        match self {
            Self::Pipe(pipe) => pipe.room(now, end),
            Self::Network { ends, .. } => network.peek_room(now, ends[end as usize]),
        }
    }

    /// Sends bytes that contain `tlps` TLPs. There must be room for them.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        end: End,
        (bytes, tlps): (Bytes, usize),
        network: &mut Network,
        kernel: &mut Kernel,
    ) {
        match self {
            Self::Pipe(pipe) => pipe.send(now, end, bytes),
            Self::Network { ends, .. } => {
                let station = network.send(now, ends[end as usize], bytes, tlps);
                kernel.arm_by(station, now);
            }
        }
    }

    /// The next bytes received at `end`.
    pub(crate) fn receive(
        &mut self,
        now: Instant,
        end: End,
        network: &mut Network,
    ) -> Option<Arrived> {
        match self {
            Self::Pipe(pipe) => pipe.receive(now, end),
            Self::Network { ends, .. } => network.receive(ends[end as usize]),
        }
    }

    /// When `end` must be woken. A network wakes the end itself, except for a busy processor.
    pub(crate) fn next(&self, now: Instant, end: End, network: &Network) -> Option<Instant> {
        match self {
            Self::Pipe(pipe) => pipe.next(now, end),
            Self::Network { ends, .. } => network.next(now, ends[end as usize]),
        }
    }

    /// When the next packet arrives at `end`; `None` with a network.
    pub(crate) fn next_arrival(&self, end: End) -> Option<Instant> {
        self.pipe()?.next_arrival(end)
    }

    /// The load of the dedicated wire from `end`; `None` with a network.
    pub(crate) fn load(&self, end: End) -> Option<Load> {
        self.pipe().map(|pipe| pipe.load(end))
    }
}
