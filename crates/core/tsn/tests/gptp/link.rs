//! Pdelay: when a link is asCapable.

use tsn::gptp::ClockIdentity;
use tsn::gptp::best_master::PortIdentity;
use tsn::gptp::link_delay::LinkDelay;
use wire::Duration;

/// The propagation delay, in picoseconds.
const DELAY: i64 = 50_000;

fn end(clock: u64) -> LinkDelay {
    let own = PortIdentity { clock: ClockIdentity(clock), port: 1 };
    LinkDelay::new(own, Duration::from_ns(800))
}

/// A request at `at` and its answer, 1 us later.
fn exchange(a: &mut LinkDelay, b: &mut LinkDelay, at: i64) {
    let request = a.request(0);
    assert!(a.sent(&request, at).is_none());
    let response = b.handle(&request, at + DELAY).expect("a response");
    let back = at + DELAY + 1_000_000;
    assert!(a.handle(&response, back + DELAY).is_none());
    let follow_up = b.sent(&response, back).expect("a follow-up");
    assert!(a.handle(&follow_up, back + DELAY).is_none());
}

/// Nine lost answers in a row are allowed, the tenth is not (allowedLostResponses, 11.5.3). An
/// answer is lost when the next request leaves.
#[test]
fn nine_lost_answers_are_allowed() {
    let (mut a, mut b) = (end(1), end(2));
    let second = 1_000_000_000_000;
    assert!(!a.is_able());
    exchange(&mut a, &mut b, 0);
    exchange(&mut a, &mut b, second);
    assert!(a.is_able());
    assert_eq!(a.delay(), Some(DELAY));
    a.request(0);
    for lost in 1..=9 {
        a.request(0);
        assert!(a.is_able(), "{lost}");
    }
    a.request(0);
    assert!(!a.is_able(), "the tenth");
    a.request(0);
    assert!(!a.is_able());
    exchange(&mut a, &mut b, 20 * second);
    assert!(a.is_able());
}
