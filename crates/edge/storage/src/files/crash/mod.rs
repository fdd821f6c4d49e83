//! A model of a disk for tests: unsynced data may be lost when the machine crashes.
//!
//! After a crash, each sector has the value of its last sync or of any later write, independently
//! of other sectors. The same applies to the lengths of files. Of the unsynced changes of a folder,
//! any subset is present, each change completely. Thus writes can be torn and reordered.
//!
//! Every change and every sync is a step. A test can end the process before a step, or make steps
//! fail.

mod content;
mod disk;
mod handles;
mod tests;

pub use disk::Disk;
