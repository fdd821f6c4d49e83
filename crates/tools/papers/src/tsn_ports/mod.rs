//! Ports of TSN bridges: cases with published figures from other simulators, papers and standards,
//! and cases computed by hand. Each case is in a module of its own. `data/tsn-ports.json` has the
//! figures with their sources, arithmetic and tolerances.
//!
//! In these cases stations add no time, and bridges add only the time that the case states. A frame
//! starts at the earliest one gap after the previous frame. Its latency ends with the last bit of
//! its FCS.

mod credit;
mod cut_through;
mod cyclic;
mod eligibility;
mod icct;
mod medium;
mod observed;
mod preemption;
mod priority;
mod published;
mod results;
mod scheduled;
mod shares;
mod showcase_shapers;
mod star;
#[cfg(test)]
mod tests;
mod time_aware;

use crate::{Lab, Row, Section, error_percent, percent};
pub use observed::{Arrival, CaseLab, Latencies, Observed};
pub use published::{Basis, CaseData, Figure, Published, Rule, published};
use report::Align::{Left, Right, Wrap};
use report::{Column, Failure, Table};
use schemars::JsonSchema;
use serde::Serialize;

/// Names and values of a case's simulated figures.
pub(crate) type Figures = Vec<(&'static str, f64)>;

type Simulate = fn(CaseLab<'_>) -> Result<Figures, Failure>;

wire::named! {
    /// A group of cases.
    pub enum Part {
        /// Strict priority, and cut-through.
        Priority "priority",
        /// Gates.
        Gates "gates",
        /// Credit-based and asynchronous shapers, and weights.
        Shapers "shapers",
        /// Frame preemption.
        Preemption "preemption",
        /// Cyclic queuing and forwarding.
        Cyclic "cyclic",
    }
}

const CASES: &[(Part, &str, Simulate)] = &[
    (Part::Priority, "cut_through", cut_through::simulate),
    (Part::Priority, "strict_priority", priority::simulate),
    (Part::Gates, "time_aware", time_aware::simulate),
    (Part::Gates, "scheduled", scheduled::simulate),
    (Part::Shapers, "credit_example", credit::simulate),
    (Part::Shapers, "medium_credit", medium::credit_based),
    (Part::Shapers, "medium_asynchronous", medium::asynchronous),
    (Part::Shapers, "ns3_spacing", credit::ns3),
    (Part::Shapers, "credit_showcase", showcase_shapers::credit_based),
    (Part::Shapers, "credit_and_gates", showcase_shapers::credit_and_gates),
    (Part::Shapers, "asynchronous_showcase", showcase_shapers::asynchronous),
    (Part::Shapers, "asynchronous_bounds", icct::simulate),
    (Part::Shapers, "weights", shares::simulate),
    (Part::Preemption, "preemption_showcase", preemption::showcase),
    (Part::Preemption, "preemption_edges", preemption::edges),
    (Part::Preemption, "preemption_and_gates", preemption::hold),
    (Part::Cyclic, "cyclic", cyclic::simulate),
];

/// An expected figure and its simulated value.
#[derive(Clone, Debug, PartialEq, JsonSchema, Serialize)]
pub struct Check {
    /// Name of the case or statement.
    pub case: String,
    /// Name of the figure.
    pub figure: String,
    /// Unit of the figure, such as `us` or `Mb/s`.
    pub unit: String,
    /// Source of the expected figure.
    pub basis: Basis,
    /// How the simulated figure must compare.
    pub rule: Rule,
    /// The expected figure.
    pub expected: f64,
    /// Allowed difference, in per cent of the expected figure.
    pub percent: f64,
    /// The simulated figure.
    pub simulated: f64,
    /// Whether the simulated figure is as expected.
    pub holds: bool,
}

impl Row for Check {
    fn name(&self) -> String {
        format!("{}.{}", self.case, self.figure)
    }

    fn unit(&self) -> &str {
        &self.unit
    }

    fn values(&self) -> [f64; 2] {
        [self.expected, self.simulated]
    }
}

/// A case with its comparison.
#[derive(Clone, Debug)]
pub struct Case {
    /// Description of the comparison.
    pub data: CaseData,
    /// One row per figure.
    pub checks: Vec<Check>,
}

/// Simulates the cases of a group in a laboratory.
///
/// # Errors
/// If a case fails to run.
///
/// # Panics
/// If a case has no data, or if the names of its figures differ from the names in the data. Cases
/// and data are parts of the program.
pub fn simulate(published: &Published, part: Part, lab: Lab) -> Result<Vec<Case>, Failure> {
    let of_part = CASES.iter().filter(|(case_part, ..)| *case_part == part);
    let case = |(_, name, simulate): &(Part, &str, Simulate)| {
        let data = published.cases.iter().find(|data| data.name == *name).expect("a case");
        Ok(Case { data: data.clone(), checks: compare(data, &simulate(CaseLab::new(lab, name))?) })
    };
    of_part.map(case).collect()
}

/// Compares each published figure of a case with the simulated one.
///
/// # Panics
/// If the names of the figures differ.
pub(crate) fn compare(data: &CaseData, simulated: &Figures) -> Vec<Check> {
    assert_eq!(data.figures.len(), simulated.len(), "figures of {}", data.name);
    let check = |figure: &Figure| {
        let (_, simulated) =
            simulated.iter().find(|(name, _)| *name == figure.name).expect("a figure of the data");
        Check {
            case: data.name.clone(),
            figure: figure.name.clone(),
            unit: figure.unit.clone(),
            basis: figure.basis,
            rule: figure.rule,
            expected: figure.value,
            percent: figure.percent,
            simulated: *simulated,
            holds: figure.holds(*simulated),
        }
    };
    data.figures.iter().map(check).collect()
}

const COLUMNS: [Column<Check>; 8] = [
    ("figure", Left, |check| check.figure.clone()),
    ("unit", Left, |check| check.unit.clone()),
    ("", Left, |check| check.basis.name().to_owned()),
    ("expected", Right, |check| {
        let sign = match check.rule {
            Rule::Equal => "",
            Rule::AtMost => "<= ",
            Rule::AtLeast => ">= ",
        };
        format!("{sign}{}", number(check.expected))
    }),
    ("farlane", Right, |check| number(check.simulated)),
    ("difference", Right, |check| match error_percent(check.expected, check.simulated) {
        error if error.abs() < 1000.0 => percent(error),
        _ => String::new(),
    }),
    ("allowed", Right, |check| match check.percent {
        0.0 => "none".to_owned(),
        allowed => format!("{allowed} %"),
    }),
    ("", Left, |check| if check.holds { "holds" } else { "DOES NOT HOLD" }.to_owned()),
];

/// Formats a number with all its digits, at most six.
fn number(value: f64) -> String {
    let text = format!("{value:.6}");
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Returns one section per case.
pub fn sections(cases: &[Case]) -> Vec<Section> {
    cases.iter().map(section).collect()
}

fn section(case: &Case) -> Section {
    let Case { data, checks } = case;
    let mut notes = vec![format!("Source: {}", data.source), format!("Set-up: {}", data.setup)];
    notes.extend(data.differs.iter().map(|differs| format!("Differs: {differs}")));
    let because: [Column<Figure>; 2] = [
        ("figure", Left, |figure| figure.name.clone()),
        ("why", Wrap, |figure| figure.how.clone()),
    ];
    let tables = vec![
        (String::new(), Table::from_rows(&COLUMNS, checks)),
        (String::new(), Table::from_rows(&because, &data.figures)),
    ];
    Section { title: data.title.clone(), tables, notes, ..Section::default() }
}
