//! Flush (NVMe 1.4, section 6.8).

use crate::block::Operation;
use crate::controller::{Controller, Plan, Step, steps};
use crate::failure::Failure;
use wire::nvme::{BROADCAST_NSID, Command};

impl Controller {
    pub(super) fn flush(&mut self, command: &Command) -> Result<Plan, Failure> {
        if command.nsid != BROADCAST_NSID {
            self.namespace(command.nsid)?;
            return Ok(Plan::Steps(steps(command.nsid, [Operation::Flush])));
        }
        // VWC says that the broadcast flushes every namespace (figure 247).
        let flush = |nsid| Step { nsid, operation: Operation::Flush };
        Ok(Plan::Steps(self.namespaces.iter().map(|namespace| flush(namespace.nsid)).collect()))
    }
}
