//! Receives into uninitialised memory.

use bytes::BytesMut;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// Receives from a socket into the spare capacity of `buffer`; returns the number of bytes. Error:
/// as `recv(2)`.
pub(crate) fn receive(socket: impl AsFd, buffer: &mut BytesMut) -> Result<usize, Errno> {
    let ((received, _), _) = recv(socket, buffer.spare_capacity_mut(), RecvFlags::empty())?;
    let count = received.len();
    // SAFETY: the kernel has written the first `count` bytes of the spare capacity.
    unsafe { buffer.set_len(buffer.len() + count) };
    Ok(count)
}
