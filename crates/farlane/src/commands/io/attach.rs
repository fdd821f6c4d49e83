//! What a drive under load does by itself: it interrupts, and after an outage it comes back.

use super::group::Group;
use super::machine::Machine;
use super::session::Session;
use report::Failure;
use workload::NvmeDrive;

impl Session {
    /// Passes interrupts on, or looks at all queues without them; whether there were interrupts.
    pub fn signal(&mut self, group: &mut Group) -> bool {
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
            // Vector 0 is that of the admin queue.
            if let (true, Some(queue)) = (from == self.node.bdf, vector.checked_sub(1)) {
                any = true;
                group.signal(now, queue as usize);
            }
        }
        any
    }

    /// Brings the drive up again behind its link, and gives it back to the group. Yields what it is
    /// like, or why it cannot be used; fails if the machine breaks down.
    pub fn attach_again(
        &mut self,
        group: &mut Group,
    ) -> Result<Result<&'static str, String>, Failure> {
        let Some(port) = self.port.clone() else {
            return Ok(Err("the drive's port is not known".to_owned()));
        };
        let bring_up = self.machine.bring_up_with(self.settings);
        let before = self.node.clone();
        let again = self.machine.run(bring_up.bring_up_again(0, port, before))?;
        let NvmeDrive { node, driver, new_contents, .. } = match again {
            Ok(drive) => drive,
            Err(error) => return Ok(Err(format!("the drive cannot be attached again: {error}"))),
        };
        // Our host node hides from its clients which contents a drive has.
        let unknown = matches!(self.machine, Machine::VfioUser(_));
        let forget = new_contents || unknown;
        if let Err(why) = group.resume(self.machine.clock().now(), driver, forget) {
            return Ok(Err(format!("the drive that came back is another: {why}")));
        }
        self.node = node;
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
