//! The socket of one client: converts bytes and descriptors to messages, and messages to bytes and
//! descriptors.
//!
//! The header and the payload of each message are read separately, and no byte of the next message
//! is read. Thus the descriptors of a message are not assigned to another message: QEMU sends
//! DMA_MAP messages with and without descriptors directly after each other.

use super::{MAX_DATA_XFER, MAX_MSG_FDS};
use crate::guest::{ClientFile, Disposal, MAX_WORKERS};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, OwnedFd};
use rustix::io::{Errno, IoSlice, IoSliceMut};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, ReturnFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, Shutdown,
};
use std::mem::MaybeUninit;
use wire::vfio_user::{Header, RegionAccess};

/// The longest payload in bytes that is accepted: the payload of the largest region access. The
/// bytes of a longer payload are discarded, and the message is refused.
pub const MAX_PAYLOAD: usize = RegionAccess::LENGTH + MAX_DATA_XFER;

/// The maximum number of descriptors that one call can receive: `SCM_MAX_FD` of linux/net/scm.h.
/// The buffer has room for all of them. Otherwise the kernel would close the rest during the call,
/// and the call could block for ever.
const MAX_FDS: usize = 253;

/// Size in bytes of the buffer for the discarded bytes of a message that is too long.
const DRAIN: usize = 4096;

/// A message from the client.
#[derive(Debug)]
pub struct Incoming {
    /// The header.
    pub header: Header,
    /// The payload; empty if the payload was too long and was discarded.
    pub payload: Bytes,
    /// Descriptors of the message. Each descriptor is closed when it is dropped.
    pub fds: Vec<ClientFile>,
    /// The errno for the reply if the message exceeds a limit: `E2BIG` for too many bytes, `EMFILE`
    /// for too many descriptors. `None` if the message is within the limits.
    pub refusal: Option<Errno>,
}

/// A message for the client.
#[derive(Debug)]
pub struct Outgoing {
    /// Header and payload.
    pub bytes: Vec<u8>,
    /// Descriptors to send with the message.
    pub fds: Vec<OwnedFd>,
}

impl Outgoing {
    /// A message without descriptors.
    pub fn new(bytes: Vec<u8>) -> Self {
        Self { bytes, fds: Vec::new() }
    }
}

/// Why a connection has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Closed {
    /// The client closed the connection.
    #[error("the client closed the connection")]
    Eof,
    /// The client sent an invalid header, so that the start of the next message is unknown.
    #[error("the client sent an invalid vfio-user header")]
    Malformed,
    /// The client keeps sending descriptors with a message that already has too many.
    #[error(
        "the client kept sending file descriptors with a message that already had more than \
         {MAX_MSG_FDS}"
    )]
    Descriptors,
    /// The socket failed.
    #[error("socket: {0}")]
    Io(Errno),
    /// The client removed pages of memory that the device uses. The value is the first address of
    /// the range.
    #[error("the client removed memory that the device uses (in the range at {0:#x})")]
    MemoryLost(u64),
    /// No worker is free to close the client's descriptors.
    #[error(
        "rejected: all {MAX_WORKERS} threads are still closing files of earlier clients; try again later"
    )]
    NoWorker,
}

/// A payload that is being received.
#[derive(Debug)]
struct PartialPayload {
    header: Header,
    /// A buffer for the whole payload, or for the next bytes of a payload that is too long.
    bytes: Vec<u8>,
    received: usize,
}

impl PartialPayload {
    fn is_oversize(&self) -> bool {
        self.header.payload() > MAX_PAYLOAD
    }
}

/// One client's socket.
#[derive(Debug)]
pub(crate) struct Connection {
    /// The socket. When the socket is closed, descriptors that were not received are closed too.
    pub socket: ClientFile,
    head: [u8; Header::SIZE],
    received: usize,
    body: Option<PartialPayload>,
    fds: Vec<ClientFile>,
    disposal: Disposal,
    fds_lost: bool,
    /// A message that has been sent in part, and the number of bytes sent.
    partial: Option<(Outgoing, usize)>,
}

impl Connection {
    /// Takes over a connected stream socket, which can be in blocking mode. `disposal` closes the
    /// socket and descriptors that are not wanted.
    pub(crate) fn new(socket: OwnedFd, disposal: Disposal) -> Self {
        Self {
            socket: ClientFile::new(socket, disposal.clone()),
            head: [0; Header::SIZE],
            received: 0,
            body: None,
            fds: Vec::new(),
            disposal,
            fds_lost: false,
            partial: None,
        }
    }

    /// Whether the client has closed the connection, even if not all bytes from the client were
    /// read.
    pub(crate) fn hung_up(&self) -> bool {
        let mut fds = [PollFd::new(&self.socket, PollFlags::RDHUP)];
        let now = Timespec { tv_sec: 0, tv_nsec: 0 };
        rustix::event::poll(&mut fds, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// Receives the next message; `None` if the message is not yet complete. Error: the connection
    /// has ended.
    pub(crate) fn receive(&mut self) -> Result<Option<Incoming>, Closed> {
        while self.body.is_none() {
            let mut head = self.head;
            let Some(count) = self.read_bytes(&mut head[self.received..])? else { return Ok(None) };
            self.head = head;
            self.received += count;
            if self.received < Header::SIZE {
                continue;
            }
            self.received = 0;
            let header = Header::decode(&self.head).map_err(|_| Closed::Malformed)?;
            let length = header.payload();
            let bytes = vec![0; if length > MAX_PAYLOAD { DRAIN } else { length }];
            self.body = Some(PartialPayload { header, bytes, received: 0 });
        }
        let Some(mut body) = self.body.take() else { return Ok(None) };
        while body.received < body.header.payload() {
            let left = body.header.payload() - body.received;
            let into = if body.is_oversize() {
                &mut body.bytes[..left.min(DRAIN)]
            } else {
                &mut body.bytes[body.received..]
            };
            let Some(count) = self.read_bytes(into)? else {
                self.body = Some(body);
                return Ok(None);
            };
            body.received += count;
        }
        let lost = std::mem::take(&mut self.fds_lost);
        let refusal = if body.is_oversize() {
            body.bytes.clear();
            Some(Errno::TOOBIG)
        } else {
            lost.then_some(Errno::MFILE)
        };
        let fds = std::mem::take(&mut self.fds);
        Ok(Some(Incoming { header: body.header, payload: body.bytes.into(), fds, refusal }))
    }

    /// Reads once, into `into`, which is not empty. Returns the number of bytes; `None` if there
    /// are no bytes.
    fn read_bytes(&mut self, into: &mut [u8]) -> Result<Option<usize>, Closed> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_FDS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let flags = RecvFlags::DONTWAIT | RecvFlags::CMSG_CLOEXEC;
        let mut slices = [IoSliceMut::new(into)];
        let got = match rustix::net::recvmsg(&self.socket, &mut slices, &mut control, flags) {
            Ok(got) => got,
            Err(Errno::AGAIN | Errno::INTR) => return Ok(None),
            Err(Errno::CONNRESET) => return Err(Closed::Eof),
            Err(errno) => return Err(Closed::Io(errno)),
        };
        let lost_before = self.fds_lost;
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(fds) = message {
                self.fds.extend(fds.map(|fd| ClientFile::new(fd, self.disposal.clone())));
            }
        }
        if lost_before && !self.fds.is_empty() {
            return Err(Closed::Descriptors);
        }
        if self.fds.len() > MAX_MSG_FDS || got.flags.contains(ReturnFlags::CTRUNC) {
            self.fds.clear();
            self.fds_lost = true;
        }
        if got.bytes == 0 { Err(Closed::Eof) } else { Ok(Some(got.bytes)) }
    }

    /// Whether a message has been sent in part. Then no other message may be sent before
    /// [`resume`](Self::resume) returns true.
    pub(crate) fn blocked(&self) -> bool {
        self.partial.is_some()
    }

    /// Sends a message, with one system call if the socket has room. May be called only if
    /// [`blocked`](Self::blocked) is false. Returns whether the whole message was sent. Error: the
    /// connection has ended.
    pub(crate) fn send(&mut self, message: Outgoing) -> Result<bool, Closed> {
        debug_assert!(self.partial.is_none());
        self.partial = Some((message, 0));
        self.resume()
    }

    /// Sends the rest of a message. Returns whether the whole message was sent. Error: the
    /// connection has ended.
    pub(crate) fn resume(&mut self) -> Result<bool, Closed> {
        while let Some((message, sent)) = &mut self.partial {
            let rest = [IoSlice::new(&message.bytes[*sent..])];
            let fds: Vec<_> = message.fds.iter().map(AsFd::as_fd).collect();
            let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_MSG_FDS))];
            let mut control = SendAncillaryBuffer::new(&mut space);
            if *sent == 0 && !fds.is_empty() {
                control.push(SendAncillaryMessage::ScmRights(&fds));
            }
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            match rustix::net::sendmsg(&self.socket, &rest, &mut control, flags) {
                Ok(count) => *sent += count,
                Err(Errno::INTR) => continue,
                Err(Errno::AGAIN) => return Ok(false),
                Err(Errno::PIPE | Errno::CONNRESET) => return Err(Closed::Eof),
                Err(errno) => return Err(Closed::Io(errno)),
            }
            if *sent == message.bytes.len() {
                self.partial = None;
            }
        }
        Ok(true)
    }
}

impl Drop for Connection {
    /// Shuts the socket down, so that the client sees the end of the connection at once, even if
    /// the socket is closed later.
    fn drop(&mut self) {
        let _ = rustix::net::shutdown(&self.socket, Shutdown::Both);
    }
}
