//! Drives in folders of the machine, and on disks that crash.

mod checksums;
mod crash;
mod folder;
mod world;

use world::{End, Op, World};
