//! How many frames were within their windows.

use crate::frame::Window;
use crate::sample::Sample;
use crate::schedule::{Place, place};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The largest number of late cycles with a counter. This counter includes all later frames.
const LATE: i64 = 10;

/// How many frames were within their windows, by one stamp.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize, Deserialize)]
pub struct Slots {
    /// The stamp: `departure` is the talker's last stamp, `arrival` the listener's first stamp.
    pub stamp: String,
    /// Frames with this stamp.
    pub n: u64,
    /// Frames within their window: the window that contains the due time, otherwise the next one.
    pub in_slot: u64,
    /// Frames within any window.
    pub in_window: u64,
    /// Late frames by the number of whole cycles: `[cycles, frames]`. 10 cycles include all larger
    /// numbers.
    pub late: Vec<(i64, u64)>,
    /// Frames before the opening of their window.
    pub early: u64,
    /// Frames that were due outside of all windows (`--outside`), so that a gate must hold them.
    pub outside_due: u64,
    /// Frames in `outside_due` whose stamp is also outside of all windows, because no gate held
    /// them before the stamp.
    pub outside_arrived: u64,
}

/// A function that returns a stamp of a frame.
type At = fn(&Sample) -> Option<u64>;

/// The results for each available stamp. Empty if there are no windows. `window` has cycle and
/// length; each sample has the opening of its own window.
pub(crate) fn by_stamp(samples: &[Sample], window: &Window) -> Vec<Slots> {
    let stamps: [(&str, At); 2] = [
        ("departure", |sample| (sample.sent > 0).then(|| sample.departed())),
        ("arrival", |sample| sample.came().map(u64::from)),
    ];
    let all = stamps.map(|(name, at)| {
        let placed = |sample: &Sample| {
            let window = Window { opens: sample.opens, ..*window };
            let due = place(&window, sample.scheduled)?;
            Some((due, place(&window, at(sample)?)?))
        };
        by(name, &samples.iter().filter_map(placed).collect::<Vec<_>>())
    });
    all.into_iter().filter(|slots| slots.n > 0).collect()
}

/// The results for one stamp. `places` has the positions of due time and stamp of each frame.
fn by(stamp: &str, places: &[(Place, Place)]) -> Slots {
    let count = |which: &dyn Fn(Place, Place) -> bool| {
        places.iter().filter(|(due, at)| which(*due, *at)).count() as u64
    };
    let late = |by: i64| (by, count(&|_, at| at.cycles == by || (by == LATE && at.cycles > LATE)));
    Slots {
        stamp: stamp.to_owned(),
        n: places.len() as u64,
        in_slot: count(&|_, at| at.inside && at.cycles == 0),
        in_window: count(&|_, at| at.inside),
        late: (1..=LATE).map(late).filter(|(_, n)| *n > 0).collect(),
        early: count(&|_, at| at.cycles < 0),
        outside_due: count(&|due, _| !due.inside),
        outside_arrived: count(&|due, at| !due.inside && !at.inside),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::stamp;

    /// Windows of 100 us every 500 us; this window opens at 10 ms.
    const WINDOW: Window = Window { opens: 10_000_000, cycle: 500_000, length: 100_000 };

    /// A frame whose due time, sending and arrival are given relative to the opening of its window.
    fn frame(due: i64, sent: i64, arrived: i64) -> Sample {
        let at = |ns: i64| WINDOW.opens.saturating_add_signed(ns);
        Sample {
            scheduled: at(due),
            sent: at(sent),
            arrived: stamp(at(arrived)),
            opens: WINDOW.opens,
            ..Sample::default()
        }
    }

    #[test]
    fn frames_in_their_windows_and_late_ones() {
        let samples = [
            frame(20_000, 20_000, 30_000),
            frame(20_000, 90_000, 110_000),
            // A gate held this frame until the next window, and the last one for twelve cycles.
            frame(20_000, 20_000, 500_000),
            frame(20_000, 20_000, 6_000_000),
        ];
        let found = by_stamp(&samples, &WINDOW);
        assert_eq!([&found[0].stamp, &found[1].stamp], ["departure", "arrival"]);
        assert_eq!([found[0].in_slot, found[0].in_window], [4, 4]);
        let by = &found[1];
        assert_eq!([by.n, by.in_slot, by.in_window, by.early], [4, 1, 3, 0]);
        assert_eq!(by.late, [(1, 1), (10, 1)]);
        assert_eq!([by.outside_due, by.outside_arrived], [0, 0]);
        assert_eq!(by_stamp(&samples, &Window::default()), []);
    }

    /// All frames are due 200 us before their windows open.
    #[test]
    fn frames_due_outside_say_whether_something_held_them() {
        let gated = [frame(-200_000, -190_000, 5_000), frame(-200_000, -190_000, 500_000)];
        let found = by_stamp(&gated, &WINDOW);
        assert_eq!([found[0].outside_due, found[0].outside_arrived, found[0].early], [2, 2, 2]);
        assert_eq!([found[1].outside_due, found[1].outside_arrived], [2, 0]);
        assert_eq!((found[1].in_slot, &found[1].late), (1, &vec![(1, 1)]));
        let open = [frame(-200_000, -190_000, -150_000), frame(-200_000, -190_000, -150_000)];
        let found = &by_stamp(&open, &WINDOW)[1];
        assert_eq!([found.outside_due, found.outside_arrived, found.early], [2, 2, 2]);
    }
}
