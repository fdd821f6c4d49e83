//! Gate control lists, in the words of `tc … taprio`, and clocks.

use super::section::{Section, unknown};
use super::{PlanError, keys, units};
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// All schedules by name.
#[derive(Clone, Debug, Default)]
pub struct Schedules(Vec<(String, GateControlList)>);

impl Schedules {
    /// Reads `[schedules]`.
    pub fn read(root: &Section, none: &Section) -> Result<Self, PlanError> {
        let mut all = Vec::new();
        for (name, section) in root.named("schedules", keys::SCHEDULE, none)? {
            all.push((name, list(&section)?));
        }
        Ok(Self(all))
    }

    /// The gates of a station or bridge, by its own clock.
    pub fn gates(&self, section: &Section) -> Result<Option<Gates>, PlanError> {
        let clock = clock(section)?;
        let Some((name, origin)) = section.text("schedule")? else { return Ok(None) };
        if name == "none" {
            return Ok(None);
        }
        let list = self.0.iter().find(|(known, _)| known == name);
        let Some((_, list)) = list else {
            let mut names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
            names.push("none");
            return Err(origin.fail(unknown("schedule", name, &names)));
        };
        Ok(Some(Gates::new(list.clone(), clock)))
    }
}

fn clock(section: &Section) -> Result<Clock, PlanError> {
    let offset = section.parsed("clock_offset", units::signed_time)?.unwrap_or(0);
    let drift = section.parsed("clock_drift", units::drift)?.unwrap_or(0);
    Ok(Clock::new(offset, drift).expect("its drift was checked"))
}

fn list(section: &Section) -> Result<GateControlList, PlanError> {
    let name = &section.name;
    let Some(entries) = section.list("entries", entry)? else {
        return Err(section
            .origin
            .fail(format!("[{name}] needs entries, such as [\"S 01 300us\"]")));
    };
    let base = section.within("base", &units::LONG)?.unwrap_or(Duration::ZERO);
    let base = Instant::from_ps(base.as_ps());
    let plain: Vec<Entry> = entries.iter().map(|(entry, _)| *entry).collect();
    let made = match section.within("cycle", &units::SPAN)? {
        Some(cycle) => GateControlList::new(base, cycle, &plain),
        None => GateControlList::of_entries(base, &plain),
    };
    made.map_err(|error| {
        use tsn::ListError::{BeyondCycle, EmptyInterval, Fraction};
        let origin = match &error {
            EmptyInterval(at) | Fraction { entry: at, .. } | BeyondCycle { entry: at, .. } => {
                entries[at - 1].1.clone()
            }
            _ => section.place("entries"),
        };
        origin.fail(error.to_string())
    })
}

/// `S 01 300us`, with or without `sched-entry` before it.
fn entry(text: &str) -> Result<Entry, &'static str> {
    const FORM: &str = "an entry such as 'S 01 300us': S, the open gates in hexadecimal, a time with its unit, \
         1ns to 1000000s";
    let text = text.trim().strip_prefix("sched-entry").unwrap_or(text);
    let words: Vec<&str> = text.split_whitespace().collect();
    let ["S", states, interval] = words[..] else { return Err(FORM) };
    let states = states.strip_prefix("0x").unwrap_or(states);
    let states = u8::from_str_radix(states, 16).map_err(|_| FORM)?;
    let interval = units::time(interval).ok().filter(|interval| units::SPAN.contains(interval));
    Ok(Entry { states: GateStates(states), interval: interval.ok_or(FORM)? })
}
