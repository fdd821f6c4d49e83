//! Drives in folders of the machine, and on disks that crash.

mod checksums;
mod crash;
mod folder;
mod world;

use world::{End, Op, World};

/// Stops at step 0, 1 and so on, until `is_whole` returns true: there was no such step. Returns the
/// number of steps.
fn every_step(mut is_whole: impl FnMut(usize) -> bool) -> usize {
    (0..).find(|step| is_whole(*step)).expect("every run has an end")
}
