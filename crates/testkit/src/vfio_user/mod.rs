//! A blocking vfio-user client, a server with a controller, and a function for tests of our server.

pub mod server;
mod socket;

pub use socket::{HEADER, receive_header, send};

use pcie::enumerate::Bar;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::net::RecvFlags;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use wire::vfio_user::*;

/// A reply of the server.
#[derive(Debug)]
pub struct Reply {
    /// Header of the reply.
    pub header: Header,
    /// Bytes after the header.
    pub payload: Vec<u8>,
    /// Descriptors that came with the header.
    pub fds: Vec<OwnedFd>,
}

/// A blocking client of vfio-user.
pub struct Client(pub UnixStream);

/// Returns the bytes of a command message.
pub fn message(id: u16, command: u16, payload: &[u8], no_reply: bool) -> Vec<u8> {
    let header =
        Header { command, no_reply, ..Header::command(id, Command::Version, payload.len()) };
    let mut bytes = header.encode().to_vec();
    bytes.extend_from_slice(payload);
    bytes
}

impl Client {
    /// Connects without sending anything. Reads time out after 5 s.
    pub fn connect(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(std::time::Duration::from_secs(5))).unwrap();
        Self(stream)
    }

    /// Connects, and sends VERSION as QEMU does, in a message with this ID.
    pub fn greeted(path: &Path, id: u16) -> Self {
        let client = Self::connect(path);
        let greeting = greeting(bench_capabilities());
        client.send(&message(id, Command::Version.number(), &greeting, false), &[]);
        client
    }

    /// Sends bytes with descriptors in one call.
    pub fn send(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) {
        assert_eq!(send(&self.0, bytes, fds).unwrap(), bytes.len());
    }

    /// Reads one message: the header with its descriptors, then the payload
    /// with a single read, as SPDK does.
    pub fn receive(&self) -> Reply {
        let (head, fds) = receive_header(&self.0).unwrap().expect("a message");
        let header = Header::decode(&head).unwrap();
        let mut payload = vec![0; header.payload()];
        if !payload.is_empty() {
            assert_eq!((&self.0).read(&mut payload).unwrap(), payload.len());
        }
        Reply { header, payload, fds }
    }

    /// Returns whether no bytes have arrived.
    pub fn is_quiet(&self) -> bool {
        let quiet =
            rustix::net::recv(&self.0, &mut [0; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK);
        quiet.err() == Some(rustix::io::Errno::AGAIN)
    }

    /// Returns whether the server has closed the connection.
    pub fn is_closed(&self) -> bool {
        matches!((&self.0).read(&mut [0; 1]), Ok(0) | Err(_))
    }
}

/// Returns the capabilities that QEMU 11.1 sends; always `Some`.
pub fn bench_capabilities() -> Option<Capabilities> {
    Some(Capabilities {
        max_msg_fds: Some(16),
        max_data_xfer_size: Some(1 << 20),
        max_dma_maps: Some(65535),
        pgsizes: Some(4096),
        write_multiple: Some(true),
        twin_socket: None,
        migration: true,
    })
}

/// Returns the payload of a VERSION message.
pub fn greeting(capabilities: Option<Capabilities>) -> Vec<u8> {
    encoded(|out| Version { major: 0, minor: 1, capabilities }.encode(out))
}

/// Returns the bytes that `encode` appends.
pub fn encoded(encode: impl FnOnce(&mut Vec<u8>)) -> Vec<u8> {
    let mut out = Vec::new();
    encode(&mut out);
    out
}

/// Returns the payload of a region access.
pub fn access(region: u32, offset: u64, count: u32, data: &[u8]) -> Vec<u8> {
    let mut payload = encoded(|out| RegionAccess { offset, region, count }.encode(out));
    payload.extend_from_slice(data);
    payload
}

/// Returns whether `fd` becomes readable within `seconds`.
pub fn is_readable(fd: impl AsFd, seconds: i64) -> bool {
    let within = Timespec { tv_sec: seconds, tv_nsec: 0 };
    rustix::event::poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&within)) == Ok(1)
}

/// Returns the count of an eventfd since the last call.
pub fn rung(fd: &OwnedFd) -> u64 {
    let mut count = [0; 8];
    match rustix::io::read(fd, &mut count) {
        Ok(8) => u64::from_ne_bytes(count),
        _ => 0,
    }
}

/// Creates a non-blocking eventfd.
pub fn eventfd() -> OwnedFd {
    use rustix::event::EventfdFlags;
    rustix::event::eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC).unwrap()
}

/// Returns the configuration space and the BARs of a function with 16 KiB of BAR 0 (registers,
/// doorbells at 1000h, MSI-X table at 2000h, pending bits at 3000h), four vectors, and the
/// capabilities MSI-X, Express with FLR, MSI, power management and SR-IOV.
pub fn plain_function() -> (Box<[u8; 4096]>, [Option<Bar>; 6]) {
    let mut config = Box::new([0_u8; 4096]);
    let mut put = |at: usize, bytes: &[u8]| config[at..at + bytes.len()].copy_from_slice(bytes);
    put(0x00, &[0x36, 0x1b, 0x01, 0x00, 0x06, 0x00, 0x10, 0x00]);
    put(0x08, &[0x01, 0x00, 0x00, 0xff]);
    put(0x10, &[0x04, 0x00, 0x00, 0xe0]);
    put(0x2c, &[0x36, 0x1b, 0x01, 0x00]);
    put(0x34, &[0x50]);
    put(0x3d, &[0x01]);
    put(0x50, &[0x11, 0x60, 0x03, 0x80, 0x00, 0x20, 0x00, 0x00, 0x00, 0x30, 0x00, 0x00]);
    put(0x60, &[0x10, 0xa0, 0x02, 0x00, 0x01, 0x80, 0x00, 0x10, 0x1f, 0x20, 0x00, 0x00]);
    put(0xa0, &[0x05, 0xc0, 0x80, 0x00]);
    put(0xc0, &[0x01, 0x00, 0x03, 0x00]);
    put(0x100, &0x1401_0010_u32.to_le_bytes());
    put(0x108, &[0xff; 4]);
    put(0x140, &0x0001_0003_u32.to_le_bytes());
    let mut bars = [None; 6];
    bars[0] = Some(Bar {
        index: 0,
        size: 0x4000,
        is_64bit: true,
        prefetchable: false,
        address: 0xe000_0000,
    });
    (config, bars)
}
