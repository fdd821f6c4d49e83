//! Per-stream filtering and policing (IEEE 802.1Q-2022, 8.6.5.2 to 8.6.5.5; formerly 802.1Qci):
//! checks of the frames that a bridge receives.
//!
//! A bridge checks the SDU length of a frame, then the stream gate, then the flow meter. Each check
//! can block the stream permanently after a violation. In the standard only management ends the
//! block.

mod filter;
mod gate;
mod meter;

pub use filter::{Config, Counters, Filter, FilterError, Frame, Reason, Verdict};
pub use gate::{GateConfig, GateEntry, GateError, MAX_INTERVAL, StreamGate};
pub use meter::{Color, Meter, MeterConfig, MeterError};
