//! TSN networks without drives: bridges in a line with gates at every port, and a mesh of rings.

use crate::commands::rounded;
use load::CpuTime;
use plan::Plan;
use report::Failure;
use schemars::JsonSchema;
use serde::Serialize;
use sim::world::Error;
use sim::{Config, World};
use std::time::Instant as Clock;
use wire::Duration;

/// Bridges of the line, with one station each.
const BRIDGES: usize = 50;
/// The plan of the mesh.
const MESH: &str = include_str!("../../../../../../plans/mesh-of-rings.toml");

/// One run of a TSN network without drives.
#[derive(JsonSchema, Serialize)]
pub struct NetworkBench {
    /// Number of bridges.
    pub bridges: usize,
    /// Number of streams.
    pub streams: usize,
    /// Wall time in seconds to read the plan, if there is one, and to build the network.
    pub setup_s: f64,
    /// Simulated seconds.
    pub sim_s: f64,
    /// Frames that arrived.
    pub frames: u64,
    /// Frames that were dropped.
    pub lost: u64,
    /// Number of simulated events.
    pub events: u64,
    /// Digest of everything that happened: 16 hexadecimal digits, equal on every machine.
    pub digest: String,
    /// Wall time of the run in seconds, without the setup.
    pub wall_s: f64,
    /// Processor time of the run in seconds.
    pub cpu_s: f64,
    /// Events per second of wall time.
    pub events_per_s: f64,
    /// Largest resident set of the process from before the network was built until the end.
    pub max_rss_bytes: u64,
}

/// Simulates the line for `span`: 1 Gb/s, one station per bridge, four streams per station
/// (priorities 7, 6, 5 and 0) over 4, 6, 9 and 14 bridges.
pub fn line(span: Duration) -> Result<NetworkBench, Failure> {
    measure(span, || Ok(Config::tsn_line(BRIDGES, span)))
}

/// Simulates plans/mesh-of-rings.toml for `span`.
pub fn mesh(span: Duration) -> Result<NetworkBench, Failure> {
    let config = || {
        let plan = Plan::parse("mesh-of-rings.toml", MESH)?;
        plan.with("runtime", &format!("{}ns", span.as_ns()), "--time")?.build()
    };
    measure(span, || {
        config().map(|planned| planned.config).map_err(|error| Failure(error.to_string()))
    })
}

fn measure(
    span: Duration,
    config: impl FnOnce() -> Result<Config, Failure>,
) -> Result<NetworkBench, Failure> {
    let failure = |error: Error| Failure(error.to_string());
    super::memory::forget_peak();
    let began = Clock::now();
    let config = config()?;
    let mut world = World::new(&config).map_err(failure)?;
    let setup_s = rounded(began.elapsed().as_secs_f64(), 3);
    let (began, cpu) = (Clock::now(), CpuTime::now());
    let report = world.run().map_err(failure)?;
    let (wall, cpu) = (began.elapsed().as_secs_f64(), CpuTime::now().since(cpu).0 as f64 / 1e9);
    Ok(NetworkBench {
        bridges: config.network.bridges.len(),
        streams: report.streams.len(),
        setup_s,
        sim_s: span.as_ps() as f64 / 1e12,
        frames: report.streams.iter().map(|stream| stream.arrived()).sum(),
        lost: report.streams.iter().map(|stream| stream.lost()).sum(),
        events: report.events,
        digest: format!("{:016x}", report.digest),
        wall_s: rounded(wall, 3),
        cpu_s: rounded(cpu, 3),
        events_per_s: (report.events as f64 / wall).round(),
        max_rss_bytes: super::memory::peak()?,
    })
}

/// Prints the figures; `shape` describes the network.
pub fn print(figures: &NetworkBench, shape: &str) {
    println!(
        "{:.3} simulated s of a TSN network, {} bridges in {shape}, {} streams:",
        figures.sim_s, figures.bridges, figures.streams
    );
    println!("  {:>12.3} s to set it up", figures.setup_s);
    println!("  {:>12} frames arrived, {} lost", figures.frames, figures.lost);
    println!("  {:>12} events, digest {}", figures.events, figures.digest);
    println!("  {:>12.0} events per s", figures.events_per_s);
    println!("  {:>12.3} wall s, {:.3} CPU s", figures.wall_s, figures.cpu_s);
    println!("  {:>12.1} MiB largest resident set", figures.max_rss_bytes as f64 / 1048576.0);
}
