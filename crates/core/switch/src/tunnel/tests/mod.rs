//! Two ends that are connected by a stream, which tests can cut, delay and damage.

mod greeting;
mod lease;
mod paths;
mod reports;
mod resets;
mod session;
mod survival;

use super::*;
use proptest::prelude::*;
use wire::frame::{self, Grant, Hello, HostAfter, MoveStatus, Role};
use wire::tlp::{Class, TraceId};
use wire::{Bdf, Duration, Tag};

/// A frame's bytes.
fn framed(kind: Kind, sequence: u32, payload: &[u8]) -> Bytes {
    let header = Header { length: payload.len() as u16, kind, sequence, acknowledged: 0 };
    Bytes::from([&header.encode()[..], payload].concat())
}

fn frame(control: Control) -> Bytes {
    let mut payload = Vec::new();
    control.encode(&mut payload);
    framed(control.kind(), 0, &payload)
}

struct Link {
    ends: [Tunnel; 2],
    outputs: [Vec<Output>; 2],
    now: Instant,
}

fn write(fill: u8, length: usize) -> Tlp {
    Tlp::write_bytes(Bdf::default(), 0x1000, &Bytes::from(vec![fill; length])).unwrap()
}

impl Link {
    fn new(change: impl Fn(&mut Settings)) -> Self {
        let end = |role| {
            let mut settings = Settings::new(role, 1);
            change(&mut settings);
            Tunnel::new(settings)
        };
        let ends = [end(Role::Host), end(Role::Device)];
        Self { ends, outputs: Default::default(), now: Instant::ZERO }
    }

    /// Two ends that have exchanged greetings, which may be rejected.
    fn joined(change: impl Fn(&mut Settings)) -> Self {
        let mut link = Self::new(change);
        link.connect();
        link.settle(1000);
        link
    }

    /// The next output of an end. The bytes of the output are lost.
    fn poll(&mut self, end: usize) -> Output {
        self.ends[end].poll(self.now)
    }

    fn connect(&mut self) {
        for end in &mut self.ends {
            end.handle(self.now, Input::Connected);
        }
    }

    /// Passes bytes in pieces of `cut` bytes until both ends are idle.
    fn settle(&mut self, cut: usize) {
        loop {
            let mut quiet = true;
            for from in 0..2 {
                self.ends[from].handle(self.now, Input::CanTransmit { bytes: 100_000 });
                loop {
                    match self.ends[from].poll(self.now) {
                        Output::Timeout(_) => break,
                        Output::Transmit(_, bytes) => {
                            quiet = false;
                            for piece in bytes.chunks(cut) {
                                let piece = Bytes::copy_from_slice(piece);
                                self.ends[1 - from].handle(self.now, Input::Received(piece));
                            }
                        }
                        output => self.outputs[from].push(output),
                    }
                }
            }
            if quiet {
                return;
            }
        }
    }

    fn up() -> Self {
        let mut link = Self::joined(|_| {});
        assert!(link.ends.iter().all(Tunnel::is_up));
        link.outputs = Default::default();
        link
    }

    fn down_cause(&self, end: usize) -> Option<&Cause> {
        self.outputs[end].iter().find_map(|output| match output {
            Output::Down(cause) => Some(cause),
            _ => None,
        })
    }
}

#[test]
fn greeting_brings_both_ends_up() {
    let mut link = Link::new(|_| {});
    link.connect();
    link.settle(1);
    assert!(matches!(link.outputs[0][..], [Output::Up(Hello { role: Role::Device, .. })]));
    assert!(matches!(link.outputs[1][..], [Output::Up(Hello { role: Role::Host, .. })]));
}

#[test]
fn queued_tlps_share_one_frame() {
    let mut link = Link::up();
    (0..10).for_each(|i| link.ends[0].push(write(i, 64)));
    link.settle(1000);
    let counters = link.ends[0].counters();
    assert_eq!((counters.frames_sent, counters.tlps_sent), (1, 10));
    for i in 0..10 {
        assert_eq!(link.ends[1].pop(Ready::ALL), Some(write(i, 64)));
    }
}

#[test]
fn nothing_leaves_before_the_network_can_take_it() {
    let mut link = Link::up();
    link.ends[0].handle(link.now, Input::CanTransmit { bytes: 0 });
    link.ends[0].push(write(1, 64));
    assert!(matches!(link.poll(0), Output::Timeout(_)));
    link.ends[0].handle(link.now, Input::CanTransmit { bytes: 100 });
    assert!(matches!(link.poll(0), Output::Transmit(_, bytes) if bytes.len() == 88));
}

#[test]
fn frames_follow_each_other_in_the_stream() {
    let mut link = Link::up();
    link.ends[0].report_frames(true);
    let mut lengths = Vec::new();
    for fill in 0..3 {
        link.ends[0].handle(link.now, Input::CanTransmit { bytes: 100 });
        link.ends[0].push(write(fill, 64));
        link.ends[0].push(write(fill, 64));
        let Output::Transmit(_, bytes) = link.poll(0) else { panic!() };
        lengths.push(bytes.len());
        link.ends[1].handle(link.now, Input::Received(bytes));
    }
    assert_eq!(lengths, [88; 3]);
    assert_eq!(link.ends[1].counters().tlps_received, 3);
    let begins: Vec<_> = reports::frames(&mut link.ends[0]).iter().map(|f| f.begin).collect();
    assert!(begins.windows(2).all(|pair| pair[1] == pair[0] + 88), "{begins:?}");
}

#[test]
fn credits_stop_the_sender_and_consumption_lets_it_go_on() {
    let mut link = Link::joined(|s| s.window[0] = Grant { headers: 4, data: 1000 });
    (0..10).for_each(|i| link.ends[0].push(write(i, 64)));
    link.settle(1000);
    assert_eq!(link.ends[1].counters().tlps_received, 4);
    assert_eq!(link.ends[0].queue().len(), 6);
    for i in 0..10 {
        assert_eq!(link.ends[1].pop(Ready::ALL), Some(write(i, 64)), "{i}");
        link.settle(1000);
    }
    assert_eq!(link.ends[1].pop(Ready::ALL), None);
}

#[test]
fn a_sender_without_credits_loses_the_link() {
    let mut link = Link::joined(|s| s.window[0] = Grant { headers: 4, data: 1000 });
    link.ends[0].session.queue.grant([Grant { headers: 2000, data: 100_000 }; 3]);
    (0..10).for_each(|i| link.ends[0].push(write(i, 64)));
    link.settle(1000);
    assert_eq!(link.down_cause(1), Some(&Cause::Violation("a TLP beyond the granted credits")));
}

#[test]
fn silence_ends_the_link_and_keepalives_prevent_it() {
    let mut link = Link::up();
    for _ in 0..30 {
        link.now += Duration::from_ms(100);
        link.settle(1000);
    }
    assert!(link.ends.iter().all(Tunnel::is_up), "keepalives were exchanged");
    let deaf = link.now + Duration::from_ms(800);
    assert_eq!(link.ends[0].poll(deaf), Output::Down(Cause::Lost));
}

#[test]
fn reset_from_device_side_is_a_violation() {
    let mut link = Link::up();
    link.ends[1].reset();
    link.settle(1000);
    assert_eq!(link.down_cause(0), Some(&Cause::Violation("a reset from the device")));
}

#[test]
fn packets_do_not_overtake_a_reset_that_finds_no_room() {
    let mut link = Link::up();
    link.ends[0].echo(1);
    link.ends[0].reset();
    link.ends[0].push(write(1, 4));
    // There is room for the reset, but not for the echo request before it.
    link.ends[0].handle(link.now, Input::CanTransmit { bytes: 28 - 9 });
    assert!(matches!(link.poll(0), Output::Timeout(_)));
    link.settle(1000);
    link.ends[1].reset_done();
    assert_eq!(link.ends[1].pop(Ready::ALL), Some(write(1, 4)));
}

#[test]
fn a_stream_without_room_does_not_make_the_timer_spin() {
    let mut link = Link::up();
    link.ends[0].handle(link.now, Input::CanTransmit { bytes: 0 });
    let late = link.now + Duration::from_ms(150);
    let Output::Timeout(Some(at)) = link.ends[0].poll(late) else { panic!("no timer") };
    assert!(at > late, "the keepalive cannot leave before there is room");
}

#[test]
fn a_closed_link_keeps_nothing_of_what_still_comes() {
    let mut link = Link::up();
    link.ends[1].handle(link.now, Input::Received(Bytes::from_static(&[0xff; 12])));
    assert!(matches!(link.poll(1), Output::Down(Cause::Frame(_))));
    for _ in 0..100 {
        link.ends[1].handle(link.now, Input::Received(Bytes::from_static(&[0xff; 1000])));
    }
    assert!(link.ends[1].paths[0].stream.is_empty());
}

#[test]
fn small_windows_never_starve_a_large_packet() {
    let mut link = Link::joined(|s| s.window[0] = Grant { headers: 100, data: 256 });
    // TLPs that need less than a quarter of the window, and TLPs that need the whole window.
    for length in [64, 4096, 16, 4096] {
        link.ends[0].push(write(3, length));
        link.settle(1000);
        assert_eq!(link.ends[1].pop(Ready::ALL), Some(write(3, length)));
        link.settle(1000);
    }
}

#[test]
fn windows_that_no_packet_fits_are_refused() {
    let link = Link::joined(|s| s.window[2] = Grant { headers: 100, data: 255 });
    assert!(matches!(link.down_cause(1), Some(Cause::Violation(_))));
}

#[test]
fn echo_and_goodbye() {
    let mut link = Link::up();
    link.ends[0].echo(99);
    link.settle(1000);
    assert_eq!(link.outputs[0], [Output::EchoReply(99)]);
    link.ends[1].goodbye();
    link.settle(1000);
    assert_eq!(link.down_cause(0), Some(&Cause::Goodbye));
}

#[test]
fn only_probes_move_devices() {
    for end in [0, 1] {
        let mut link = Link::up();
        link.ends[end].move_to(7);
        link.settle(1000);
        let cause = Cause::Violation("Move from a host");
        assert_eq!(link.down_cause(1 - end), Some(&cause), "a move by end {end}");
    }
    let mut link = Link::joined(|settings| {
        if settings.role == Role::Host {
            settings.role = Role::Probe;
        }
    });
    link.outputs = Default::default();
    link.ends[0].move_to(7);
    link.settle(1000);
    assert_eq!(link.outputs[1], [Output::Move(7)]);
    let (status, host) = (MoveStatus::Fixed, HostAfter::Stays);
    let answer = Moved { status, host, awaited: false, from: 3, to: 3 };
    link.ends[1].answer_move(answer);
    link.settle(1000);
    assert_eq!(link.outputs[0], [Output::Moved(answer)]);
    link.ends[1].answer_move(answer);
    link.settle(1000);
    assert_eq!(link.down_cause(0), Some(&Cause::Violation("Moved without a move")));
}

/// The number of queued answers is limited, even if the far side does not read them.
#[test]
fn answers_that_nobody_reads_are_bounded() {
    let mut link = Link::up();
    link.ends[1].handle(link.now, Input::CanTransmit { bytes: 0 });
    for number in 1..1000 {
        link.ends[1].handle(link.now, Input::Received(frame(Control::Reset(number))));
        assert_eq!(link.poll(1), Output::Reset);
        link.ends[1].reset_done();
    }
    assert_eq!(link.ends[1].session.control, [Control::ResetDone(999)]);
    // Waiting credits are merged.
    let mut link = Link::joined(|s| s.window[0] = Grant { headers: 4, data: 1000 });
    for _ in 0..100 {
        link.ends[0].push(write(1, 64));
        link.ends[0].handle(link.now, Input::CanTransmit { bytes: 1000 });
        let Output::Transmit(_, bytes) = link.poll(0) else { panic!("no credits") };
        link.ends[1].handle(link.now, Input::Received(bytes));
        link.ends[1].handle(link.now, Input::CanTransmit { bytes: 0 });
        assert!(link.ends[1].pop(Ready::ALL).is_some());
        assert!(matches!(link.poll(1), Output::Timeout(_)));
        assert!(link.ends[1].session.control.len() <= 1, "{:?}", link.ends[1].session.control);
        // The test sets the credit limits of the host directly.
        let limits = [Grant { headers: 1 << 20, data: 1 << 20 }; 3];
        link.ends[0].session.queue.grant(limits);
    }
    let mut link = Link::up();
    (0..1000).for_each(|number| link.ends[0].echo(number));
    assert!(link.ends[0].paths[0].control.len() <= 64, "{}", link.ends[0].paths[0].control.len());
}

#[test]
fn counters_go_on_over_connections() {
    let mut link = Link::up();
    for connection in 1..4 {
        link.ends[0].push(write(1, 64));
        link.settle(1000);
        let (sent, received) = (link.ends[0].counters(), link.ends[1].counters());
        assert_eq!((sent.tlps_sent, received.tlps_received), (connection, connection));
        assert_eq!((sent.connections, received.connections), (connection, connection));
        assert_eq!(sent.bytes_sent, received.bytes_received);
        link.ends.iter_mut().for_each(|end| end.handle(Instant::ZERO, Input::Disconnected));
        link.connect();
        link.settle(1000);
    }
    // A loss is reported once.
    link.ends[0].push(write(1, 64));
    link.ends[0].handle(Instant::ZERO, Input::Disconnected);
    assert_eq!((link.ends[0].take_posted_lost(), link.ends[0].take_posted_lost()), (1, 0));
}

#[test]
fn host_group_is_in_greeting() {
    let link = Link::joined(|settings| settings.group = 9);
    assert!(matches!(link.outputs[1][..], [Output::Up(Hello { group: 9, .. })]));
    assert!(matches!(link.outputs[0][..], [Output::Up(Hello { group: 0, .. })]));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn every_tlp_arrives_once_and_in_order(
        lengths in prop::collection::vec(1usize..=64, 1..200),
        cut in 1usize..5000,
        headers in 1u32..20,
    ) {
        let mut link = Link::new(|s| s.window[0] = Grant { headers, data: 300 });
        link.connect();
        link.settle(cut);
        let mut sent = lengths.iter().enumerate().map(|(i, dw)| write(i as u8, dw * 4));
        let mut wanted = lengths.iter().enumerate().map(|(i, dw)| write(i as u8, dw * 4));
        let mut got = 0;
        for _ in 0..lengths.len() * 4 {
            if let Some(tlp) = sent.next() {
                link.ends[0].push(tlp);
            }
            link.settle(cut);
            if let Some(tlp) = link.ends[1].pop(Ready::ALL) {
                prop_assert_eq!(Some(tlp), wanted.next());
                got += 1;
            }
        }
        prop_assert_eq!(got, lengths.len());
    }

    #[test]
    fn hostile_streams_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..300), at in 0usize..3) {
        let mut link = Link::up();
        for piece in bytes.chunks(at * 50 + 1) {
            link.ends[1].handle(link.now, Input::Received(Bytes::copy_from_slice(piece)));
        }
        link.settle(1000);
        prop_assert!(link.ends[1].queue().ready().has(Class::Posted));
    }
}
