//! `farlane reproduce tsn-ports`.

use super::Options;
use clap::ValueEnum;
use papers::Section;
use papers::tsn_ports::{self, Check, published};
use report::{Failure, Outcome};
use serde::Serialize;
use std::cell::Cell;

/// A group of cases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Strict priority and cut-through
    Priority,
    /// Gates
    Gates,
    /// Credit-based and asynchronous shapers, weights
    Shapers,
    /// Frame preemption
    Preemption,
    /// Cyclic queuing and forwarding
    Cyclic,
}

impl Part {
    const fn cases(self) -> tsn_ports::Part {
        match self {
            Self::Priority => tsn_ports::Part::Priority,
            Self::Gates => tsn_ports::Part::Gates,
            Self::Shapers => tsn_ports::Part::Shapers,
            Self::Preemption => tsn_ports::Part::Preemption,
            Self::Cyclic => tsn_ports::Part::Cyclic,
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
    options.run("tsn-ports", published.title.clone(), |part, results: &mut Results| {
        let cases = tsn_ports::simulate(&published, part.cases())?;
        let checks = cases.iter().flat_map(|case| case.checks.iter().cloned());
        results.checks.extend(checks);
        failed.set(results.checks.iter().filter(|check| !check.holds).count());
        Ok::<Vec<Section>, Failure>(tsn_ports::sections(&cases))
    })?;
    match failed.get() {
        0 => Ok(()),
        failed => Err(Failure(format!("{failed} figures are not as expected"))),
    }
}
