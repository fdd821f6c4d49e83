//! An aggregation policy of one's own, compared with the adaptive one.
//!
//! The queue of a link asks its policy when the next frame of TLPs leaves. `Pairs` waits until two
//! TLPs fill a frame together, for 2 us at most: fewer frames, more latency.

use bytes::Bytes;
use pcie::Ready;
use switch::aggregate::{Aggregation, Departure, Policy, Queued};
use switch::tunnel::{Input, Output, Settings, Tunnel};
use wire::frame::Role;
use wire::tlp::{Class, Tlp};
use wire::{Bdf, Duration, Instant};

const PATIENCE: Duration = Duration::from_us(2);

#[derive(Debug, Default)]
struct Pairs {
    /// When the oldest queued TLP was queued.
    since: Option<Instant>,
}

impl Aggregation for Pairs {
    fn departure(&mut self, now: Instant, queued: &Queued) -> Departure {
        let waiting: usize = queued.packets.iter().sum();
        if waiting == 0 {
            return Departure::Later;
        }
        let until = *self.since.get_or_insert(now) + PATIENCE;
        let leaves = waiting >= 2 || queued.fills_frame() || now >= until;
        if leaves { Departure::Now } else { Departure::At(until) }
    }

    fn removed(&mut self, _: Class, _: usize) {
        self.since = None;
    }

    fn max_packets(&self) -> usize {
        2
    }
}

/// What a policy made of the same TLPs.
#[derive(Debug)]
struct Outcome {
    frames: u64,
    tlps_per_frame: u64,
    longest_wait: Duration,
}

/// Sends 100 writes of 64 bytes, one per microsecond, over a network that always has room.
fn measure(policy: Policy) -> Outcome {
    let mut now = Instant::ZERO;
    let settings = Settings { aggregation: policy, ..Settings::new(Role::Host, 1) };
    let mut near = Tunnel::new(settings);
    let mut far = Tunnel::new(Settings::new(Role::Device, 2));
    for end in [&mut near, &mut far] {
        end.handle(now, Input::Connected);
        end.handle(now, Input::CanTransmit { bytes: 1 << 20 });
    }
    carry(now, &mut near, &mut far);
    carry(now, &mut far, &mut near);

    let (mut sent, mut received, mut longest_wait) = (Vec::new(), 0, Duration::ZERO);
    while received < 100 {
        if sent.len() < 100 {
            let (address, data) = (0xe000_0000 + 64 * sent.len() as u64, Bytes::from(vec![0; 64]));
            near.push(Tlp::write_bytes(Bdf::new(0, 1, 0), address, &data).expect("64 bytes"));
            sent.push(now);
        }
        carry(now, &mut near, &mut far);
        while far.pop(Ready::ALL).is_some() {
            longest_wait = longest_wait.max(now - sent[received]);
            received += 1;
        }
        now += Duration::from_us(1);
    }
    let counters = near.counters();
    let frames = counters.frames_sent;
    Outcome { frames, tlps_per_frame: counters.tlps_sent / frames, longest_wait }
}

/// Carries the bytes of one end to the other one.
fn carry(now: Instant, from: &mut Tunnel, to: &mut Tunnel) {
    from.handle(now, Input::CanTransmit { bytes: 1 << 20 });
    loop {
        match from.poll(now) {
            Output::Transmit(_, bytes) => to.handle(now, Input::Received(bytes)),
            Output::Timeout(_) => return,
            _ => {}
        }
    }
}

fn main() {
    for (name, policy) in [("adaptive", Policy::Adaptive), ("pairs", pairs())] {
        let Outcome { frames, tlps_per_frame, longest_wait } = measure(policy);
        println!("{name:9} {frames:4} frames, {tlps_per_frame} TLPs per frame, {longest_wait}");
    }
}

/// `Own` takes a function that makes the policy for each connection.
fn pairs() -> Policy {
    Policy::Own(|| Box::new(Pairs::default()))
}

#[test]
fn pairs_need_half_the_frames_and_wait() {
    let (adaptive, pairs) = (measure(Policy::Adaptive), measure(pairs()));
    assert_eq!((adaptive.frames, pairs.frames), (100, 50));
    assert_eq!((adaptive.tlps_per_frame, pairs.tlps_per_frame), (1, 2));
    assert_eq!((adaptive.longest_wait, pairs.longest_wait), (Duration::ZERO, Duration::from_us(1)));
}
