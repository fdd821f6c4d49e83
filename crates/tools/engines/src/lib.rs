//! Runs the points of a sweep's folder ([`plan::run::points`]): on this machine, in a Ray cluster, or
//! by Slurm. Every engine starts workers, which run points and write their files; the engine only
//! waits for the files.
//!
//! # Modules
//!
//! - `engine`: engines as options
//! - `local`: threads of this machine, and of a worker
//! - `child`: a program that runs until it ends or is stopped
//! - `ray`: tasks of Ray
//! - `slurm`: array jobs of Slurm

mod child;
mod engine;
mod local;
mod ray;
mod slurm;

pub use engine::{Engine, Launch};
pub use local::{machine, work};

use plan::run::Watch;
use plan::run::points::Folder;
use std::time::Duration;

/// Time between two looks at the folder and at the engine.
const LOOK: Duration = Duration::from_millis(200);

/// Shows how many points are done. Returns whether none is left.
fn show(folder: &Folder, watch: &Watch<'_>) -> bool {
    let Ok(summary) = folder.summary() else { return false };
    let mut text = format!("{} of {} points", summary.done, folder.count());
    if summary.failed > 0 {
        text += &format!(", {} failed", summary.failed);
    }
    (watch.progress)(Some(&text));
    summary.done + summary.failed == folder.count()
}
