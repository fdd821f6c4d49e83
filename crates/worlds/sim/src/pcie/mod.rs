//! PCIe links: serialisation at the lane rate, framing, ACK and flow-control
//! DLLPs, credits, and the pipelines of the ports.

mod direction;
mod rate;
#[cfg(test)]
mod tests;

pub(crate) use direction::{Direction, Received};
pub use rate::{Generation, Rate};

use wire::earliest;
use wire::tlp::{Tlp, TraceId};
use wire::{Duration, Instant};

/// Bytes of a DLLP on the wire: 2 framing, 4 content, 2 CRC (PCIe Base 4.0,
/// sections 3.4.1 and 4.2.1.2).
const DLLP: usize = 8;

/// Bytes that the physical and data link layers add to a TLP: STP and END 2, sequence number 2,
/// LCRC 4 (PCIe Base 4.0, sections 3.6.1 and 4.2.1.2; R. Neugebauer et al., "Understanding PCIe
/// performance for end host networking", SIGCOMM 2018, section 3).
pub const FRAMING: usize = 8;

/// The pipelines of one port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortLatency {
    /// From the arbitration in the transaction layer to a TLP's first bit on the wire.
    pub transmit: Duration,
    /// From a TLP's last bit to the transaction layer.
    pub receive: Duration,
}

/// The buffer of a receiver: flow-control credits by class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Buffer {
    /// Header credits, one per TLP: posted, non-posted, completion.
    pub headers: [u32; 3],
    /// Data credits of 16 bytes each (PCIe Base 4.0, section 2.6.1).
    pub data: [u32; 3],
}

impl Default for Buffer {
    /// 64 header credits per class, 16 KiB for the data of posted requests and of completions, and
    /// 1 KiB for non-posted requests. Short links never wait for these credits.
    fn default() -> Self {
        Self { headers: [64; 3], data: [1024, 64, 1024] }
    }
}

/// A PCIe link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LinkConfig {
    /// Signalling rate and encoding.
    pub generation: Generation,
    /// Number of lanes: 1, 2, 4, 8 or 16.
    pub width: u8,
    /// Propagation delay in one direction.
    pub propagation: Duration,
    /// Pipelines of the downstream port, which is nearer to the root complex.
    pub downstream_port: PortLatency,
    /// Pipelines of the upstream port or endpoint.
    pub upstream_port: PortLatency,
    /// The buffer of each receiver.
    pub buffer: Buffer,
}

/// Which TLPs a receiver accepts on arrival without waking its component. The component handles
/// the TLPs when it runs next, with their times of arrival. This saves events and does not change
/// results: no component could observe these TLPs earlier, and all times on the link, including
/// those of DLLPs and credits, are the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Deferral {
    /// No TLPs.
    #[default]
    Nothing,
    /// Memory writes to this range of addresses. The range is host memory, which always has room
    /// and is not read before another TLP arrives.
    Writes {
        /// The first address.
        from: u64,
        /// The address after the last one.
        until: u64,
    },
    /// Up to [`Deferral::MOST`] TLPs, for a queue that cannot send now.
    All,
}

impl Deferral {
    /// Number of TLPs that [`Deferral::All`] accepts until the component runs.
    pub(crate) const MOST: usize = 256;
}

/// A link and the TLPs in flight on it.
#[derive(Debug)]
pub(crate) struct Link {
    /// The direction towards the endpoint.
    pub down: Direction,
    /// The direction towards the root complex.
    pub up: Direction,
}

impl Link {
    pub(crate) fn new(config: &LinkConfig) -> Self {
        let rate = Rate::new(config.generation, config.width);
        let direction = |from: PortLatency, to: PortLatency| {
            Direction::new(rate, from.transmit, config.propagation, to.receive, config.buffer)
        };
        Self {
            down: direction(config.downstream_port, config.upstream_port),
            up: direction(config.upstream_port, config.downstream_port),
        }
    }

    /// Resets the link: restores all credits and drops the TLPs in flight. Calls `dropped` with the
    /// trace ID of each dropped TLP.
    pub(crate) fn reset(&mut self, now: Instant, mut dropped: impl FnMut(TraceId)) {
        self.down.reset(now, &mut dropped);
        self.up.reset(now, dropped);
    }

    /// Takes all TLPs, in the order of their arrival: downwards and upwards. Reset the link then.
    pub(crate) fn take_all(&mut self) -> [Vec<Tlp>; 2] {
        [&mut self.down, &mut self.up].map(Direction::take_all)
    }

    /// A time before which no TLP arrives at the upstream port or endpoint, if no other component
    /// has an event before `first`. `None`: no TLP arrives.
    pub(crate) fn known_below(&self, first: Option<Instant>) -> Option<Instant> {
        let elsewhere = earliest([first, self.up.next_arrival()]);
        let later = elsewhere.map(|at| at + self.down.latency());
        earliest([later, self.down.next_arrival()])
    }

    /// Accepts the TLPs that arrived upwards by `now` and that the deferral allows. Call this
    /// before any other use of the link.
    pub(crate) fn take_deferred_up(&mut self, now: Instant) {
        while let Some((at, class, data)) = self.up.take_deferred(now) {
            // The same DLLPs as in `Direction::arrive` and `Direction::take`.
            self.down.send_dllp(at);
            let sent = self.down.send_dllp(at);
            self.up.return_credits(sent + self.down.latency(), class, data);
        }
    }
}
