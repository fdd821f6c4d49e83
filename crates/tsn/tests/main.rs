//! Gates and clocks.

mod clock;
mod gates;
