//! Messages with descriptors over a Unix socket.

use rustix::fd::{BorrowedFd, OwnedFd};
use rustix::io::{IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags,
};
use std::mem::MaybeUninit;
use std::os::unix::net::UnixStream;

/// Length of a message header in bytes.
pub const HEADER: usize = 16;

/// Sends bytes with descriptors in one call. Returns the number of sent bytes.
///
/// # Errors
/// The error of sendmsg(2).
pub fn send(
    socket: &UnixStream,
    bytes: &[u8],
    fds: &[BorrowedFd<'_>],
) -> rustix::io::Result<usize> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !fds.is_empty() {
        assert!(control.push(SendAncillaryMessage::ScmRights(fds)));
    }
    rustix::net::sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
}

/// Receives a header and its descriptors; `None` if the peer has closed the connection.
///
/// # Errors
/// The error of recvmsg(2).
///
/// # Panics
/// If the header is incomplete.
pub fn receive_header(
    socket: &UnixStream,
) -> rustix::io::Result<Option<([u8; HEADER], Vec<OwnedFd>)>> {
    let mut header = [0; HEADER];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(64))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let mut slices = [IoSliceMut::new(&mut header)];
    let flags = RecvFlags::CMSG_CLOEXEC;
    let received = rustix::net::recvmsg(socket, &mut slices, &mut control, flags)?;
    let fds = control.drain().flat_map(|message| match message {
        RecvAncillaryMessage::ScmRights(fds) => fds.collect::<Vec<_>>(),
        _ => Vec::new(),
    });
    let fds = fds.collect();
    if received.bytes == 0 {
        return Ok(None);
    }
    assert_eq!(received.bytes, HEADER, "a whole header");
    Ok(Some((header, fds)))
}
