//! What is done in a guest: the scripts of `tests/guest/scripts`.

use std::time::Duration;

use crate::stock_guest::guest::Guest;
use crate::stock_guest::script::{Script, script};

/// The stock driver is bound to `nvmeN`, and nvme-cli can identify it.
pub fn identify(drive: u32) -> Script {
    script!("identify").argument(format!("nvme{drive}")).argument(namespace(drive))
}

/// `dd` to the drive and back, in small and in large commands, of that many MiB each.
pub fn transfer(drive: u32, mebibytes: u32) -> Script {
    script!("transfer").argument(namespace(drive)).argument(mebibytes)
}

/// fio on all these drives at once, two jobs each of that many MiB.
pub fn fio(mebibytes: u32, drives: &[u32]) -> Script {
    drives.iter().fold(script!("fio").argument(mebibytes), |script, drive| {
        script.argument(namespace(*drive))
    })
}

/// A drive behind the kernel's own NVMe/TCP target, in the guest; needs the lab's archive.
pub fn kernel_target(serial: &str) -> Script {
    script!("kernel_target").argument(serial)
}

/// One transfer at a time on the drives with these serial numbers in turns, as `latency.sh` has it.
pub fn latency(rounds: usize, seconds: u32, serials: &[&str]) -> Script {
    let script = script!("latency").argument(rounds).argument(seconds);
    serials.iter().fold(script, Script::argument)
}

/// Makes a file system with files; its output has their checksums.
pub fn files(drive: u32) -> Script {
    script!("files").argument(namespace(drive))
}

/// The file system and its files are as [`files`] left them.
pub fn again(drive: u32, checksums: &str) -> Script {
    script!("again").argument(namespace(drive)).argument(checksums.trim_end())
}

/// Starts a load that goes on until the drive is lost.
pub fn load(drive: u32) -> Script {
    script!("load").argument(namespace(drive))
}

/// The status register (CSTS) of a function, read past the driver, has that value.
/// Needs a kernel that was started with [`RELAXED`].
pub fn status_register(function: &str, expected: u32) -> Script {
    script!("register").argument(function).argument(format!("0x{expected:08X}"))
}

/// The drive at `function` is enabled and ready. Where its status register is in
/// the guest's memory, as QEMU's monitor takes it.
pub fn ready(guest: &mut Guest, function: &str) -> String {
    let output = guest.run(&status_register(function, 1));
    let (_, address) = output.text.split_once("CSTS at ").expect("an address");
    address.split_whitespace().next().unwrap().to_owned()
}

/// Lets a guest read a drive's registers while the driver has them.
pub const RELAXED: &str = "iomem=relaxed";

/// Waits until the driver gave up the drive and the load saw it.
pub fn lost(drive: u32, limit: Duration) -> Script {
    script!("lost").argument(format!("nvme{drive}")).argument(limit.as_secs())
}

/// Waits until reads of drives that nobody answers for have failed, and their drivers gave them up.
pub fn dead(drives: &[u32], limit: Duration) -> Script {
    drives.iter().fold(script!("dead").argument(limit.as_secs()), |script, drive| {
        script.argument(format!("nvme{drive}"))
    })
}

/// nvme-cli and others on a drive with three namespaces as `tools.sh` has them.
pub fn tools(drive: u32) -> Script {
    script!("tools").argument(format!("nvme{drive}"))
}

/// A drive as `drive.sh` has it; further arguments: power cycles, unsafe shutdowns, when.
pub fn folder_drive(drive: u32, serial: &str, nguids: &[String]) -> Script {
    let script = script!("drive").argument(format!("nvme{drive}")).argument(serial);
    nguids.iter().fold(script, |script, nguid| script.argument(nguid))
}

/// The admin commands of nvme-cli, as `admin.sh` has them.
pub fn admin(drive: u32) -> Script {
    script!("admin").argument(format!("nvme{drive}"))
}

/// nvme-cli creates, formats, sanitizes and deletes a namespace, as `manage.sh` has it.
pub fn manage(drive: u32) -> Script {
    script!("manage").argument(format!("nvme{drive}"))
}

/// The persistent event log of a drive, and doorbells in the guest's memory.
pub fn events(drive: u32) -> Script {
    script!("events").argument(format!("nvme{drive}"))
}

/// The kernel, nvme-cli and fio use protection information, as `protection.sh` has it.
pub fn protection(drive: u32) -> Script {
    script!("protection").argument(format!("nvme{drive}"))
}

/// Fills a drive of that many MiB.
pub fn fill(drive: u32, mebibytes: u32) -> Script {
    script!("fill").argument(namespace(drive)).argument(mebibytes)
}

/// Starts to read and compare what [`fill`] wrote, until that fails.
pub fn reading(drives: &[u32]) -> Script {
    drives.iter().fold(script!("reading"), |script, drive| script.argument(namespace(*drive)))
}

/// Those reads go on, and bring what was written.
pub fn stalled(drive: u32, limit: Duration) -> Script {
    script!("stalled").argument(namespace(drive)).argument(limit.as_secs())
}

/// Those reads have ended with an error.
pub fn failed(drive: u32, limit: Duration) -> Script {
    script!("failed").argument(namespace(drive)).argument(limit.as_secs())
}

/// Resets a PCI function, such as `0000:01:00.0`, and attaches it anew.
pub fn reset(function: &str) -> Script {
    script!("reset").argument(function)
}

/// The first MiBs of a drive are zeroes.
pub fn empty(drive: u32, mebibytes: u32) -> Script {
    script!("empty").argument(namespace(drive)).argument(mebibytes)
}

/// Removes a PCI function, such as `0000:01:00.0`, from the guest's tree.
pub fn remove(function: &str) -> Script {
    script!("remove").argument(function)
}

/// Has the guest look for PCI functions anew.
pub fn rescan() -> Script {
    script!("rescan")
}

/// Waits until the guest has that many namespaces.
pub fn attached(namespaces: u32) -> Script {
    script!("attached").argument(namespaces)
}

/// Every command that the driver set up.
pub fn commands() -> Script {
    script!("commands")
}

/// The whole of it on one drive; returns the files' checksums.
pub fn everything(guest: &mut Guest, drive: u32) -> String {
    guest.run(&identify(drive));
    guest.run(&transfer(drive, 4));
    guest.run(&fio(4, &[drive]));
    let output = guest.run(&files(drive));
    output.between("checksums").expect("checksums").to_owned()
}

/// Enough to see that a drive works.
pub fn briefly(guest: &mut Guest, drive: u32) {
    guest.run(&identify(drive));
    guest.run(&transfer(drive, 1));
    guest.run(&fio(1, &[drive]));
}

/// Two drives that are not the same one, both loaded at once.
pub fn two_drives(guest: &mut Guest) {
    guest.run(&attached(2));
    for drive in [0, 1] {
        guest.run(&identify(drive));
    }
    guest.run(&script!("distinct").argument(namespace(0)).argument(namespace(1)));
    guest.run(&fio(2, &[0, 1]));
}

fn namespace(drive: u32) -> String {
    format!("nvme{drive}n1")
}
