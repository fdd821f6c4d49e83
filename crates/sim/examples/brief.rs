//! The brief's experiments: `cargo run --release --example brief`.

use sim::ethernet::Rate;
use sim::measure::Segment;
use sim::workload::Workload;
use sim::{Config, World};
use wire::Duration;

fn main() {
    let reads = Workload::ConfigReads { count: 5, gap: Duration::from_us(10) };
    let dd = |write| Workload::Dd { write, bs: 4096, count: 100 };
    for (published, workload) in [
        ([280, 6_020, 7_091], reads),
        ([99_920, 149_410, 186_900], dd(false)),
        ([51_710, 142_280, 149_740], dd(true)),
    ] {
        println!("{workload:?}");
        show("direct", published[0], Config::brief_direct(workload.clone()));
        show("TCP", published[1], Config::brief_tcp(workload.clone(), Rate::G1));
        show("TSN", published[2], Config::brief_tsn(workload, Rate::G1));
    }
}

fn show(name: &str, published: u64, config: Config) {
    let mut world = World::new(&config).expect("a valid configuration");
    let report = world.run().expect("it ends");
    let host = &report.hosts[0];
    let measured = if host.commands > 0 { &host.root_port } else { &host.config_reads };
    let mean = measured.summary().mean_ns;
    let error = (mean as i64 - published as i64) * 10_000 / published as i64;
    println!("  {name:>6} {published:>7} ns published {mean:>7} ns simulated, {error} of 10000");
    assert_eq!((host.mismatches, host.failures), (0, 0));
    assert_eq!(host.split.total(), host.total);
    for segment in Segment::ALL {
        let each = host.split.get(segment).as_ps() / host.commands.max(1) / 1000;
        if each > 0 {
            println!("         {:>14} {each:>8} ns", segment.name());
        }
    }
}
