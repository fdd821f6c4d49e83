//! Packet sockets: Ethernet frames of one EtherType on an interface, non-blocking (packet(7)).

use super::interface::Interface;
use rustix::net::{AddressFamily, Protocol, SocketFlags, SocketType, socket_with};
use socket2::{SockFilter, Socket};
use std::io::{self, Read, Write};
use std::num::NonZeroU32;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

/// Bytes of an Ethernet header: destination, source, EtherType.
pub const ETHERNET: usize = 14;
/// The send buffer in bytes, including the kernel's overhead per frame; the kernel doubles this
/// value (socket(7)). The buffer is small, so that TLPs wait in the tunnel, where they can still be
/// aggregated.
const SEND: usize = 16 << 10;
/// The receive buffer in bytes. The kernel drops frames beyond it, and the sender retransmits them.
const RECEIVE: usize = 4 << 20;

/// A filter of a socket: a program for the kernel (socket(7), `SO_ATTACH_FILTER`).
#[derive(Debug)]
pub struct Filter(Vec<SockFilter>);

impl Filter {
    /// A filter that accepts every frame.
    pub fn everything() -> Self {
        Self(vec![SockFilter::new(RETURN, 0, 0, u32::MAX)])
    }

    fn nothing() -> Self {
        Self(vec![SockFilter::new(RETURN, 0, 0, 0)])
    }

    /// A filter that accepts frames in which all fields have their values. A field has an offset
    /// from the start of the frame, a width in bytes (1, 2 or 4, most significant first), a mask
    /// and a value.
    pub fn fields(fields: &[(u32, u8, u32, u32)]) -> Self {
        let mut program = Vec::new();
        for (index, (offset, width, mask, value)) in fields.iter().enumerate() {
            let load = match width {
                1 => LOAD_8,
                2 => LOAD_16,
                _ => LOAD_32,
            };
            // The number of instructions up to the last return.
            let refuse = 3 * (fields.len() - index - 1) + 1;
            program.push(SockFilter::new(load, 0, 0, *offset));
            program.push(SockFilter::new(AND, 0, 0, *mask));
            program.push(SockFilter::new(JUMP_IF_EQUAL, 0, refuse as u8, *value));
        }
        program.push(SockFilter::new(RETURN, 0, 0, u32::MAX));
        program.push(SockFilter::new(RETURN, 0, 0, 0));
        Self(program)
    }
}

/// Operation codes of classic BPF (S. McCanne, V. Jacobson, "The BSD Packet Filter", USENIX 1993,
/// section 3; encoding of linux/bpf_common.h): load a byte, half-word or word at a fixed offset,
/// mask, compare, return the number of accepted bytes.
const LOAD_8: u16 = 0x30;
const LOAD_16: u16 = 0x28;
const LOAD_32: u16 = 0x20;
const AND: u16 = 0x54;
const JUMP_IF_EQUAL: u16 = 0x15;
const RETURN: u16 = 0x06;

/// A packet socket of one EtherType on one interface.
#[derive(Debug)]
pub struct PacketSocket(Socket);

impl PacketSocket {
    /// Opens a socket on `interface` for frames of `ethertype` that `filter` accepts.
    ///
    /// # Errors
    /// A sentence, for example that CAP_NET_RAW is missing.
    pub fn open(interface: &Interface, ethertype: u16, filter: &Filter) -> io::Result<Self> {
        let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
        let protocol = NonZeroU32::new(ethertype.to_be().into()).map(Protocol::from_raw);
        let made = socket_with(AddressFamily::PACKET, SocketType::RAW, flags, protocol);
        let mut socket = Socket::from(made.map_err(|error| match error {
            rustix::io::Errno::PERM | rustix::io::Errno::ACCESS => io::Error::new(
                io::ErrorKind::PermissionDenied,
                "raw Ethernet needs CAP_NET_RAW: run as root, or `setcap cap_net_raw+ep` the program",
            ),
            error => error.into(),
        })?);
        // Until the socket is bound, it receives frames of every interface.
        socket.attach_filter(&Filter::nothing().0)?;
        nix::sys::socket::bind(socket.as_raw_fd(), &interface.link)?;
        while socket.read(&mut [0; 1]).is_ok() {}
        socket.attach_filter(&filter.0)?;
        socket.set_send_buffer_size(SEND)?;
        socket.set_recv_buffer_size(RECEIVE)?;
        Ok(Self(socket))
    }

    /// Sends one frame with its header. Returns `false` if the interface accepts no frame now. A
    /// frame that the interface's queue drops counts as sent.
    ///
    /// # Errors
    /// As `send(2)`.
    pub fn send(&mut self, frame: &[u8]) -> io::Result<bool> {
        match self.0.write(frame) {
            Ok(_) => Ok(true),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.raw_os_error() == Some(DROPPED) => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Receives the next frame with its header into `buffer`. Returns the length of the frame, or
    /// `None` if no frame waits.
    ///
    /// # Errors
    /// As `recv(2)`.
    pub fn receive(&mut self, buffer: &mut [u8]) -> io::Result<Option<usize>> {
        match self.0.read(buffer) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            Err(error) => Err(error),
        }
    }
}

/// The error of `send(2)` when a queueing discipline drops the frame.
pub const DROPPED: i32 = rustix::io::Errno::NOBUFS.raw_os_error();

impl AsFd for PacketSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
