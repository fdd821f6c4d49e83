//! Traces made by hand, with journeys that are known.

mod build;
mod capture;
mod charts;
mod files;
mod merging;
mod reports;

use build::{OFFSET, Traces, traces};
