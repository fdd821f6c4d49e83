//! Compares verification with the state diagrams of 802.3-2022, figure 99-8.

use tsn::preemption::verification::{Config, Output, Status, Verification};
use wire::{Duration, Instant};

fn at(ms: u64) -> Instant {
    Instant::ZERO + Duration::from_ms(ms)
}

const WAIT: fn(u64) -> Output = |ms| Output::Timeout(Some(at(ms)));
const REST: Output = Output::Timeout(None);

#[test]
fn the_defaults_are_those_of_the_standard() {
    let config = Config::default();
    assert_eq!((config.time, config.attempts), (Duration::from_ms(10), 3));
    assert!(config.enabled);
}

#[test]
fn an_answer_makes_it_active() {
    let mut port = Verification::new(Config::default());
    assert_eq!(port.status(), Status::Initial);
    assert_eq!(port.poll(at(0)), Output::SendVerify);
    assert_eq!(port.status(), Status::Verifying);
    assert_eq!(port.poll(at(0)), WAIT(10));
    assert_eq!(port.poll(at(9)), WAIT(10));
    assert!(!port.is_active());
    port.handle_respond();
    assert_eq!((port.status(), port.is_active()), (Status::Succeeded, true));
    assert_eq!(port.poll(at(20)), REST);
}

#[test]
fn three_attempts_without_an_answer_fail_until_the_link_comes_up_again() {
    let mut port = Verification::new(Config::default());
    for start in [0, 10, 20] {
        assert_eq!(port.poll(at(start)), Output::SendVerify);
        assert_eq!(port.poll(at(start)), WAIT(start + 10));
    }
    assert_eq!(port.status(), Status::Verifying);
    assert_eq!(port.poll(at(30)), REST);
    assert_eq!((port.status(), port.is_active()), (Status::Failed, false));
    port.handle_respond();
    assert_eq!(port.status(), Status::Failed, "too late");
    port.link_down();
    assert_eq!((port.poll(at(40)), port.status()), (REST, Status::Initial));
    port.link_up();
    assert_eq!(port.poll(at(50)), Output::SendVerify);
    port.handle_respond();
    assert!(port.is_active());
    port.link_down();
    assert!(!port.is_active(), "another neighbour may come");
}

#[test]
fn an_answer_after_the_time_and_before_the_next_question_counts() {
    let mut port = Verification::new(Config { attempts: 1, ..Config::default() });
    assert_eq!(port.poll(at(0)), Output::SendVerify);
    port.handle_respond();
    assert_eq!((port.poll(at(11)), port.status()), (REST, Status::Succeeded));
}

#[test]
fn an_answer_to_no_question_does_not_count() {
    let mut port = Verification::new(Config::default());
    port.handle_respond();
    assert_eq!(port.status(), Status::Initial);
}

#[test]
fn without_verification_it_is_active_at_once_and_still_answers() {
    let mut port = Verification::new(Config { enabled: false, ..Config::default() });
    assert_eq!((port.status(), port.is_active()), (Status::Disabled, true));
    assert_eq!(port.poll(at(0)), REST);
    port.handle_verify();
    port.handle_verify();
    assert_eq!(port.poll(at(1)), Output::SendRespond);
    assert_eq!(port.poll(at(1)), REST, "one answer for both");
}

#[test]
fn an_answer_goes_before_a_question_and_none_goes_over_a_dead_link() {
    let mut port = Verification::new(Config::default());
    port.handle_verify();
    assert_eq!(port.poll(at(0)), Output::SendRespond);
    assert_eq!(port.poll(at(0)), Output::SendVerify);
    port.link_down();
    port.handle_verify();
    port.link_up();
    assert_eq!(port.poll(at(5)), Output::SendVerify);
}

#[test]
#[should_panic(expected = "verify time of 129000.000us")]
fn the_time_has_a_range() {
    Verification::new(Config { time: Duration::from_ms(129), ..Config::default() });
}
