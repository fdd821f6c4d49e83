//! Commands are found in hand-made streams.

mod bench;
mod commands;
mod hostile;
mod machine;
mod real;
mod streams;
mod views;

pub(crate) use bench::{Bench, Drive, io};
