//! Events of a drive under load: interrupts, and the return after an outage.

use super::group::Group;
use super::machine::InitiatorMachine;
use super::session::{Session, attach};
use report::Failure;

impl Session {
    /// Processes interrupts; without interrupts polls all queues. Returns whether there were
    /// interrupts.
    pub(super) fn signal(&mut self, group: &mut Group) -> bool {
        let now = self.machine.clock().now();
        if !self.settings.interrupts {
            if !self.machine.is_up() {
                return false;
            }
            (0..self.settings.io_queues.into()).for_each(|queue| group.signal(now, queue));
            return false;
        }
        let mut any = false;
        while let Some((from, vector)) = self.machine.interrupt() {
            // Vector 0 belongs to the admin queue.
            if let (true, Some(queue)) = (from == self.slot.node().bdf, vector.checked_sub(1)) {
                any = true;
                group.signal(now, queue as usize);
            }
        }
        any
    }

    /// Brings the drive up again after its link returned, and continues the group with the drive.
    /// Returns a description of the drive, or the reason why the drive cannot be used.
    ///
    /// # Errors
    /// If the machine fails.
    pub(super) fn attach_again(
        &mut self,
        group: &mut Group,
    ) -> Result<Result<&'static str, String>, Failure> {
        let gone = |why| Ok(Err(format!("the drive cannot be attached again: {why}")));
        self.slot.link_up();
        let new_contents = match self.machine.ready(&mut self.slot)? {
            Ok(new_contents) => new_contents,
            Err(why) => return gone(why),
        };
        let driver = match attach(&mut self.machine, self.slot.node(), self.settings, Vec::new())? {
            Ok(driver) => driver,
            Err(error) => return gone(error.to_string()),
        };
        // A vfio-user server, such as our host node, does not report whether the drive has new
        // contents.
        let unknown = matches!(self.machine, InitiatorMachine::VfioUser(_));
        let forget = new_contents || unknown;
        if let Err(why) = group.resume(self.machine.clock().now(), driver, forget) {
            return Ok(Err(format!("the drive that came back is another: {why}")));
        }
        if forget {
            self.written.clear();
        }
        Ok(Ok(match new_contents {
            true => "the drive is attached again with new contents",
            false if unknown => {
                "the drive is attached again; what was written before is not compared"
            }
            false => "the drive is attached again",
        }))
    }
}
