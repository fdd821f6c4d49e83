//! Large plans, and the remaining bounds.

use super::{built, fails};
use sim::world::MAX_LINKS;
use sim::{Config, World};
use std::fmt::Write;
use wire::Duration;

/// A tree of bridges, each connected to the bridge with half its number, and stations distributed
/// over them. Periodic streams lead from each station to a distant one.
pub fn large(stations: usize, bridges: usize, streams: usize) -> String {
    let mut text = "runtime = \"1us\"\n".to_owned();
    let mut cable = |number: usize, a: String, b: String| {
        writeln!(text, "[cables.c{number}]\na = \"{a}\"\nb = \"{b}\"").expect("a text takes all");
    };
    (0..stations).for_each(|at| cable(at, format!("n{at}"), format!("b{}", at % bridges)));
    (1..bridges).for_each(|at| cable(stations + at, format!("b{at}"), format!("b{}", at / 2)));
    (0..stations).for_each(|at| writeln!(text, "[nodes.n{at}]").expect("a text takes all"));
    (0..bridges).for_each(|at| writeln!(text, "[bridges.b{at}]").expect("a text takes all"));
    for at in 0..streams {
        let (from, to) = (at % stations, (at * 7 + stations / 2) % stations);
        let to = if from == to { (to + 1) % stations } else { to };
        writeln!(
            text,
            "[traffic.t{at}]\nfrom = \"n{from}\"\nto = \"n{to}\"\ninterval = \"10ms\"\n\
             length = \"128B\"\npriority = {}\ndeadline = \"1ms\"",
            at % 8
        )
        .expect("a text takes all");
    }
    text
}

fn run(config: &Config) -> sim::world::Report {
    World::new(config).unwrap().run().unwrap()
}

#[test]
fn ten_thousand_stations_and_streams_over_a_thousand_bridges_build() {
    let planned = built(&large(10_000, 1_000, 10_000));
    let network = &planned.config.network;
    assert_eq!((network.stations.len(), network.bridges.len()), (10_000, 1_000));
    assert_eq!(planned.streams.len(), 10_000);
    let report = run(&planned.config);
    assert_eq!(report.streams.iter().map(|stream| stream.sent).sum::<u64>(), 10_000);
}

/// The number of hosts exceeds a table of neighbours of the TCP stack.
#[test]
fn seventy_hosts_have_drives_in_one_node() {
    let mut text =
        "transport = \"tcp\"\n[nodes.n]\n[bridges.b]\n[workload]\nconfigreads = 1\n".to_owned();
    for host in 0..70 {
        writeln!(text, "[drives.d{host}]\n[hosts.h{host}]\ndrives = [\"d{host}\"]").unwrap();
    }
    let report = run(&built(&text).config);
    assert!(report.hosts.iter().all(|host| host.config_reads.summary().n == 1));
}

/// The number of sockets exceeds fixed tables.
#[test]
fn three_hundred_drives_are_in_one_node() {
    let mut text =
        "transport = \"tcp\"\n[nodes.n]\n[bridges.b]\n[workload]\nconfigreads = 1\n".to_owned();
    for host in 0..10 {
        let drives =
            format!("[drives.d{host}]\ncount = 32\n[hosts.h{host}]\ndrives = [\"d{host}\"]");
        writeln!(text, "{drives}").unwrap();
    }
    let planned = built(&text);
    assert_eq!(planned.links.len(), 320);
    let report = run(&planned.config);
    assert!(report.hosts.iter().all(|host| host.config_reads.summary().n > 0));
}

/// Each bound is an error where the plan exceeds it.
#[test]
fn exceeded_bounds_name_the_line() {
    let mut text = large(2, 2, 0);
    for stream in 0..257 {
        writeln!(text, "[traffic.t{stream}]\ninterval = \"1s\"\nto = \"n1\"\nfrom = \"n0\"")
            .unwrap();
    }
    let line = text.lines().count();
    fails(&text, &format!("p.toml:{line}:8: a station sends 256 streams at most"));

    let mut text = large(2, 1, 1);
    for bridge in 0..32_768 {
        writeln!(text, "[bridges.x{bridge}]\n[cables.x{bridge}]\na = \"b0\"\nb = \"x{bridge}\"")
            .unwrap();
    }
    // Two cables lead to the stations. The last but one is the first beyond the bound.
    let line = text.lines().count() - 6;
    fails(&text, &format!("p.toml:{line}:9: a network has 32768 cables at most"));

    let mut text = "runtime = \"1s\"\n[bridges.b]\n[traffic.t]\nfrom = \"n0.0\"\nto = \"n1.0\"\n\
                    interval = \"1ms\"\n"
        .to_owned();
    (0..=1024).for_each(|node| writeln!(text, "[nodes.n{node}]\ncount = 32").unwrap());
    let line = text.lines().count() - 1;
    fails(&text, &format!("p.toml:{line}:8: a network has 32768 stations at most"));

    let mut text = "[nodes.n]\n[bridges.b]\n[workload]\nconfigreads = 1\n".to_owned();
    for host in 0..=MAX_LINKS / 1024 {
        let table = format!("count = 32\n[hosts.h{host}]\ncount = 32\ndrives = [\"d{host}\"]");
        writeln!(text, "[drives.d{host}]\n{table}").unwrap();
    }
    let line = text.lines().count();
    fails(
        &text,
        &format!("p.toml:{line}:10: a plan has {MAX_LINKS} drives behind tunnels at most"),
    );

    let mut text = "transport = \"direct\"\n[workload]\nconfigreads = 1\n".to_owned();
    for host in 0..2048 {
        writeln!(text, "[drives.d{host}]\n[hosts.h{host}]\ncount = 32\ndrives = [\"d{host}\"]")
            .unwrap();
    }
    let line = text.lines().count() - 2;
    fails(&text, &format!("p.toml:{line}:8: a plan has 65535 hosts at most"));
}

/// Histograms of fixed size for each stream would use most of the memory.
#[test]
fn histogram_of_close_latencies_uses_few_bins() {
    let mut latency = stats::Latency::default();
    (0..1_000).for_each(|ns| latency.record(Duration::from_ns(20_000 + ns % 100)));
    assert!(latency.bins().used().count() <= 100);
}
