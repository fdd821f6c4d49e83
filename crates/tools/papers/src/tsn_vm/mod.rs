//! Linaro's article on latencies of virtual machines behind gates: simulations of the article's
//! clocks, servo and gates. `data/tsn-vm.json` has the article's statements with their sections,
//! and the arithmetic for values that the article does not print.
//!
//! The overhead of hosts, hypervisors and bridges, which the article measures, is not simulated.

mod cases;
mod results;
mod setup;
#[cfg(test)]
mod tests;

use crate::tsn_ports::{Case, CaseLab, Published, compare, sections};
use crate::{Lab, Section, tsn_ports};
use cases::Simulated;
use report::Failure;

const DATA: &str = include_str!("../../data/tsn-vm.json");

wire::named! {
    /// A group of statements.
    pub enum Part {
        /// Packets that miss their slot.
        Slots "slots",
        /// Clocks and their servo.
        Clocks "clocks",
        /// Stalls, and the effect of leaving them out.
        Stalls "stalls",
    }
}

type Simulate = fn(CaseLab<'_>) -> Result<Simulated, Failure>;

const CASES: &[(Part, &str, Simulate)] = &[
    (Part::Slots, "missed_slot", cases::missed_slot),
    (Part::Clocks, "servo_swings", cases::servo_swings),
    (Part::Stalls, "stall", cases::stall),
    (Part::Stalls, "data_range", cases::data_range),
];

/// Returns the article's statements.
///
/// # Panics
/// If the file, which is part of the program, is invalid.
pub fn published() -> Published {
    serde_json::from_str(DATA).expect("data/tsn-vm.json is part of the program")
}

/// Simulates the cases of a group in a laboratory. Returns each case with its section, which has the plots.
///
/// # Errors
/// If a case does not run.
///
/// # Panics
/// If a case has no data, or other figures than the data: both are part of the program.
pub fn simulate(
    published: &Published,
    part: Part,
    lab: Lab,
) -> Result<Vec<(tsn_ports::Case, Section)>, Failure> {
    let of_part = CASES.iter().filter(|(case_part, ..)| *case_part == part);
    let case = |(_, name, simulate): &(Part, &str, Simulate)| {
        let data = published.cases.iter().find(|data| data.name == *name).expect("a case");
        let (figures, plots) = simulate(CaseLab::new(lab, name))?;
        let case = Case { data: data.clone(), checks: compare(data, &figures) };
        let section = sections(std::slice::from_ref(&case)).remove(0);
        Ok((case, Section { plots, ..section }))
    };
    of_part.map(case).collect()
}
