//! `--points`: a sweep in a folder that many processes can share.
//!
//! The folder has the sweep (`sweep.json`), and a Parquet file for each finished point. A process
//! that finds a point's file does not run the point again. Files appear complete, by renaming. A
//! point's rows depend only on the sweep; its machine and duration are in the file's metadata.
//!
//! # Modules
//!
//! - `job`: the sweep
//! - `store`: the files of points
//! - `work`: runs points
//! - `ranges`: numbers of points as text

mod job;
mod ranges;
mod store;
#[cfg(test)]
mod tests;
mod work;

pub use job::Job;
pub use ranges::{numbers, ranges};
pub use store::{Folder, Summary};
pub use work::Work;
