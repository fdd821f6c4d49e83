//! Tests of depths and positions with known values.

use super::series::MOST_POINTS;
use super::*;
use wire::Instant;

const DRIVE: Bdf = Bdf::new(3, 0, 0);

fn sq(at: u64, queue: u16, outstanding: u64, tail: u32, head: u32) -> RingState {
    let (tail, head) = (Some(tail), Some(head));
    let ring = Ring::Submission { entries: 8, outstanding, tail, head };
    RingState { at: Instant::from_ns(at), device: DRIVE, queue, ring }
}

fn cq(at: u64, tail: u32, head: u32, phase: bool) -> RingState {
    let (tail, head) = (Some(tail), Some(head));
    let ring = Ring::Completion { entries: 4, tail, head, phase };
    RingState { at: Instant::from_ns(at), device: DRIVE, queue: 1, ring }
}

fn rings(selection: &Selection, states: &[RingState], end: u64) -> Rings {
    let mut rings = Rings::new(selection);
    for state in states {
        rings.observe(&Finding::Event(Event::Ring(*state)));
    }
    rings.now = end;
    rings.observe(&Finding::End { cut: false, young: 0 });
    rings
}

const STATES: fn() -> Vec<RingState> = || {
    vec![
        sq(100, 1, 0, 6, 6),
        sq(200, 1, 4, 2, 6),
        sq(250, 2, 1, 1, 0),
        cq(260, 3, 0, true),
        cq(300, 0, 3, true),
        sq(300, 1, 1, 2, 2),
        cq(350, 1, 1, false),
        sq(700, 1, 0, 2, 2),
    ]
};

#[test]
fn depths_are_weighted_by_time() {
    let rings = rings(&Selection::default(), &STATES(), 1000);
    let queue_rings =
        |number: u16| rings.queues().find(|(_, queue, _)| *queue == number).unwrap().2;
    // 4 commands for 100 ns and 1 command for 400 ns, of 900 ns.
    let one = queue_rings(1).depth();
    let (p50, p99, max) = (1, 4, 4);
    assert_eq!(one, QueueDepth { life_ns: 900, busy_ns: 500, p50, p99, max, mean: 1.6 });
    // Queue 2 has one command outstanding until the end.
    assert_eq!((queue_rings(2).depth().busy_ns, queue_rings(2).depth().max), (750, 1));
    // In all: 4 for 50 ns, 5 for 50 ns, 2 for 400 ns, 1 for 300 ns: 1550 / 800.
    let all = rings.all().depth();
    assert_eq!((all.busy_ns, all.p50, all.max, all.mean), (800, 2, 5, 1.938));
    let outstanding = rings.all().series.points.iter().map(|point| point.outstanding);
    assert_eq!(outstanding.collect::<Vec<_>>(), [0, 4, 5, 2, 1]);
}

#[test]
fn rings_wrap_and_fill() {
    let rings = rings(&Selection::default(), &STATES(), 1000);
    let queue = rings.queues().next().unwrap().2;
    let submission = RingSummary { entries: 8, most: 4, wraps: 1 };
    assert_eq!(queue.rings, [submission, RingSummary { entries: 4, most: 3, wraps: 1 }]);
    let last = Point {
        at_ns: 700,
        outstanding: 0,
        peak: 0,
        sq_tail: Some(2),
        sq_head: Some(2),
        cq_tail: Some(1),
        cq_head: Some(1),
        cq_phase: false,
    };
    assert_eq!((queue.series.points.last(), queue.series.interval_ns), (Some(&last), 0));
    assert_eq!(queue.first.len(), 7);
}

#[test]
fn a_selection_has_its_window_and_its_queue() {
    let (from_ns, to_ns) = (Some(280), Some(400));
    let window = Selection { from_ns, to_ns, queue: Some(1), ..Selection::default() };
    let rings = rings(&window, &STATES(), 1000);
    assert_eq!(rings.queues().count(), 1);
    // 4 commands until 300 ns, then 1 until the end of the window at 400 ns.
    let depth = rings.all().depth();
    assert_eq!((depth.life_ns, depth.busy_ns, depth.mean), (120, 120, 1.5));
    let points = &rings.queues().next().unwrap().2.series.points;
    assert_eq!(points.iter().map(|point| point.at_ns).collect::<Vec<_>>(), [300, 350]);
}

#[test]
fn an_empty_window_has_nothing() {
    let (from_ns, to_ns) = (Some(400), Some(280));
    let rings = rings(&Selection { from_ns, to_ns, ..Selection::default() }, &STATES(), 1000);
    let depth = rings.all().depth();
    assert_eq!((depth.life_ns, depth.busy_ns), (0, 0));
    assert!(rings.queues().all(|(.., queue)| queue.series.points.is_empty()));
}

#[test]
fn long_series_keep_their_peaks() {
    let mut series = Series::default();
    for n in 0..10 * MOST_POINTS as u64 {
        let outstanding = if n == 5_555 { 99 } else { 1 + n % 2 };
        let point =
            Point { at_ns: n * 10, outstanding, sq_tail: Some(n as u32), ..Point::default() };
        series.push(point);
    }
    assert!(series.points.len() <= MOST_POINTS && series.points.len() > MOST_POINTS / 4);
    assert!(series.interval_ns >= 100 && series.points.is_sorted_by_key(|point| point.at_ns));
    let peaks = series.points.iter().filter(|point| point.peak == 99).count();
    assert!((1..=2).contains(&peaks), "in its interval, and before the first change after it");
    let last = series.points.last().unwrap();
    assert_eq!((last.sq_tail, last.outstanding), (Some(10 * MOST_POINTS as u32 - 1), 2));
}
