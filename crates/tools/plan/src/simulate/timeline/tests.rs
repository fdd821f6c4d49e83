//! Tests that memory is bounded for any events at a port.

use super::ring::{MOST, Ring};
use sim::ethernet::port::{Config, Suspend};
use sim::ethernet::{Frame, Rate, Transmission};
use sim::measure::{PortChange, PortSample};
use wire::{Duration, Instant};

fn transmission(id: u64, now: Instant) -> Transmission {
    let frame = Frame::new(id, vec![0; 60].into(), 0, now);
    let end = now + frame.duration(Rate::M100);
    Transmission { frame, start: now, end, rate: Rate::M100, preemptable: true, class: 0 }
}

/// Returns a ring for a window of 1 s after `count` frames, which start every 10 us. Frame `id`
/// waits `waited(id)` nanoseconds.
fn filled(count: u64, waited: impl Fn(u64) -> u64) -> (Ring, Instant) {
    let mut ring = Ring::new(Duration::from_ms(1_000), &Config::new(Rate::M100), None);
    for id in 0..count {
        let now = Instant::from_ns(id * 10_000);
        let sent = transmission(id, now);
        let waited = Duration::from_ns(waited(id));
        let change = PortChange::Started { sent: &sent, waited };
        ring.add(now, &PortSample { class: 1, change, frames: 3, bytes: 192, credit: &[] });
        assert!(ring.record_count() <= MOST, "{}", ring.record_count());
    }
    (ring, Instant::from_ns(count * 10_000))
}

/// Each frame waits longer than the previous one, up to frame `longest`: the last frame, or the
/// frame in the middle.
#[test]
fn ring_is_bounded_and_reports_the_start_of_complete_data() {
    for count in [10, 5_000, 50_000] {
        for longest in [count - 1, count / 2] {
            let (mut ring, now) = filled(count, |id| if id <= longest { id } else { 0 });
            let timeline = ring.finish(now).unwrap();
            assert_eq!(timeline.frame.unwrap().id, longest);
            let row = &timeline.rows[1];
            assert!(row.pieces.len() + row.queue.len() <= MOST + 2);
            assert!(row.pieces.iter().any(|piece| piece.id == longest));
            // Two changes per start: all stored changes are shown, without a gap.
            let first = row.pieces[0].id;
            assert!(first <= longest.saturating_sub(MOST as u64 / 10), "{first} to {longest}");
            let ids = row.pieces.iter().map(|piece| piece.id);
            assert!(ids.eq(first..first + row.pieces.len() as u64));
            let before = Instant::from_ns(first * 10_000 - if first == 0 { 0 } else { 10_000 });
            assert!(timeline.from > before || first == 0, "{} and {before}", timeline.from);
        }
    }
}

/// The remainder of a frame whose start was dropped is not shown.
#[test]
fn continuation_without_a_start_is_ignored() {
    let mut ring = Ring::new(Duration::from_us(1), &Config::new(Rate::M100), None);
    let at = Instant::from_ns(5_000);
    let change = PortChange::Suspended(Suspend { end: at, bytes: 64, planned: at });
    let sample = PortSample { class: 0, change, frames: 0, bytes: 0, credit: &[] };
    ring.add(at, &sample);
    let resumed = sim::ethernet::port::Resume { start: at, end: at };
    ring.add(at, &PortSample { change: PortChange::Resumed(resumed), ..sample });
    assert_eq!(ring.finish(at), None);
}
