//! Write Uncorrectable (NVMe 1.4, section 6.16), for drives with records. A record contains the
//! marks. New marks are stored before the command completes. A write to marked blocks completes
//! after the data are on the media and the marks are removed from the record.

use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::slots::Key;
use crate::state::MAX_UNCORRECTABLE;
use crate::subsystem::Shared;
use wire::nvme::{Command, StatusCode};

impl Controller {
    pub(super) fn write_uncorrectable(
        &self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let namespace = shared.namespace(self.id, command.nsid)?;
        namespace.range(command)?;
        shared.writable(namespace)?;
        let blocks = command.slba()..command.slba() + u64::from(command.blocks());
        let mut marks = namespace.marks.clone();
        let before = marks.blocks();
        marks.set(blocks.clone());
        if shared.marked() - before + marks.blocks() > MAX_UNCORRECTABLE {
            return Err(Failure::permanent(StatusCode::WRITE_FAULT));
        }
        shared.mark((self.id, key), command.nsid, vec![blocks], true);
        Ok(Plan::Wait)
    }
}
