//! The groups of cases as parts of the experiment.

use super::{Part, published};
use crate::document::{self, Checks};
use crate::{Lab, Section};
use report::Failure;

impl document::Part for Part {
    type Results = Checks;

    const PUBLICATION: &'static str = "tsn-ports";
    const PARTS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Priority, Self::Priority.name(), "Strict priority and cut-through"),
        (Self::Gates, Self::Gates.name(), "Gates"),
        (Self::Shapers, Self::Shapers.name(), "Credit-based and asynchronous shapers, weights"),
        (Self::Preemption, Self::Preemption.name(), "Frame preemption"),
        (Self::Cyclic, Self::Cyclic.name(), "Cyclic queuing and forwarding"),
    ];
    const PUBLISHED: &'static [Self] = &Self::ALL;

    fn citation() -> String {
        published().title
    }

    fn section(figure: &str) -> String {
        published().section(figure)
    }

    fn simulate(self, results: &mut Checks, lab: Lab<'_>) -> Result<Vec<Section>, Failure> {
        let cases = super::simulate(&published(), self, lab)?;
        let sections = super::sections(&cases);
        results.checks.extend(cases.into_iter().flat_map(|case| case.checks));
        Ok(sections)
    }
}
