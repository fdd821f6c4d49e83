//! Device Self-test (NVMe 1.4, section 5.8).

use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::subsystem::Shared;
use wire::nvme::{BROADCAST_NSID, Command};

/// STC, the self-test code: bits 3:0 of command dword 10 (figure 169).
const CODE: u32 = 0xf;
const SHORT: u32 = 1;
const EXTENDED: u32 = 2;
const ABORT: u32 = 0xf;

impl Controller {
    pub(super) fn self_test(
        &mut self,
        shared: &mut Shared,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let nsid = command.nsid;
        // NSID 0 tests only the controller.
        if !matches!(nsid, 0 | BROADCAST_NSID) {
            shared.namespace(self.id, nsid)?;
        }
        match command.cdw10 & CODE {
            code @ (SHORT | EXTENDED) => {
                shared.start_test(self.now, self.id, nsid, code == EXTENDED)?;
            }
            ABORT => shared.abort_test(self.now),
            _ => return Err(Failure::cdw(10, 0)),
        }
        Ok(Plan::Done(0))
    }
}
