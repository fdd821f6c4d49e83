//! Prints the results of the demo as text or JSON.

use super::{Args, Findings};
use crate::commands::{json, rounded};
use analysis::commands::intervals::Segment;
use analysis::commands::json::Transaction;
use analysis::commands::view::{self, Options};
use analysis::topology;
use load::latencies::Latencies;
use report::latency::{Pair, Summary, table};
use schemars::JsonSchema;
use serde::Serialize;
use wire::Duration;

/// Version of the document.
const SCHEMA: u32 = 1;

/// A demonstration on one machine. `n` is `--count` in every pair: 1000 by default, 100 at least.
/// The three experiments follow the NVMe/TSN paper (Missing Link Electronics, "Latency Analysis for
/// NVMe/TSN", sections 3 and 4).
#[derive(JsonSchema, Serialize)]
pub struct DemoDocument<'a> {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// Bytes that were written, read back and compared, over all drives: 8 MiB per drive.
    verified_bytes: u64,
    /// Every function that the host enumerated, depth first.
    topology: Vec<topology::Entry>,
    /// Raw round trip of 64 bytes over TCP on loopback, with the waiting mode of the data path. The
    /// measurement has three parts: before, between and after the others, so its `n` is larger by
    /// up to 3.
    floor: &'a Summary,
    /// Configuration read, from the start of the request to the start of its completion, at the
    /// root port.
    config_read: Pair,
    /// 4 KiB read, one at a time, from the start of the submission doorbell to the start of the
    /// completion queue head doorbell, at the root port.
    read_4k: Pair,
    /// 4 KiB write, one at a time, between the same two doorbells.
    write_4k: Pair,
    /// T_tunnel: half of the difference between the tunnelled and the direct median of
    /// `config_read`. Noise can make it negative.
    t_tunnel_ns: i64,
    /// Medians of the tunnelled measurements in units of the median of `floor`.
    round_trips: RoundTrips,
    /// Segments of the median tunnelled command.
    #[serde(rename = "segments")]
    intervals: DemoSegments<'a>,
    /// One 4 KiB read, then one 4 KiB write, tunnelled, after warm-up.
    transactions: [Transaction; 2],
    /// Counters of the analyser at the root port.
    trace: DemoTrace,
}

/// Medians in units of the median of `floor`, to two decimals.
#[derive(JsonSchema, Serialize)]
struct RoundTrips {
    /// Configuration read.
    config_read: f64,
    /// 4 KiB read.
    read_4k: f64,
    /// 4 KiB write.
    write_4k: f64,
}

/// Segments of the median command, in order of time. The sum of their `ns` is the command's
/// duration.
#[derive(JsonSchema, Serialize)]
struct DemoSegments<'a> {
    /// Segments of the 4 KiB read.
    read_4k: &'a [Segment],
    /// Segments of the 4 KiB write.
    write_4k: &'a [Segment],
}

/// Counters of the analyser at the root port.
#[derive(JsonSchema, Serialize)]
struct DemoTrace {
    /// TLPs that passed the root port during enumeration, bring-up, transactions and measurements,
    /// but not the verification.
    packets: u64,
    /// Memory requests from or to an NVMe controller that belong to no known queue or command; 0 in
    /// a healthy run.
    orphans: u64,
}

fn pairs(findings: &Findings) -> [Pair; 3] {
    let pair = |summary: fn(&Latencies) -> Summary| Pair {
        direct: summary(&findings.direct),
        tunnelled: summary(&findings.tunnelled),
    };
    [pair(|l| l.config_read), pair(|l| l.read_4k), pair(|l| l.write_4k)]
}

fn round_trips(findings: &Findings, summary: &Summary) -> f64 {
    rounded(summary.p50_ns as f64 / findings.floor.p50_ns.max(1) as f64, 2)
}

/// Prints one JSON document on stdout.
pub(super) fn document(findings: &Findings) {
    let [config_read, read_4k, write_4k] = pairs(findings);
    let document = DemoDocument {
        schema: SCHEMA,
        verified_bytes: findings.verified,
        topology: topology::entries(&findings.initiator.hierarchy),
        floor: &findings.floor,
        config_read,
        read_4k,
        write_4k,
        t_tunnel_ns: config_read.t_tunnel_ns(),
        round_trips: RoundTrips {
            config_read: round_trips(findings, &config_read.tunnelled),
            read_4k: round_trips(findings, &read_4k.tunnelled),
            write_4k: round_trips(findings, &write_4k.tunnelled),
        },
        intervals: DemoSegments {
            read_4k: &findings.tunnelled.read_intervals,
            write_4k: &findings.tunnelled.write_intervals,
        },
        transactions: [Transaction::from(&findings.read), Transaction::from(&findings.write)],
        trace: DemoTrace {
            packets: findings.initiator.analyser.seen(),
            orphans: findings.initiator.analyser.counters().orphans,
        },
    };
    println!("{}", json(&document));
}

/// Prints text on stdout.
pub(super) fn text(findings: &Findings, args: &Args) {
    heading("Topology, as the host enumerated it");
    print!("{}", topology::tree(&findings.initiator.hierarchy));
    heading("Data");
    let drives = findings.initiator.drives.len();
    let each = if drives == 1 { "on the drive" } else { "on the drives" };
    println!("{} bytes written, read back and compared {each}", findings.verified);
    let options = Options { fold: !args.unfold };
    heading("NVMe transaction view of a 4 KiB read, at the root port");
    print!("{}", view::transaction(&findings.read, options));
    heading("NVMe transaction view of a 4 KiB write, at the root port");
    print!("{}", view::transaction(&findings.write, options));
    heading("Latency at the root port, one at a time, in microseconds");
    let [config, read, write] = pairs(findings);
    let rows = [("configuration read", config), ("4 KiB read", read), ("4 KiB write", write)];
    print!("{}", table(&rows));
    let t_tunnel = config.t_tunnel_ns();
    println!("\nT_tunnel = (tunnelled - direct) / 2 of the configuration read = {t_tunnel} ns");
    println!(
        "raw TCP round trip of 64 bytes in the same run: p50 {} ns; in such round trips (medians)\n  \
         configuration read {}, 4 KiB read {}, 4 KiB write {}",
        findings.floor.p50_ns,
        round_trips(findings, &config.tunnelled),
        round_trips(findings, &read.tunnelled),
        round_trips(findings, &write.tunnelled),
    );
    for (name, intervals) in [
        ("read", &findings.tunnelled.read_intervals),
        ("write", &findings.tunnelled.write_intervals),
    ] {
        heading(&format!("Where the time of the median tunnelled 4 KiB {name} goes"));
        let total: u64 = intervals.iter().map(|interval| interval.ns).sum();
        for Segment { name: interval, ns } in intervals {
            let share = ns * 100 / total.max(1);
            println!("{:>12}  {share:>3} %  {interval}", Duration::from_ns(*ns).to_string());
        }
        println!("{:>12}  100 %  total", Duration::from_ns(total).to_string());
        let count = intervals.iter().filter(|interval| interval.is_round_trip()).count();
        let noun = if count == 1 { "round trip" } else { "round trips" };
        println!("{count} dependent {noun} of the network, with --push {}", args.push);
    }
}

fn heading(text: &str) {
    println!("\n{text}\n{}", "-".repeat(text.chars().count()));
}
