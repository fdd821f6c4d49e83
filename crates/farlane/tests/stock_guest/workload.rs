//! Work in a guest: the scripts of `tests/guest/scripts`.

use std::time::Duration;

use crate::stock_guest::guest::Guest;
use crate::stock_guest::script::{Script, script};

/// Checks that the stock driver is bound to `nvmeN` and that nvme-cli can identify the drive.
pub fn identify(drive: u32) -> Script {
    script!("identify").argument(format!("nvme{drive}")).argument(namespace(drive))
}

/// Copies `mebibytes` MiB to the drive and back by `dd`, in small and in large commands.
pub fn transfer(drive: u32, mebibytes: u32) -> Script {
    script!("transfer").argument(namespace(drive)).argument(mebibytes)
}

/// Runs fio on all these drives at once, with two jobs of `mebibytes` MiB per drive.
pub fn fio(mebibytes: u32, drives: &[u32]) -> Script {
    drives.iter().fold(script!("fio").argument(mebibytes), |script, drive| {
        script.argument(namespace(*drive))
    })
}

/// Creates a drive behind the kernel's own NVMe/TCP target in the guest. Needs
/// [`lab`](super::guest::Builder::lab).
pub fn kernel_target(serial: &str) -> Script {
    script!("kernel_target").argument(serial)
}

/// Measures single transfers on the drives with these serial numbers in turns (`latency.sh`).
pub fn latency(rounds: usize, seconds: u32, serials: &[&str]) -> Script {
    let script = script!("latency").argument(rounds).argument(seconds);
    serials.iter().fold(script, Script::argument)
}

/// Creates a file system with files; prints the checksums of the files.
pub fn files(drive: u32) -> Script {
    script!("files").argument(namespace(drive))
}

/// Checks that the file system and its files are as [`files`] left them.
pub fn again(drive: u32, checksums: &str) -> Script {
    script!("again").argument(namespace(drive)).argument(checksums.trim_end())
}

/// Starts a load that continues until the drive is lost.
pub fn load(drive: u32) -> Script {
    script!("load").argument(namespace(drive))
}

/// Starts verified reads and writes.
pub fn verifying(drive: u32) -> Script {
    script!("verifying").argument(namespace(drive))
}

/// As [`verifying`], on the only namespace: one with two paths has the number of either controller.
pub fn verifying_the_only() -> Script {
    script!("verifying").argument("nvme*n1")
}

/// Ends [`verifying`], and checks that neither it nor the driver had an error.
pub fn verified() -> Script {
    script!("verified")
}

/// Waits until the load has commands that the drive has not completed.
pub fn waiting(drive: u32) -> Script {
    script!("waiting").argument(namespace(drive))
}

/// Checks that the status register (CSTS) of a function has this value. The script reads the
/// register without the driver, which needs a kernel with [`RELAXED`].
pub fn status_register(function: &str, expected: u32) -> Script {
    script!("register").argument(function).argument(format!("0x{expected:08X}"))
}

/// Checks that the drive at `function` is enabled and ready. Returns the address of its status
/// register in the guest's memory, for QEMU's monitor.
pub fn ready(guest: &mut Guest, function: &str) -> String {
    let output = guest.run(&status_register(function, 1));
    let (_, address) = output.text.split_once("CSTS at ").expect("an address");
    address.split_whitespace().next().unwrap().to_owned()
}

/// Kernel parameter that lets a guest read the registers of a drive that a driver uses.
pub const RELAXED: &str = "iomem=relaxed";

/// Waits until the driver has removed the drive and the load has failed.
pub fn lost(drive: u32, limit: Duration) -> Script {
    script!("lost").argument(format!("nvme{drive}")).argument(limit.as_secs())
}

/// Waits until reads of these unreachable drives have failed and their drivers have removed the
/// drives.
pub fn dead(drives: &[u32], limit: Duration) -> Script {
    drives.iter().fold(script!("dead").argument(limit.as_secs()), |script, drive| {
        script.argument(format!("nvme{drive}"))
    })
}

/// Runs nvme-cli and other programs on a drive with three namespaces (`tools.sh`).
pub fn tools(drive: u32) -> Script {
    script!("tools").argument(format!("nvme{drive}"))
}

/// Checks a drive in a folder (`drive.sh`). Callers add arguments: power cycles, unsafe shutdowns,
/// and `first` or `again`.
pub fn folder_drive(drive: u32, serial: &str, nguids: &[String]) -> Script {
    let script = script!("drive").argument(format!("nvme{drive}")).argument(serial);
    nguids.iter().fold(script, |script, nguid| script.argument(nguid))
}

/// Runs admin commands of nvme-cli (`admin.sh`).
pub fn admin(drive: u32) -> Script {
    script!("admin").argument(format!("nvme{drive}"))
}

/// Creates, formats, sanitizes and deletes a namespace by nvme-cli (`manage.sh`).
pub fn manage(drive: u32) -> Script {
    script!("manage").argument(format!("nvme{drive}"))
}

/// Namespaces of a drive with two controllers, by nvme-cli (`subsystem.sh`). `part` is what this
/// guest does.
pub fn subsystem(part: &str) -> Script {
    script!("subsystem").argument(part)
}

/// Two paths to one namespace (`multipath.sh`).
pub fn multipath(part: &str) -> Script {
    script!("multipath").arguments(part)
}

/// A step of a host that shares a namespace by reservations, by nvme-cli (`reservation.sh`).
pub fn reservation(step: &str) -> Script {
    script!("reservation").arguments(step)
}

/// Checks the persistent event log of a drive, and doorbells in the guest's memory (`events.sh`).
pub fn events(drive: u32) -> Script {
    script!("events").argument(format!("nvme{drive}"))
}

/// Checks protection information with the kernel, nvme-cli and fio (`protection.sh`).
pub fn protection(drive: u32) -> Script {
    script!("protection").argument(format!("nvme{drive}"))
}

/// Fills the first `mebibytes` MiB of a drive.
pub fn fill(drive: u32, mebibytes: u32) -> Script {
    script!("fill").argument(namespace(drive)).argument(mebibytes)
}

/// Starts to read and compare the data of [`fill`] until a read fails.
pub fn reading(drives: &[u32]) -> Script {
    drives.iter().fold(script!("reading"), |script, drive| script.argument(namespace(*drive)))
}

/// Waits until the reads of [`reading`] continue, with the written data.
pub fn stalled(drive: u32, limit: Duration) -> Script {
    script!("stalled").argument(namespace(drive)).argument(limit.as_secs())
}

/// Waits until the reads of [`reading`] have ended with an error.
pub fn failed(drive: u32, limit: Duration) -> Script {
    script!("failed").argument(namespace(drive)).argument(limit.as_secs())
}

/// Resets a PCI function, such as `0000:01:00.0`, and binds its driver again.
pub fn reset(function: &str) -> Script {
    script!("reset").argument(function)
}

/// Checks that the first `mebibytes` MiB of a drive are zeroes.
pub fn empty(drive: u32, mebibytes: u32) -> Script {
    script!("empty").argument(namespace(drive)).argument(mebibytes)
}

/// Removes a PCI function, such as `0000:01:00.0`, from the guest's tree.
pub fn remove(function: &str) -> Script {
    script!("remove").argument(function)
}

/// Makes the guest search for PCI functions.
pub fn rescan() -> Script {
    script!("rescan")
}

/// Waits until the guest has this number of namespaces.
pub fn attached(namespaces: u32) -> Script {
    script!("attached").argument(namespaces)
}

/// Prints every command that the NVMe driver issued.
pub fn commands() -> Script {
    script!("commands")
}

/// Runs all work on one drive; returns the checksums of the files.
pub fn everything(guest: &mut Guest, drive: u32) -> String {
    guest.run(&identify(drive));
    guest.run(&transfer(drive, 4));
    guest.run(&fio(4, &[drive]));
    let output = guest.run(&files(drive));
    output.between("checksums").expect("checksums").to_owned()
}

/// Runs enough work to see that a drive works.
pub fn briefly(guest: &mut Guest, drive: u32) {
    guest.run(&identify(drive));
    guest.run(&transfer(drive, 1));
    guest.run(&fio(1, &[drive]));
}

/// Checks that two drives are different, and loads both at once.
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
