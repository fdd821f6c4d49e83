//! Tests with hand-made streams of TLPs.

mod commands;
mod hostile;
mod machine;
mod pushed;
mod real;
mod rings;
mod streams;
mod testbed;
mod views;

pub(crate) use testbed::{Drive, Testbed, io, pushed};
