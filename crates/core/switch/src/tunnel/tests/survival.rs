//! Sessions that go on over further connections.

use super::*;
use std::collections::VecDeque;

const SURVIVE: Duration = Duration::from_ms(10_000);

fn surviving() -> Link {
    Link::new(|settings| settings.survive = SURVIVE)
}

/// A write that carries a number.
pub(super) fn numbered(number: u32, length: usize) -> Tlp {
    let mut data = vec![7; length];
    data[..4].copy_from_slice(&number.to_le_bytes());
    Tlp::write_bytes(Bdf::default(), 0x1000, &Bytes::from(data)).unwrap()
}

fn number(tlp: &Tlp) -> u32 {
    u32::from_le_bytes(tlp.data[..4].try_into().unwrap())
}

/// Two ends, and the bytes that are on their way between them.
struct Wire {
    link: Link,
    flight: [VecDeque<u8>; 2],
    /// Numbers of the TLPs pushed and not yet popped, by the end that pushed them.
    due: [VecDeque<u32>; 2],
    pushed: u32,
    /// Whether each end has a connection.
    open: [bool; 2],
    resets: usize,
    /// Whether the connection delivers nothing more.
    cut: bool,
}

impl Wire {
    fn new(link: Link) -> Self {
        let (flight, due) = Default::default();
        Self { link, flight, due, pushed: 0, open: [false; 2], resets: 0, cut: false }
    }

    fn push(&mut self, from: usize, length: usize) {
        let end = &mut self.link.ends[from];
        if end.ready().has(Class::Posted) {
            end.push(numbered(self.pushed, length));
            self.due[from].push_back(self.pushed);
            self.pushed += 1;
        }
    }

    /// Takes all received TLPs of an end: each exactly once and in order.
    fn pop(&mut self, at: usize) {
        while let Some(tlp) = self.link.ends[at].pop(Ready::ALL) {
            for payload in tlp.singles() {
                assert_eq!(self.due[1 - at].pop_front(), Some(number(&payload)));
            }
        }
    }

    /// Lets an end send `room` bytes, and delivers up to `arrive` bytes of what it has sent.
    fn carry(&mut self, from: usize, room: usize, arrive: usize) {
        let now = self.link.now;
        if self.open[from] {
            self.link.ends[from].handle(now, Input::CanTransmit { bytes: room });
        }
        loop {
            match self.link.poll(from) {
                Output::Transmit(_, bytes) => self.flight[from].extend(bytes),
                Output::Timeout(_) => break,
                Output::Reset => {
                    self.resets += 1;
                    self.link.ends[from].reset_done();
                }
                Output::Down(cause) => panic!("end {from}: {cause}"),
                output => self.link.outputs[from].push(output),
            }
        }
        let arrive = arrive.min(self.flight[from].len());
        let bytes: Vec<u8> = self.flight[from].drain(..arrive).collect();
        if self.open[1 - from] && !self.cut && !bytes.is_empty() {
            self.link.ends[1 - from].handle(now, Input::Received(bytes.into()));
        }
    }

    /// Cuts the connection; the ends in `notice` notice it now.
    fn cut(&mut self, notice: [bool; 2]) {
        (self.flight, self.cut) = (Default::default(), true);
        for end in (0..2).filter(|end| notice[*end]) {
            if !std::mem::take(&mut self.open[end]) {
                continue;
            }
            self.link.ends[end].handle(self.link.now, Input::Disconnected);
        }
    }

    fn connect(&mut self) {
        self.cut([true; 2]);
        self.cut = false;
        for end in 0..2 {
            self.carry(end, 0, 0);
            self.open[end] = true;
            self.link.ends[end].handle(self.link.now, Input::Connected);
        }
    }

    fn settle(&mut self) {
        self.connect();
        for _ in 0..1000 {
            for end in 0..2 {
                self.carry(end, 100_000, usize::MAX);
                self.pop(end);
            }
        }
    }
}

#[derive(Clone, Debug)]
enum Step {
    Push(usize, usize),
    Pop(usize),
    Carry(usize, usize, usize),
    Cut([bool; 2]),
    Connect,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => (0..2usize, 4..300usize).prop_map(|(end, length)| Step::Push(end, length / 4 * 4)),
        2 => (0..2usize).prop_map(Step::Pop),
        6 => (0..2usize, 0..2_000usize, 0..2_000usize).prop_map(|(e, r, a)| Step::Carry(e, r, a)),
        1 => any::<[bool; 2]>().prop_map(Step::Cut),
        1 => Just(Step::Connect),
    ];
    prop::collection::vec(step, 1..300)
}

proptest! {
    #[test]
    fn every_tlp_arrives_once_and_in_order_whatever_is_cut(steps in steps(), per_tlp in any::<bool>()) {
        let policy = if per_tlp { crate::aggregate::Policy::PerTlp } else { Default::default() };
        let mut wire = Wire::new(Link::new(|settings| {
            (settings.survive, settings.aggregation) = (SURVIVE, policy);
        }));
        wire.settle();
        for step in steps {
            match step {
                Step::Push(end, length) => wire.push(end, length),
                Step::Pop(end) => wire.pop(end),
                Step::Carry(end, room, arrive) => wire.carry(end, room, arrive),
                Step::Cut(notice) => wire.cut(notice),
                Step::Connect => wire.connect(),
            }
        }
        wire.settle();
        prop_assert_eq!(&wire.due, &<[VecDeque<u32>; 2]>::default());
        for end in &wire.link.ends {
            prop_assert!(end.is_up() && !end.is_interrupted());
            let counters = end.counters();
            prop_assert_eq!(counters.connections, 1);
            prop_assert!(counters.frames_sent >= counters.frames_sent_again.min(1));
        }
    }
}

/// A reset with TLPs before and after it, cut after this number of bytes in each direction.
fn reset_cut_after(bytes: [usize; 2]) {
    let mut wire = Wire::new(surviving());
    wire.settle();
    (0..2).for_each(|end| wire.push(end, 64));
    wire.carry(0, 100_000, 0);
    wire.carry(1, 100_000, 0);
    wire.link.ends[0].reset();
    // What was under way in either direction may arrive before the reset, or is dropped.
    let before = std::mem::take(&mut wire.due);
    wire.push(0, 64);
    for _ in 0..3 {
        wire.carry(0, 100_000, bytes[0]);
        wire.carry(1, 100_000, bytes[1]);
    }
    wire.connect();
    for _ in 0..20 {
        (0..2).for_each(|end| wire.carry(end, 100_000, usize::MAX));
    }
    assert_eq!(wire.resets, 1, "{bytes:?}: one reset");
    wire.push(1, 64);
    (0..20).for_each(|_| (0..2).for_each(|end| wire.carry(end, 100_000, usize::MAX)));
    for end in 0..2 {
        let received: Vec<u32> = std::iter::from_fn(|| wire.link.ends[end].pop(Ready::ALL))
            .map(|t| number(&t))
            .collect();
        assert_eq!(received, Vec::from(wire.due[1 - end].clone()), "{bytes:?}, not {before:?}");
    }
}

#[test]
fn a_reset_keeps_its_place_wherever_the_connection_is_cut() {
    for down in 0..260 {
        reset_cut_after([down, 260]);
        reset_cut_after([260, down]);
        reset_cut_after([down, down]);
    }
}

#[test]
fn interrupted_session_ends_after_its_time() {
    let mut link = surviving();
    link.connect();
    link.settle(1000);
    link.outputs = Default::default();
    link.ends[0].push(write(1, 64));
    for end in &mut link.ends {
        end.handle(link.now, Input::Disconnected);
        assert_eq!(end.poll(link.now), Output::PathLost(0, Cause::Disconnected));
        assert!(end.is_up() && end.is_interrupted());
    }
    // The device keeps the session longer than the host.
    for (end, longer) in [(0, 0), (1, 2_000)] {
        let until = link.now + SURVIVE + Duration::from_ms(longer);
        assert_eq!(link.poll(end), Output::Timeout(Some(until)));
        assert_eq!(link.ends[end].poll(until), Output::Down(Cause::Disconnected));
        assert!(!link.ends[end].is_up());
    }
    assert_eq!(link.ends[0].take_posted_lost(), 1);
    // The next connection begins a new session.
    link.connect();
    link.settle(1000);
    assert!(matches!(link.outputs[0][..], [Output::Up(_)]), "{:?}", link.outputs);
    assert_eq!(link.ends[0].counters().connections, 2);
}

#[test]
fn silence_interrupts_and_a_violation_ends_the_session() {
    let mut link = surviving();
    link.connect();
    link.settle(1000);
    let silent = link.now + Duration::from_ms(800);
    assert_eq!(link.ends[0].poll(silent), Output::PathLost(0, Cause::Lost));
    link.ends[1].handle(link.now, Input::Received(framed(Kind::Tlps, 9, &[0; 16])));
    assert!(matches!(link.poll(1), Output::Down(Cause::Violation(_))));
}

#[test]
fn a_peer_without_survival_loses_its_session_with_the_connection() {
    for without in 0..2 {
        let mut link = surviving();
        let role = if without == 0 { Role::Host } else { Role::Device };
        link.ends[without] = Tunnel::new(Settings::new(role, 1));
        link.connect();
        link.settle(1000);
        for end in &mut link.ends {
            end.handle(link.now, Input::Disconnected);
            assert_eq!(end.poll(link.now), Output::Down(Cause::Disconnected));
        }
    }
}

#[test]
fn failed_attempts_leave_the_session_and_a_rejection_ends_it() {
    let mut link = surviving();
    link.connect();
    link.settle(1000);
    let host = &mut link.ends[0];
    host.handle(link.now, Input::Disconnected);
    host.poll(link.now);
    for answer in [&b"HTTP/1.1 400"[..], &framed(Kind::Tlps, 0, &[0; 16]), b""] {
        host.handle(link.now, Input::Connected);
        host.handle(link.now, Input::CanTransmit { bytes: 1000 });
        assert!(matches!(host.poll(link.now), Output::Transmit(..)), "its Hello");
        match answer {
            b"" => host.handle(link.now, Input::Disconnected),
            bytes => host.handle(link.now, Input::Received(Bytes::copy_from_slice(bytes))),
        }
        assert!(matches!(host.poll(link.now), Output::PathLost(..)));
        host.handle(link.now, Input::Disconnected);
        assert!(host.is_interrupted());
    }
    host.handle(link.now, Input::Connected);
    let reject = Control::Reject { reason: Reject::NoSession, version: 2 };
    host.handle(link.now, Input::Received(frame(reject)));
    assert_eq!(host.poll(link.now), Output::Down(Cause::Rejected(Reject::NoSession)));
}

/// A resumed session whose host claims to have received frames that were never sent.
#[test]
fn false_claims_cost_only_their_connection() {
    let mut link = surviving();
    link.connect();
    link.settle(1000);
    let id = link.ends[0].session().expect("it survives");
    assert_eq!(link.ends[1].session(), Some(id));
    let device = &mut link.ends[1];
    device.handle(link.now, Input::Disconnected);
    device.poll(link.now);
    let settings = Settings::new(Role::Host, 1);
    let hello = |id, expected| {
        let session = Some(frame::Survival { id, survive_ms: 10_000, expected });
        frame(Control::Hello(Hello {
            version: 2,
            role: Role::Host,
            max_payload: 4096,
            group: 0,
            instance: 1,
            push: 0,
            session,
            paths: None,
            connection: None,
            lease_ms: 0,
            credits: settings.window,
        }))
    };
    device.handle(link.now, Input::Connected);
    device.handle(link.now, Input::Received(hello(id, Some(5))));
    assert!(matches!(device.poll(link.now), Output::PathLost(0, Cause::Violation(_))));
    assert!(device.is_interrupted());
}

#[test]
fn unacknowledged_frames_are_bounded() {
    let mut link = surviving();
    link.connect();
    link.settle(1000);
    let host = &mut link.ends[0];
    let grants = [Grant { headers: 1 << 20, data: 1 << 30 }; 3];
    host.handle(link.now, Input::Received(frame(Control::Credits(grants))));
    let (mut sent, mut frames) = (0, 0);
    loop {
        while host.ready().has(Class::Posted) {
            host.push(write(1, 4096));
        }
        host.handle(link.now, Input::CanTransmit { bytes: 40_000 });
        match host.poll(link.now) {
            Output::Transmit(_, bytes) => (sent, frames) = (sent + bytes.len(), frames + 1),
            _ => break,
        }
    }
    assert!((4 << 20..(4 << 20) + 40_000).contains(&sent), "{sent} bytes in {frames} frames");
    // An acknowledgement makes room.
    let all = framed_acknowledging(Kind::Acknowledge, frames);
    host.handle(link.now, Input::Received(all));
    assert!(matches!(host.poll(link.now), Output::Transmit(..)));
}

#[test]
fn resets_without_tlps_keep_no_memory() {
    let mut wire = Wire::new(surviving());
    wire.settle();
    for _ in 0..20_000 {
        wire.link.ends[0].reset();
        (0..2).for_each(|end| wire.carry(end, 100_000, usize::MAX));
    }
    wire.push(0, 64);
    wire.carry(0, 100_000, usize::MAX);
    wire.link.ends[1].handle(wire.link.now, Input::CanTransmit { bytes: 0 });
    let mut received = 0;
    while wire.link.ends[1].pop(Ready::ALL).is_some() {
        received += 1;
    }
    assert_eq!((received, wire.resets), (1, 20_000));
}

fn framed_acknowledging(kind: Kind, acknowledged: u32) -> Bytes {
    Bytes::copy_from_slice(&Header { length: 0, kind, sequence: 0, acknowledged }.encode())
}

/// The far side is alive, and the network takes nothing to it.
#[test]
fn cut_of_one_direction_interrupts_the_session() {
    let mut wire = Wire::new(surviving());
    wire.settle();
    wire.push(0, 64);
    for _ in 0..20 {
        wire.link.now += Duration::from_ms(50);
        wire.carry(0, 0, 0);
        wire.carry(1, 100_000, usize::MAX);
    }
    let is_lost = |output: &Output| matches!(output, Output::PathLost(0, Cause::Lost));
    assert_eq!(wire.link.outputs[0].iter().filter(|output| is_lost(output)).count(), 1);
    assert!(wire.link.ends[0].is_interrupted());
    wire.open[0] = false;
    wire.settle();
    assert_eq!(wire.due, <[VecDeque<u32>; 2]>::default());
    assert_eq!(wire.link.ends[0].counters().connections, 1);
}
