//! The aggregation queue without a tunnel.

use super::*;
use bytes::Bytes;
use wire::tlp::{MemoryRequest, Run};
use wire::{Bdf, Duration, Tag};

fn write(length: usize) -> Tlp {
    Tlp::write_bytes(Bdf::default(), 0x1000, &Bytes::from(vec![0; length])).unwrap()
}

fn read() -> Tlp {
    Tlp::read_bytes(Bdf::default(), Tag::default(), 0x1000, 4).unwrap()
}

fn limits(headers: u32, data: u32) -> [Grant; 3] {
    [Grant { headers, data }; 3]
}

#[test]
fn everything_queued_goes_into_the_next_frame() {
    let mut queue = Aggregate::new(Policy::Adaptive, limits(100, 1000));
    (0..5).for_each(|_| queue.push(write(64)));
    let mut frame = BytesMut::new();
    assert_eq!(queue.fill(&mut frame, 65_535, |_, _| ()), 5);
    assert_eq!(frame.len(), 5 * (12 + 64));
    assert!(queue.is_empty());
}

#[test]
fn a_frame_is_never_longer_than_its_room() {
    let mut queue = Aggregate::new(Policy::Adaptive, limits(100, 1000));
    (0..5).for_each(|_| queue.push(write(64)));
    let mut frame = BytesMut::zeroed(12);
    assert_eq!(queue.fill(&mut frame, 2 * 76 + 75, |_, _| ()), 2);
    assert_eq!(frame.len(), 12 + 2 * 76);
    assert_eq!(queue.credit_stalls(), 0, "room is not credits");
}

#[test]
fn credits_hold_back_their_class_alone() {
    let mut queue = Aggregate::new(
        Policy::Adaptive,
        [
            Grant { headers: 10, data: 3 },
            Grant { headers: 0, data: 0 },
            Grant { headers: 10, data: 10 },
        ],
    );
    queue.push(read());
    queue.push(write(32));
    queue.push(write(32));
    let mut frame = BytesMut::new();
    assert_eq!(
        queue.fill(&mut frame, 1000, |_, _| ()),
        1,
        "posted passes the read; data for one only"
    );
    assert_eq!((queue.len(), queue.credit_stalls()), (2, 1));
    let more = Grant { headers: 10, data: 4 };
    assert!(!queue.grant([more, Grant { headers: 1, data: 0 }, more]), "backwards");
    let full = Grant { headers: 10, data: 10 };
    assert!(queue.grant([more, Grant { headers: 1, data: 0 }, full]));
    assert_eq!(queue.fill(&mut frame, 1000, |_, _| ()), 2);
}

#[test]
fn posted_credits_include_queued_tlps() {
    let mut queue = Aggregate::new(Policy::Adaptive, limits(10, 100));
    queue.push(write(64));
    queue.fill(&mut BytesMut::new(), 1000, |_, _| ());
    // One header credit and 4 data credits are used. Two waiting TLPs need 8 data credits, and
    // count as 2 more.
    queue.push(write(64));
    queue.push(write(64));
    queue.push(read());
    assert_eq!(queue.posted_credits(), Grant { headers: 7, data: 86 });
    let mut full = Aggregate::new(Policy::Adaptive, limits(1, 1));
    (0..3).for_each(|_| full.push(write(64)));
    assert_eq!(full.posted_credits(), Grant { headers: 0, data: 0 });
}

#[test]
fn limits_wrap_around() {
    let mut queue = Aggregate::new(Policy::Adaptive, limits(0, 0));
    queue.used = limits(u32::MAX, u32::MAX - 1);
    queue.limits = limits(u32::MAX, u32::MAX - 1);
    assert!(queue.grant(limits(1, 4)));
    queue.push(write(64));
    queue.push(write(64));
    queue.push(write(64));
    assert_eq!(queue.fill(&mut BytesMut::new(), 1000, |_, _| ()), 1, "data credits for one");
}

#[test]
fn per_tlp_never_shares_a_frame() {
    let mut queue = Aggregate::new(Policy::PerTlp, limits(100, 1000));
    (0..3).for_each(|_| queue.push(write(64)));
    for left in [2, 1, 0] {
        assert_eq!(queue.departure(Instant::ZERO, 76), Departure::Now);
        assert_eq!((queue.fill(&mut BytesMut::new(), 1000, |_, _| ()), queue.len()), (1, left));
    }
    assert_eq!(queue.departure(Instant::ZERO, 1000), Departure::Later);
}

#[test]
fn a_frame_that_waits_leaves_in_time_or_full() {
    let wait = Duration::from_us(1);
    let at = Instant::from_ns;
    let mut queue = Aggregate::new(Policy::Wait(wait), limits(100, 1000));
    queue.push(write(64));
    assert_eq!(queue.departure(at(100), 1000), Departure::At(at(1_100)));
    queue.push(write(64));
    assert_eq!(queue.departure(at(600), 1000), Departure::At(at(1_100)), "the first decides");
    assert_eq!(queue.departure(at(600), 2 * 76), Departure::Now, "full");
    assert_eq!(queue.departure(at(1_100), 50), Departure::Later, "no room");
    assert_eq!(queue.departure(at(1_100), 76), Departure::Now, "time is up");
    assert_eq!(queue.fill(&mut BytesMut::new(), 76, |_, _| ()), 1);
    assert_eq!(queue.departure(at(1_200), 1000), Departure::At(at(1_600)), "the second's own time");
    queue.clear();
    assert_eq!(queue.departure(at(2_000), 1000), Departure::Later);
    queue.push(write(64));
    assert_eq!(queue.departure(at(3_000), 1000), Departure::At(at(4_000)));
}

#[test]
fn a_frame_does_not_wait_for_what_has_no_credits() {
    let mut queue = Aggregate::new(Policy::Wait(Duration::from_us(1)), limits(2, 1000));
    queue.push(write(64));
    assert_eq!(queue.departure(Instant::ZERO, 200), Departure::At(Instant::from_ns(1_000)));
    (0..5).for_each(|_| queue.push(write(64)));
    assert_eq!(
        queue.departure(Instant::ZERO, 200),
        Departure::Now,
        "what has credits is as much as fits"
    );
    assert_eq!(queue.fill(&mut BytesMut::new(), 200, |_, _| ()), 2);
    assert_eq!(queue.departure(Instant::from_ns(5_000), 200), Departure::Later);
    assert!(queue.grant(limits(100, 1000)));
    assert_eq!(
        queue.departure(Instant::from_ns(5_000), 1000),
        Departure::Now,
        "they have waited enough"
    );
}

fn run(packets: usize) -> Tlp {
    let first = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1f00, 256).unwrap();
    let run = Run::of_writes(&first, packets * 256 - 64, 256);
    Tlp { run, ..Tlp::memory_write(first, vec![5; packets * 256 - 64].into()) }
}

proptest::proptest! {
    /// A run gives the same frames and uses the same credits as its packets do when queued one by
    /// one.
    #[test]
    fn a_run_leaves_as_its_packets_would(
        packets in proptest::collection::vec(1usize..12, 1..6),
        steps in proptest::collection::vec((12usize..3000, 0u32..8, 0u32..100), 1..20),
        policy in proptest::sample::select(vec![Policy::Adaptive, Policy::PerTlp, Policy::Wait(Duration::from_us(1))]),
    ) {
        let mut queues = [(); 2].map(|()| Aggregate::new(policy, limits(3, 20)));
        for count in packets {
            let tlp = if count == 1 { write(4) } else { run(count) };
            queues[0].push(tlp.clone());
            tlp.singles().for_each(|single| queues[1].push(single));
            queues.iter_mut().for_each(|queue| queue.push(read()));
        }
        let mut granted = Grant { headers: 3, data: 20 };
        for (number, (room, headers, data)) in steps.into_iter().enumerate() {
            granted = Grant { headers: granted.headers + headers, data: granted.data + data };
            let now = Instant::ZERO + Duration::from_ns(300 * number as u64);
            let outcomes = queues.each_mut().map(|queue| {
                let (mut frame, mut marks) = (BytesMut::new(), Vec::new());
                let granted = queue.grant([granted; 3]);
                let departure = queue.departure(now, room);
                let count = queue.fill(&mut frame, room, |mark, bytes| marks.push((mark, bytes.len())));
                let left = (queue.len(), queue.bytes(), queue.posted_credits(), queue.ready());
                (granted, departure, frame, marks, count, left, queue.credit_stalls())
            });
            proptest::prop_assert_eq!(&outcomes[0], &outcomes[1]);
        }
    }
}
