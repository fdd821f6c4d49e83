use super::*;
use bytes::Bytes;
use wire::tlp::{Class, MemoryRequest, Tlp};
use wire::{Bdf, Tag};

const GEN2_X4: LinkConfig = LinkConfig {
    generation: Generation::Gen2,
    width: 4,
    propagation: Duration::from_ns(1),
    downstream_port: PortLatency {
        transmit: Duration::from_ns(10),
        receive: Duration::from_ns(20),
    },
    upstream_port: PortLatency { transmit: Duration::from_ns(30), receive: Duration::from_ns(40) },
    buffer: Buffer { headers: [2; 3], data: [32; 3] },
};

fn write(bytes: usize) -> Tlp {
    let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1000, bytes).unwrap();
    Tlp::memory_write(request, Bytes::from(vec![0; bytes]))
}

#[test]
fn rates_are_those_of_the_specification() {
    // Gb/s per lane after encoding: 2, 4, 7.877, 15.754, 31.508.
    let kilobyte = |generation| Rate::new(generation, 1).duration(1024).as_ps();
    assert_eq!(kilobyte(Generation::Gen1), 4_096_000);
    assert_eq!(kilobyte(Generation::Gen2), 2_048_000);
    assert_eq!(kilobyte(Generation::Gen3), 1_040_000);
    assert_eq!(kilobyte(Generation::Gen4), 520_000);
    assert_eq!(kilobyte(Generation::Gen5), 260_000);
    assert_eq!(Rate::new(Generation::Gen3, 16).duration(1).as_ps(), 64, "rounded up");
}

#[test]
fn framing_is_that_of_pcie_bench() {
    // Framing and a header of 3 double words are 20 bytes, of 4 double words 24.
    assert_eq!(Direction::wire_bytes(&write(4)), 20 + 4);
    let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 1 << 40, 4).unwrap();
    assert_eq!(Direction::wire_bytes(&Tlp::memory_read(request)), 24);
}

#[test]
fn a_tlp_takes_pipeline_wire_and_pipeline() {
    let mut link = Link::new(&GEN2_X4);
    let now = Instant::from_ns(100);
    let start = link.down.send(now, write(100));
    assert_eq!(start, Instant::from_ns(110));
    // 120 bytes take 0.5 ns each.
    assert_eq!(link.down.next_ready(now), Some(Instant::from_ns(160)));
    let arrives = Instant::from_ns(100 + 10 + 1 + 60 + 40);
    assert_eq!(link.down.next_arrival(), Some(arrives));
    link.down.arrive(arrives, &mut link.up);
    // The ACK takes 8 bytes in the other direction.
    assert_eq!(link.up.load(Instant::from_ps(u64::MAX)).bytes, 8);
    let got = link.down.take(arrives, ::pcie::Ready::ALL, &mut link.up).unwrap();
    assert_eq!(got.started, Instant::from_ns(111));
    assert_eq!(
        link.up.load(Instant::from_ps(u64::MAX)).busy,
        Duration::from_ns(8),
        "and the UpdateFC as many"
    );
}

#[test]
fn credits_hold_back_and_return() {
    let long = LinkConfig { propagation: Duration::from_ns(1000), ..GEN2_X4 };
    let mut link = Link::new(&long);
    let mut now = Instant::ZERO;
    for _ in 0..2 {
        assert!(link.down.ready(now, 256).has(Class::Posted));
        link.down.send(now, write(256));
        now = link.down.next_ready(now).unwrap();
    }
    assert!(!link.down.ready(now, 256).has(Class::Posted), "no header credits");
    assert!(link.down.ready(now, 256).has(Class::NonPosted), "of this class alone");
    let arrives = link.down.next_arrival().unwrap();
    link.down.arrive(arrives, &mut link.up);
    assert!(link.down.take(arrives, ::pcie::Ready::ALL, &mut link.up).is_some());
    let back = link.down.next_ready(arrives).unwrap();
    // ACK and UpdateFC take 4 ns each, then the path upwards takes 30 + 1000 + 20 ns.
    assert_eq!(back, arrives + Duration::from_ns(8 + 1050));
    assert!(!link.down.ready(arrives, 256).has(Class::Posted));
    assert!(link.down.ready(back, 256).has(Class::Posted));
}

/// Sends writes with these payloads upwards until `end`, each one when the transmitter is free.
/// Returns the times at which the transmitter was free.
fn step_by_step(link: &mut Link, lengths: &[usize], end: Instant) -> Vec<Instant> {
    let mut times = vec![Instant::ZERO];
    for bytes in lengths {
        let now = *times.last().unwrap();
        if now > end {
            break;
        }
        link.up.ready(now, 256);
        link.up.send(now, write(*bytes));
        times.push(link.up.next_ready(now).unwrap());
    }
    times
}

#[test]
fn tlps_sent_ahead_leave_at_the_same_times() {
    let buffer = Buffer { headers: [8; 3], data: [128; 3] };
    let new = || Link::new(&LinkConfig { buffer, ..GEN2_X4 });
    let lengths = [256, 4, 100, 256, 256];
    let times = step_by_step(&mut new(), &lengths, Instant::from_ns(1000));
    // 276, 24, 120 and 276 bytes take 0.5 ns each.
    assert_eq!(times[..5], [0, 138, 150, 210, 348].map(Instant::from_ns));
    let sent_ahead = || {
        let mut link = new();
        assert_eq!(link.up.ready(Instant::ZERO, 256), ::pcie::Ready::ALL);
        link.up.send(Instant::ZERO, write(lengths[0]));
        // The first TLP arrives after 30 + 1 + 138 + 20 ns; an answer needs 10 + 1 + 40 ns more.
        let known = link.known_below(Some(Instant::from_ns(400)));
        assert_eq!(known, Some(Instant::from_ns(240)));
        let mut now = Instant::ZERO;
        for (bytes, at) in lengths[1..4].iter().zip(&times[1..]) {
            now = link.up.takes_ahead(now, known, 256).unwrap();
            assert_eq!(now, *at);
            link.up.send(now, write(*bytes));
        }
        assert_eq!(link.up.takes_ahead(now, known, 256), None, "an answer may come first");
        link
    };
    // At any time, the load and the state after a reset are as if nothing had been sent ahead.
    for ns in [0, 137, 138, 149, 150, 200, 210, 347] {
        let (now, later) = (Instant::from_ns(ns), Instant::from_ns(500));
        let (mut ahead, mut other) = (sent_ahead(), new());
        step_by_step(&mut other, &lengths[..4], now);
        assert_eq!(ahead.up.load(now), other.up.load(now), "{ns} ns");
        ahead.reset(now, |_| ());
        other.reset(now, |_| ());
        assert_eq!(ahead.up.load(later), other.up.load(later), "{ns} ns");
        for at in [now, later] {
            assert_eq!(ahead.up.next_start(at), other.up.next_start(at), "{ns} ns");
            assert_eq!(ahead.up.next_ready(at), other.up.next_ready(at), "{ns} ns");
        }
    }
}

#[test]
fn nothing_is_sent_ahead_without_credits_for_all() {
    let mut link = Link::new(&GEN2_X4);
    link.up.ready(Instant::ZERO, 256);
    link.up.send(Instant::ZERO, write(256));
    let second = link.up.takes_ahead(Instant::ZERO, None, 256).unwrap();
    link.up.send(second, write(256));
    assert_eq!(link.up.takes_ahead(second, None, 256), None, "no header credits");
    assert_eq!(link.up.next_credits(), None, "and nobody waits for them yet");
}
