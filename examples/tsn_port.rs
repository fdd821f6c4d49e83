//! A TSN port in a loop: frames in queues, gates that open and close, departure times.
//!
//! `tsn::Gates` answers when a transmission may start. The loop is the port: it keeps the queues,
//! and sends the frame that may start first, of the highest queue if there are several.

use std::collections::VecDeque;
use tsn::{Clock, Entry, GateControlList, GateStates, Gates, ListError, QUEUES};
use wire::{Duration, Instant};

/// Preamble, start delimiter and gap between frames, in bytes.
const OVERHEAD: u64 = 20;
/// Nanoseconds per byte at 1 Gb/s.
const NS_PER_BYTE: u64 = 8;

/// A frame that has left.
#[derive(Debug, PartialEq)]
struct Departure {
    start: Instant,
    queue: usize,
    bytes: u64,
}

struct Port {
    gates: Gates,
    /// Bytes of the frames in each queue.
    queues: [VecDeque<u64>; QUEUES],
    /// When the line is free.
    free: Instant,
}

impl Port {
    /// The next frame on the line; `None` if no queued frame may ever leave.
    fn send(&mut self) -> Option<Departure> {
        let earliest = |(queue, frames): (usize, &VecDeque<u64>)| {
            let start = self.gates.earliest_start(queue, self.free, time(*frames.front()?))?;
            Some((start, queue))
        };
        // Of equal times the highest queue, which the iteration reaches first.
        let queues = self.queues.iter().enumerate().rev();
        let (start, queue) = queues.filter_map(earliest).min_by_key(|(start, _)| *start)?;
        let bytes = self.queues[queue].pop_front()?;
        self.free = start + time(bytes);
        Some(Departure { start, queue, bytes })
    }
}

/// How long a frame and the gap behind it occupy the line.
fn time(bytes: u64) -> Duration {
    Duration::from_ns(NS_PER_BYTE * (bytes + OVERHEAD))
}

/// Sends three control frames of 128 bytes (queue 7) and four others of 1522 bytes (queue 0), all
/// queued at 0.
fn run() -> Result<Vec<Departure>, ListError> {
    // In each cycle of 50 us, queue 7 has the first 2 us, which are enough for one frame.
    let entries = [
        Entry::set(GateStates(0b1000_0000), Duration::from_us(2)),
        Entry::set(GateStates(0b0111_1111), Duration::from_us(48)),
    ];
    let list = GateControlList::of_entries(Instant::ZERO, &entries)?;
    let mut port = Port {
        gates: Gates::new(list, Clock::default()),
        queues: Default::default(),
        free: Instant::ZERO,
    };
    port.queues[7].extend([128; 3]);
    port.queues[0].extend([1522; 4]);
    Ok(std::iter::from_fn(|| port.send()).collect())
}

fn main() -> Result<(), ListError> {
    for Departure { start, queue, bytes } in run()? {
        println!("{:8.3} us  queue {queue}  {bytes:4} bytes", start.as_ns() as f64 / 1e3);
    }
    Ok(())
}

#[test]
fn control_leaves_first_in_each_cycle() {
    let departures = run().expect("a valid list");
    assert_eq!(departures.len(), 7);
    let control = departures.iter().filter(|departure| departure.queue == 7);
    let starts: Vec<_> = control.map(|departure| departure.start.as_ns()).collect();
    assert_eq!(starts, [0, 50_000, 100_000], "one per cycle");
    // Three frames of 12.336 us fit between the gates, the fourth waits for the next cycle.
    let others = departures.iter().filter(|departure| departure.queue == 0);
    let starts: Vec<_> = others.map(|departure| departure.start.as_ns()).collect();
    assert_eq!(starts, [2_000, 14_336, 26_672, 52_000]);
}
