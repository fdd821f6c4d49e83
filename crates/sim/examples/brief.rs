//! The brief's experiments on a terminal: `cargo run --release --example brief`.

use sim::ethernet::Rate;
use sim::measure::Segment;
use sim::transport::{PipeConfig, TransportConfig};
use sim::workload::Workload;
use sim::{Config, World};
use wire::Duration;

fn main() {
    let gigabit = TransportConfig::Pipe(PipeConfig {
        byte: Duration::from_ps(8000),
        latency: Duration::from_ns(1_800),
        segment: 1460,
        overhead: 78,
    });
    let reads = Workload::ConfigReads { count: 100, gap: Duration::from_us(10) };
    let dd = |write| Workload::Dd { write, bs: 4096, count: 100 };
    for workload in [reads, dd(false), dd(true)] {
        show("direct", Config::brief_direct(workload.clone()));
        show("pipe", Config::brief_tunnel(workload.clone(), gigabit.clone()));
        show("tcp", Config::brief_tcp(workload.clone(), Rate::G1));
    }
}

fn show(name: &str, config: Config) {
    let mut world = World::new(&config).expect("a valid configuration");
    let report = world.run().expect("it ends");
    let host = &report.hosts[0];
    println!("{name}: {:?}", config.hosts[0].workload);
    println!("  events {} digest {:016x} end {}", report.events, report.digest, report.time);
    println!("  application {:?}", host.latency.summary());
    println!("  root port   {:?}", host.root_port.summary());
    println!("  config      {:?}", host.config_reads.summary());
    println!(
        "  bytes {} verified {} wrong {} failed {}",
        host.bytes, host.verified, host.mismatches, host.failures
    );
    for segment in Segment::ALL {
        let each = host.split.get(segment).as_ps() / host.commands.max(1) / 1000;
        if each > 0 {
            println!("  {:>14} {each:>8} ns", segment.name());
        }
    }
    assert_eq!(host.split.total(), host.total);
    for link in &report.links {
        println!("  {} {} ppm {} packets", link.name, link.utilisation_ppm, link.load.packets);
    }
    for tunnel in &report.tunnels {
        println!("  {} {} TLPs in {} frames", tunnel.name, tunnel.tlps, tunnel.frames);
    }
    println!(
        "  errors {:?}",
        world.errors().iter().filter(|e| **e != pcie::Errors::default()).collect::<Vec<_>>()
    );
}
