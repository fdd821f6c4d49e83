//! The completion times of accesses to flash.

use super::{Access, Media, Timing, time_at};
use crate::kernel::pop_if;
use stats::random::Random;
use std::collections::VecDeque;
use wire::{Duration, Instant};

/// Dies, channels and the write buffer of a drive.
#[derive(Debug)]
pub(crate) struct Flash {
    timing: Timing,
    rng: Random,
    /// The time at which each die becomes free.
    dies: Vec<Instant>,
    channels: Vec<Instant>,
    /// Bytes in the write buffer. `leaving` has the time at which each page leaves the buffer, and
    /// the bytes of the page.
    buffered: u64,
    leaving: VecDeque<(Instant, u64)>,
    /// Bytes in the buffer whose programming has not started.
    gathered: u64,
    next_die: usize,
}

impl Flash {
    /// Idle media with an empty write buffer.
    ///
    /// # Panics
    /// If `timing` has no channel or no die, a page size that is not a power of two of at least
    /// 4096 bytes, or a write buffer smaller than a page.
    pub(super) fn new(timing: Timing, rng: Random) -> Self {
        assert!(timing.channels > 0 && timing.luns > 0, "a drive has dies");
        assert!(timing.page.is_power_of_two() && timing.page >= 4096, "pages of 4 KiB or more");
        assert!(
            timing.write_buffer == 0 || timing.write_buffer >= timing.page as u64,
            "the write buffer holds a page"
        );
        let dies = usize::from(timing.channels) * usize::from(timing.luns);
        Self {
            timing,
            rng,
            dies: vec![Instant::ZERO; dies],
            channels: vec![Instant::ZERO; usize::from(timing.channels)],
            buffered: 0,
            leaving: VecDeque::new(),
            gathered: 0,
            next_die: 0,
        }
    }

    fn transfer(&self, bytes: u64) -> Duration {
        time_at(self.timing.channel_rate, bytes)
    }

    fn read_page(&mut self, start: Instant, unit: u64, bytes: u64) -> Instant {
        let count = self.dies.len() as u64;
        let die = (unit % count) as usize;
        let channel = die % self.channels.len();
        let msb = (unit / count) & 1 == 1;
        let sense = if msb { self.timing.read_msb } else { self.timing.read_lsb };
        let varied = Duration::from_ps(self.rng.below(self.timing.variation.as_ps()));
        let sensed = start.max(self.dies[die]) + sense + varied;
        self.dies[die] = sensed;
        let done = sensed.max(self.channels[channel]) + self.transfer(bytes);
        self.channels[channel] = done;
        done
    }

    /// Reserves room for `bytes` in the write buffer. Returns when the room is free.
    fn make_room(&mut self, now: Instant, bytes: u64) -> Instant {
        if self.timing.write_buffer == 0 {
            return now;
        }
        let mut at = now;
        loop {
            while let Some((_, gone)) = pop_if(&mut self.leaving, |(leaves, _)| *leaves <= at) {
                self.buffered -= gone;
            }
            if self.buffered + bytes <= self.timing.write_buffer {
                break;
            }
            // A transfer larger than the buffer starts when the buffer is empty.
            let Some((leaves, _)) = self.leaving.front() else { break };
            at = *leaves;
        }
        self.buffered += bytes;
        self.gathered += bytes;
        at
    }

    fn program(&mut self, now: Instant) {
        let page = self.timing.page as u64;
        while self.timing.write_buffer > 0 && self.gathered >= page {
            self.gathered -= page;
            let die = self.next_die;
            self.next_die = (die + 1) % self.dies.len();
            let channel = die % self.channels.len();
            let there = now.max(self.channels[channel]) + self.transfer(page);
            self.channels[channel] = there;
            let done = there.max(self.dies[die]) + self.timing.program;
            self.dies[die] = done;
            // Dies finish out of order; the buffer is released in order.
            let last = self.leaving.back().map_or(done, |(at, _)| done.max(*at));
            self.leaving.push_back((last, page));
        }
    }
}

impl Media for Flash {
    // All dies sense their pages in parallel; then the channels transfer the pages.
    fn read(&mut self, now: Instant, offset: u64, length: usize) -> Access {
        let firmware = match length {
            0..=4096 => self.timing.firmware_read,
            _ => self.timing.firmware_read_large,
        };
        let start = now + firmware;
        let mut done = start;
        let page = self.timing.page as u64;
        let end = offset + length as u64;
        let mut at = offset;
        while at < end {
            let unit = at / page;
            let bytes = ((unit + 1) * page).min(end) - at;
            done = done.max(self.read_page(start, unit, bytes));
            at += bytes;
        }
        Access { firmware, media: done - start }
    }

    // A write ends when its data are in the buffer. Whole pages are programmed from there.
    fn write(&mut self, now: Instant, length: usize) -> Access {
        let blocks = (length as u64).div_ceil(4096);
        let cost = Duration::from_ps(self.timing.write_4k.as_ps() * blocks);
        let firmware = self.timing.write_base;
        let begun = self.make_room(now, length as u64);
        let done = begun + firmware + cost;
        self.program(done);
        Access { firmware, media: (begun - now) + cost }
    }

    // Firmware time only. A flush does not wait for programming, because the model assumes a
    // buffer that keeps its data without power.
    fn other(&mut self, _: Instant) -> Access {
        Access { firmware: self.timing.write_base, media: Duration::ZERO }
    }
}
