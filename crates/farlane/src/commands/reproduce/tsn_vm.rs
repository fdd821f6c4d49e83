//! `farlane reproduce tsn-vm`.

use super::Options;
use clap::ValueEnum;
use papers::tsn_vm::{self, published};
use report::Outcome;

/// A group of statements.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Packets outside of their slot
    Slots,
    /// Clocks and their servo
    Clocks,
    /// Stalls of the virtual machine, and results without them
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

/// Runs the requested parts.
pub fn run(options: &Options<Part>) -> Outcome {
    let published = published();
    options.run_checks("tsn-vm", &published, |part, lab| {
        let cases = tsn_vm::simulate(&published, part.cases(), lab)?;
        let (cases, sections): (Vec<_>, Vec<_>) = cases.into_iter().unzip();
        Ok((cases.into_iter().flat_map(|case| case.checks).collect(), sections))
    })
}
