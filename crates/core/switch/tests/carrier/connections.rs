//! Opening and closing connections.

use crate::carrier::network::Network;
use switch::raw::{Cause, Endpoint, Input, Output, Settings, refuse};
use wire::raw::{Body, Frame, Reason};
use wire::{Duration, Instant};

fn network() -> Network {
    Network::new([Settings::new(100), Settings::new(200)], 1)
}

const LONG: Duration = Duration::from_ms(5_000);

#[test]
fn opens_are_sent_again_until_answered() {
    let mut network = network();
    network.cut = true;
    network.run(Duration::from_ms(20));
    assert_eq!(network.connected, [0, 0]);
    network.cut = false;
    network.queue(0, 3);
    network.run(LONG);
    assert_eq!(network.connected, [1, 1]);
    assert_eq!(network.delivered[1].len(), 3);
    assert_eq!(network.ends[1].connection(), 100);
}

#[test]
fn the_accepting_end_may_speak_first() {
    let mut network = network();
    network.queue(1, 3);
    network.run(LONG);
    assert_eq!(network.delivered[0].len(), 3);
}

#[test]
fn an_open_that_nobody_answers_ends() {
    let mut network = network();
    network.cut = true;
    network.run(LONG);
    assert_eq!(network.down, [Some(Cause::Lost), None]);
    assert!(network.now.since(Instant::ZERO) < LONG + Duration::from_ms(1));
}

#[test]
fn endless_retransmission_ends() {
    let mut network = network();
    network.queue(0, 10);
    network.run(LONG);
    network.cut = true;
    network.queue(0, 10);
    let from = network.now;
    let sent = network.frames;
    network.run(LONG);
    assert_eq!(network.down[0], Some(Cause::Lost));
    assert!(network.frames - sent < 200, "{} frames into a dead line", network.frames - sent);
    assert!(network.now.since(from) <= LONG);
    assert_eq!(network.down[1], None, "silence alone is the tunnel's to judge");
}

#[test]
fn close_reaches_the_peer() {
    let mut network = network();
    network.queue(0, 1);
    network.run(LONG);
    network.handle(0, Input::Close);
    network.run(LONG);
    assert_eq!(network.down, [None, Some(Cause::Closed(Reason::Done))]);
    assert!(!network.ends[0].is_up() && !network.ends[1].is_up());
}

#[test]
fn a_restarted_peer_is_noticed_and_can_come_back() {
    let mut network = network();
    network.queue(0, 2);
    network.run(LONG);
    network.ends[0] = Endpoint::new(Settings::new(555));
    network.handle(0, Input::Open);
    network.run(Duration::from_us(50));
    assert_eq!(network.down[1], Some(Cause::Restarted));
    network.handle(1, Input::Accept);
    network.queue(0, 5);
    network.run(LONG);
    assert_eq!(network.ends[1].connection(), 555);
    assert_eq!(network.delivered[1].len(), 7);
}

#[test]
fn each_open_has_a_connection_of_its_own() {
    let mut network = network();
    network.run(LONG);
    network.handle(0, Input::Close);
    network.run(LONG);
    network.handle(1, Input::Accept);
    network.handle(0, Input::Open);
    network.queue(1, 4);
    network.run(LONG);
    assert_eq!(network.ends.each_ref().map(Endpoint::connection), [101, 101]);
    assert_eq!(network.delivered[0].len(), 4);
}

#[test]
fn smaller_segment_and_window_offers_are_used() {
    let small = Settings { segment: 500, window: 3, ..Settings::new(2) };
    let mut network = Network::new([Settings::new(1), small], 1);
    network.run(LONG);
    let room = network.ends.each_ref().map(|end| end.room(network.now));
    assert_eq!(room, [500, 500]);
    let now = network.now;
    for _ in 0..3 {
        network.ends[0].send(now, vec![1; 500]);
    }
    assert_eq!(network.ends[0].room(now), 0, "three frames are the window");
}

#[test]
fn a_network_that_takes_nothing_gets_nothing() {
    let mut end = Endpoint::new(Settings::new(1));
    let now = Instant::from_ns(5);
    end.handle(now, Input::CanTransmit { frames: 0 });
    end.handle(now, Input::Open);
    assert!(matches!(end.poll(now), Output::Timeout(Some(_))));
    end.handle(now, Input::CanTransmit { frames: 1 });
    assert!(matches!(end.poll(now), Output::Transmit(_)));
    assert!(matches!(end.poll(now), Output::Timeout(Some(_))));
}

#[test]
fn open_without_endpoint_is_refused() {
    let mut open = Endpoint::new(Settings::new(77));
    open.handle(Instant::ZERO, Input::Open);
    let Output::Transmit(asked) = open.poll(Instant::ZERO) else { panic!("no Open") };
    let answer = refuse(&asked, Reason::Busy).expect("an Open deserves an answer");
    let frame = Frame::decode(&answer).expect("our own frame");
    assert_eq!((frame.connection, frame.body), (77, Body::Close(Reason::Busy)));
    assert_eq!(refuse(&answer, Reason::Busy), None, "nobody answers a Close");
    open.handle(Instant::ZERO, Input::Received(answer.into()));
    assert_eq!(open.poll(Instant::ZERO), Output::Down(Cause::Closed(Reason::Busy)));
}
