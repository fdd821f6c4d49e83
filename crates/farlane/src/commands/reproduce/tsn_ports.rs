//! `farlane reproduce tsn-ports`.

use super::Options;
use clap::ValueEnum;
use papers::tsn_ports::{self, published};
use report::Outcome;

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

/// Runs the requested parts.
pub fn run(options: &Options<Part>) -> Outcome {
    let published = published();
    options.run_checks("tsn-ports", &published, |part, lab| {
        let cases = tsn_ports::simulate(&published, part.cases(), lab)?;
        let sections = tsn_ports::sections(&cases);
        Ok((cases.into_iter().flat_map(|case| case.checks).collect(), sections))
    })
}
