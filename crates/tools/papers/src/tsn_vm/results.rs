//! The groups of cases as parts of the experiment.

use super::{Part, published};
use crate::document::{self, Checks};
use crate::{Lab, Section};
use report::Failure;

impl document::Part for Part {
    type Results = Checks;

    const PUBLICATION: &'static str = "tsn-vm";
    const PARTS: &'static [(Self, &'static str, &'static str)] = &[
        (Self::Slots, Self::Slots.name(), "Packets outside of their slot"),
        (Self::Clocks, Self::Clocks.name(), "Clocks and their servo"),
        (
            Self::Stalls,
            Self::Stalls.name(),
            "Stalls of the virtual machine, and results without them",
        ),
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
        let (cases, sections): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
        results.checks.extend(cases.into_iter().flat_map(|case| case.checks));
        Ok(sections)
    }
}
