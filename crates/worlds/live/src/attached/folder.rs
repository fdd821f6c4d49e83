//! A drive in a folder, as a device node serves it.

use super::NvmeDrive;
use crate::random_number;
use nvme::state::State;
use nvme::{Settings, Subsystem};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use storage::drive::{Committer, DriveFolder};
use storage::media::Media;
use wire::Instant;

impl NvmeDrive {
    /// Opens the drive in `folder` for this process only, with `settings`. `warn` receives one line
    /// for each remark.
    ///
    /// # Errors
    /// One line that names the folder.
    pub fn open(folder: &Path, settings: Settings, warn: impl Fn(&str)) -> io::Result<Self> {
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
        let subsystem = Subsystem::open(Instant::ZERO, settings, &state.encode());
        let subsystem = subsystem.map_err(|why| fail(&why))?;
        Ok(Self::new(subsystem, media).kept_by(Committer::new(drive)?))
    }
}
