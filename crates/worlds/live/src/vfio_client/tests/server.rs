//! A server of raw bytes whose answers a test can make wrong.

use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::MemfdFlags;
use std::io::Read;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use testkit::Folder;
use testkit::vfio_user::{receive_header, send};

pub const VERSION: u16 = 1;
pub const DMA_MAP: u16 = 2;
pub const GET_INFO: u16 = 4;
pub const REGION_INFO: u16 = 5;
pub const IRQ_INFO: u16 = 7;
pub const REGION_READ: u16 = 9;
pub const REGION_WRITE: u16 = 10;
const DMA_UNMAP: u16 = 3;

/// A message as it came.
#[derive(Debug)]
pub struct Message {
    pub bytes: Vec<u8>,
    pub fds: Vec<OwnedFd>,
}

impl Message {
    pub fn command(&self) -> u16 {
        u16::from_le_bytes([self.bytes[2], self.bytes[3]])
    }

    /// Bits 3:0 of the flags.
    fn is_reply(&self) -> bool {
        self.bytes[8] & 0xf == 1
    }

    pub fn payload(&self) -> &[u8] {
        &self.bytes[16..]
    }
}

/// The answer of the server to a message.
#[derive(Debug)]
pub struct Answer {
    /// The header with its size still 0, and the payload.
    pub header: Vec<u8>,
    pub payload: Vec<u8>,
    pub fds: Vec<OwnedFd>,
    /// Sent before.
    pub before: Vec<u8>,
    /// Whether nothing is sent, or the connection ends.
    pub silent: bool,
    pub close: bool,
}

/// Changes an answer.
pub type Lie = Box<dyn FnMut(&Message, &mut Answer) + Send>;

/// The server's thread, which ends with its client.
pub struct Server {
    _folder: Folder,
    pub socket: PathBuf,
    pub seen: Arc<Mutex<Vec<Message>>>,
    /// The file with the doorbells, of 8 KiB; they are in the second half.
    pub page: OwnedFd,
    thread: Option<JoinHandle<()>>,
}

pub fn memfd(size: u64) -> OwnedFd {
    let fd = rustix::fs::memfd_create("page", MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&fd, size).unwrap();
    fd
}

fn put32(out: &mut Vec<u8>, fields: &[u32]) {
    fields.iter().for_each(|field| out.extend(field.to_le_bytes()));
}

impl Server {
    /// Serves one client.
    pub fn start(mut lie: Lie) -> Self {
        let folder = Folder::new();
        let socket = folder.join("cntrl");
        let listener = UnixListener::bind(&socket).unwrap();
        let (seen, page) = (Arc::new(Mutex::new(Vec::new())), memfd(8192));
        let (log, doorbells) = (seen.clone(), page.try_clone().unwrap());
        let thread = std::thread::spawn(move || {
            let (stream, _) = listener.accept().unwrap();
            while let Some(message) = receive(&stream) {
                // The client answers what a lie made a request.
                if message.is_reply() {
                    log.lock().unwrap().push(message);
                    continue;
                }
                let mut answer = honest(&message, &doorbells);
                lie(&message, &mut answer);
                log.lock().unwrap().push(message);
                let Answer { mut header, payload, fds, before, silent, close } = answer;
                header[4..8].copy_from_slice(&(16 + payload.len() as u32).to_le_bytes());
                let bytes = [before, header, payload].concat();
                let fds: Vec<BorrowedFd<'_>> = fds.iter().map(AsFd::as_fd).collect();
                if !silent && send(&stream, &bytes, &fds).is_err() || close {
                    break;
                }
            }
        });
        Self { _folder: folder, socket, seen, page, thread: Some(thread) }
    }

    /// Waits until the client has disconnected. Returns its messages.
    pub fn end(&mut self) -> Vec<Message> {
        self.thread.take().unwrap().join().unwrap();
        std::mem::take(&mut self.seen.lock().unwrap())
    }
}

fn receive(stream: &UnixStream) -> Option<Message> {
    let (header, fds) = receive_header(stream).ok()??;
    let mut bytes = header.to_vec();
    let size = u32::from_le_bytes(bytes[4..8].try_into().unwrap()) as usize;
    bytes.resize(size, 0);
    (&*stream).read_exact(&mut bytes[16..]).ok()?;
    Some(Message { bytes, fds })
}

/// The valid answer of a server with 16 KiB of BAR 0, four vectors and a page of doorbells.
fn honest(message: &Message, page: &OwnedFd) -> Answer {
    let mut header = message.bytes[..16].to_vec();
    header[8] = 1;
    let (mut payload, mut fds, asked) = (Vec::new(), Vec::new(), message.payload());
    match message.command() {
        VERSION => {
            payload.extend([0, 0, 1, 0]);
            payload.extend(b"{\"capabilities\":{\"max_msg_fds\":2}}\0");
        }
        GET_INFO => put32(&mut payload, &[16, 3, 9, 5]),
        REGION_INFO => match asked[8] {
            0 => {
                put32(&mut payload, &[64, 0xf, 0, 32, 0x4000, 0, 0, 0]);
                put32(&mut payload, &[1 | 1 << 16, 0, 1, 0, 0x1000, 0, 0x1000, 0]);
                fds.push(page.try_clone().unwrap());
            }
            7 => put32(&mut payload, &[32, 3, 7, 0, 256, 0, 0, 0]),
            index => put32(&mut payload, &[32, 0, index.into(), 0, 0, 0, 0, 0]),
        },
        IRQ_INFO => put32(&mut payload, &[16, 1, 2, 4]),
        REGION_READ => {
            payload.extend(&asked[..16]);
            payload.extend(vec![0; asked[12].into()]);
        }
        REGION_WRITE => payload.extend(&asked[..16]),
        DMA_UNMAP => payload.extend(asked),
        _ => {}
    }
    Answer { header, payload, fds, before: Vec::new(), silent: false, close: false }
}
