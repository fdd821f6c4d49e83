//! What a drive under load does by itself: it interrupts, and after an outage it comes back.

use super::session::Session;
use report::Failure;
use workload::{Jobs, NvmeDrive, Work};

impl Session {
    /// Whether the link to the drive's node is up.
    pub fn is_up(&self) -> bool {
        self.rig.machine.attached().upstream().tunnel(0).is_up()
    }

    /// Passes interrupts on; whether there were any.
    pub fn signal(&mut self, jobs: &mut Jobs) -> bool {
        let now = self.rig.machine.clock().now();
        let mut any = false;
        while let Some((from, vector)) = self.rig.memory.interrupts.pop_front() {
            // Vector 0 is that of the admin queue.
            if let (true, Some(queue)) = (from == self.node.bdf, vector.checked_sub(1)) {
                any = true;
                jobs.signal(now, 0, queue as usize);
            }
        }
        any
    }

    /// Brings the drive up again behind its link, and gives it back to the jobs. Yields what it is
    /// like, or why it cannot be used; fails if the machine breaks down.
    pub fn attach_again(
        &mut self,
        jobs: &mut Jobs,
    ) -> Result<Result<&'static str, String>, Failure> {
        let Some(port) = self.port.clone() else {
            return Ok(Err("the drive's port is not known".to_owned()));
        };
        let bring_up = self.rig.bring_up_with(self.settings);
        let before = self.node.clone();
        let again = self.rig.run(bring_up.bring_up_again(0, port, before))?;
        let NvmeDrive { node, driver, new_contents, .. } = match again {
            Ok(drive) => drive,
            Err(error) => return Ok(Err(format!("the drive cannot be attached again: {error}"))),
        };
        if let Err(why) = jobs.check(&driver) {
            return Ok(Err(format!("the drive that came back is another: {why}")));
        }
        self.node = node;
        if new_contents {
            jobs.forget(0);
        }
        // What waited for the drive was never submitted, and is no worse for new contents.
        jobs.drive_restored(self.rig.machine.clock().now(), 0, driver, false);
        Ok(Ok(match new_contents {
            true => "the drive is attached again with new contents",
            false => "the drive is attached again",
        }))
    }
}
