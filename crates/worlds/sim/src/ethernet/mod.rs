//! Ethernet in virtual time: ports, cables, bridges, network interfaces and
//! background traffic.
//!
//! ```text
//! host -> Nic (pipeline, tag, Port) -> Cable -> Bridge (Port) -> Cable -> Nic -> host
//! ```
//!
//! Each part is a state machine with the same contract: `handle(now, Input)`, then `poll(now)`
//! until it yields `Timeout`. A frame needs few events: it leaves a [`Port`] when its transmission
//! starts and leaves a [`Cable`] when it is delivered to the receiver. Its end is known when it
//! starts, unless frame preemption interrupts it ([`LineEvent`]).
//!
//! Every part notes which frames of streams it dropped ([`Dropped`]).
//!
//! Every frame carries its [`FrameLatency`]: picoseconds by stage, which sum
//! exactly to the time since the frame was made.
//!
//! Not modelled: flow control by pause frames, half duplex, the
//! forward error correction of the fast rates (its latency is a parameter of
//! the network interface), link training.

pub mod bridge;
pub mod cable;
pub mod dropped;
pub mod frame;
pub mod latency;
pub mod nic;
pub mod port;
pub mod rate;
pub mod streams;
pub mod traffic;

pub use bridge::Bridge;
pub use cable::Cable;
pub use dropped::Dropped;
pub use frame::{Control, Frame, Mac, Tag, Transmission};
pub use latency::{FrameLatency, FrameStage};
pub use nic::Nic;
pub use port::Port;
pub use rate::Rate;

/// An event on a line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LineEvent {
    /// A frame begins, or its first fragment.
    Transmit(Transmission),
    /// The preemptable frame on the line is interrupted.
    Suspend(port::Suspend),
    /// The interrupted frame continues.
    Resume(port::Resume),
}
