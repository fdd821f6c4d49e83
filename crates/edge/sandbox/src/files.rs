//! Restricts files and TCP ports (landlock(7)).

use crate::Ruleset;
use crate::needs::{self, Needs};
use landlock::{
    ABI, Access as _, AccessFs, AccessNet, BitFlags, LandlockStatus, NetPort, PathBeneath, PathFd,
    RulesetAttr, RulesetCreatedAttr, RulesetStatus, Scope, make_bitflags,
};
use std::io;
use std::path::Path;

/// The newest version of Landlock whose rights are handled. A kernel with less enforces what it
/// has: 1 files, 2 and 3 rename and truncate, 4 TCP ports, 5 ioctl of devices, 6 signals and
/// abstract Unix sockets.
const NEWEST: ABI = ABI::V7;

/// Restricts this thread to the paths and ports of `needs`. Files that are already open stay
/// usable. The inner error is the reason why the kernel restricts nothing.
pub(crate) fn restrict(needs: &Needs) -> io::Result<Result<Ruleset, String>> {
    let failed = |error| io::Error::other(format!("Landlock: {error}"));
    let mut rules = landlock::Ruleset::default()
        .handle_access(AccessFs::from_all(NEWEST))
        // The node binds no port: its listener is open. UDP and other protocols are not covered;
        // the seccomp filter denies them.
        .and_then(|rules| rules.handle_access(AccessNet::BindTcp | AccessNet::ConnectTcp))
        .and_then(|rules| rules.scope(Scope::from_all(NEWEST)))
        .and_then(landlock::Ruleset::create)
        .map_err(failed)?;
    let mut counts = (0, 0);
    for (path, access) in &needs.paths {
        // A missing path stays forbidden; its user names it.
        let Ok(file) = PathFd::new(path) else { continue };
        let is_folder = path.is_dir();
        let rights = rights(*access, path, is_folder);
        rules = rules.add_rule(PathBeneath::new(file, rights)).map_err(failed)?;
        *(if is_folder { &mut counts.0 } else { &mut counts.1 }) += 1;
    }
    for port in &needs.connect {
        rules = rules.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(failed)?;
    }
    let status = rules.restrict_self().map_err(failed)?;
    let (folders, files) = counts;
    Ok(match status.landlock {
        LandlockStatus::NotImplemented => Err("kernel without it".into()),
        LandlockStatus::NotEnabled => {
            Err("the kernel has it switched off; add landlock to its option lsm=".into())
        }
        _ if status.ruleset == RulesetStatus::NotEnforced => Err("no rule is supported".into()),
        LandlockStatus::Available { effective_abi, .. } => {
            Ok(Ruleset { abi: (effective_abi as i32).min(NEWEST as i32), folders, files })
        }
    })
}

/// The rights of Landlock for an access. Rights of folders are errors for files.
fn rights(access: needs::Access, path: &Path, is_folder: bool) -> BitFlags<AccessFs> {
    let read = make_bitflags!(AccessFs::{ReadFile | ReadDir});
    let mut rights = match access {
        needs::Access::Read => read,
        needs::Access::Write => {
            read | make_bitflags!(AccessFs::{WriteFile | Truncate | MakeReg | MakeDir | RemoveFile})
        }
        needs::Access::Sockets => {
            make_bitflags!(AccessFs::{ReadDir | MakeSock | MakeDir | RemoveFile})
        }
    };
    if needs::is_device(path) {
        rights |= AccessFs::IoctlDev;
    }
    if is_folder { rights } else { rights & AccessFs::from_file(NEWEST) }
}
