//! Per-stream filtering and policing (IEEE 802.1Q-2022, 8.6.5.2 to 8.6.5.5; formerly 802.1Qci):
//! what a bridge does with the frames of a stream when it has received them.
//!
//! A frame passes the longest SDU, then the stream gate, then the flow meter. Each of them may
//! block the stream for good when it finds a violation, until a manager opens it again.

mod filter;
mod gate;
mod meter;

pub use filter::{Config, Counters, Filter, FilterError, Frame, Reason, Verdict};
pub use gate::{GateConfig, GateEntry, GateError, MAX_INTERVAL, StreamGate};
pub use meter::{Color, Meter, MeterConfig, MeterError};
