//! The scheduling class of this thread, and the hardware stamps of a network interface.

use nix::libc;
use rustix::fd::{AsFd, AsRawFd};
use std::io;

/// Sets this thread to `SCHED_FIFO` with this priority, 1 to 99 (sched(7)). Error: as
/// `sched_setscheduler(2)`.
pub(crate) fn set_fifo(priority: u8) -> io::Result<()> {
    // The kernel's `sched_param` has this member alone; musl's function always fails.
    let parameters = libc::c_int::from(priority);
    let call = libc::SYS_sched_setscheduler;
    // SAFETY: the kernel reads one `sched_param`, which outlives the call; 0 is this thread.
    match unsafe { libc::syscall(call, 0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `struct hwtstamp_config` of linux/net_tstamp.h: flags, `tx_type`, `rx_filter`.
pub(crate) type StampConfig = [libc::c_int; 3];

/// Reads the hardware stamping of an interface (`SIOCGHWTSTAMP`, Linux
/// Documentation/networking/timestamping.rst, section 3). Error: as `ioctl(2)`; old drivers support
/// only `SIOCSHWTSTAMP`.
pub(crate) fn hardware_stamps(socket: impl AsFd, interface: &str) -> io::Result<StampConfig> {
    request(socket, libc::SIOCGHWTSTAMP, interface, [0; 3])
}

/// Sets the hardware stamping of an interface (`SIOCSHWTSTAMP`). Returns the setting that the
/// driver chose. Error: as `ioctl(2)`; `ERANGE` if the hardware does not support `config`.
pub(crate) fn set_hardware_stamps(
    socket: impl AsFd,
    interface: &str,
    config: StampConfig,
) -> io::Result<StampConfig> {
    request(socket, libc::SIOCSHWTSTAMP, interface, config)
}

fn request(
    socket: impl AsFd,
    code: libc::c_ulong,
    interface: &str,
    mut config: StampConfig,
) -> io::Result<StampConfig> {
    // SAFETY: all zeroes are an empty name and no data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // A zero ends the name.
    let name = &mut request.ifr_name[..libc::IFNAMSIZ - 1];
    name.iter_mut().zip(interface.bytes()).for_each(|(to, byte)| *to = byte as libc::c_char);
    request.ifr_ifru.ifru_data = config.as_mut_ptr().cast();
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads one `ifreq`, and reads and writes one `hwtstamp_config`, which is
    // three ints; both outlive the call.
    match unsafe { libc::ioctl(socket, code as libc::Ioctl, &raw mut request) } {
        0 => Ok(config),
        _ => Err(io::Error::last_os_error()),
    }
}
