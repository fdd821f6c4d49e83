//! Hot resets, in order and out of order.

use super::super::resets::{ReceivedResets, RequestedResets, Step};
use super::*;

#[test]
fn a_reset_drops_everything_of_before() {
    let mut link = Link::up();
    link.ends[1].push(write(1, 64));
    link.ends[0].reset();
    link.settle(1000);
    assert_eq!(link.outputs[1], [Output::Reset]);
    assert_eq!(link.ends[0].pop(Ready::ALL), None, "sent before the reset");
    link.ends[1].reset_done();
    link.ends[1].push(write(2, 64));
    link.settle(1000);
    assert_eq!(link.ends[0].pop(Ready::ALL), Some(write(2, 64)));
}

#[test]
fn tlps_after_a_reset_wait_until_it_is_done() {
    let mut link = Link::up();
    link.ends[0].reset();
    link.ends[0].push(write(7, 64));
    // The stream delivers all frames at once.
    link.settle(100_000);
    assert_eq!(link.ends[1].pop(Ready::ALL), None, "the function is not reset yet");
    link.ends[1].reset_done();
    assert_eq!(link.ends[1].pop(Ready::ALL), Some(write(7, 64)));
}

#[test]
fn resets_may_follow_each_other() {
    let mut link = Link::up();
    link.ends[0].reset();
    link.ends[0].reset();
    link.settle(1000);
    link.ends[0].reset();
    link.ends[1].reset_done();
    link.ends[1].push(write(1, 64));
    link.settle(1000);
    assert_eq!(link.ends[0].pop(Ready::ALL), None, "sent before the second reset");
    link.ends[1].reset_done();
    link.ends[1].push(write(2, 64));
    link.settle(1000);
    assert_eq!(link.outputs[1], [Output::Reset, Output::Reset]);
    assert_eq!(link.ends[0].pop(Ready::ALL), Some(write(2, 64)));
    assert!(link.ends.iter().all(Tunnel::is_up));
}

#[test]
fn two_waiting_resets_cause_one_function_reset() {
    let mut link = Link::up();
    for number in 1..3 {
        link.ends[1].handle(link.now, Input::Received(frame(Control::Reset(number))));
    }
    link.settle(1000);
    assert_eq!(link.outputs[1], [Output::Reset]);
    link.ends[1].reset_done();
    assert_eq!(link.ends[1].session.control, [Control::ResetDone(2)]);
}

/// A host that has sent two resets, without an answer.
fn after_two_resets() -> Tunnel {
    let mut link = Link::up();
    for _ in 0..2 {
        link.ends[0].reset();
        link.ends[0].handle(link.now, Input::CanTransmit { bytes: 1000 });
        assert!(matches!(link.poll(0), Output::Transmit(..)));
    }
    let [host, _] = link.ends;
    host
}

/// Whether a host that receives `frames` and then a TLP keeps the TLP.
fn keeps(host: &mut Tunnel, frames: &[Control], sequence: u32) -> bool {
    for control in frames {
        host.handle(Instant::ZERO, Input::Received(frame(*control)));
    }
    let mut payload = Vec::new();
    write(1, 4).encode(&mut payload);
    host.handle(Instant::ZERO, Input::Received(framed(Kind::Tlps, sequence, &payload)));
    assert!(host.is_up());
    host.pop(Ready::ALL).is_some()
}

#[test]
fn answer_to_latest_reset_ends_wait_even_if_others_are_lost() {
    let done = Control::ResetDone;
    assert!(!keeps(&mut after_two_resets(), &[], 0), "none is done");
    assert!(!keeps(&mut after_two_resets(), &[done(1)], 0), "the second is not done");
    assert!(!keeps(&mut after_two_resets(), &[done(1), done(1)], 0), "one answer, twice");
    assert!(keeps(&mut after_two_resets(), &[done(2)], 0), "the first answer is lost");
    assert!(keeps(&mut after_two_resets(), &[done(2), done(1), done(2)], 0), "late, and twice");
    let mut host = after_two_resets();
    assert!(keeps(&mut host, &[done(1), done(2)], 0));
    assert!(keeps(&mut host, &[done(1)], 1), "what is late changes nothing");
}

#[test]
fn an_answer_to_no_reset_closes_the_link() {
    for number in [3, 0, u32::MAX] {
        let mut host = after_two_resets();
        host.handle(Instant::ZERO, Input::Received(frame(Control::ResetDone(number))));
        let output = host.poll(Instant::ZERO);
        assert!(matches!(output, Output::Down(Cause::Violation(_))), "{number}: {output:?}");
    }
}

#[test]
fn numbers_start_again_with_a_connection() {
    let mut link = Link::up();
    for _ in 0..2 {
        link.ends[0].reset();
        assert_eq!(link.ends[0].session.control, [Control::Reset(1)]);
        link.settle(1000);
        link.ends[1].reset_done();
        link.settle(1000);
        link.ends.iter_mut().for_each(|end| end.handle(Instant::ZERO, Input::Disconnected));
        link.connect();
        link.settle(1000);
    }
}

#[test]
fn reset_numbers_wrap() {
    let mut requested = RequestedResets::default();
    let mut received = ReceivedResets::default();
    let far = u32::MAX - 1;
    requested.skip(u64::from(far));
    assert_eq!(received.receive(far - 5), Step::Ignore, "half of all numbers ahead is behind");
    for step in [0x7fff_ffff, 0xffff_fffd] {
        assert_eq!(received.receive(step), Step::Reset { first: true });
        assert_eq!(received.done(), Some(step));
    }
    for number in [u32::MAX, 0, 1] {
        assert_eq!(requested.next(), number);
        assert_eq!(received.receive(number), Step::Reset { first: true });
        assert_eq!(received.done(), Some(number));
        assert_eq!(received.receive(number.wrapping_sub(1)), Step::Ignore);
        assert_eq!(received.receive(number), Step::Answer);
        assert_eq!(requested.done(number.wrapping_sub(1)), Ok(()));
        assert!(requested.is_pending());
        assert_eq!(requested.done(number), Ok(()));
        assert!(!requested.is_pending());
    }
}

/// A random event of resets and answers in transit.
#[derive(Clone, Copy, Debug)]
enum Happens {
    /// The host requests another reset.
    Ask,
    /// The device has executed the reset.
    Do,
    /// A reset arrives; with `true` it stays in transit and arrives again.
    Down(prop::sample::Index, bool),
    /// An answer arrives; with `true` it stays in transit and arrives again.
    Up(prop::sample::Index, bool),
    /// A reset is lost.
    LoseDown(prop::sample::Index),
    /// An answer is lost.
    LoseUp(prop::sample::Index),
}

/// Both ends, and messages in transit in any order.
#[derive(Default)]
struct Model {
    requested: RequestedResets,
    received: ReceivedResets,
    down: Vec<u32>,
    up: Vec<u32>,
    latest: u32,
    /// The number of the latest reset that the function has executed.
    done: u32,
}

impl Model {
    fn ask(&mut self) {
        self.latest = self.requested.next();
        self.down.push(self.latest);
    }

    fn arrive_down(&mut self, number: u32) {
        if self.received.receive(number) == Step::Answer {
            self.up.push(number);
        }
    }

    fn finish(&mut self) {
        if let Some(number) = self.received.done() {
            self.done = number;
            self.up.push(number);
        }
    }

    fn happens(&mut self, event: Happens) {
        let take = |way: &mut Vec<u32>, at: prop::sample::Index, again: bool| {
            (!way.is_empty()).then(|| {
                let at = at.index(way.len());
                if again { way[at] } else { way.swap_remove(at) }
            })
        };
        match event {
            Happens::Ask => self.ask(),
            Happens::Do => self.finish(),
            Happens::Down(at, again) => {
                if let Some(number) = take(&mut self.down, at, again) {
                    self.arrive_down(number);
                }
            }
            Happens::Up(at, again) => {
                if let Some(number) = take(&mut self.up, at, again) {
                    self.requested.done(number).expect("it was asked for");
                }
            }
            Happens::LoseDown(at) => drop(take(&mut self.down, at, false)),
            Happens::LoseUp(at) => drop(take(&mut self.up, at, false)),
        }
    }
}

fn happening() -> impl Strategy<Value = Happens> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        Just(Happens::Ask),
        Just(Happens::Do),
        (index(), any::<bool>()).prop_map(|(at, again)| Happens::Down(at, again)),
        (index(), any::<bool>()).prop_map(|(at, again)| Happens::Up(at, again)),
        index().prop_map(Happens::LoseDown),
        index().prop_map(Happens::LoseUp),
    ]
}

proptest! {
    /// The host waits until the function was reset. One reset that is not lost synchronises both
    /// ends, regardless of earlier events and late messages.
    #[test]
    fn lost_doubled_and_late_resets_do_not_desynchronise(
        happenings in prop::collection::vec(happening(), 0..60),
        late in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>()), 0..10),
    ) {
        let mut model = Model::default();
        for happens in happenings {
            model.happens(happens);
            prop_assert!(model.requested.is_pending() || model.done == model.latest);
        }
        model.ask();
        prop_assert!(model.requested.is_pending());
        model.arrive_down(model.latest);
        model.finish();
        prop_assert_eq!(model.requested.done(model.latest), Ok(()));
        for (down, at) in late {
            model.happens(if down { Happens::Down(at, true) } else { Happens::Up(at, true) });
            prop_assert!(!model.requested.is_pending() && !model.received.is_pending());
        }
    }
}
