//! A drive in a folder, as a device node serves it.

use super::NvmeDrive;
use crate::device::NodeSession;
use crate::random_number;
use credentials::host_identifier;
use node::device::SavedNode;
use node::drive::FIRST;
use nvme::state::{Records, State};
use nvme::{Settings, Subsystem};
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use storage::drive::{Committer, DriveFolder, Session};
use storage::media::Media;
use wire::Instant;

/// A drive in a folder, and the sessions of its device nodes.
pub struct OpenDrive {
    /// The drive.
    pub drive: NvmeDrive,
    /// For each controller, where its node stores its session, and the session with which it goes on.
    pub sessions: Vec<(NodeSession, Option<SavedNode>)>,
}

impl NvmeDrive {
    /// Opens the drive in `folder` for this process only, with `settings`. `controllers` is the number
    /// of controllers, 1 or more. `warn` receives one line for each remark.
    ///
    /// # Errors
    /// One line that names the folder.
    pub fn open(
        folder: &Path,
        settings: Settings,
        controllers: u16,
        warn: impl Fn(&str),
    ) -> io::Result<OpenDrive> {
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
        let sessions = (FIRST..=controllers).map(|one| NodeSession::open(folder, one));
        let (sessions, mut saved): (Vec<_>, Vec<_>) =
            sessions.collect::<io::Result<Vec<_>>>()?.into_iter().unzip();
        Session::remove_above(folder, controllers)?;
        let goes_on = !lost && saved.iter().any(Option::is_some);
        let resumed = match goes_on.then(|| resumed(&settings, &records, &saved)).transpose() {
            Ok(resumed) => resumed,
            Err(why) => {
                warn(&format!("{}: no host goes on: {why}", folder.display()));
                None
            }
        };
        let subsystem = match resumed {
            Some(subsystem) => subsystem,
            None => {
                saved.fill_with(|| None);
                let opened = Subsystem::open(Instant::ZERO, settings, &records);
                kept(opened.map_err(|why| fail(&why))?, controllers)
            }
        };
        let drive = Self::new(subsystem, media).kept_by(Committer::new(drive)?);
        Ok(OpenDrive { drive, sessions: sessions.into_iter().zip(saved).collect() })
    }
}

/// The drive of an earlier process, which hosts still use; `saved` has an entry for each controller.
fn resumed(
    settings: &Settings,
    records: &Records,
    saved: &[Option<SavedNode>],
) -> io::Result<Subsystem> {
    let opened = Subsystem::reopen(Instant::ZERO, settings.clone(), records);
    let mut subsystem = kept(opened.map_err(io::Error::other)?, saved.len() as u16);
    for (controller, saved) in (FIRST..).zip(saved) {
        let Some(saved) = saved else { continue };
        subsystem.port(controller).bind_host(saved.peer().map(host_identifier));
        let restored = subsystem.restore(Instant::ZERO, controller, &saved.link.function);
        restored.map_err(io::Error::other)?;
    }
    Ok(subsystem)
}

/// A subsystem with its controllers, whose states are kept.
fn kept(subsystem: Subsystem, controllers: u16) -> Subsystem {
    let mut subsystem = subsystem.with_controllers(Instant::ZERO, controllers).with_label();
    subsystem.keep();
    subsystem
}
