//! Sessions with two paths at the same time.

use super::*;
use std::collections::VecDeque;
use wire::frame::Paths;

/// Two ends, and the bytes on their way between them over each path.
struct Net {
    ends: [Tunnel; 2],
    now: Instant,
    /// By path, then by the end that sent.
    flight: [[VecDeque<u8>; 2]; MAX_PATHS],
    /// Whether each end has a connection, by path.
    open: [[bool; 2]; MAX_PATHS],
    /// Whether a path delivers nothing.
    cut: [bool; MAX_PATHS],
    due: [VecDeque<u32>; 2],
    pushed: u32,
    outputs: [Vec<Output>; 2],
}

fn numbered(number: u32, length: usize) -> Tlp {
    let mut data = vec![7; length];
    data[..4].copy_from_slice(&number.to_le_bytes());
    Tlp::write_bytes(Bdf::default(), 0x1000, &Bytes::from(data)).unwrap()
}

impl Net {
    fn new(paths: Paths) -> Self {
        let end = |role| {
            let survive = Duration::from_ms(10_000);
            let paths = Some(paths).filter(|_| role == Role::Host);
            Tunnel::new(Settings { survive, paths, ..Settings::new(role, 1) })
        };
        let (flight, open, cut, due, outputs) = Default::default();
        let ends = [end(Role::Host), end(Role::Device)];
        Self { ends, now: Instant::ZERO, flight, open, cut, due, pushed: 0, outputs }
    }

    fn up(paths: Paths) -> Self {
        let mut net = Self::new(paths);
        (0..MAX_PATHS).for_each(|path| net.connect(path));
        assert_eq!(net.ends.each_ref().map(Tunnel::paths), [Some(paths); 2]);
        net.outputs = Default::default();
        net
    }

    fn push(&mut self, from: usize, length: usize) {
        if self.ends[from].ready().has(Class::Posted) {
            self.ends[from].push(numbered(self.pushed, length));
            self.due[from].push_back(self.pushed);
            self.pushed += 1;
        }
    }

    /// Takes all received TLPs of an end: each exactly once and in order.
    fn pop(&mut self, at: usize) {
        while let Some(tlp) = self.ends[at].pop(Ready::ALL) {
            for single in tlp.singles() {
                let number = u32::from_le_bytes(single.data[..4].try_into().unwrap());
                assert_eq!(self.due[1 - at].pop_front(), Some(number));
            }
        }
    }

    /// Lets an end send `room` bytes over `path`, and delivers up to `arrive` bytes of it.
    fn carry(&mut self, path: usize, from: usize, room: usize, arrive: usize) {
        if self.open[path][from] {
            self.ends[from].handle_path(self.now, path, Input::CanTransmit { bytes: room });
        }
        loop {
            match self.ends[from].poll(self.now) {
                Output::Transmit(path, bytes) => self.flight[path][from].extend(bytes),
                Output::Timeout(_) => break,
                Output::Down(cause) => panic!("end {from}: {cause}"),
                Output::PathLost(path, cause) => {
                    self.open[path][from] = false;
                    self.ends[from].handle_path(self.now, path, Input::Disconnected);
                    self.outputs[from].push(Output::PathLost(path, cause));
                }
                output => self.outputs[from].push(output),
            }
        }
        let flight = &mut self.flight[path][from];
        let bytes: Vec<u8> = flight.drain(..arrive.min(flight.len())).collect();
        if self.open[path][1 - from] && !self.cut[path] && !bytes.is_empty() {
            let input = Input::Received(bytes.into());
            self.ends[1 - from].handle_path(self.now, path, input);
        }
    }

    /// Everything on `path` is lost, and the ends in `notice` notice it.
    fn cut(&mut self, path: usize, notice: [bool; 2]) {
        (self.flight[path], self.cut[path]) = (Default::default(), true);
        for end in (0..2).filter(|end| notice[*end]) {
            if std::mem::take(&mut self.open[path][end]) {
                self.ends[end].handle_path(self.now, path, Input::Disconnected);
            }
        }
    }

    fn connect(&mut self, path: usize) {
        self.cut(path, [true; 2]);
        (0..2).for_each(|end| self.carry(path, end, 0, 0));
        self.cut[path] = false;
        for end in 0..2 {
            self.open[path][end] = true;
            self.ends[end].handle_path(self.now, path, Input::Connected);
        }
        (0..6).for_each(|turn| self.carry(path, turn % 2, 100_000, usize::MAX));
    }

    fn settle(&mut self) {
        for _ in 0..200 {
            for (path, end) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                self.carry(path, end, 100_000, usize::MAX);
                self.pop(end);
            }
        }
    }

    /// Lets time pass in steps of 5 ms.
    fn wait(&mut self, ms: u64) {
        for _ in 0..ms / 5 {
            self.now += Duration::from_ms(5);
            for (path, end) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
                self.carry(path, end, 100_000, usize::MAX);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize, usize),
    Pop(usize),
    Carry(usize, usize, usize, usize),
    Cut(usize, [bool; 2]),
    Connect(usize),
    Wait(u64),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..2usize, 4..300usize).prop_map(|(end, length)| Step::Push(end, length / 4 * 4)),
        2 => (0..2usize).prop_map(Step::Pop),
        12 => (0..2usize, 0..2usize, 0..2_000usize, 0..2_000usize)
            .prop_map(|(path, end, room, arrive)| Step::Carry(path, end, room, arrive)),
        1 => (0..2usize, any::<[bool; 2]>()).prop_map(|(path, ends)| Step::Cut(path, ends)),
        1 => (0..2usize).prop_map(Step::Connect),
        1 => (1..100u64).prop_map(Step::Wait),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #[test]
    fn every_tlp_arrives_once_and_in_order_over_two_paths(steps in steps(), both: bool) {
        let mut net = Net::up(if both { Paths::Both } else { Paths::Active });
        for step in steps {
            match step {
                Step::Push(end, length) => net.push(end, length),
                Step::Pop(end) => net.pop(end),
                Step::Carry(path, end, room, arrive) => net.carry(path, end, room, arrive),
                Step::Cut(path, notice) => net.cut(path, notice),
                Step::Connect(path) => net.connect(path),
                Step::Wait(ms) => net.now += Duration::from_ms(ms),
            }
        }
        (0..MAX_PATHS).for_each(|path| net.connect(path));
        net.settle();
        prop_assert_eq!(&net.due, &<[VecDeque<u32>; 2]>::default());
        prop_assert!(net.ends.iter().all(|end| end.is_up() && !end.is_interrupted()));
        prop_assert_eq!(net.ends[0].counters().connections, 1);
    }
}

#[test]
fn the_other_path_takes_over_from_a_silent_one() {
    let mut net = Net::up(Paths::Active);
    net.wait(100);
    net.cut(0, [false; 2]);
    let since = net.now;
    while net.due[0].len() < 50 {
        (0..2).for_each(|end| net.push(end, 64));
        net.wait(5);
        (0..2).for_each(|end| net.pop(end));
        assert!(net.now < since + Duration::from_ms(5_000));
        if net.due.iter().all(VecDeque::is_empty) && net.now > since + Duration::from_ms(20) {
            break;
        }
    }
    let took = net.now - since;
    assert!(took <= Duration::from_ms(80), "{took}");
    for outputs in &net.outputs {
        assert!(outputs.contains(&Output::FailedOver(1)), "{outputs:?}");
    }
    // The silent path is given up at last, and the link is not interrupted.
    net.wait(1_000);
    for (end, outputs) in net.outputs.iter().enumerate() {
        assert!(outputs.contains(&Output::PathLost(0, Cause::Lost)), "{outputs:?}");
        assert!(!net.ends[end].is_interrupted());
    }
    assert_eq!(net.ends[0].counters().failovers, 1);
}

/// With both paths, the loss of one delays nothing.
#[test]
fn both_paths_carry_everything() {
    let mut net = Net::up(Paths::Both);
    for lost in [0, 1] {
        net.connect(1 - lost);
        net.wait(50);
        net.cut(lost, [false; 2]);
        for _ in 0..20 {
            (0..2).for_each(|end| net.push(end, 64));
            net.wait(5);
            (0..2).for_each(|end| net.pop(end));
            assert_eq!(net.due, <[VecDeque<u32>; 2]>::default(), "path {lost} is silent");
        }
        net.connect(lost);
    }
    // Each TLP went over both, as long as both were there.
    let before = net.ends[0].counters();
    net.push(0, 64);
    net.wait(5);
    let after = net.ends[0].counters();
    assert!(after.bytes_sent - before.bytes_sent >= 2 * 88, "{before:?} {after:?}");
    assert_eq!(after.frames_sent - before.frames_sent, 1);
}

#[test]
fn resets_keep_their_place_on_both_paths() {
    for paths in [Paths::Active, Paths::Both] {
        let mut net = Net::up(paths);
        net.push(0, 64);
        net.carry(0, 0, 100_000, 0);
        net.ends[0].reset();
        net.due[0].clear();
        net.ends[0].push(numbered(99, 64));
        let mut resets = 0;
        for _ in 0..50 {
            for (path, from) in [(1, 0), (0, 0), (1, 1), (0, 1)] {
                net.carry(path, from, 100_000, 40);
            }
            for output in std::mem::take(&mut net.outputs[1]) {
                if output == Output::Reset {
                    resets += 1;
                    net.ends[1].reset_done();
                }
            }
        }
        assert_eq!(resets, 1, "{paths:?}");
        let left: Vec<Tlp> = std::iter::from_fn(|| net.ends[1].pop(Ready::ALL)).collect();
        assert_eq!(left, [numbered(99, 64)], "{paths:?}");
    }
}
