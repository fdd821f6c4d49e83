//! Gate control lists and clocks.

use super::units::Form as _;
use super::units::{Drift, Offset};
use keys::{KeyError, Origin, Section, all, unknown};
use tsn::{Clock, Entry, GateControlList, Gates};
use wire::{Duration, Instant};

/// All schedules.
#[derive(Clone, Debug, Default)]
pub struct Schedules(Vec<Schedule>);

/// A schedule, with the places of its times in the plan.
#[derive(Clone, Debug)]
struct Schedule {
    name: String,
    list: GateControlList,
    /// Name of the next schedule, and the maximum extension of this schedule's last cycle.
    then: Option<(String, Duration)>,
    entries: Vec<Origin>,
    base: Origin,
    cycle: Origin,
}

impl Schedules {
    /// Reads `[schedules]`.
    pub fn read(root: &Section) -> Result<Self, KeyError> {
        let named = root.named("schedules");
        let made = named.iter().map(|(name, section)| schedule(name.clone(), section));
        let schedules = Self(all(made)?);
        all(schedules
            .0
            .iter()
            .zip(&named)
            .map(|(one, (_, section))| schedules.check_order(one, section)))?;
        Ok(schedules)
    }

    /// Checks that the next schedule begins later than this one.
    fn check_order(&self, first: &Schedule, section: &Section) -> Result<(), KeyError> {
        let Some((next, _)) = &first.then else {
            return match section.find("extension") {
                Some(_) => section.fail("extension", "'extension' requires 'then'"),
                None => Ok(()),
            };
        };
        let Some(next) = self.find(next) else {
            return section.fail("then", unknown("schedule", next, &self.names()));
        };
        if next.list.base_time() > first.list.base_time() {
            return Ok(());
        }
        let base = |schedule: &Schedule| schedule.list.base_time().since(Instant::ZERO).exact();
        let message = format!(
            "then: schedule '{}' needs a base later than {}; it has {}",
            next.name,
            base(first),
            base(next)
        );
        section.fail("then", message)
    }

    fn find(&self, name: &str) -> Option<&Schedule> {
        self.0.iter().find(|schedule| schedule.name == name)
    }

    fn names(&self) -> Vec<&str> {
        self.0.iter().map(|schedule| schedule.name.as_str()).collect()
    }

    /// Builds the gates of a station or bridge, with its own clock.
    pub fn gates(&self, section: &Section) -> Result<Option<Gates>, KeyError> {
        let name = section.text("schedule").unwrap_or("none");
        if name == "none" {
            return Ok(None);
        }
        let Some(first) = self.find(name) else {
            let mut names = self.names();
            names.push("none");
            return section.fail("schedule", unknown("schedule", name, &names));
        };
        first.fits(section)?;
        let mut gates = Gates::new(first.list.clone(), clock(section));
        let mut last = first;
        while let Some((next, extension)) = &last.then {
            last = self.find(next).expect("it was checked");
            last.fits(section)?;
            gates = gates.then(last.list.clone(), *extension);
        }
        Ok(Some(gates))
    }
}

/// Reads the clock of a station or bridge.
pub fn clock(section: &Section) -> Clock {
    let offset = section.get("clock_offset").map_or(0, |Offset(ps)| ps);
    let drift = section.get("clock_drift").map_or(0, |Drift(ppb)| ppb);
    Clock::new(offset, drift).expect("its drift was checked")
}

impl Schedule {
    /// Checks that the hardware of a port can execute the schedule (`gate_grain`, `gate_entries`).
    ///
    /// # Errors
    /// The first time that is not a multiple of the grain, or the first entry beyond the maximum.
    fn fits(&self, port: &Section) -> Result<(), KeyError> {
        let most = port.get("gate_entries").unwrap_or(GateControlList::MAX_ENTRIES);
        let entries = self.list.entries();
        if let Some(origin) = self.entries.get(most) {
            let message = format!(
                "schedule '{}' has {} entries, more than the gate_entries {most} at {}",
                self.name,
                entries.len(),
                port.place("gate_entries"),
            );
            return Err(origin.fail(message));
        }
        let Some(grain) = port.get::<Duration>("gate_grain") else { return Ok(()) };
        let base = self.list.base_time().since(Instant::ZERO);
        let intervals = self.entries.iter().zip(1..).zip(entries);
        let times = intervals
            .map(|((origin, number), entry)| (origin, format!("entry {number}"), entry.interval))
            .chain([(&self.base, "its base".to_owned(), base)])
            .chain([(&self.cycle, "its cycle".to_owned(), self.list.cycle_time())]);
        for (origin, kind, time) in times {
            if !time.as_ps().is_multiple_of(grain.as_ps()) {
                let message = format!(
                    "schedule '{}': {kind} of {} is not a multiple of the gate_grain {} at {}",
                    self.name,
                    time.exact(),
                    grain.exact(),
                    port.place("gate_grain"),
                );
                return Err(origin.fail(message));
            }
        }
        Ok(())
    }
}

fn schedule(name: String, section: &Section) -> Result<Schedule, KeyError> {
    if section.find("entries").is_none() {
        let message = format!("[{}] needs entries, such as [\"S 01 300us\"]", section.name);
        return Err(section.origin.fail(message));
    }
    let (plain, origins): (Vec<_>, Vec<_>) =
        section.parsed_list("entries", Entry::parse).into_iter().unzip();
    let base = Instant::ZERO + section.get("base").unwrap_or(Duration::ZERO);
    let made = match section.get("cycle") {
        Some(cycle) => GateControlList::new(base, cycle, &plain),
        None => GateControlList::of_entries(base, &plain),
    };
    let list = made.map_err(|error| {
        use tsn::ListError::{BeyondCycle, EmptyInterval, Fraction};
        let origin = match &error {
            EmptyInterval(at) | Fraction { entry: at, .. } | BeyondCycle { entry: at, .. } => {
                origins[at - 1].clone()
            }
            _ => section.place("entries"),
        };
        origin.fail(error.to_string())
    })?;
    let [base, cycle] = ["base", "cycle"].map(|key| section.place(key));
    let extension = section.get("extension").unwrap_or(Duration::ZERO);
    let then = section.text("then").map(|next| (next.to_owned(), extension));
    Ok(Schedule { name, list, then, entries: origins, base, cycle })
}
