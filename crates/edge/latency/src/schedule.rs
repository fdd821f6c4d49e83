//! Due times of frames, and their windows.

use crate::frame::Window;
use thiserror::Error;

/// The longest interval and the longest cycle, in ns: the largest number of whole seconds in the
/// 32-bit fields of a frame.
pub const LONGEST: u64 = 4_000_000_000;

/// The due times of frames. All times are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Schedule {
    /// The beginning of a cycle: `base-time` of a gate control list (802.1Q-2022, 8.6.9.4).
    pub base: u64,
    /// Time from one frame to the next.
    pub interval: u64,
    /// Time from the beginning of a cycle to the first frame.
    pub offset: u64,
    /// The talker's window in each cycle, if it has one.
    pub slot: Option<Slot>,
}

/// A window of a cycle.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Slot {
    /// Time from one window to the next.
    pub cycle: u64,
    /// Opening, from the beginning of the cycle.
    pub opens: u64,
    /// Length of the window.
    pub length: u64,
}

/// Why a schedule is invalid.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum Wrong {
    /// A time is not in its range.
    #[error("{name} is {found} ns; allowed are {least} to {most} ns")]
    Range {
        /// Name of the time.
        name: &'static str,
        /// The time.
        found: u64,
        /// The least.
        least: u64,
        /// The greatest.
        most: u64,
    },
    /// A frame is due outside its window.
    #[error(
        "frame {number} is due {at} ns into its cycle, outside the window of {from} to {to} ns"
    )]
    Outside {
        /// The first such frame.
        number: u64,
        /// Due time, from the beginning of the cycle.
        at: u64,
        /// Opening of the window.
        from: u64,
        /// Closing of the window.
        to: u64,
    },
}

impl Schedule {
    /// Checks the ranges.
    ///
    /// # Errors
    /// The first time that is not in its range.
    pub fn check(&self) -> Result<(), Wrong> {
        in_range("the interval", self.interval, 1, LONGEST)?;
        in_range("the offset", self.offset, 0, LONGEST)?;
        let Some(Slot { cycle, opens, length }) = self.slot else { return Ok(()) };
        in_range("the cycle", cycle, 1, LONGEST)?;
        in_range("the window's length", length, 1, cycle)?;
        in_range("the window's opening", opens, 0, cycle - length)
    }

    /// Checks that every frame of a [checked](Self::check) schedule is due within a window. Checks
    /// at most 2^20 frames.
    ///
    /// # Errors
    /// The first frame that is due outside its window.
    pub fn check_inside(&self) -> Result<(), Wrong> {
        let Some(Slot { cycle, opens, length }) = self.slot else { return Ok(()) };
        // The positions within the cycle repeat after this many frames.
        let different = cycle / divisor(cycle, self.interval);
        let place = |number: u64| (self.offset + number * self.interval) % cycle;
        let outside = |at: u64| at < opens || at >= opens + length;
        match (0..different.min(PLACES)).find(|number| outside(place(*number))) {
            None => Ok(()),
            Some(number) => {
                let (at, to) = (place(number), opens + length);
                Err(Wrong::Outside { number, at, from: opens, to })
            }
        }
    }

    /// When frame `number` is due.
    pub fn due(&self, number: u64) -> u64 {
        self.base + self.offset + number * self.interval
    }

    /// The number of the first frame that is due at `now` or later.
    pub fn next(&self, now: u64) -> u64 {
        now.saturating_sub(self.base + self.offset).div_ceil(self.interval)
    }

    /// The window of a frame that is due at `due`, not before `base`: the window that contains the
    /// due time, otherwise the next window. A gate would hold the frame until then.
    pub fn window(&self, due: u64) -> Window {
        let Some(Slot { cycle, opens, length }) = self.slot else { return Window::default() };
        let into = (due - self.base) % cycle;
        let next = if into < opens + length { 0 } else { cycle };
        Window { opens: due - into + next + opens, cycle: cycle as u32, length: length as u32 }
    }
}

/// The most frames checked against their windows.
const PLACES: u64 = 1 << 20;

fn in_range(name: &'static str, found: u64, least: u64, most: u64) -> Result<(), Wrong> {
    if (least..=most).contains(&found) {
        Ok(())
    } else {
        Err(Wrong::Range { name, found, least, most })
    }
}

fn divisor(a: u64, b: u64) -> u64 {
    if b == 0 { a } else { divisor(b, a % b) }
}

/// The position of a frame relative to its window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// Number of whole cycles from the opening of the frame's window to the frame; negative if the
    /// frame was before the opening.
    pub cycles: i64,
    /// Whether the frame was within the window of that cycle.
    pub inside: bool,
}

/// The position of a frame with the stamp `at` relative to its window. `None` without windows.
pub fn place(window: &Window, at: u64) -> Option<Place> {
    let cycle = i64::from(window.cycle);
    if cycle == 0 {
        return None;
    }
    let since = at.wrapping_sub(window.opens) as i64;
    let inside = since.rem_euclid(cycle) < i64::from(window.length);
    Some(Place { cycles: since.div_euclid(cycle), inside })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The schedule of Linaro's article: one frame per millisecond, a cycle of 500 us, a slot of 20
    /// %.
    const ARTICLE: Schedule = Schedule {
        base: 1_000_000_000,
        interval: 1_000_000,
        offset: 220_000,
        slot: Some(Slot { cycle: 500_000, opens: 200_000, length: 100_000 }),
    };

    #[test]
    fn frames_and_windows_of_the_article() {
        assert_eq!((ARTICLE.check(), ARTICLE.check_inside()), (Ok(()), Ok(())));
        assert_eq!(ARTICLE.due(3), 1_003_220_000);
        assert_eq!([0, 1_000_220_000, 1_000_220_001].map(|now| ARTICLE.next(now)), [0, 0, 1]);
        let window = ARTICLE.window(ARTICLE.due(3));
        assert_eq!(window, Window { opens: 1_003_200_000, cycle: 500_000, length: 100_000 });
        let places = [
            (1_003_200_000, 0, true),
            (1_003_299_999, 0, true),
            (1_003_300_000, 0, false),
            // Missed the slot: one cycle late.
            (1_003_720_000, 1, true),
            (1_003_199_999, -1, false),
        ];
        for (at, cycles, inside) in places {
            assert_eq!(place(&window, at), Some(Place { cycles, inside }), "{at}");
        }
        assert_eq!(place(&Window::default(), 5), None);
    }

    #[test]
    fn a_frame_due_outside_belongs_to_the_next_window() {
        let cases = [(150_000, 200_000), (300_000, 700_000), (499_999, 700_000)];
        for (offset, opens) in cases {
            let early = Schedule { offset, ..ARTICLE };
            assert_eq!(early.check(), Ok(()), "the ranges are right");
            assert!(matches!(early.check_inside(), Err(Wrong::Outside { number: 0, .. })));
            assert_eq!(early.window(early.due(0)).opens, early.base + opens, "{offset}");
        }
    }

    #[test]
    fn invalid_schedules_are_refused_with_reason() {
        let zero = Schedule { interval: 0, ..ARTICLE };
        let text = "the interval is 0 ns; allowed are 1 to 4000000000 ns";
        assert_eq!(zero.check().unwrap_err().to_string(), text);
        // Frame 1 is due 600 us later: 320 us into the next cycle.
        let walks = Schedule { interval: 600_000, ..ARTICLE };
        let text =
            "frame 1 is due 320000 ns into its cycle, outside the window of 200000 to 300000 ns";
        assert_eq!(walks.check_inside().unwrap_err().to_string(), text);
        let slot = Slot { cycle: 500_000, opens: 450_000, length: 100_000 };
        let over = Schedule { slot: Some(slot), ..ARTICLE };
        let text = "the window's opening is 450000 ns; allowed are 0 to 400000 ns";
        assert_eq!(over.check().unwrap_err().to_string(), text);
    }

    proptest! {
        #[test]
        fn every_frame_of_a_checked_schedule_is_due_in_its_window(
            (cycle, times, rest) in (2u64..1_000, 1u64..5, 0u64..1_000),
            (opens, length, into) in (0u64..1_000, 1u64..1_000, 0u64..1_000),
            number in 0u64..10_000,
        ) {
            // Windows that are always open accept frames at any interval.
            let opens = opens % cycle;
            let length = if rest > 0 && opens == 0 { cycle } else { 1 + length % (cycle - opens) };
            let interval = cycle * times + if length == cycle { rest } else { 0 };
            let slot = Some(Slot { cycle, opens, length });
            let offset = opens + into % length;
            let schedule = Schedule { base: 77, interval, offset, slot };
            prop_assert_eq!((schedule.check(), schedule.check_inside()), (Ok(()), Ok(())));
            let due = schedule.due(number);
            let found = place(&schedule.window(due), due);
            prop_assert_eq!(found, Some(Place { cycles: 0, inside: true }));
            prop_assert_eq!(schedule.next(due), number);
        }

        #[test]
        fn a_window_of_a_frame_is_the_first_that_has_not_closed(
            (cycle, opens, length) in (1u64..1_000, 0u64..1_000, 1u64..1_000),
            (base, after) in (0u64..1_000_000, 0u64..1_000_000),
        ) {
            let opens = opens % cycle;
            let slot = Slot { cycle, opens, length: 1 + (length - 1) % (cycle - opens) };
            let schedule = Schedule { base, interval: 1, offset: 0, slot: Some(slot) };
            let (due, closes) = (base + after, schedule.window(base + after).opens + slot.length);
            prop_assert!(due < closes && closes - cycle <= due, "{due} {closes}");
        }
    }
}
