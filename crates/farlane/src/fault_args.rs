//! The option `--fault`.

use node::faults::{Fault, Faults};

/// Faults of a drive and its node.
#[derive(clap::Args, Clone, Debug)]
pub struct DriveFaultArgs {
    /// Fault for tests, such as late=5ms,at=2s,for=100ms,lba=100+8; error=media, lost-completion,
    /// poison, link-down or stop. Repeatable; docs/faults.md has all words
    #[arg(long = "fault", value_name = "FAULT", value_parser = keys::fault)]
    faults: Vec<Fault>,
}

impl DriveFaultArgs {
    /// The faults of the drive, and of the node.
    pub fn split(&self) -> [Faults; 2] {
        let select = |of_drive| {
            let faults = self.faults.iter().filter(|fault| fault.kind.is_of_drive() == of_drive);
            faults.cloned().collect()
        };
        [select(true), select(false)]
    }
}

/// Faults of a node without a drive.
#[derive(clap::Args, Clone, Debug)]
pub struct NodeFaultArgs {
    /// Fault for tests: link-down or stop, with at=TIME and for=TIME. Repeatable;
    /// docs/faults.md
    #[arg(long = "fault", value_name = "FAULT", value_parser = keys::node_fault)]
    faults: Vec<Fault>,
}

impl NodeFaultArgs {
    /// The faults.
    pub fn faults(&self) -> Faults {
        self.faults.iter().cloned().collect()
    }
}
