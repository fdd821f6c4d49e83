//! `farlane bench sim`: measures the speed of the simulator.

mod memory;
mod network;

use crate::commands::{Ended, INTERRUPTED, json, rounded};
use crate::output::note;
use crate::progress::Progress;
use crate::signals::stop_on_signals;
use load::CpuTime;
use report::Failure;
use schemars::JsonSchema;
use serde::Serialize;
use sim::ethernet::{Rate, bridge, port};
use sim::network::{BridgeConfig, CableConfig, CableEnd};
use sim::workload::{Fio, Rw, Workload};
use sim::{Config, World};
use std::time::Instant;
use wire::Duration;

/// Measure the simulator: events per second, wall time per simulated second
#[derive(clap::Args, Debug)]
#[command(
    after_help = "1 Gb/s of tunnelled NVMe: 4 KiB reads of the NVMe/TSN paper's drive, 32 in flight, \
    over TCP\nover two links of 1 Gb/s with a store-and-forward bridge between them. Figures are those\n\
    of the round of median speed. Then a TSN network, ten times as long: 50 bridges, 200 streams,\n\
    and another, a tenth as long: 1,000 bridges in a mesh of rings, 10,000 streams over 12 bridges on\n\
    average (plans/mesh-of-rings.toml).\n\n\
    Examples:\n  farlane bench sim\n  farlane bench sim --json --rounds 5"
)]
pub struct Args {
    /// Print one JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Simulated time of a round, a number of milliseconds from 10 to 100000. One TSN
    /// network runs ten times as long, another a tenth
    #[arg(long, value_name = "MS", default_value_t = USUAL,
          value_parser = clap::value_parser!(u64).range(10..=100_000))]
    time: u64,
    /// Simulate a tenth of the default time, of the mesh a hundredth
    #[arg(long, conflicts_with = "time")]
    quick: bool,
    /// Rounds, 1 to 100. None starts after 15 s
    #[arg(long, value_name = "COUNT", default_value_t = 3, value_parser = clap::value_parser!(u32).range(1..=100))]
    rounds: u32,
}

/// Version of the document.
const SCHEMA: u32 = 1;
/// Simulated milliseconds of a round.
const USUAL: u64 = 1000;
/// Reads in flight.
const IODEPTH: usize = 32;
/// Wall time in seconds after which no round starts.
const ENOUGH: u64 = 15;
/// Bytes of the drive that are read repeatedly.
const SIZE: u64 = 16 << 20;

/// Speed of the simulator. The figures are from the round with the median wall time. Wall times
/// depend on the machine and its load.
#[derive(JsonSchema, Serialize)]
pub struct SimBenchDocument {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// `true`, only after Ctrl-C: the document contains the finished results.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    interrupted: bool,
    /// Events (wake-ups of components) per simulated second.
    events_per_sim_s: f64,
    /// Events per second of wall time.
    events_per_s: f64,
    /// Seconds of wall time per simulated second.
    wall_s_per_sim_s: f64,
    /// Seconds of processor time of this process per simulated second.
    cpu_s_per_sim_s: f64,
    /// Payload of NVMe commands per simulated second, in bytes.
    bytes_per_sim_s: u64,
    /// Digest of everything that happened: 16 hexadecimal digits, equal on every machine.
    digest: String,
    /// Largest resident set of the process after a run of a tenth of the time.
    max_rss_tenth_bytes: u64,
    /// Largest resident set of the process after all rounds.
    max_rss_bytes: u64,
    /// 50 bridges in a line with gates at every port, ten times as long as a round; null after an
    /// earlier Ctrl-C.
    network: Option<network::NetworkBench>,
    /// 1,000 bridges in a mesh of rings, a tenth as long as a round; null after an earlier Ctrl-C.
    mesh: Option<network::NetworkBench>,
}

/// One run.
struct Round {
    wall: f64,
    cpu: f64,
    events: u64,
    simulated: f64,
    bytes: u64,
    digest: u64,
}

/// Builds the NVMe/TSN paper's tunnel with a bridge between its nodes.
fn config(span: Duration) -> Config {
    let fio = Fio {
        runtime: Some(span),
        time_based: true,
        size: SIZE,
        ..Fio::new(Rw::Read, 4096, IODEPTH)
    };
    let mut config = Config::nvme_tsn_tcp(Workload::Fio(fio), Rate::G1);
    let cable = config.network.cables[0].propagation;
    config.network.bridges = vec![BridgeConfig {
        ports: vec![port::Config::new(Rate::G1); 2],
        mode: bridge::Mode::StoreAndForward,
        delay: Duration::from_ns(1_500),
        jitter: Duration::ZERO,
    }];
    config.network.cables = (0..2)
        .map(|at| CableConfig::new(CableEnd::station(at), CableEnd::Bridge(0, at), cable))
        .collect();
    config
}

fn round(span: Duration) -> Result<Round, Failure> {
    let failure = |error: sim::world::Error| Failure(error.to_string());
    let mut world = World::new(&config(span)).map_err(failure)?;
    let (began, cpu) = (Instant::now(), CpuTime::now());
    let report = world.run().map_err(failure)?;
    let wall = began.elapsed().as_secs_f64();
    let host = &report.hosts[0];
    if host.mismatches + host.failures > 0 {
        return Err(Failure(format!("{} blocks have wrong data", host.mismatches)));
    }
    Ok(Round {
        wall,
        cpu: CpuTime::now().since(cpu).0 as f64 / 1e9,
        events: report.events,
        simulated: report.time.as_ps() as f64 / 1e12,
        bytes: host.bytes,
        digest: report.digest,
    })
}

/// Runs the command.
pub fn run(args: &Args) -> Result<Ended, Failure> {
    let stop = stop_on_signals()?;
    let mut progress = Progress::new();
    let time = if args.quick { USUAL / 10 } else { args.time };
    let span = Duration::from_ms(time);
    let mesh = Duration::from_us(if args.quick { USUAL } else { 100 * time });
    progress.show("a tenth of a round");
    round(Duration::from_us(time * 100))?;
    let tenth = memory::peak()?;
    let mut rounds = Vec::new();
    let began = Instant::now();
    for number in 1..=args.rounds {
        if stop.is_set() || number > 1 && began.elapsed().as_secs() >= ENOUGH {
            break;
        }
        progress.show(&format!("round {number} of {}", args.rounds));
        rounds.push(round(span)?);
    }
    let peak = memory::peak()?;
    if rounds.is_empty() {
        progress.done();
        note("interrupted before the first round ended: no results");
        return Ok(Ended::Interrupted);
    }
    rounds.sort_by(|a, b| a.wall.total_cmp(&b.wall));
    let median = &rounds[rounds.len() / 2];
    progress.show("a TSN network");
    let whole = !stop.is_set();
    let network = whole.then(|| network::line(Duration::from_ms(10 * time))).transpose()?;
    progress.show("a mesh of rings");
    let whole = !stop.is_set();
    let mesh = whole.then(|| network::mesh(mesh)).transpose()?;
    progress.done();
    let mut document = document(median, [tenth, peak], [network, mesh]);
    document.interrupted = stop.is_set();
    if args.json {
        println!("{}", json(&document));
    } else {
        print(time, &document, median);
        if document.interrupted {
            println!("{INTERRUPTED}");
        }
    }
    Ok(Ended::unless(document.interrupted))
}

fn document(
    round: &Round,
    [tenth, peak]: [u64; 2],
    [network, mesh]: [Option<network::NetworkBench>; 2],
) -> SimBenchDocument {
    let three = |value| rounded(value, 3);
    SimBenchDocument {
        schema: SCHEMA,
        interrupted: false,
        events_per_sim_s: (round.events as f64 / round.simulated).round(),
        events_per_s: (round.events as f64 / round.wall).round(),
        wall_s_per_sim_s: three(round.wall / round.simulated),
        cpu_s_per_sim_s: three(round.cpu / round.simulated),
        bytes_per_sim_s: (round.bytes as f64 / round.simulated) as u64,
        digest: format!("{:016x}", round.digest),
        max_rss_tenth_bytes: tenth,
        max_rss_bytes: peak,
        network,
        mesh,
    }
}

fn print(time: u64, document: &SimBenchDocument, round: &Round) {
    println!(
        "{:.3} simulated s of 4 KiB reads, {IODEPTH} in flight, over TCP over two links of 1 Gb/s:",
        round.simulated
    );
    println!("  {:>12.1} MB per simulated s", document.bytes_per_sim_s as f64 / 1e6);
    println!("  {:>12} events, digest {}", round.events, document.digest);
    println!("  {:>12.0} events per simulated s", document.events_per_sim_s);
    println!("  {:>12.0} events per s", document.events_per_s);
    println!("  {:>12.3} wall s per simulated s", document.wall_s_per_sim_s);
    println!("  {:>12.3} CPU s per simulated s", document.cpu_s_per_sim_s);
    println!(
        "  {:>12.1} MiB largest resident set after {} ms simulated, {:.1} MiB after {} ms",
        document.max_rss_tenth_bytes as f64 / 1048576.0,
        time as f64 / 10.0,
        document.max_rss_bytes as f64 / 1048576.0,
        time
    );
    if let Some(network) = &document.network {
        network::print(network, "a line with gates at every port");
    }
    if let Some(mesh) = &document.mesh {
        network::print(mesh, "a mesh of rings");
    }
}
