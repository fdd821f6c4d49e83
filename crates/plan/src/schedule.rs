//! Gate control lists and clocks.

use super::error_text::unknown;
use super::section::Section;
use super::units::{Drift, Offset};
use super::value::PlanError;
use tsn::{Clock, Entry, GateControlList, Gates};
use wire::{Duration, Instant};

/// All schedules by name.
#[derive(Clone, Debug, Default)]
pub struct Schedules(Vec<Schedule>);

#[derive(Clone, Debug)]
struct Schedule {
    name: String,
    list: GateControlList,
    /// The one that takes over, and the longest extension of this one's last cycle.
    then: Option<(String, Duration)>,
}

impl Schedules {
    /// Reads `[schedules]`.
    pub fn read(root: &Section) -> Result<Self, PlanError> {
        let mut all = Self::default();
        for (name, section) in root.named("schedules") {
            let extension = section.get("extension").unwrap_or(Duration::ZERO);
            let then = section.text("then").map(|next| (next.to_owned(), extension));
            all.0.push(Schedule { name, list: list(&section)?, then });
        }
        for (name, section) in root.named("schedules") {
            all.check_order(&name, &section)?;
        }
        Ok(all)
    }

    /// The list that takes over begins later than this one.
    fn check_order(&self, name: &str, section: &Section) -> Result<(), PlanError> {
        let this = self.find(name).expect("it was read");
        let Some((next, _)) = &this.then else { return Ok(()) };
        let Some(next) = self.find(next) else {
            return section.fail("then", unknown("schedule", next, &self.names()));
        };
        if next.list.base_time() > this.list.base_time() {
            return Ok(());
        }
        let what = format!("then: schedule '{}' has a base that is not later", next.name);
        section.fail("then", what)
    }

    fn find(&self, name: &str) -> Option<&Schedule> {
        self.0.iter().find(|schedule| schedule.name == name)
    }

    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|schedule| schedule.name.as_str()).collect()
    }

    /// The gates of a station or bridge, by its own clock.
    pub fn gates(&self, section: &Section) -> Result<Option<Gates>, PlanError> {
        let name = section.text("schedule").unwrap_or("none");
        if name == "none" {
            return Ok(None);
        }
        let Some(first) = self.find(name) else {
            let mut names = self.names();
            names.push("none");
            return section.fail("schedule", unknown("schedule", name, &names));
        };
        let mut gates = Gates::new(first.list.clone(), clock(section));
        let mut last = first;
        while let Some((next, extension)) = &last.then {
            last = self.find(next).expect("it was checked");
            gates = gates.then(last.list.clone(), *extension);
        }
        Ok(Some(gates))
    }
}

/// The clock of a station or bridge.
pub fn clock(section: &Section) -> Clock {
    let offset = section.get("clock_offset").map_or(0, |Offset(ps)| ps);
    let drift = section.get("clock_drift").map_or(0, |Drift(ppb)| ppb);
    Clock::new(offset, drift).expect("its drift was checked")
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
