//! Links over two paths: a switch node with two lanes, and the device node at their far ends.

use bytes::Bytes;
use node::device::{self, DeviceNode};
use node::link_state::RETRY_PAUSE;
use node::path::Input;
use node::switch::{Output, SwitchNode};
use node::{LinkEvent, PathId};
use pcie::{Function, Ports, Ready, Wait};
use proptest::prelude::*;
use std::collections::VecDeque;
use switch::tunnel::{Counters, Settings};
use wire::frame::{Paths, Role};
use wire::tlp::Tlp;
use wire::{Bdf, Duration, Instant};

/// How the far end of a lane treats attempts to connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Manner {
    Serves,
    Refuses,
    Silent,
}

/// A function that sends memory writes.
#[derive(Debug, Default)]
struct Talker(u32);

impl Function for Talker {
    fn handle(&mut self, _: Instant, _: pcie::Input) {}

    fn poll(&mut self, _: Instant, ready: Ready) -> pcie::Output {
        if self.0 == 0 || !ready.has(wire::tlp::Class::Posted) {
            let receiver = self.0 > 0;
            return pcie::Output::Wait(Wait { until: None, receiver });
        }
        self.0 -= 1;
        let write = Tlp::write_bytes(Bdf::new(1, 0, 0), 0x1000, &Bytes::from_static(&[7; 64]));
        pcie::Output::Tlp(write.unwrap())
    }

    fn ready(&self) -> Ready {
        Ready::ALL
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    None,
    Connecting,
    Open,
}

struct Lane {
    manner: Manner,
    state: State,
    /// The connection of the device node.
    path: Option<PathId>,
    /// Whether nothing passes for now, without an error.
    cut: bool,
    down: VecDeque<Bytes>,
    up: VecDeque<Bytes>,
}

struct World {
    now: Instant,
    host: SwitchNode,
    device: DeviceNode<Talker>,
    lanes: [Lane; 2],
    accepted: u64,
    /// Outputs of the switch node, except bytes, with their times in ms.
    log: Vec<(u64, Output)>,
}

impl World {
    fn new(paths: Paths, manners: [Manner; 2]) -> Self {
        let tunnel = |role| {
            let (survive, paths) = (Duration::from_ms(10_000), Some(paths));
            let paths = paths.filter(|_| role == Role::Host);
            Settings { survive, paths, max_payload: 256, ..Settings::new(role, 1) }
        };
        let upstream = switch::upstream::Settings {
            ports: 1,
            max_payload: 256,
            p2p: false,
            tunnel: tunnel(Role::Host),
        };
        let lane = |manner| {
            let (state, path, cut, down, up) = (State::None, None, false, [].into(), [].into());
            Lane { manner, state, path, cut, down, up }
        };
        Self {
            now: Instant::ZERO,
            host: SwitchNode::with_lanes(upstream, None, &[2]),
            device: DeviceNode::new(tunnel(Role::Device), Talker::default()),
            lanes: manners.map(lane),
            accepted: 0,
            log: Vec::new(),
        }
    }

    /// Both paths are up, and the log is empty.
    fn up(paths: Paths) -> Self {
        let mut world = Self::new(paths, [Manner::Serves; 2]);
        world.pass(1);
        assert_eq!(world.open(), [true; 2]);
        world.log.clear();
        world
    }

    fn open(&self) -> [bool; 2] {
        [0, 1].map(|lane| self.lanes[lane].state == State::Open)
    }

    fn upper(&mut self, lane: usize, input: Input) {
        self.host.handle_lane(self.now, (0, lane), input);
    }

    fn lower(&mut self, lane: usize, input: Input) {
        if let Some(path) = self.lanes[lane].path {
            self.device.handle(self.now, path, input);
        }
    }

    /// Answers an attempt to connect, and delivers bytes.
    fn deliver(&mut self, lane: usize) -> bool {
        let own = &mut self.lanes[lane];
        if own.state == State::Connecting && own.manner == Manner::Refuses {
            own.state = State::None;
            self.upper(lane, Input::Failed("refused".into()));
            return true;
        }
        if own.state == State::Connecting && own.manner == Manner::Serves && !own.cut {
            self.hang_up(lane);
            let own = &mut self.lanes[lane];
            (own.state, own.path) = (State::Open, Some(PathId(self.accepted)));
            self.accepted += 1;
            self.upper(lane, Input::Connected);
            let rights = node::Rights::ALL;
            self.lower(lane, Input::Accepted { signals_close: true, rights, peer: None });
            return true;
        }
        self.upper(lane, Input::Room(1 << 16));
        self.lower(lane, Input::Room(1 << 16));
        let Lane { cut, down, up, state, path, .. } = &mut self.lanes[lane];
        if *cut {
            return false;
        }
        let (down, up) = (down.pop_front(), up.pop_front());
        if down.is_none() && *state == State::None && path.is_some() {
            self.hang_up(lane);
            return true;
        }
        if up.is_none() && *state == State::Open && path.is_none() {
            *state = State::None;
            self.upper(lane, Input::Closed);
            return true;
        }
        let any = down.is_some() || up.is_some();
        down.into_iter().for_each(|bytes| self.lower(lane, Input::Received(bytes)));
        up.into_iter().for_each(|bytes| self.upper(lane, Input::Received(bytes)));
        any
    }

    /// The device node's connection ends.
    fn hang_up(&mut self, lane: usize) {
        self.lanes[lane].down.clear();
        self.lower(lane, Input::Closed);
        self.lanes[lane].path = None;
    }

    /// The connection of a lane is lost, and both ends notice it.
    fn breaks(&mut self, lane: usize) {
        if std::mem::replace(&mut self.lanes[lane].state, State::None) == State::Open {
            self.lanes[lane].up.clear();
            self.upper(lane, Input::Closed);
            self.hang_up(lane);
        }
    }

    fn host_output(&mut self, output: Output) {
        match &output {
            Output::Connect { lane, .. } => {
                let own = &mut self.lanes[*lane];
                let before = std::mem::replace(&mut own.state, State::Connecting);
                assert_ne!(before, State::Connecting, "two attempts at once");
                own.up.clear();
            }
            Output::Transmit { lane, bytes, .. } => {
                assert_eq!(self.lanes[*lane].state, State::Open, "lane {lane}");
                return self.lanes[*lane].down.push_back(bytes.clone());
            }
            Output::Close { lane, .. } => self.lanes[*lane].state = State::None,
            Output::Event(_) | Output::Timeout(_) => {}
        }
        self.log.push((self.now.as_ns() / 1_000_000, output));
    }

    fn device_output(&mut self, output: device::Output) {
        let lane = |path| self.lanes.iter().position(|lane| lane.path == Some(path));
        match output {
            device::Output::Transmit { path, bytes } => {
                let lane = lane(path);
                lane.into_iter().for_each(|lane| self.lanes[lane].up.push_back(bytes.clone()));
            }
            device::Output::Close { path, .. } => {
                lane(path).into_iter().for_each(|lane| self.lanes[lane].path = None);
            }
            _ => {}
        }
    }

    fn settle(&mut self) {
        let mut moved = true;
        while moved {
            moved = self.deliver(0) | self.deliver(1);
            while let pcie::Output::Tlp(_) = self.host.poll(self.now, Ready::ALL) {}
            loop {
                match self.host.poll_links(self.now) {
                    Output::Timeout(_) => break,
                    output => self.host_output(output),
                }
                moved = true;
            }
            loop {
                match self.device.poll(self.now) {
                    device::Output::Timeout(_) => break,
                    output => self.device_output(output),
                }
                moved = true;
            }
        }
    }

    fn pass(&mut self, ms: u64) {
        for _ in 0..ms {
            self.settle();
            self.now += Duration::from_ms(1);
        }
    }

    /// The events of the link, with their times in ms.
    fn events(&self) -> Vec<(u64, LinkEvent)> {
        let event = |(at, output): &(u64, Output)| match output {
            Output::Event(event) => Some((*at, event.clone())),
            _ => None,
        };
        self.log.iter().filter_map(event).collect()
    }

    /// The attempts to connect: time in ms, lane, number of failed ones before.
    fn attempts(&self) -> Vec<(u64, usize, usize)> {
        let attempt = |(at, output): &(u64, Output)| match output {
            Output::Connect { lane, attempt, .. } => Some((*at, *lane, *attempt)),
            _ => None,
        };
        self.log.iter().filter_map(attempt).collect()
    }

    fn counters(&self) -> [Counters; 2] {
        [self.host.upstream().tunnel(0).counters(), self.device.tunnel().counters()]
    }

    /// All TLPs of the device have arrived, each once.
    fn check(&self) {
        let [host, device] = self.counters();
        assert_eq!(host.tlps_received, device.tlps_sent);
        assert_eq!((self.device.function().0, host.connections), (0, 1));
    }
}

const MODES: [Paths; 2] = [Paths::Active, Paths::Both];

#[test]
fn second_path_connects_when_the_first_one_is_up() {
    for paths in MODES {
        let mut world = World::new(paths, [Manner::Serves; 2]);
        world.pass(1_000);
        assert_eq!(world.attempts(), [(0, 0, 0), (0, 1, 0)]);
        let events: Vec<_> = world.events().into_iter().map(|(_, event)| event).collect();
        assert!(matches!(events[..], [LinkEvent::Up(..), LinkEvent::PathUp(0, 1)]), "{events:?}");
    }
}

#[test]
fn other_address_is_tried_if_the_first_one_fails() {
    let mut world = World::new(Paths::Active, [Manner::Refuses, Manner::Serves]);
    world.pass(1_000);
    assert!(world.host.is_up(0));
    assert_eq!(world.attempts()[..3], [(0, 0, 0), (0, 1, 0), (200, 0, 1)]);
    // A path that comes up later.
    world.lanes[0].manner = Manner::Serves;
    world.pass(RETRY_PAUSE.as_ns() / 1_000_000);
    assert_eq!(world.open(), [true; 2]);
    assert_eq!(world.events().last().unwrap().1, LinkEvent::PathUp(0, 0));
}

#[test]
fn failing_second_address_leaves_the_link_alone() {
    for manner in [Manner::Refuses, Manner::Silent] {
        let mut world = World::new(Paths::Both, [Manner::Serves, manner]);
        world.device.function_mut().0 = 50;
        world.pass(5_000);
        let rest = world.events().split_off(1);
        let is_failure = |(_, event): &(u64, LinkEvent)| matches!(event, LinkEvent::Failed { .. });
        assert!(rest.len() >= 2 && rest.iter().all(is_failure), "{rest:?}");
        world.check();
    }
}

#[test]
fn loss_of_either_path_is_reported_and_mended() {
    for (paths, lost) in [(MODES[0], 0), (MODES[0], 1), (MODES[1], 0), (MODES[1], 1)] {
        let mut world = World::up(paths);
        world.device.function_mut().0 = 100;
        world.breaks(lost);
        world.pass(300);
        let mut events = world.events();
        let taken_over =
            |(_, event): &mut (u64, LinkEvent)| *event == LinkEvent::FailedOver(0, 1 - lost);
        let takes_over = paths == Paths::Active && lost == 0;
        assert_eq!(events.extract_if(.., taken_over).count(), usize::from(takes_over));
        assert!(
            matches!(
                events[..],
                [(1, LinkEvent::PathLost(0, one, _)), (201, LinkEvent::PathUp(0, two))]
                    if [one, two] == [lost; 2]
            ),
            "{events:?}"
        );
        world.check();
    }
}

#[test]
fn link_without_paths_is_interrupted_and_resumed() {
    for paths in MODES {
        let mut world = World::up(paths);
        world.lanes.iter_mut().for_each(|lane| lane.manner = Manner::Refuses);
        world.device.function_mut().0 = 100;
        (0..2).for_each(|lane| world.breaks(lane));
        world.pass(2_000);
        world.lanes[1].manner = Manner::Serves;
        world.pass(400);
        assert_eq!(world.open(), [false, true]);
        let mut events = world.events();
        events.retain(|(_, event)| !matches!(event, LinkEvent::Failed { .. }));
        let [(_, interrupted), (_, resumed)] = &events[events.len() - 2..] else { panic!() };
        assert!(matches!(interrupted, LinkEvent::Interrupted(0, _)), "{events:?}");
        assert_eq!(*resumed, LinkEvent::Resumed(0));
        world.check();
        // Given up after the survival.
        world.lanes[1].manner = Manner::Refuses;
        world.breaks(1);
        world.pass(10_100);
        let is_down = |(_, event): &(u64, LinkEvent)| matches!(event, LinkEvent::Down { .. });
        assert_eq!(world.events().iter().filter(|event| is_down(event)).count(), 1);
    }
}

#[test]
fn busy_silent_path_hands_over_within_60_ms() {
    let mut world = World::up(Paths::Active);
    world.pass(100);
    let since = world.now.as_ns() / 1_000_000;
    world.lanes[0].cut = true;
    world.device.function_mut().0 = 10;
    world.pass(100);
    world.check();
    // A silent path that carries nothing on the host's side is lost without hurry.
    let [_, device] = world.counters();
    assert_eq!(device.failovers, 1);
    world.pass(900);
    let lost =
        world.events().into_iter().find(|(_, event)| matches!(event, LinkEvent::PathLost(0, 0, _)));
    assert!(lost.is_some_and(|(at, _)| at <= since + 800), "{:?}", world.events());
}

#[derive(Clone, Debug)]
enum Step {
    Manner(usize, Manner),
    Break(usize),
    Cut(usize, bool),
    Talk(u32),
    Pass(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let manner = prop::sample::select(vec![Manner::Serves, Manner::Refuses, Manner::Silent]);
    prop_oneof![
        (0..2usize, manner).prop_map(|(lane, manner)| Step::Manner(lane, manner)),
        (0..2usize).prop_map(Step::Break),
        (0..2usize, any::<bool>()).prop_map(|(lane, cut)| Step::Cut(lane, cut)),
        (1..20u32).prop_map(Step::Talk),
        (1..200u64).prop_map(Step::Pass),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(60))]
    /// A random course of both paths, below the survival, costs no TLP.
    #[test]
    fn random_losses_of_two_paths_cost_no_tlp(
        steps in prop::collection::vec(step(), 1..60),
        both: bool,
    ) {
        let mut world = World::up(if both { Paths::Both } else { Paths::Active });
        for step in steps {
            match step {
                Step::Manner(lane, manner) => world.lanes[lane].manner = manner,
                Step::Break(lane) => world.breaks(lane),
                Step::Cut(lane, cut) => world.lanes[lane].cut = cut,
                Step::Talk(count) => world.device.function_mut().0 += count,
                Step::Pass(ms) => world.pass(ms),
            }
        }
        for lane in &mut world.lanes {
            (lane.manner, lane.cut) = (Manner::Serves, false);
        }
        world.pass(4_000);
        prop_assert_eq!(world.open(), [true; 2]);
        let is_down = |(_, event): &(u64, LinkEvent)| matches!(event, LinkEvent::Down { .. });
        prop_assert!(!world.events().iter().any(is_down), "{:?}", world.events());
        world.check();
    }
}
