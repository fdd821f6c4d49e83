//! Prints the results of the demo as text or JSON.

use super::{Args, Findings};
use crate::commands::{json, rounded};
use analysis::commands::intervals::Interval;
use analysis::commands::json::Transaction;
use analysis::commands::view::{self, Options};
use analysis::topology;
use load::latencies::Latencies;
use report::latency::{Pair, Summary, table};
use serde::Serialize;
use wire::Duration;

/// Version of the document.
const SCHEMA: u32 = 1;

/// The document of `--json`; docs/json.md describes it.
#[derive(Serialize)]
struct Document<'a> {
    schema: u32,
    verified_bytes: u64,
    topology: Vec<topology::Entry>,
    floor: &'a Summary,
    config_read: Pair,
    read_4k: Pair,
    write_4k: Pair,
    t_tunnel_ns: i64,
    round_trips: RoundTrips,
    #[serde(rename = "segments")]
    intervals: Intervals<'a>,
    transactions: [Transaction; 2],
    trace: Trace,
}

/// Medians in raw round trips of the same run.
#[derive(Serialize)]
struct RoundTrips {
    config_read: f64,
    read_4k: f64,
    write_4k: f64,
}

#[derive(Serialize)]
struct Intervals<'a> {
    read_4k: &'a [Interval],
    write_4k: &'a [Interval],
}

/// What the analyser saw besides.
#[derive(Serialize)]
struct Trace {
    packets: u64,
    orphans: u64,
}

fn pairs(findings: &Findings) -> [Pair; 3] {
    let pair = |of: fn(&Latencies) -> Summary| Pair {
        direct: of(&findings.direct),
        tunnelled: of(&findings.tunnelled),
    };
    [pair(|l| l.config_read), pair(|l| l.read_4k), pair(|l| l.write_4k)]
}

fn round_trips(findings: &Findings, summary: &Summary) -> f64 {
    rounded(summary.p50_ns as f64 / findings.floor.p50_ns.max(1) as f64, 2)
}

/// One JSON document on stdout.
pub fn document(findings: &Findings) {
    let [config_read, read_4k, write_4k] = pairs(findings);
    let document = Document {
        schema: SCHEMA,
        verified_bytes: findings.verified,
        topology: topology::entries(&findings.rig.hierarchy),
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
        intervals: Intervals {
            read_4k: &findings.tunnelled.read_intervals,
            write_4k: &findings.tunnelled.write_intervals,
        },
        transactions: [Transaction::from(&findings.read), Transaction::from(&findings.write)],
        trace: Trace {
            packets: findings.rig.analyser.seen(),
            orphans: findings.rig.analyser.counters().orphans,
        },
    };
    println!("{}", json(&document));
}

/// Text on stdout.
pub fn text(findings: &Findings, args: &Args) {
    heading("Topology, as the host enumerated it");
    print!("{}", topology::tree(&findings.rig.hierarchy));
    heading("Data");
    let drives = findings.rig.drives.len();
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
        for Interval { name: interval, ns } in intervals {
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
