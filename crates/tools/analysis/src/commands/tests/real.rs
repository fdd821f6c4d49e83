//! The analyser explains all traffic of the real initiator, switch and controller, at the root port
//! and in the tunnel.

use super::machine::{Machine, io, machine, ranges};
use crate::commands::replay::{Difference, Initial, Issued, Replay, Report, compare};
use crate::commands::stream::LinkAnalyser;
use crate::commands::view::{self, Options};
use crate::commands::{
    Analyser, AnalyserCounters, AnalyserSettings, Command, Direction, Event, HostRequestKind,
};
use bytes::Bytes;
use nvme::initiator::{Driver, Op};
use wire::Instant;
use wire::tlp::Tlp;

pub const COLLECT: fn() -> AnalyserSettings =
    || AnalyserSettings { collect_data: true, ..AnalyserSettings::default() };

/// Random commands on both queues, many at once, that overlap.
pub fn storm(machine: &mut Machine, driver: &mut Driver, rounds: usize) {
    let buffer = machine.buffer(64 * (128 << 10));
    for round in 0..rounds {
        for slot in 0..64u64 {
            let at = buffer + slot * (128 << 10);
            let blocks = 1 + machine.random(if slot % 8 == 0 { 200 } else { 24 }) as u32;
            let op = match machine.random(10) {
                0 => Op::WriteZeroes,
                1 => Op::Discard,
                2 => Op::Flush,
                3..=6 => Op::Write,
                _ => Op::Read,
            };
            if op == Op::Write {
                let bytes: Vec<u8> = (0..blocks as usize * 512)
                    .map(|i| (i / 512) as u8 ^ (round as u8) << 4 ^ slot as u8)
                    .collect();
                machine.fill(at, &bytes);
            }
            let slba = machine.random(1000);
            let queue = machine.random(2) as usize;
            driver.prepare(machine.now, queue, io(op, slba, blocks, at)).expect("room");
            if machine.random(3) == 0 {
                driver.ring(queue);
            }
        }
        for queue in [0, 1] {
            driver.ring(queue);
            assert_eq!(machine.drain(driver, queue), 0);
        }
    }
}

pub fn at_root_port(machine: &Machine) -> (Vec<Event>, AnalyserCounters) {
    analysed(&machine.port)
}

pub fn analysed(seen: &[(Instant, Direction, Tlp)]) -> (Vec<Event>, AnalyserCounters) {
    let mut analyser = Analyser::new(COLLECT());
    let mut events = Vec::new();
    for (at, direction, tlp) in seen {
        analyser.push(*at, *direction, tlp);
        events.extend(std::iter::from_fn(|| analyser.next_event()));
    }
    analyser.finish();
    events.extend(std::iter::from_fn(|| analyser.next_event()));
    (events, *analyser.counters())
}

pub fn in_tunnel(machine: &Machine) -> (Vec<Event>, AnalyserCounters) {
    let mut link = LinkAnalyser::new(COLLECT());
    let mut events = Vec::new();
    link.run(&machine.down, &machine.up, ranges(machine), |e| events.push(e)).unwrap();
    link.finish().unwrap();
    events.extend(std::iter::from_fn(|| link.analyser.next_event()));
    (events, *link.analyser.counters())
}

pub fn commands(events: Vec<Event>) -> Vec<Command> {
    let command = |event| if let Event::Command(command) = event { Some(*command) } else { None };
    events.into_iter().filter_map(command).collect()
}

/// Asserts that counters of errors are zero.
#[track_caller]
pub fn explained(c: &AnalyserCounters) {
    let good = AnalyserCounters {
        down: c.down,
        up: c.up,
        config: c.config,
        registers: c.registers,
        reads: c.reads,
        pushes: c.pushes,
        pushed_bytes: c.pushed_bytes,
        messages: c.messages,
        // Empty device numbers during enumeration.
        unsupported_requests: c.unsupported_requests,
        idle_interrupts: c.idle_interrupts,
        resets: c.resets,
        ..AnalyserCounters::default()
    };
    assert_eq!(*c, good);
}

pub fn check(commands: impl IntoIterator<Item = Command>, media: &[u8]) -> Report {
    let mut replay = Replay::new(Initial::Zero);
    commands.into_iter().for_each(|command| replay.add(command));
    replay.add_final(1, 0, 512, Bytes::copy_from_slice(media));
    replay.check()
}

#[test]
fn a_storm_is_explained_at_both_taps() {
    let mut machine = machine(256, 2048);
    let (_, mut driver) = machine.bring_up(2);
    storm(&mut machine, &mut driver, 6);
    let (port, seen) = at_root_port(&machine);
    explained(&seen);
    let (tunnel, seen) = in_tunnel(&machine);
    explained(&seen);
    let reads = port.iter().filter(
        |event| matches!(event, Event::Request(r) if r.kind == HostRequestKind::ConfigRead),
    );
    assert!(reads.count() > 30);
    let (port, tunnel) = (commands(port), commands(tunnel));
    let io = |commands: &[Command]| commands.iter().filter(|c| !c.is_admin()).count();
    assert_eq!((io(&port), io(&tunnel)), (6 * 64, 6 * 64));
    let list = |commands: &[Command]| commands.iter().map(Issued::from).collect::<Vec<_>>();
    assert_eq!(compare(list(&port), list(&tunnel)), Difference::default());
    for command in port.iter().chain(&tunnel) {
        assert!(
            command.is_whole() && command.end.is_some(),
            "{}",
            view::transaction(command, Options::default())
        );
        assert!(command.steps.is_sorted_by_key(|step| step.number));
    }
    for commands in [port, tunnel] {
        let report = check(commands, machine.media());
        assert_eq!((report.blocks_wrong, report.incomplete), (0, 0), "{report:?}");
        assert!(report.blocks_checked > 2048 && report.bytes_read > 100_000, "{report:?}");
    }
}

#[test]
fn a_wrong_byte_is_found() {
    let mut machine = machine(4096, 2048);
    let (_, mut driver) = machine.bring_up(2);
    storm(&mut machine, &mut driver, 2);
    let (events, _) = in_tunnel(&machine);
    let mut commands = commands(events);
    let read = commands.iter_mut().rfind(|c| !c.is_admin() && c.name() == "Read").unwrap();
    read.data.as_mut().unwrap()[5] ^= 0x80;
    let expected = read.entry.slba() * 512 + 5;
    let report = check(commands, machine.media());
    assert_eq!(report.blocks_wrong, 1);
    assert_eq!(report.first_mismatch.unwrap().offset, expected);
}

/// Checks the views that the demo prints, with real nodes.
#[test]
fn views_of_one_read_and_one_write() {
    let mut machine = machine(256, 2048);
    let (hierarchy, mut driver) = machine.bring_up(1);
    let buffer = machine.buffer(4096);
    for op in [Op::Write, Op::Read] {
        driver.submit(machine.now, 0, io(op, 64, 8, buffer)).unwrap();
        assert_eq!(machine.drain(&mut driver, 0), 0);
    }
    let commands = commands(at_root_port(&machine).0);
    let [write, read] = &commands[commands.len() - 2..] else { panic!() };
    let mut text = crate::topology::tree(&hierarchy);
    for command in [read, write] {
        text += &view::transaction(command, Options::default());
    }
    text += &view::link(&[write], Options::default());
    println!("{text}");
    assert!(text.lines().count() < 60, "long runs are folded");
    assert!(text.lines().all(|line| line.chars().count() <= 100));
    let kinds = |command: &Command| {
        let mut kinds: Vec<_> = command.steps.iter().map(|step| step.kind.name()).collect();
        kinds.dedup();
        kinds
    };
    let ends = ["CQE write", "MSI-X", "CQ doorbell"];
    assert_eq!(
        kinds(read),
        [&["SQ doorbell", "SQE fetch", "SQE data", "data write"][..], &ends].concat()
    );
    let fetch = ["SQ doorbell", "SQE fetch", "SQE data", "data read", "data completion"];
    assert_eq!(kinds(write), [&fetch[..], &ends].concat());
}

#[test]
fn commands_are_explained_after_a_hot_reset() {
    let mut machine = machine(512, 2048);
    let (_, mut driver) = machine.bring_up(2);
    storm(&mut machine, &mut driver, 1);
    let buffer = machine.buffer(4096);
    driver.submit(machine.now, 0, io(Op::Write, 0, 8, buffer)).unwrap();
    machine.hot_reset();
    let (_, mut driver) = machine.bring_up(2);
    storm(&mut machine, &mut driver, 1);
    for (events, seen) in [at_root_port(&machine), in_tunnel(&machine)] {
        assert!(seen.resets >= 1, "{seen:?}");
        assert_eq!((seen.orphans, seen.unknown_completions), (0, 0), "{seen:?}");
        let report = check(commands(events), machine.media());
        assert_eq!((report.blocks_wrong, report.incomplete), (0, 0), "{report:?}");
        assert!(report.commands.values().sum::<u64>() >= 128, "{report:?}");
    }
}
