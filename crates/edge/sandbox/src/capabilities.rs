//! Drops capabilities (capabilities(7)).

use crate::needs::{Access, Needs};
use rustix::fs::{self, AtFlags, CWD};
use rustix::io::Errno;
use rustix::process::geteuid;
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, clear_ambient_capability_set,
    remove_capability_from_bounding_set, set_capabilities, set_no_new_privs,
};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// Drops all capabilities that `needs` does not name, from all five sets of this thread, and
/// returns the names of those left. No program that the thread executes gets any back
/// (`PR_SET_NO_NEW_PRIVS`). The bounding set stays as it is without CAP_SETPCAP.
pub(crate) fn restrict(needs: &Needs) -> io::Result<Vec<String>> {
    let all = needs.files.iter().chain(&needs.paths);
    let others = all.filter(|(path, _)| is_of_another_user(path));
    let usable: Vec<_> = others.filter(is_usable).collect();
    let mut keep = CapabilitySet::empty();
    keep.set(CapabilitySet::NET_RAW, needs.packet_sockets);
    keep.set(CapabilitySet::NET_ADMIN, needs.high_priority);
    for capability in CapabilitySet::all() - keep {
        match remove_capability_from_bounding_set(capability) {
            // Not allowed; or a capability that the kernel does not know.
            Ok(()) | Err(Errno::PERM | Errno::INVAL) => {}
            Err(error) => return Err(error.into()),
        }
    }
    // Fails before Linux 4.3, which has no such set.
    let _ = clear_ambient_capability_set();
    let left = capabilities(None)?.permitted & keep;
    let sets =
        CapabilitySets { effective: left, permitted: left, inheritable: CapabilitySet::empty() };
    set_capabilities(None, sets)?;
    set_no_new_privs(true)?;
    if let Some((path, _)) = usable.iter().find(|need| !is_usable(need)) {
        return Err(io::Error::new(
            io::ErrorKind::PermissionDenied,
            format!(
                "{} belongs to another user, and the node drops CAP_DAC_OVERRIDE; start the node as \
                 this user, or keep capabilities with --sandbox landlock,seccomp",
                path.display()
            ),
        ));
    }
    Ok(left.iter_names().map(|(name, _)| format!("CAP_{name}")).collect())
}

fn is_of_another_user(path: &Path) -> bool {
    path.metadata().is_ok_and(|found| found.uid() != geteuid().as_raw())
}

/// Whether owner and mode of the path allow the access.
fn is_usable((path, access): &&(PathBuf, Access)) -> bool {
    let mut wanted = match access {
        Access::Read => fs::Access::READ_OK,
        Access::Write => fs::Access::READ_OK | fs::Access::WRITE_OK,
        Access::Sockets => fs::Access::WRITE_OK,
    };
    wanted.set(fs::Access::EXEC_OK, path.is_dir());
    // By effective user, as open(2).
    fs::accessat(CWD, path, wanted, AtFlags::EACCESS).is_ok()
}
