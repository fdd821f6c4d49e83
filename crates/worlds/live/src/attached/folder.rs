//! A drive in a folder, as a device node serves it.

use super::NvmeDrive;
use crate::device::NodeSession;
use crate::random_number;
use node::device::SavedNode;
use nvme::state::{Records, State};
use nvme::{Settings, Subsystem};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use storage::drive::{Committer, DriveFolder};
use storage::media::Media;
use wire::Instant;

/// A drive in a folder, and the session of its device node.
pub struct OpenDrive {
    /// The drive.
    pub drive: NvmeDrive,
    /// Where the node stores its session.
    pub session: NodeSession,
    /// The session with which the node goes on.
    pub goes_on: Option<SavedNode>,
}

impl NvmeDrive {
    /// Opens the drive in `folder` for this process only, with `settings`. `warn` receives one line
    /// for each remark.
    ///
    /// # Errors
    /// One line that names the folder.
    pub fn open(folder: &Path, settings: Settings, warn: impl Fn(&str)) -> io::Result<OpenDrive> {
        let fail =
            |why: &dyn std::fmt::Display| io::Error::other(format!("{}: {why}", folder.display()));
        let (drive, notices) = DriveFolder::open(folder)?;
        notices.iter().for_each(|notice| warn(&format!("{}: {notice}", folder.display())));
        let mut state = State::decode(&drive.records()).map_err(|why| fail(&why))?;
        let known: BTreeMap<String, u64> =
            drive.contents()?.into_iter().map(|one| (one.name, one.incarnation)).collect();
        let mut media: BTreeMap<u32, Box<dyn Media>> = BTreeMap::new();
        let mut lost = false;
        for (nsid, namespace) in &state.namespaces {
            let contents = drive.open_contents(&namespace.contents)?;
            if contents.size() < namespace.bytes() {
                let (name, size) = (&namespace.contents, contents.size());
                let why = format!(
                    "namespace {nsid} has {} bytes, but its contents {name} only {size}",
                    namespace.bytes()
                );
                return Err(fail(&why));
            }
            lost |= known.get(&namespace.contents) != Some(&contents.incarnation());
            media.insert(*nsid, Box::new(contents));
        }
        if lost {
            // Set before the contents' own records change, so that a host that knows the drive is
            // notified.
            state.drive.incarnation = random_number();
            let changed = state.encode().remove_entry("drive").expect("every drive has it");
            drive.commit(&[(changed.0, Some(changed.1))])?;
        }
        let records = state.encode();
        let (session, saved) = NodeSession::open(folder)?;
        let goes_on = saved.filter(|_| !lost).and_then(|saved| {
            match resumed(&settings, &records, &saved.link.function) {
                Ok(subsystem) => Some((subsystem, saved)),
                Err(why) => {
                    warn(&format!("{}: the host does not go on: {why}", folder.display()));
                    None
                }
            }
        });
        let (subsystem, goes_on) = match goes_on {
            Some((subsystem, saved)) => (subsystem, Some(saved)),
            None => {
                let opened = Subsystem::open(Instant::ZERO, settings, &records);
                let mut subsystem = opened.map_err(|why| fail(&why))?.with_label();
                subsystem.keep();
                (subsystem, None)
            }
        };
        let drive = Self::new(subsystem, media).kept_by(Committer::new(drive)?);
        Ok(OpenDrive { drive, session, goes_on })
    }
}

/// The drive of an earlier process, which a host still uses.
fn resumed(settings: &Settings, records: &Records, function: &[u8]) -> io::Result<Subsystem> {
    let subsystem = Subsystem::reopen(Instant::ZERO, settings.clone(), records);
    let mut subsystem = subsystem.map_err(io::Error::other)?.with_label();
    subsystem.keep();
    subsystem.restore(Instant::ZERO, function).map_err(io::Error::other)?;
    Ok(subsystem)
}
