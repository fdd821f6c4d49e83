//! Receiving into memory that nobody has cleared.

use bytes::BytesMut;
use rustix::fd::AsFd;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

/// Receives from a socket into the capacity of `buffer` behind its end, and
/// says how many bytes came.
///
/// # Errors
/// As `recv(2)`.
pub fn receive(socket: impl AsFd, buffer: &mut BytesMut) -> Result<usize, Errno> {
    let ((received, _), _) = recv(socket, buffer.spare_capacity_mut(), RecvFlags::empty())?;
    let count = received.len();
    // SAFETY: the kernel has written the first `count` bytes behind the end,
    // and there is room for them, since they were given to it.
    unsafe { buffer.set_len(buffer.len() + count) };
    Ok(count)
}
