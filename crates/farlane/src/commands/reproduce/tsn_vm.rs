//! `farlane reproduce tsn-vm`.

use super::Options;
use clap::ValueEnum;
use papers::tsn_ports::Check;
use papers::tsn_vm::{self, published};
use report::{Failure, Outcome};
use serde::Serialize;
use std::cell::Cell;

/// A group of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Packets that miss their slot
    Slots,
    /// Clocks and their servo
    Clocks,
    /// Stalls, and what leaving them out changes
    Stalls,
}

impl Part {
    const fn cases(self) -> tsn_vm::Part {
        match self {
            Self::Slots => tsn_vm::Part::Slots,
            Self::Clocks => tsn_vm::Part::Clocks,
            Self::Stalls => tsn_vm::Part::Stalls,
        }
    }
}

/// What came of the parts that ran.
#[derive(Default, Serialize)]
struct Results {
    checks: Vec<Check>,
}

/// Runs the requested parts.
pub fn run(options: &Options<Part>) -> Outcome {
    let published = published();
    let failed = Cell::new(0);
    options.run("tsn-vm", published.title.clone(), |part, results: &mut Results| {
        let cases = tsn_vm::simulate(&published, part.cases())?;
        let (cases, sections): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
        results.checks.extend(cases.into_iter().flat_map(|case| case.checks));
        failed.set(results.checks.iter().filter(|check| !check.holds).count());
        Ok(sections)
    })?;
    match failed.get() {
        0 => Ok(()),
        failed => Err(Failure(format!("{failed} figures are not as expected"))),
    }
}
