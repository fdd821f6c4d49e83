//! Ethernet in virtual time: ports, cables, bridges, network interfaces and
//! background traffic.
//!
//! ```text
//! host -> Nic (pipeline, tag, Port) -> Cable -> Bridge (Port) -> Cable -> Nic -> host
//! ```
//!
//! All parts are state machines with the same interface: call `handle(now, Input)`, then
//! `poll(now)` until it returns `Timeout`. A frame needs few events: it leaves a [`Port`] when its
//! transmission starts, and leaves a [`Cable`] when it is delivered to the receiver. The end of a
//! transmission is known when the transmission starts, unless frame preemption interrupts it
//! ([`LineEvent`]).
//!
//! Every part records which frames of streams it dropped ([`Dropped`]).
//!
//! Every frame has a [`FrameLatency`]: the picoseconds of each stage. Their sum is exactly the time
//! since the frame was made.
//!
//! Not modelled: pause frames, half duplex, link training, and forward error correction of the fast
//! rates. Add the latency of forward error correction to the delays of the network interface.

pub mod bridge;
pub mod cable;
pub mod dropped;
pub mod frame;
pub mod latency;
pub mod nic;
pub mod port;
pub mod rate;
pub mod recorded;
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
    /// A frame or its first fragment begins.
    Transmit(Transmission),
    /// The preemptable frame on the line is interrupted.
    Suspend(port::Suspend),
    /// The interrupted frame continues.
    Resume(port::Resume),
}
