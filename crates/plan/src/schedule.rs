//! Gate control lists and clocks.

use super::error_text::unknown;
use super::section::Section;
use super::units::{Drift, Offset};
use super::value::PlanError;
use tsn::{Clock, Entry, GateControlList, Gates};
use wire::{Duration, Instant};

/// All schedules by name.
#[derive(Clone, Debug, Default)]
pub struct Schedules(Vec<(String, GateControlList)>);

impl Schedules {
    /// Reads `[schedules]`.
    pub fn read(root: &Section) -> Result<Self, PlanError> {
        let named = root.named("schedules").into_iter();
        named.map(|(name, section)| Ok((name, list(&section)?))).collect::<Result<_, _>>().map(Self)
    }

    /// The gates of a station or bridge, by its own clock.
    pub fn gates(&self, section: &Section) -> Result<Option<Gates>, PlanError> {
        let offset = section.get("clock_offset").map_or(0, |Offset(ps)| ps);
        let drift = section.get("clock_drift").map_or(0, |Drift(ppb)| ppb);
        let clock = Clock::new(offset, drift).expect("its drift was checked");
        let name = section.text("schedule").unwrap_or("none");
        if name == "none" {
            return Ok(None);
        }
        let Some((_, list)) = self.0.iter().find(|(known, _)| known == name) else {
            let mut names: Vec<&str> = self.0.iter().map(|(name, _)| name.as_str()).collect();
            names.push("none");
            return section.fail("schedule", unknown("schedule", name, &names));
        };
        Ok(Some(Gates::new(list.clone(), clock)))
    }
}

fn list(section: &Section) -> Result<GateControlList, PlanError> {
    if section.find("entries").is_none() {
        let what = format!("[{}] needs entries, such as [\"S 01 300us\"]", section.name);
        return Err(section.origin.fail(what));
    }
    let (plain, origins): (Vec<_>, Vec<_>) = section.list::<Entry>("entries").into_iter().unzip();
    let base = Instant::ZERO + section.get("base").unwrap_or(Duration::ZERO);
    let made = match section.get("cycle") {
        Some(cycle) => GateControlList::new(base, cycle, &plain),
        None => GateControlList::of_entries(base, &plain),
    };
    made.map_err(|error| {
        use tsn::ListError::{BeyondCycle, EmptyInterval, Fraction};
        let origin = match &error {
            EmptyInterval(at) | Fraction { entry: at, .. } | BeyondCycle { entry: at, .. } => {
                origins[at - 1].clone()
            }
            _ => section.place("entries"),
        };
        origin.fail(error.to_string())
    })
}
