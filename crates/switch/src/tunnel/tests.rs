//! Two ends joined by a stream that a test can cut, delay and spoil.

use super::*;
use proptest::prelude::*;
use wire::tlp::{Class, MemoryRequest};
use wire::{Bdf, Tag};

struct Link {
    ends: [Tunnel; 2],
    outputs: [Vec<Output>; 2],
    now: Instant,
}

fn write(fill: u8, length: usize) -> Tlp {
    let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1000, length);
    Tlp::memory_write(request.unwrap(), Bytes::from(vec![fill; length]))
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

    fn connect(&mut self) {
        for end in &mut self.ends {
            end.handle(self.now, Input::Connected);
        }
    }

    /// Carries bytes in pieces of `cut` until both ends are quiet.
    fn settle(&mut self, cut: usize) {
        loop {
            let mut quiet = true;
            for from in 0..2 {
                self.ends[from].handle(self.now, Input::CanTransmit { bytes: 100_000 });
                loop {
                    match self.ends[from].poll(self.now) {
                        Output::Timeout(_) => break,
                        Output::Transmit(bytes) => {
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
        let mut link = Self::new(|_| {});
        link.connect();
        link.settle(1000);
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
fn what_queued_up_shares_one_frame() {
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
    assert!(matches!(link.ends[0].poll(link.now), Output::Timeout(_)));
    link.ends[0].handle(link.now, Input::CanTransmit { bytes: 100 });
    assert!(matches!(link.ends[0].poll(link.now), Output::Transmit(bytes) if bytes.len() == 88));
}

#[test]
fn credits_stop_the_sender_and_consumption_lets_it_go_on() {
    let mut link = Link::new(|s| s.window[0] = Grant { headers: 4, data: 1000 });
    link.connect();
    link.settle(1000);
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
    let mut link = Link::new(|s| s.window[0] = Grant { headers: 4, data: 1000 });
    link.connect();
    link.settle(1000);
    link.ends[0].queue.grant([Grant { headers: 2000, data: 100_000 }; 3]);
    (0..10).for_each(|i| link.ends[0].push(write(i, 64)));
    link.settle(1000);
    assert_eq!(link.down_cause(1), Some(&Cause::Violation("a TLP without credits")));
}

#[test]
fn other_versions_and_strangers_are_told_apart() {
    let mut device = Tunnel::new(Settings::new(Role::Device, 1));
    device.handle(Instant::ZERO, Input::Connected);
    let request = Bytes::from_static(b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    device.handle(Instant::ZERO, Input::Received(request));
    assert!(matches!(device.poll(Instant::ZERO), Output::Down(Cause::Frame(_))));

    let mut device = Tunnel::new(Settings::new(Role::Device, 1));
    device.handle(Instant::ZERO, Input::Connected);
    device.handle(Instant::ZERO, Input::CanTransmit { bytes: 1000 });
    let mut hello = vec![0, 12, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    hello.extend_from_slice(b"FARLANE\0\x00\x02\x01\x00");
    device.handle(Instant::ZERO, Input::Received(Bytes::from(hello)));
    assert_eq!(device.poll(Instant::ZERO), Output::Down(Cause::Version(1, 2)));
    let Output::Transmit(reject) = device.poll(Instant::ZERO) else { panic!("no reject") };
    assert_eq!(reject[2], frame::Kind::Reject as u8, "the other version is told why");
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
fn what_follows_a_reset_waits_until_it_is_done() {
    let mut link = Link::up();
    link.ends[0].reset();
    link.ends[0].push(write(7, 64));
    // Everything in one go, as a stream may bring it.
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
fn only_the_host_resets() {
    let mut link = Link::up();
    link.ends[1].reset();
    link.settle(1000);
    assert_eq!(link.down_cause(0), Some(&Cause::Violation("a reset from below")));
}

#[test]
fn packets_do_not_overtake_a_reset_that_finds_no_room() {
    let mut link = Link::up();
    link.ends[0].echo(1);
    link.ends[0].reset();
    link.ends[0].push(write(1, 4));
    // Room for a TLP frame and for the reset, not for the echo before it.
    link.ends[0].handle(link.now, Input::CanTransmit { bytes: 28 - 9 });
    assert!(matches!(link.ends[0].poll(link.now), Output::Timeout(_)));
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
    assert!(matches!(link.ends[1].poll(link.now), Output::Down(Cause::Frame(_))));
    for _ in 0..100 {
        link.ends[1].handle(link.now, Input::Received(Bytes::from_static(&[0xff; 1000])));
    }
    assert!(link.ends[1].stream.is_empty());
}

#[test]
fn small_windows_never_starve_a_large_packet() {
    let mut link = Link::new(|s| s.window[0] = Grant { headers: 100, data: 256 });
    link.connect();
    link.settle(1000);
    // Less than a quarter of the window, and then a packet that needs it all.
    for length in [64, 4096, 16, 4096] {
        link.ends[0].push(write(3, length));
        link.settle(1000);
        assert_eq!(link.ends[1].pop(Ready::ALL), Some(write(3, length)));
        link.settle(1000);
    }
}

#[test]
fn windows_that_no_packet_fits_are_refused() {
    let mut link = Link::new(|s| s.window[2] = Grant { headers: 100, data: 255 });
    link.connect();
    link.settle(1000);
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
    let mut link = Link::up();
    link.ends[0].move_to(7);
    link.settle(1000);
    assert_eq!(link.down_cause(1), Some(&Cause::Violation("a move by no probe")));

    let mut link = Link::up();
    link.ends[1].move_to(7);
    link.settle(1000);
    assert_eq!(link.down_cause(0), Some(&Cause::Violation("a move by no probe")));

    let mut link = Link::new(|settings| {
        if settings.role == Role::Host {
            settings.role = Role::Probe;
        }
    });
    link.connect();
    link.settle(1000);
    link.outputs = Default::default();
    link.ends[0].move_to(7);
    link.settle(1000);
    assert_eq!(link.outputs[1], [Output::Move(7)]);
}

#[test]
fn a_host_says_its_group() {
    let mut link = Link::new(|settings| settings.group = 9);
    link.connect();
    link.settle(1000);
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
