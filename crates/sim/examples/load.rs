//! A second of tunnelled NVMe at 1 Gb/s, for a stopwatch around it:
//! `time cargo run --release --example load [RW] [IODEPTH] [MILLISECONDS] [RATE]`.

use sim::ethernet::Rate;
use sim::workload::{Fio, Rw, Workload};
use sim::{Config, World};
use wire::Duration;

fn main() {
    let mut words = std::env::args().skip(1);
    let rw = match words.next().as_deref() {
        Some("write") => Rw::Write,
        Some("randrw") => Rw::RandRw,
        _ => Rw::Read,
    };
    let number =
        |word: Option<String>, default| word.and_then(|w| w.parse().ok()).unwrap_or(default);
    let depth = number(words.next(), 32);
    let span = number(words.next(), 1000);
    let rate = words.next().map_or(Rate::G1, |word| word.parse().expect("a rate, like 10G"));
    let fio = Fio {
        runtime: Some(Duration::from_ms(span)),
        size: 16 << 20,
        ..Fio::new(rw, 4096, depth as usize)
    };
    let config = Config::brief_tcp(Workload::Fio(fio), rate);
    let report = World::new(&config).and_then(|mut world| world.run()).expect("it ends");
    let host = &report.hosts[0];
    println!("{} events, {} virtual, digest {:016x}", report.events, report.time, report.digest);
    println!("{} MB/s, {:?}", host.throughput() / 1_000_000, host.latency.summary());
    println!("{} blocks verified, {} wrong", host.verified, host.mismatches);
    for link in &report.links {
        println!("{}: {} ppm, {} packets", link.name, link.utilisation_ppm, link.load.packets);
    }
}
