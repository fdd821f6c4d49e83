//! The window of the frames in a gate control list.

use report::Failure;
use tsn::GateControlList;
use wire::Duration;

/// A part of the cycle in which a gate is open, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// From the beginning of the cycle.
    pub opens: u64,
    /// How long.
    pub length: u64,
}

impl Window {
    /// The longest one of a gate that does not reach across the end of the cycle.
    ///
    /// # Errors
    /// The gate is always closed, or always open.
    pub fn of(list: &GateControlList, gate: u8) -> Result<Self, Failure> {
        let mut longest = Self { opens: 0, length: 0 };
        let (mut open, mut at) = (longest, Duration::ZERO);
        let cycle = list.cycle_time();
        for entry in list.entries() {
            let ends = (at + entry.interval).min(cycle);
            let part = ends.as_ns().saturating_sub(at.as_ns());
            open = match entry.states.0 >> gate & 1 {
                0 => Self { opens: ends.as_ns(), length: 0 },
                _ => Self { length: open.length + part, ..open },
            };
            if open.length > longest.length {
                longest = open;
            }
            at = ends;
        }
        match longest.length {
            0 => Err(Failure(format!("gate {gate} never opens: it is that of --priority"))),
            length if length == cycle.as_ns() => {
                Err(Failure(format!("gate {gate} never closes: it is that of --priority")))
            }
            _ => Ok(longest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(text: &str, gate: u8) -> Result<Window, String> {
        Window::of(&tsn::taprio::parse(text).unwrap(), gate).map_err(|why| why.0)
    }

    #[test]
    fn the_longest_window_counts() {
        let list = "sched-entry S 08 1ms sched-entry S 01 2ms sched-entry S 0c 3ms \
                    sched-entry S 08 4ms sched-entry S 01 5ms";
        assert_eq!(window(list, 3), Ok(Window { opens: 3_000_000, length: 7_000_000 }));
        assert_eq!(window(list, 0), Ok(Window { opens: 10_000_000, length: 5_000_000 }));
        assert_eq!(window(list, 2), Ok(Window { opens: 3_000_000, length: 3_000_000 }));
        assert!(window(list, 7).unwrap_err().contains("gate 7 never opens"));
        let open = "sched-entry S 81 1ms sched-entry S 80 1ms";
        assert!(window(open, 7).unwrap_err().contains("never closes"));
    }
}
