//! The vfio-user side of the client: blocking, one message at a time.

use std::fs::File;
use std::io::Read;
use std::net::Shutdown;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::MemfdFlags;
use rustix::net::{RecvFlags, recv};
use testkit::vfio_user::{HEADER, receive_header, send};
use vfio_user::mapping::Mapping;
use wire::nvme::register::{DOORBELLS, Doorbell};

/// Maximum time for a reply.
const LIMIT: Duration = Duration::from_secs(10);
/// Size of SPDK's buffer for a reply, in bytes.
const LARGEST_REPLY: usize = 4096;

// VFIO_USER_* commands.
const VERSION: u16 = 1;
const DMA_MAP: u16 = 2;
const DMA_UNMAP: u16 = 3;
const GET_INFO: u16 = 4;
const GET_REGION_INFO: u16 = 5;
const REGION_READ: u16 = 9;
const REGION_WRITE: u16 = 10;
const DEVICE_RESET: u16 = 13;

/// Numbers of the regions of a PCI device.
pub const BAR0: u32 = 0;
pub const CONFIG: u32 = 7;

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap())
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap())
}

/// Memory of the client's process that the device accesses. The client reads and writes the file
/// instead of mapping it: the pages are the same, without unsafe code. Only huge pages are mapped.
pub struct Memory {
    file: File,
    mapping: Option<Mapping>,
    /// Virtual address at which the client would map the memory. The device uses it as DMA address.
    pub address: u64,
    pub size: u64,
}

impl Memory {
    pub fn new(address: u64, size: u64) -> Self {
        let fd = rustix::fs::memfd_create("client", MemfdFlags::CLOEXEC).unwrap();
        let file = File::from(fd);
        file.set_len(size).unwrap();
        Self { file, mapping: None, address, size }
    }

    /// Creates memory of `size` bytes at the start of a file of huge pages.
    pub fn huge(file: File, address: u64, size: u64) -> Self {
        let mapping = Mapping::new(file.as_fd(), 0, size, true, true).unwrap();
        Self { file, mapping: Some(mapping), address, size }
    }

    /// Writes bytes at offset `at`.
    pub fn store(&self, at: u64, bytes: &[u8]) {
        match &self.mapping {
            Some(mapping) => mapping.write(at as usize, bytes).expect("mapped"),
            None => self.file.write_all_at(bytes, at).unwrap(),
        }
    }

    pub fn load(&self, at: u64, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        match &self.mapping {
            Some(mapping) => mapping.read(at as usize, &mut bytes).expect("mapped"),
            None => self.file.read_exact_at(&mut bytes, at).unwrap(),
        }
        bytes
    }
}

/// Accesses by DMA addresses.
impl testkit::nvme::Memory for Memory {
    fn read_at(&mut self, address: u64, bytes: &mut [u8]) {
        bytes.copy_from_slice(&self.load(address - self.address, bytes.len()));
    }

    fn write_at(&mut self, address: u64, bytes: &[u8]) {
        self.store(address - self.address, bytes);
    }
}

/// The client's way to write doorbells: in a page that the server polls, or as registers.
pub enum Doorbells {
    Page(File, u64),
    Registers,
}

impl Doorbells {
    /// Writes a doorbell, an aligned double word.
    pub fn store(&self, client: &Client, doorbell: Doorbell, value: u16) {
        let register = doorbell.offset(0);
        match self {
            Self::Page(file, offset) => {
                let at = offset + register - DOORBELLS;
                file.write_all_at(&u32::from(value).to_le_bytes(), at).unwrap();
            }
            Self::Registers => client.write(BAR0, register, 4, value.into()),
        }
    }
}

/// Descriptors that accompany a message.
type Fds<'a> = &'a [BorrowedFd<'a>];
/// Payload of a reply, and the descriptors that accompany it.
type Reply = (Vec<u8>, Vec<OwnedFd>);

/// A connection to a vfio-user server.
pub struct Client(UnixStream);

/// Shuts the connection down, so that the server sees the end at once. A program that another test
/// starts may still have a copy of the descriptor.
impl Drop for Client {
    fn drop(&mut self) {
        let _ = self.0.shutdown(Shutdown::Both);
    }
}

impl Client {
    /// Connects, and negotiates as SPDK does before it uses the device.
    pub fn attach(socket: &Path) -> Self {
        let stream = UnixStream::connect(socket).unwrap();
        stream.set_read_timeout(Some(LIMIT)).unwrap();
        let client = Self(stream);
        // Version 0.1 without capabilities.
        client.send(VERSION, &[0, 0, 1, 0], &[]).expect("the server takes a client");
        let (version, _) = client.receive(VERSION).expect("version 0.1");
        assert_eq!(version[..2], [0, 0], "major version");
        let mut request = vec![0; 16];
        request[0] = 16;
        let (info, _) = client.exchange(GET_INFO, &request, &[]);
        assert_eq!(u32_at(&info, 4) & 2, 2, "a PCI device");
        let regions = u32_at(&info, 8);
        assert!((8..=10).contains(&regions), "{regions} regions");
        for region in 0..regions {
            client.region(region);
        }
        client
    }

    fn exchange(&self, command: u16, payload: &[u8], fds: Fds<'_>) -> Reply {
        let answer = self.attempt(command, payload, fds);
        answer.unwrap_or_else(|errno| panic!("command {command}: errno {errno}"))
    }

    /// Sends a command; returns the reply, or the errno of an error reply.
    pub fn attempt(&self, command: u16, payload: &[u8], fds: Fds<'_>) -> Result<Reply, u32> {
        self.send(command, payload, fds).unwrap();
        self.receive(command)
    }

    /// Sends a command. The caller must [`receive`](Self::receive) the reply next.
    pub fn send(&self, command: u16, payload: &[u8], fds: Fds<'_>) -> rustix::io::Result<()> {
        let mut message = vec![0; HEADER];
        message[2..4].copy_from_slice(&command.to_le_bytes());
        message[4..8].copy_from_slice(&((HEADER + payload.len()) as u32).to_le_bytes());
        message.extend_from_slice(payload);
        let sent = send(&self.0, &message, fds)?;
        assert_eq!(sent, message.len());
        Ok(())
    }

    /// Receives a reply, or the errno of an error reply. Reads the header and the payload with one
    /// read each, so a reply in pieces is an error.
    pub fn receive(&self, command: u16) -> Result<Reply, u32> {
        let (header, fds) = receive_header(&self.0).unwrap().expect("a reply");
        assert_eq!(header[..2], [0, 0], "message number");
        assert_eq!(header[2..4], command.to_le_bytes(), "a reply to another command");
        let flags = u32_at(&header, 8);
        assert_eq!(flags & 0xf, 1, "a reply: this client answers no command of a server");
        if flags & 1 << 5 != 0 {
            return Err(u32_at(&header, 12));
        }
        let mut payload = vec![0; u32_at(&header, 4) as usize - HEADER];
        assert!(payload.len() <= LARGEST_REPLY);
        if !payload.is_empty() {
            assert_eq!((&self.0).read(&mut payload).unwrap(), payload.len(), "in one read");
        }
        Ok((payload, fds))
    }

    fn region(&self, index: u32) -> Reply {
        // The request is as large as the buffer for the reply.
        let mut request = vec![0; LARGEST_REPLY - HEADER];
        let size = request.len() as u32;
        request[..4].copy_from_slice(&size.to_le_bytes());
        request[8..12].copy_from_slice(&index.to_le_bytes());
        let (info, fds) = self.exchange(GET_REGION_INFO, &request, &[]);
        assert_eq!(u32_at(&info, 8), index);
        (info, fds)
    }

    /// Returns the doorbell page, which the server must offer.
    pub fn doorbells(&self) -> Doorbells {
        let (info, mut fds) = self.region(BAR0);
        // Flags: readable, writable, mappable, with capabilities.
        assert_eq!(u32_at(&info, 4) & 0xf, 0xf, "flags of BAR 0");
        let capability = u32_at(&info, 12) as usize;
        // VFIO_REGION_INFO_CAP_SPARSE_MMAP, version 1.
        assert_eq!(u32_at(&info, capability), 1 | 1 << 16);
        assert_eq!(u32_at(&info, capability + 8), 1, "areas");
        let area = u64_at(&info, capability + 16);
        let size = u64_at(&info, capability + 24);
        assert!(area == DOORBELLS && size >= 0x1000, "{size:#x} bytes at {area:#x}");
        let file = File::from(fds.pop().expect("a descriptor of BAR 0"));
        Doorbells::Page(file, u64_at(&info, 24) + area)
    }

    fn access(region: u32, offset: u64, count: usize) -> Vec<u8> {
        let mut payload = offset.to_le_bytes().to_vec();
        payload.extend(region.to_le_bytes());
        payload.extend((count as u32).to_le_bytes());
        payload
    }

    /// Reads a register of up to 8 bytes.
    pub fn read(&self, region: u32, offset: u64, count: usize) -> u64 {
        let request = Self::access(region, offset, count);
        let (reply, _) = self.exchange(REGION_READ, &request, &[]);
        assert_eq!(reply[..16], request[..]);
        let mut value = [0; 8];
        value[..count].copy_from_slice(&reply[16..]);
        u64::from_le_bytes(value)
    }

    /// Writes a register of up to 8 bytes.
    pub fn write(&self, region: u32, offset: u64, count: usize, value: u64) {
        let mut request = Self::access(region, offset, count);
        request.extend_from_slice(&value.to_le_bytes()[..count]);
        self.exchange(REGION_WRITE, &request, &[]);
    }

    /// Sends VFIO_USER_DEVICE_RESET.
    pub fn reset_device(&self) {
        self.exchange(DEVICE_RESET, &[], &[]);
    }

    /// Gives the device access to a DMA range: the start of a file, or by messages without a file.
    pub fn map(&self, file: Option<BorrowedFd<'_>>, address: u64, size: u64) {
        // Flags: readable and writable.
        self.dma(DMA_MAP, [32, 3], &[0, address, size], file.as_slice());
    }

    fn dma(&self, command: u16, front: [u32; 2], range: &[u64], files: Fds<'_>) {
        let mut payload: Vec<u8> = front.into_iter().flat_map(u32::to_le_bytes).collect();
        payload.extend(range.iter().flat_map(|word| word.to_le_bytes()));
        self.exchange(command, &payload, files);
    }

    /// Gives the device access to memory.
    pub fn map_memory(&self, memory: &Memory) {
        self.map(Some(memory.file.as_fd()), memory.address, memory.size);
    }

    /// Ends the device's access to memory. As in SPDK, the message has the descriptor again.
    pub fn unmap(&self, memory: &Memory) {
        self.dma(DMA_UNMAP, [24, 0], &[memory.address, memory.size], &[memory.file.as_fd()]);
    }

    /// Returns whether the server has sent nothing that the client has not received.
    pub fn is_quiet(&self) -> bool {
        let ready = recv(&self.0, &mut [0; 1][..], RecvFlags::DONTWAIT | RecvFlags::PEEK);
        ready.err() == Some(rustix::io::Errno::AGAIN)
    }
}
