//! A model of a disk for tests: what was not synced may be lost when the machine crashes.
//!
//! At a crash each sector that was written since its last sync is as it was then or as after any
//! later write, whatever became of its neighbours; the same holds for lengths. Of the unsynced
//! changes of a folder any subset happens, each as a whole. So writes tear, and are reordered.
//!
//! Every change and every sync is a step. A test stops the process before a step, or lets steps
//! fail.

mod content;
mod disk;
mod handles;
mod tests;

pub use disk::Disk;
