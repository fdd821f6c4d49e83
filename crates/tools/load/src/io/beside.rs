//! Which sections may run at the same time.

use super::section::{Section, Verify};
use super::session::Session;
use report::{Failure, Outcome};

impl Session {
    /// Checks that the sections of a group can run at the same time. The drive must support each
    /// section alone.
    ///
    /// # Errors
    /// One line that names the place of the first section that cannot run with the others.
    pub fn check_group(&self, group: &[Section]) -> Outcome {
        let queues = self.driver().queues();
        let mut jobs = 0;
        for (number, section) in group.iter().enumerate() {
            let fail = |message| Err(Failure(section.origin.fail(message).to_string()));
            jobs += section.workload.fio().map_or(1, |fio| fio.numjobs);
            if jobs > queues {
                return fail(format!(
                    "[{}]: with the sections beside it there are {jobs} jobs, each with a queue, \
                     and the drive has {queues}: separate sections with stonewall",
                    section.name
                ));
            }
            for other in &group[..number] {
                if spoils(section, other) && self.overlap(section, other)? {
                    return fail(format!(
                        "[{}] overlaps [{}], which runs at the same time, and one of them writes \
                         what the other compares (verify): separate them with stonewall, or give \
                         them other offsets",
                        section.name, other.name
                    ));
                }
            }
        }
        Ok(())
    }

    /// Returns whether two sections use common blocks.
    fn overlap(&self, a: &Section, b: &Section) -> Result<bool, Failure> {
        let alike = a.workload.nsid() == b.workload.nsid();
        let (Some(a), Some(b)) = (self.fio(a)?, self.fio(b)?) else { return Ok(false) };
        let (a, b) = (a.range(), b.range());
        Ok(alike && a.start < b.end && b.start < a.end)
    }
}

/// Returns whether one section writes and the other compares.
fn spoils(a: &Section, b: &Section) -> bool {
    let compares = |section: &Section| section.verify != Verify::No;
    a.writes() && compares(b) || b.writes() && compares(a)
}
