//! System calls without a safe wrapper: the only module with unsafe code.

use nix::libc;
use rustix::fd::{AsFd, AsRawFd};
use std::fs::File;
use std::io;
use std::ops::DerefMut;
use std::time::Duration;

/// The largest payload of a frame on `interface`, in bytes, in the network namespace of `socket`
/// (`SIOCGIFMTU`, netdevice(7)). Error: as `ioctl(2)`.
pub(crate) fn mtu(socket: impl AsFd, interface: &str) -> io::Result<usize> {
    // SAFETY: all zeroes are an empty name and an address without a family.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    // A zero ends the name.
    let name = &mut request.ifr_name[..libc::IFNAMSIZ - 1];
    name.iter_mut().zip(interface.bytes()).for_each(|(to, byte)| *to = byte as libc::c_char);
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel reads and writes one `ifreq`, which outlives the call.
    if unsafe { libc::ioctl(socket, libc::SIOCGIFMTU as libc::Ioctl, &raw mut request) } != 0 {
        return Err(io::Error::last_os_error());
    }
    // SAFETY: the kernel has written this field.
    Ok(unsafe { request.ifr_ifru.ifru_mtu } as usize)
}

/// The smoothed round trip of a TCP connection that the kernel measures (`TCP_INFO`, tcp(7)).
///
/// # Errors
/// As `getsockopt(2)`.
pub fn round_trip(socket: impl AsFd) -> io::Result<Duration> {
    // SAFETY: the structure has only numbers, for which zeroes are valid.
    let mut info: libc::tcp_info = unsafe { std::mem::zeroed() };
    let mut length = size_of_val(&info) as libc::socklen_t;
    let socket = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `length` bytes to `info`, which outlives the call.
    let outcome = unsafe {
        let info = (&raw mut info).cast();
        libc::getsockopt(socket, libc::IPPROTO_TCP, libc::TCP_INFO, info, &raw mut length)
    };
    match outcome {
        0 => Ok(Duration::from_micros(info.tcpi_rtt.into())),
        _ => Err(io::Error::last_os_error()),
    }
}

/// The bytes of a file, shared with other processes and kept when this process is killed. The caller
/// holds a lock that keeps others from changing or shrinking the file.
///
/// # Errors
/// As `mmap(2)`.
pub fn map(file: &File) -> io::Result<impl DerefMut<Target = [u8]> + Send + use<>> {
    // SAFETY: nobody else changes or shrinks the file, by the caller's lock.
    unsafe { memmap2::MmapMut::map_mut(file) }
}
