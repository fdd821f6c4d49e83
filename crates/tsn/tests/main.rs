//! Gates and clocks.

mod clock;
mod cqf;
mod gates;
