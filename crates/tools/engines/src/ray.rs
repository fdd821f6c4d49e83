//! Tasks of Ray. The Python package submits them, because Ray has no other stable interface.

use super::{Launch, child};
use plan::run::Watch;
use report::{Failure, Outcome};
use std::path::Path;
use std::process::Command;

/// Runs the missing points.
pub fn run(
    launch: &Launch<'_>,
    (python, address): (&Path, Option<&str>),
    watch: &Watch<'_>,
) -> Outcome {
    let mut command = Command::new(python);
    command.args(["-m", "farlane.ray_engine"]).arg(launch.folder.path());
    if let Some(address) = address {
        command.args(["--address", address]);
    }
    if let Some(limit) = launch.timeout {
        command.args(["--point-timeout", &format!("{}ns", limit.as_ns())]);
    }
    let log = launch.folder.path().join("ray.log");
    child::run(&mut command, &log, launch.folder, watch).map_err(|Failure(why)| {
        let hint = match why.contains("No module named") {
            true => {
                "; install the package with 'pip install farlane[ray]', or name a Python that \
                     has it: --engine ray,python=FILE"
            }
            false => "",
        };
        Failure(format!("engine ray: {why}{hint}"))
    })
}
