//! A model of a disk for tests: unsynced data may be lost when the machine crashes.
//!
//! In a crash, each sector written since its last sync gets its value at that sync or after any
//! later write, independently of other sectors; the same holds for lengths. Any subset of a
//! folder's unsynced changes happens, each as a whole. Thus writes tear and are reordered.
//!
//! Every change and every sync is a step. A test stops the process before a step, or lets steps
//! fail.

mod content;
mod disk;
mod handles;
mod tests;

pub use disk::Disk;
