//! Messages with control data, and socket options of type int.

use nix::libc;
use rustix::fd::{AsFd, AsRawFd};
use socket2::{MaybeUninitSlice, MsgHdrMut, SockAddr, Socket};
use std::io;
use std::mem::MaybeUninit;
use std::net::{Ipv6Addr, SocketAddr};

/// A message that `recvmsg(2)` received.
#[derive(Debug)]
pub(crate) struct Message {
    /// Bytes of the payload.
    pub bytes: usize,
    /// Bytes of control data.
    pub control: usize,
    /// The sender, if it has an IP address.
    pub from: Option<SocketAddr>,
}

/// Receives a message and its control data. Error: as `recvmsg(2)`.
pub(crate) fn receive_message(
    socket: &Socket,
    buffer: &mut [u8],
    control: &mut [u8],
    flags: i32,
) -> io::Result<Message> {
    // As long as the longest IP address.
    let mut address = SockAddr::from(SocketAddr::from((Ipv6Addr::UNSPECIFIED, 0)));
    let mut buffers = [MaybeUninitSlice::new(written_only(buffer))];
    let mut message = MsgHdrMut::new()
        .with_addr(&mut address)
        .with_buffers(&mut buffers)
        .with_control(written_only(control));
    let bytes = socket.recvmsg(&mut message, flags)?;
    let control = message.control_len();
    Ok(Message { bytes, control, from: address.as_socket() })
}

/// Bytes as a buffer for the kernel to write into.
fn written_only(bytes: &mut [u8]) -> &mut [MaybeUninit<u8>] {
    let room = std::ptr::from_mut(bytes) as *mut [MaybeUninit<u8>];
    // SAFETY: both have the same layout and the same lifetime. socket2 passes the buffer only to
    // the kernel, which writes initialised bytes.
    unsafe { &mut *room }
}

/// Sets an option of a socket that is an int. Error: as `setsockopt(2)`.
pub(crate) fn set_option(socket: impl AsFd, level: i32, name: i32, value: i32) -> io::Result<()> {
    let socket = socket.as_fd().as_raw_fd();
    let length = size_of::<libc::c_int>() as libc::socklen_t;
    // SAFETY: the kernel reads one int, which outlives the call.
    match unsafe { libc::setsockopt(socket, level, name, (&raw const value).cast(), length) } {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}
