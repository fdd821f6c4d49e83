//! Tests of several traces on one timeline.

use super::build::{hello, traces_greeting};
use super::{OFFSET, Traces, commands, traces};
use crate::trace::path::by_stage;
use crate::trace::{Location, Run, Stage, path};

#[test]
fn the_same_commands_are_found_in_files() {
    let traces = traces();
    let run = traces.run();
    let mut found = commands(&run).0;
    // Only traces in files have prints of payloads.
    assert!(found.iter().all(|command| command.prints.is_empty() == (command.moved == 0)));
    found.iter_mut().for_each(|command| command.prints.clear());
    assert_eq!(found, traces.testbed.commands);
    let device = Run::open(std::slice::from_ref(&traces.device)).unwrap();
    let seen = commands(&device).0;
    assert_eq!(seen.len(), traces.testbed.commands.len(), "a device's trace will do");
    assert_eq!(seen.last().unwrap().entry, traces.testbed.commands.last().unwrap().entry);
}

#[test]
fn the_offset_of_the_clocks_is_found() {
    let run = traces().run();
    let [host, device] = &run.nodes[..] else { panic!("two nodes") };
    assert!(host.parent.is_none() && run.root == 0, "the host comes first");
    let clock = &device.parent.as_ref().unwrap().clock;
    assert_eq!((clock.offset_ns, clock.uncertainty_ns), (OFFSET as i64, 5_000));
    assert!(clock.drift_ns_per_s == 0.0 && !clock.contradictory);
    assert_eq!(run.uncertainty_ns(1), 5_000);
    assert_eq!(run.timeline(1, OFFSET + 77), 77);
}

/// Checks that the clocks of two nodes that greeted each other are estimated.
fn joins(instance: u64, change: impl Fn(&mut Vec<u8>)) {
    let greeting = |role, instance| {
        let mut hello = hello(role, instance);
        change(&mut hello);
        hello
    };
    let run = traces_greeting(instance, greeting, |_, _| {}).run();
    let clock = &run.nodes[1].parent.as_ref().expect("its host is found").clock;
    assert_eq!(clock.offset_ns, OFFSET as i64);
}

#[test]
fn greetings_of_version_1_and_of_later_times_bring_traces_together() {
    joins(71, |hello| hello[9] = 1);
    // 64 bytes are recorded. This entry is longer, and required.
    joins(73, |hello| hello.extend([0x80, 9, 0, 200, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]));
}

#[test]
fn a_tlp_is_followed_from_the_host_to_the_drive() {
    let run = traces().run();
    let (commands, _) = commands(&run);
    let read = commands.iter().find(|command| command.entry.cid == 18).unwrap();
    let start = read.start.as_ns() as i64;
    let locations =
        [Location::RootPort, Location::UpstreamLink, Location::DownstreamLink, Location::Function];
    for step in &read.steps {
        let journey = run.locations(step.number);
        assert!(journey.iter().map(|point| point.location).eq(locations), "{journey:?}");
        let at = step.at.as_ns() as i64;
        let late = [0, 1_000, 6_000, 7_000].map(|late| {
            if step.direction == crate::commands::Direction::Up { at - late } else { at + late }
        });
        assert!(journey.iter().map(|point| point.at).eq(late), "{journey:?}");
    }
    assert_eq!(run.locations(read.steps[0].number)[0].at, start);
    assert!(run.locations(u64::MAX >> 32).is_empty());
}

#[test]
fn stages_add_up_to_the_command() {
    let run = traces().run();
    for command in commands(&run).0 {
        let legs = path(&run, &command);
        let total = command.duration_ns().unwrap();
        let sum: u64 = by_stage(&legs).iter().map(|(_, ns)| ns).sum();
        assert_eq!(sum, total, "{}", command.name());
        assert_eq!(legs.first().unwrap().from_ns, command.start.as_ns() as i64);
        assert!(legs.windows(2).all(|pair| pair[0].to_ns == pair[1].from_ns), "{legs:?}");
        let intervals = crate::commands::intervals::split(&command);
        assert_eq!(intervals.iter().map(|interval| interval.ns).sum::<u64>(), total);
    }
    let (commands, _) = commands(&run);
    let read = commands.iter().find(|command| command.entry.cid == 18).unwrap();
    // Doorbell, fetch, entry and interrupt cross the network.
    let stages = by_stage(&path(&run, read));
    let get = |stage| stages.iter().find(|(found, _)| *found == stage).unwrap().1;
    assert_eq!((get(Stage::Upstream), get(Stage::Network)), (4_000, 20_000));
    assert_eq!((get(Stage::Downstream), get(Stage::Host)), (4_000, 40_000));
}

#[test]
fn stages_of_a_device_alone_add_up_too() {
    let traces = traces();
    let run = Run::open(std::slice::from_ref(&traces.device)).unwrap();
    for command in commands(&run).0 {
        let stages = by_stage(&path(&run, &command));
        let sum: u64 = stages.iter().map(|(_, ns)| ns).sum();
        assert_eq!(sum, command.duration_ns().unwrap(), "{stages:?}");
    }
}

#[test]
fn without_the_device_its_side_is_not_observed() {
    let traces = traces();
    let run = Run::open(std::slice::from_ref(&traces.host)).unwrap();
    let (commands, _) = commands(&run);
    let stages: Vec<Stage> =
        by_stage(&path(&run, &commands[0])).into_iter().map(|(stage, _)| stage).collect();
    assert_eq!(stages, [Stage::Host, Stage::Upstream, Stage::NotObserved]);
}

#[test]
fn traces_of_different_runs_are_refused() {
    let (one, other): (Traces, Traces) = (traces(), super::build::traces_of(91, |_, _| {}));
    let error = Run::open(&[one.host.clone(), other.device.clone()]).unwrap_err().to_string();
    assert!(error.contains("not of one run") && error.contains("host"), "{error}");
    let error = Run::open(&[one.host.clone(), other.host.clone()]).unwrap_err().to_string();
    assert!(error.contains("not of one run"), "{error}");
}
