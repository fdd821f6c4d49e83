//! The scheduling class of this thread, and stamps of a network interface.

use nix::libc;
use rustix::fd::{AsFd, AsRawFd};
use std::io;

/// Makes this thread `SCHED_FIFO` of this priority, 1 to 99 (sched(7)). Error: as
/// `sched_setscheduler(2)`.
pub(crate) fn set_fifo(priority: u8) -> io::Result<()> {
    let parameters = libc::sched_param { sched_priority: priority.into() };
    // SAFETY: the kernel reads one `sched_param`, which outlives the call; 0 is this thread.
    match unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// `HWTSTAMP_TX_ON` and `HWTSTAMP_FILTER_ALL` of linux/net_tstamp.h: stamp what a socket asks to
/// stamp, and everything that comes.
const TX_ON: libc::c_int = 1;
const FILTER_ALL: libc::c_int = 1;

/// Switches the hardware stamps of an interface on (`SIOCSHWTSTAMP`, Linux
/// Documentation/networking/timestamping.rst, section 3). Error: as `ioctl(2)`.
pub(crate) fn stamp_in_hardware(socket: impl AsFd, interface: &str) -> io::Result<()> {
    // SAFETY: all zeroes are an empty name and no data.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // A zero ends the name.
    let name = &mut request.ifr_name[..libc::IFNAMSIZ - 1];
    name.iter_mut().zip(interface.bytes()).for_each(|(to, byte)| *to = byte as libc::c_char);
    let mut config: [libc::c_int; 3] = [0, TX_ON, FILTER_ALL];
    request.ifr_ifru.ifru_data = config.as_mut_ptr().cast();
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads one `ifreq`, and reads and writes one `hwtstamp_config`, which is
    // three ints; both outlive the call.
    match unsafe { libc::ioctl(socket, libc::SIOCSHWTSTAMP, &raw mut request) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
