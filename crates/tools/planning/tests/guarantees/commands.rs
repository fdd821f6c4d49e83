//! Bounds of commands and of streams beside tunnels against their simulation.

use farlane_planning::bound::{Method, bound};
use plan::Plan;
use sim::World;
use stats::random::Random;
use std::fmt::Write;

/// One or two hosts with drives behind bridges, and streams.
fn network(random: &mut Random) -> String {
    let transport = ["tcp", "tsn", "raw"][random.below(3) as usize];
    let priority = random.below(6);
    let mut text = format!(
        "transport = \"{transport}\"\n[link]\nrate = \"1G\"\nvlan = 0\npriority = {priority}\n"
    );
    let mut add = |line: String| writeln!(text, "{line}").unwrap();
    let bridges = 1 + random.below(3);
    let hosts = 1 + random.below(2);
    let ports = ["", "schedule = \"list\"", "express = [7, 3]", "shapers = [\"4 a\"]"]
        [random.below(4) as usize];
    for at in 0..bridges {
        add(format!("[bridges.b{at}]\ndelay = \"{}ns\"\n{ports}", 500 + random.below(3000)));
        if at > 0 {
            add(format!("[cables.r{at}]\na = \"b{}\"\nb = \"b{at}\"", at - 1));
        }
    }
    add("[shapers.a]\nalgorithm = \"cbs\"\nidle_slope = \"300Mb/s\"\n[schedules.list]\n\
         entries = [\"S 3f 150us\", \"S c0 50us\"]"
        .to_owned());
    add("[nodes.n0]\n[nodes.n1]\n[nodes.store]\n".to_owned());
    for node in ["n0", "n1", "store"] {
        let to = random.below(bridges);
        add(format!("[cables.{node}]\na = \"{node}\"\nb = \"b{to}\""));
    }
    let push = ["off", "entries", "all"][random.below(3) as usize];
    let preset = ["970-pro", "optane", "ram"][random.below(3) as usize];
    add(format!("[host]\npush = \"{push}\"\n[drive]\npreset = \"{preset}\"\nnode = \"store\""));
    for at in 0..hosts {
        let to = random.below(bridges);
        add(format!("[cables.h{at}]\na = \"h{at}\"\nb = \"b{to}\"\n[drives.d{at}]"));
        let rw = ["randread", "randwrite", "randrw", "write"][random.below(4) as usize];
        let bs = ["512B", "4KiB", "16KiB"][random.below(3) as usize];
        let depth = [1, 2, 8][random.below(3) as usize];
        add(format!(
            "[hosts.h{at}]\ndrives = [\"d{at}\"]\nworkload = {{ rw = \"{rw}\", bs = \"{bs}\", \
             iodepth = {depth}, size = \"512KiB\", number_ios = 60, startdelay = \"{}us\" }}",
            random.below(400)
        ));
    }
    for at in 0..random.below(5) {
        let ends = ["n0", "n1", "store", "h0"];
        let from = random.below(4);
        let to = (from + 1 + random.below(3)) % 4;
        let interval = 150 + random.below(800);
        add(format!(
            "[traffic.s{at}]\nfrom = \"{}\"\nto = \"{}\"\ninterval = \"{interval}us\"\n\
             length = \"{}B\"\nburst = {}\npriority = {}\nstart = \"{}ns\"",
            ends[from as usize],
            ends[to as usize],
            64 + random.below(1400),
            1 + random.below(4),
            random.below(8),
            random.below(interval * 1000)
        ));
    }
    text
}

#[test]
fn no_command_exceeds_its_bound() {
    check(0..25);
}

mod long {
    #[test]
    fn no_command_of_many_networks_exceeds_its_bound() {
        super::check(1_000..2_000);
    }
}

fn check(seeds: std::ops::Range<u64>) {
    let networks = seeds.clone().count();
    let mut hosts = 0;
    for seed in seeds {
        let mut random = Random::for_component(seed, "commands");
        let text = network(&mut random);
        let Ok(planned) = Plan::parse("random", &text).and_then(|plan| plan.build()) else {
            continue;
        };
        let bounds = bound(&planned, Method::Best);
        let report = World::new(&planned.config).unwrap().run().unwrap();
        // The bounds presume that nothing is sent again.
        if report.retransmitted > 0 {
            continue;
        }
        let mut check = |name: &str, bound: Option<u64>, seen: u64| {
            let Some(bound) = bound else { return };
            assert!(seen <= bound, "seed {seed}: {name}: {seen} > {bound} ps\n{text}");
            hosts += usize::from(name.starts_with("host"));
        };
        for (at, host) in planned.hosts.iter().enumerate() {
            let own = || bounds.commands.iter().filter(|command| command.host == *host);
            let all: Option<Vec<u64>> =
                own().map(|one| Some(one.bound.as_ref().ok()?.as_ps())).collect();
            let longest = report.hosts[at].latency.longest().as_ps();
            let most = all.and_then(|all| all.into_iter().max());
            check(&format!("host {host}"), most, longest);
        }
        for (bound, (name, id)) in bounds.streams.iter().zip(&planned.streams) {
            let stream = report.stream(*id).unwrap();
            if stream.lost() > 0 {
                continue;
            }
            for (bound, seen) in bound.listeners.iter().zip(&stream.listeners) {
                let most = bound.bound.as_ref().ok().map(|bound| bound.as_ps());
                check(name, most, seen.latency.longest().as_ps());
            }
        }
    }
    assert!(hosts > networks / 2, "{hosts} bounds of hosts in {networks} networks");
}
