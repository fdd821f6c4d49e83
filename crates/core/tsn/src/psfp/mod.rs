//! Per-stream filtering and policing (IEEE 802.1Q-2022, 8.6.5.2 to 8.6.5.5; formerly 802.1Qci): the
//! handling of a stream's frames at reception in a bridge.
//!
//! A frame is checked by the longest SDU, then the stream gate, then the flow meter. Each of them
//! may block the stream permanently after a violation, until a manager reopens it.

mod filter;
mod gate;
mod meter;

pub use filter::{Config, Counters, Filter, FilterError, Frame, Reason, Verdict};
pub use gate::{GateConfig, GateEntry, GateError, MAX_INTERVAL, StreamGate};
pub use meter::{Color, Meter, MeterConfig, MeterError};
