//! Write Zeroes (NVMe 1.4, section 6.17). DEAC is only a hint and not taken:
//! DLFEAT does not offer it.

use crate::block::Operation;
use crate::controller::{Controller, Plan};
use crate::failure::Failure;
use wire::nvme::Command;

impl Controller {
    pub(super) fn write_zeroes(&mut self, command: &Command) -> Result<Plan, Failure> {
        let namespace = self.namespace(command.nsid)?;
        let (offset, length) = namespace.range(command)?;
        namespace.writable()?;
        let zero = Operation::WriteZeroes { offset, length };
        Ok(Plan::Steps(self.through_cache(command, zero)))
    }
}
