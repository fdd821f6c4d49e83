//! The lease of a device, and the host that waits for its end.

use super::survival::numbered;
use super::*;
use std::collections::VecDeque;

const LEASE: Duration = Duration::from_ms(1_000);
/// With clocks that run apart by a quarter.
const WAITS: Duration = Duration::from_ms(1_250);

fn leased(survive_ms: u64) -> Link {
    let mut link = Link::joined(|settings| {
        (settings.lease, settings.survive) = (LEASE, Duration::from_ms(survive_ms));
    });
    assert_eq!(link.ends[1].lease(), Some(link.now + LEASE));
    link.outputs = Default::default();
    link
}

#[test]
fn a_lease_counts_from_the_question_and_ends_without_an_answer() {
    let mut link = Link::new(|settings| settings.lease = LEASE);
    assert_eq!(
        (link.ends[0].lease(), link.ends[1].lease()),
        (Some(Instant::ZERO), Some(Instant::ZERO))
    );
    link.connect();
    link.settle(1000);
    let asked = link.now;
    for _ in 0..3 {
        link.now += Duration::from_ms(100);
        link.settle(1000);
    }
    // Asked again at 250 ms, noticed at 300 ms.
    assert_eq!(link.ends[1].lease(), Some(asked + Duration::from_ms(300) + LEASE));
    link.now += Duration::from_ms(250);
    link.ends[1].handle(link.now, Input::CanTransmit { bytes: 1000 });
    let asked = link.now;
    let question = loop {
        match link.poll(1) {
            Output::Transmit(_, bytes) => break bytes,
            output => assert!(!matches!(output, Output::Timeout(_)), "{output:?}"),
        }
    };
    let host = link.now + Duration::from_ms(400);
    link.ends[0].handle(host, Input::Received(question));
    link.ends[0].handle(host, Input::CanTransmit { bytes: 1000 });
    let Output::Transmit(_, answer) = link.ends[0].poll(host) else { panic!("no answer") };
    link.ends[1].handle(host + Duration::from_ms(400), Input::Received(answer));
    assert_eq!(link.ends[1].lease(), Some(asked + LEASE));
}

#[test]
fn answers_that_were_not_asked_for_renew_nothing() {
    let mut link = leased(0);
    let until = link.ends[1].lease();
    for number in [1, 2, 1 << 40, u64::MAX] {
        link.ends[1].handle(link.now + LEASE, Input::Received(frame(Control::EchoReply(number))));
    }
    assert_eq!(link.ends[1].lease(), until);
    link.ends[1].take_down(link.now, Cause::Moved);
    assert_eq!(link.ends[1].lease(), Some(Instant::ZERO));
}

#[test]
fn a_host_gives_a_link_up_when_the_lease_is_over() {
    for (survive, span) in [(0, WAITS), (500, WAITS), (10_000, Duration::from_ms(10_000))] {
        let mut link = leased(survive);
        // The lease counts from the turn after the question.
        let begin = link.now + Duration::from_ms(1);
        link.ends[0].handle(begin, Input::Disconnected);
        let host = &mut link.ends[0];
        assert_eq!(host.poll(begin), Output::PathLost(0, Cause::Disconnected), "{survive}");
        assert_eq!(host.poll(begin), Output::Timeout(Some(begin + span)), "{survive}");
        assert!(host.is_up() && host.is_over() == (survive == 0));
        assert_eq!(host.poll(begin + span), Output::Down(Cause::Disconnected));
    }
}

#[test]
fn a_host_with_another_link_waits_for_the_lease_only() {
    let mut link = leased(10_000);
    let begin = link.now + Duration::from_ms(1);
    let host = &mut link.ends[0];
    host.handle(begin, Input::Disconnected);
    host.give_up(begin);
    assert_eq!(host.poll(begin), Output::PathLost(0, Cause::Disconnected));
    assert!(!host.is_over(), "the device may return in time");
    assert_eq!(host.poll(begin), Output::Timeout(Some(begin + WAITS)));
    assert_eq!(host.poll(begin + WAITS), Output::Down(Cause::Disconnected));
}

#[test]
fn a_link_that_is_over_takes_no_connection() {
    let mut link = leased(10_000);
    let now = link.now + Duration::from_ms(1);
    let host = &mut link.ends[0];
    host.take_down(now, Cause::GuestReset);
    assert_eq!(host.poll(now), Output::PathLost(0, Cause::GuestReset));
    host.handle(now, Input::Disconnected);
    host.handle(now, Input::Connected);
    host.handle(now, Input::CanTransmit { bytes: 1000 });
    assert_eq!(host.poll(now), Output::PathLost(0, Cause::Disconnected));
    assert_eq!(host.poll(now), Output::Timeout(Some(now + WAITS)));
    assert_eq!(host.poll(now + WAITS), Output::Down(Cause::GuestReset));
}

/// A turn of an end.
#[derive(Clone, Debug)]
struct Turn {
    end: usize,
    /// Time since the turn before.
    wait_ms: u64,
    /// How long the end stalls between a look at its clock and its work; meanwhile others have turns.
    stall_ms: u64,
    /// Delay of what the end sends.
    delay_ms: u64,
    /// Whether the host loses its connection, which the device does not notice.
    cut: bool,
}

/// Turns every 5 ms until the host stalls. The frames of its last turn are delayed, then its connection
/// is cut. Meanwhile the device stalls once.
fn turns() -> impl Strategy<Value = Vec<Turn>> {
    let stall = || prop_oneof![Just(0), 0..2_000u64];
    (0..600u64, stall(), stall(), 0..2_000u64, 0..2_000u64).prop_map(
        |(alive, host_stall, device_stall, device_stalls_at, delay)| {
            let last = alive + host_stall;
            let mut turns = Vec::new();
            for at in (0..last + 4_000).step_by(5) {
                let stalls = |from: u64, span: u64| (from..from + span).contains(&at);
                let is_last = at < last + 5 && at >= last;
                let host = Turn {
                    end: 0,
                    wait_ms: 0,
                    stall_ms: if is_last { host_stall } else { 0 },
                    delay_ms: if is_last { delay } else { 1 },
                    cut: at >= last + 5,
                };
                turns.extend((!stalls(alive, host_stall)).then_some(host));
                let device = Turn { end: 1, wait_ms: 0, stall_ms: 0, delay_ms: 1, cut: false };
                let device_stall =
                    if stalls(device_stalls_at, device_stall) { None } else { Some(device) };
                turns.extend(device_stall);
                turns.last_mut().into_iter().for_each(|turn| turn.wait_ms = 5);
            }
            turns
        },
    )
}

/// Two ends with clocks of their own; times in ms of a third clock.
struct Apart {
    link: Link,
    /// Parts per thousand by which the clock of an end is fast, and its offset in ms.
    clocks: [(u64, u64); 2],
    flight: [VecDeque<(u64, Bytes)>; 2],
    real: u64,
    /// The last look at its clock of each end.
    looked: [u64; 2],
    down: Option<u64>,
    carried_out: u32,
}

impl Apart {
    fn clock(&self, end: usize, real: u64) -> Instant {
        let (speed, offset) = self.clocks[end];
        Instant::ZERO + Duration::from_us((real + offset) * speed)
    }

    fn turn(&mut self, turn: &Turn) {
        self.real += turn.wait_ms;
        let end = turn.end;
        let begin = self.looked[end].max(self.real.saturating_sub(turn.stall_ms));
        self.looked[end] = begin;
        let now = self.clock(end, begin);
        while let Some((_, bytes)) = self.flight[1 - end].pop_front_if(|(at, _)| *at <= self.real) {
            self.link.ends[end].handle(now, Input::Received(bytes));
        }
        if end == 0 && self.down.is_none() {
            self.link.ends[0].push(numbered(7, 64));
        }
        let device = &mut self.link.ends[1];
        while end == 1 && device.lease().is_some_and(|until| now < until) {
            if device.pop(Ready::ALL).is_none() {
                break;
            }
            self.carried_out += 1;
            assert!(self.down.is_none_or(|down| begin <= down), "at {begin}, {:?}", self.down);
        }
        self.link.ends[end].handle(now, Input::CanTransmit { bytes: 100_000 });
        loop {
            match self.link.ends[end].poll(now) {
                Output::Timeout(_) => return,
                Output::Transmit(_, bytes) => {
                    let after = self.flight[end].back().map_or(0, |(at, _)| *at);
                    let at = after.max(self.real + turn.delay_ms);
                    self.flight[end].push_back((at, bytes));
                }
                Output::PathLost(..) if end == 0 => self.link.ends[0].give_up(now),
                Output::Down(_) if end == 0 => self.down = self.down.or(Some(self.real)),
                _ => {}
            }
        }
    }
}

/// Runs with delayed frames, stalls, a cut, and clocks that run apart. Returns the number of TLPs that
/// the device carried out.
fn run_apart(turns: &[Turn], speeds: [u64; 2], survives: bool) -> u32 {
    let survive = if survives { Duration::from_ms(3_000) } else { Duration::ZERO };
    let mut link = Link::new(|settings| (settings.lease, settings.survive) = (LEASE, survive));
    let offsets = [5_000, 77];
    let clocks = [0, 1].map(|end| (speeds[end], offsets[end]));
    link.outputs = Default::default();
    let (flight, real, looked, down, carried_out) = Default::default();
    let mut apart = Apart { link, clocks, flight, real, looked, down, carried_out };
    for end in 0..2 {
        let now = apart.clock(end, 0);
        apart.link.ends[end].handle(now, Input::Connected);
    }
    let mut is_cut = false;
    for turn in turns {
        if turn.cut && !std::mem::replace(&mut is_cut, true) {
            let now = apart.clock(0, apart.looked[0]);
            apart.link.ends[0].handle(now, Input::Disconnected);
        }
        apart.turn(turn);
    }
    apart.carried_out
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]
    #[test]
    fn nothing_is_carried_out_after_the_host_gave_up(
        turns in turns(),
        speeds in [prop::sample::select(vec![900, 1_100]), prop::sample::select(vec![900, 1_100u64])],
        survives in any::<bool>(),
    ) {
        run_apart(&turns, speeds, survives);
    }
}

#[test]
fn requests_are_carried_out_while_both_ends_answer() {
    let turn = |end| Turn { end, wait_ms: 5, stall_ms: 0, delay_ms: 3, cut: false };
    let turns: Vec<Turn> = (0..1_000).map(|at| turn(at % 2)).collect();
    assert!(run_apart(&turns, [1_000; 2], false) > 400);
}
