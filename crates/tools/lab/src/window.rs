//! Gates, and the window of the measured frames in their list.

use latency::schedule::Slot;
use report::Failure;
use std::path::Path;
use tsn::GateControlList;
use wire::Duration;

/// The gate control list of the lab, and the window of the measured frames.
#[derive(Clone, Debug)]
pub struct Gates {
    /// Path of the list's file, for a shell line.
    pub file: String,
    /// The gate control list.
    pub list: GateControlList,
    /// The window of the measured frames.
    pub window: Window,
}

impl Gates {
    /// Creates gates from the list of a file; the window is the window of gate `gate`.
    ///
    /// # Errors
    /// A sentence: the gate has no window, or the path cannot be used in a shell line.
    pub fn new(file: &Path, list: GateControlList, gate: u8) -> Result<Self, Failure> {
        let window = Window::new(&list, gate)
            .map_err(|why| Failure(format!("--gate {}: {}", file.display(), why.0)))?;
        Ok(Self { file: absolute(file)?, list, window })
    }

    /// Returns the window as the slot of the frames.
    pub fn slot(&self) -> Slot {
        let Window { opens, length } = self.window;
        Slot { cycle: self.list.cycle_time().as_ns(), opens, length }
    }
}

/// Returns an absolute path for lines that run in other folders.
///
/// # Errors
/// The path cannot be used in a shell line.
pub fn absolute(path: &Path) -> Result<String, Failure> {
    let path = std::path::absolute(path)?;
    match path.to_str().filter(|text| !text.contains('\'')) {
        Some(text) => Ok(text.to_owned()),
        None => Err(Failure(format!("{}: no quotes, and UTF-8", path.display()))),
    }
}

/// A part of the cycle in which a gate is open, in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// Time of the opening since the start of the cycle.
    pub opens: u64,
    /// Length of the window.
    pub length: u64,
}

impl Window {
    /// Returns the window of a gate that opens once per cycle, and not across its end.
    ///
    /// # Errors
    /// The gate is always closed, always open, or opens differently.
    pub fn new(list: &GateControlList, gate: u8) -> Result<Self, Failure> {
        let cycle = list.cycle_time();
        let (mut windows, mut at) = (Vec::<Self>::new(), Duration::ZERO);
        for entry in list.entries() {
            let (opens, ends) = (at.as_ns(), (at + entry.interval).min(cycle).as_ns());
            let length = ends.saturating_sub(opens);
            match windows.last_mut().filter(|last| last.opens + last.length == opens) {
                _ if !entry.states.is_open(gate.into()) || length == 0 => {}
                Some(last) => last.length += length,
                None => windows.push(Self { opens, length }),
            }
            at = at + entry.interval;
        }
        let wrong =
            |mistake: &str| Failure(format!("gate {gate} {mistake}; --priority selects this gate"));
        match windows[..] {
            [] => Err(wrong("never opens")),
            [Self { length, .. }] if length == cycle.as_ns() => Err(wrong("never closes")),
            [window] => Ok(window),
            _ => Err(wrong("opens more than once a cycle, or across its end")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(text: &str, gate: u8) -> Result<Window, String> {
        Window::new(&tsn::taprio::parse(text).unwrap(), gate).map_err(|why| why.0)
    }

    #[test]
    fn a_gate_opens_once_a_cycle() {
        let list = "sched-entry S 08 1ms sched-entry S 01 2ms sched-entry S 04 3ms \
                    sched-entry S 04 4ms sched-entry S 01 5ms sched-entry S 08 1ms";
        assert_eq!(window(list, 2), Ok(Window { opens: 3_000_000, length: 7_000_000 }));
        for (gate, why) in [(7, "gate 7 never opens"), (0, "more than once"), (3, "across its end")]
        {
            let wrong = window(list, gate).unwrap_err();
            assert!(wrong.contains(why), "{wrong}");
        }
        let open = "sched-entry S 81 1ms sched-entry S 80 1ms";
        assert!(window(open, 7).unwrap_err().contains("never closes"));
    }
}
