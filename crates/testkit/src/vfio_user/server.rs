//! A vfio-user server that shares no code with farlane: raw bytes of the protocol over a socket,
//! and the testkit's [`Controller`] behind the socket. The server has one client at a time and a
//! RAM disk of 4 MiB.
//!
//! The server differs from farlane's own server: it has 256 bytes of configuration space, doorbells
//! 8 bytes apart, and one descriptor per message. It finds stores into the doorbell page by
//! comparison with the previous contents.

use super::socket::{receive_header, send};
use crate::controller::{Controller, Disk, MSI, Manners, u32_at, u64_at};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, OwnedFd};
use stats::random::Random;
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use wire::Bdf;
use wire::tlp::{Packet, Status, Tlp, whole_double_words};

/// Size of the disk in bytes.
const DISK: usize = 4 << 20;
/// Number of actions of the controller between two checks of the client's socket.
const STEPS: usize = 64;
/// Offset of the doorbells in BAR 0 (NVM Express 1.4, section 3.1).
const DOORBELLS: u64 = 0x1000;
/// Size of BAR 0 in bytes; the MSI-X table is at 2000h.
const BAR0: u64 = 0x4000;

/// Options of a server.
#[derive(Clone, Copy, Debug)]
pub struct Kind {
    /// Whether clients can map the doorbells as a page.
    pub page: bool,
    /// Whether the server accesses memory by messages although the client passes a descriptor.
    pub by_message: bool,
    /// Class code of the function: programming interface, subclass, base class.
    pub class: [u8; 3],
    /// Number of I/O commands after which the server closes the connection once; `None` for never.
    pub leaves_after: Option<u64>,
    /// Number, from 1, of the read in whose data one bit is flipped; `None` for no such read.
    pub damages: Option<u64>,
}

/// An NVMe controller without a doorbell page.
pub const NVME: Kind =
    Kind { page: false, by_message: false, class: [2, 8, 1], leaves_after: None, damages: None };

/// A server in a thread that runs until the value is dropped.
#[derive(Debug)]
pub struct Server {
    socket: PathBuf,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Listens on `socket`.
    ///
    /// # Panics
    /// If the socket cannot be created.
    pub fn start(socket: &Path, kind: Kind) -> Self {
        let _ = std::fs::remove_file(socket);
        let listener = UnixListener::bind(socket).unwrap();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let thread = std::thread::spawn(move || {
            // The contents of the disk remain for the next client.
            let mut controller =
                Controller::new(Manners { chunk: 4096, dstrd: 1, ..Manners::default() });
            controller.disk = Some(Disk::new(DISK, kind.damages));
            let mut left = kind.leaves_after;
            while let Ok((socket, _)) = listener.accept() {
                if stopped.load(Ordering::Relaxed) {
                    return;
                }
                Session::new(socket, kind).serve(&mut controller, &mut left, &stopped);
            }
        });
        Self { socket: socket.to_owned(), stop, thread: Some(thread) }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        // Wakes the thread, which waits in accept(2).
        let _ = UnixStream::connect(&self.socket);
        let _ = self.thread.take().unwrap().join();
        let _ = std::fs::remove_file(&self.socket);
    }
}

/// A session with one client.
struct Session {
    socket: UnixStream,
    kind: Kind,
    config: [u8; 256],
    page: File,
    /// Contents of the doorbell page at the last check.
    seen: Vec<u8>,
    memory: Option<(u64, u64, File)>,
    vectors: Vec<Option<File>>,
    /// Messages of the client that arrived before the reply to the server's own message.
    crossed: Vec<Vec<u8>>,
    random: Random,
}

impl Session {
    fn new(socket: UnixStream, kind: Kind) -> Self {
        let page = rustix::fs::memfd_create("page", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        rustix::fs::ftruncate(&page, 0x2000).unwrap();
        let mut config = [0; 256];
        config[..4].copy_from_slice(&[0x34, 0x12, 0x78, 0x56]);
        // Status: capabilities list. Then the class code, and BAR 0 with 64 bits.
        config[6] = 0x10;
        config[9..12].copy_from_slice(&kind.class);
        config[0x10] = 4;
        config[0x34] = 0x40;
        // MSI-X, 8 vectors, table at 2000h of BAR 0, pending bits at 3000h.
        config[0x40..0x4c].copy_from_slice(&[0x11, 0, 7, 0, 0, 0x20, 0, 0, 0, 0x30, 0, 0]);
        let vectors = (0..8).map(|_| None).collect();
        let seen = vec![0; 0x1000];
        let (page, memory, crossed) = (page.into(), None, Vec::new());
        let random = Random::new(1);
        Self { socket, kind, config, page, seen, memory, vectors, crossed, random }
    }

    fn serve(&mut self, nvme: &mut Controller, left: &mut Option<u64>, stop: &AtomicBool) {
        nvme.function_level_reset();
        nvme.interrupts = true;
        let before = nvme.completed;
        while !stop.load(Ordering::Relaxed) {
            let ms = if self.kind.page || !nvme.is_idle() { 0 } else { 50 };
            if self.is_ready(ms) && self.message(nvme).is_none() {
                return;
            }
            if self.kind.page && !self.check_page(nvme) && nvme.is_idle() {
                std::thread::yield_now();
            }
            for _ in 0..if nvme.is_idle() { 0 } else { STEPS } {
                nvme.act(&mut self.random);
                self.carry_out(nvme);
            }
            nvme.used.clear();
            for message in std::mem::take(&mut self.crossed) {
                let head = *message.first_chunk().unwrap();
                if self.reply(nvme, head, &message[16..], Vec::new()).is_none() {
                    return;
                }
            }
            // Closes the connection only once.
            if left.take_if(|left| nvme.completed - before >= *left).is_some() {
                return;
            }
        }
    }

    /// Executes the TLPs that the controller sends.
    fn carry_out(&mut self, nvme: &mut Controller) {
        while let Some(tlp) = nvme.out.pop_front() {
            match tlp.packet {
                Packet::MemoryWrite(request) if request.address == MSI => {
                    let vector = u32_at(&tlp.data, 0) as usize;
                    if let Some(Some(signal)) = self.vectors.get_mut(vector) {
                        signal.write_all(&1_u64.to_ne_bytes()).unwrap();
                    }
                }
                Packet::MemoryWrite(request) => {
                    // Writes the last double word last, because that double word may contain the
                    // phase tag.
                    let (address, mut data) = (request.first_byte(), tlp.data.to_vec());
                    let front = data.len() - 4;
                    self.reach(true, address, &mut data[..front]);
                    self.reach(true, address + front as u64, &mut data[front..]);
                }
                Packet::MemoryRead(request) => {
                    let (address, mut data) = (request.first_byte(), vec![0; request.byte_count()]);
                    self.reach(false, address, &mut data);
                    let root = Bdf::default();
                    let completion = request.completion(root, Status::Success, data.len());
                    let data = whole_double_words(address, Bytes::from(data));
                    nvme.handle(Tlp::new(Packet::Completion(completion), data));
                }
                other => panic!("a controller sends no {other:?}"),
            }
        }
    }

    /// Reads or writes memory of the client. Panics if the client has no memory at `address`.
    fn reach(&mut self, write: bool, address: u64, bytes: &mut [u8]) {
        let (first, size, file) = self.memory.as_ref().expect("mapped");
        let at = address.checked_sub(*first).expect("mapped");
        assert!(at + bytes.len() as u64 <= *size, "mapped");
        match (self.kind.by_message, write) {
            _ if bytes.is_empty() => {}
            (true, _) => self.crossed.extend(exchange(&mut self.socket, write, address, bytes)),
            (false, true) => file.write_all_at(bytes, at).unwrap(),
            (false, false) => file.read_exact_at(bytes, at).unwrap(),
        }
    }

    fn is_ready(&self, ms: i64) -> bool {
        let within = Timespec { tv_sec: 0, tv_nsec: ms * 1_000_000 };
        poll(&mut [PollFd::new(&self.socket, PollFlags::IN)], Some(&within)).is_ok_and(|n| n > 0)
    }

    /// Passes stores into the doorbell page to the controller. Returns whether there were any.
    fn check_page(&mut self, nvme: &mut Controller) -> bool {
        let mut now = vec![0; 0x1000];
        self.page.read_exact_at(&mut now, DOORBELLS).unwrap();
        let mut any = false;
        for at in (0..0x1000).step_by(4) {
            if now[at..at + 4] != self.seen[at..at + 4] {
                any = true;
                nvme.set_register(DOORBELLS as usize + at, &now[at..at + 4]);
            }
        }
        self.seen = now;
        any
    }

    /// Handles a message; `None` if the client has disconnected.
    fn message(&mut self, nvme: &mut Controller) -> Option<()> {
        let (head, fds) = receive_header(&self.socket).ok()??;
        let mut payload = vec![0; u32_at(&head, 4) as usize - head.len()];
        self.socket.read_exact(&mut payload).ok()?;
        assert!(fds.len() <= 1, "it said that it takes one descriptor");
        self.reply(nvme, head, &payload, fds)
    }

    fn reply(
        &mut self,
        nvme: &mut Controller,
        mut head: [u8; 16],
        payload: &[u8],
        fds: Vec<OwnedFd>,
    ) -> Option<()> {
        let command = u16::from_le_bytes([head[2], head[3]]);
        let (answer, fd) = self.answer(nvme, command, payload, fds);
        head[8] = 1;
        if answer.is_err() {
            // The Error flag, and EINVAL.
            (head[8], head[12]) = (0x21, 22);
        }
        let answer = answer.unwrap_or_default();
        head[4..8].copy_from_slice(&(16 + answer.len() as u32).to_le_bytes());
        let files: Vec<_> = fd.iter().map(AsFd::as_fd).collect();
        send(&self.socket, &[&head[..], &answer].concat(), &files).ok().map(drop)
    }

    fn answer(
        &mut self,
        nvme: &mut Controller,
        command: u16,
        asked: &[u8],
        mut fds: Vec<OwnedFd>,
    ) -> (Result<Vec<u8>, ()>, Option<File>) {
        let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let answer = match command {
            // VERSION 0.1, without capabilities: one descriptor per message.
            1 => Ok(vec![0, 0, 1, 0]),
            2 => {
                let (address, size) = (u64_at(asked, 16), u64_at(asked, 24));
                self.memory = fds.pop().map(|fd| (address, size, File::from(fd)));
                Ok(Vec::new())
            }
            3 => {
                self.memory = None;
                Ok(asked.to_vec())
            }
            4 => Ok(words(&[16, 3, 9, 5])),
            5 => return self.region(asked[8]),
            7 => Ok(words(&[16, 1, u32_at(asked, 8), if asked[8] == 2 { 8 } else { 0 }])),
            8 => self.set_irqs(asked, fds),
            9 | 10 => self.access(nvme, command == 10, asked),
            13 => {
                self.config[4] = 0;
                nvme.function_level_reset();
                nvme.interrupts = true;
                Ok(Vec::new())
            }
            _ => Err(()),
        };
        (answer, None)
    }

    fn region(&self, index: u8) -> (Result<Vec<u8>, ()>, Option<File>) {
        let mut out = Vec::new();
        let mut put = |words: &[u32]| words.iter().for_each(|word| out.extend(word.to_le_bytes()));
        match index {
            0 if self.kind.page => {
                put(&[64, 0xf, 0, 32, BAR0 as u32, 0, 0, 0]);
                put(&[1 | 1 << 16, 0, 1, 0, DOORBELLS as u32, 0, 0x1000, 0]);
                return (Ok(out), Some(self.page.try_clone().unwrap()));
            }
            0 => put(&[32, 3, 0, 0, BAR0 as u32, 0, 0, 0]),
            7 => put(&[32, 3, 7, 0, 256, 0, 0, 0]),
            other => put(&[32, 0, other.into(), 0, 0, 0, 0, 0]),
        }
        (Ok(out), None)
    }

    /// Sets the eventfds of MSI-X vectors, one per message, or removes them all.
    fn set_irqs(&mut self, asked: &[u8], mut fds: Vec<OwnedFd>) -> Result<Vec<u8>, ()> {
        let [flags, index, start, count] = [4, 8, 12, 16].map(|at| u32_at(asked, at));
        match (flags, index, count) {
            (0x21, 2, 0) => self.vectors.iter_mut().for_each(|vector| *vector = None),
            (0x24, 2, 1) => {
                let place = self.vectors.get_mut(start as usize).ok_or(())?;
                *place = Some(File::from(fds.pop().ok_or(())?));
            }
            _ => return Err(()),
        }
        Ok(Vec::new())
    }

    fn access(&mut self, nvme: &mut Controller, write: bool, asked: &[u8]) -> Result<Vec<u8>, ()> {
        let (offset, region, count) = (u64_at(asked, 0), u32_at(asked, 8), u32_at(asked, 12));
        let (at, length) = (offset as usize, count as usize);
        let mut reply = asked[..16].to_vec();
        match (region, write) {
            (7, false) => reply.extend(self.config.get(at..at + length).ok_or(())?),
            (7, true) => {
                // Only the Command register and MSI-X Enable are writable.
                if at == 4 || at == 0x42 {
                    self.config[at..at + length].copy_from_slice(&asked[16..]);
                    nvme.master = self.config[4] & 4 != 0;
                }
            }
            (0, false) => reply.extend(nvme.register(at, length)),
            (0, true) => {
                assert!(offset < 0x2000, "the MSI-X table belongs to the client");
                nvme.set_register(at, &asked[16..]);
            }
            _ => return Err(()),
        }
        Ok(reply)
    }
}

/// Sends DMA_READ or DMA_WRITE. Returns the client's messages that arrived before the reply.
fn exchange(socket: &mut UnixStream, write: bool, address: u64, bytes: &mut [u8]) -> Vec<Vec<u8>> {
    let data: &[u8] = if write { bytes } else { &[] };
    let mut message = vec![0x55, 0xaa, if write { 12 } else { 11 }, 0];
    message.extend((32 + data.len() as u32).to_le_bytes());
    message.extend([0; 8]);
    message.extend(address.to_le_bytes());
    message.extend((bytes.len() as u64).to_le_bytes());
    message.extend(data);
    socket.write_all(&message).unwrap();
    let mut crossed = Vec::new();
    loop {
        let mut reply = vec![0; 16];
        socket.read_exact(&mut reply).unwrap();
        reply.resize(u32_at(&reply, 4) as usize, 0);
        socket.read_exact(&mut reply[16..]).unwrap();
        if reply[..4] != message[..4] {
            crossed.push(reply);
            continue;
        }
        assert_eq!(u32_at(&reply, 8), 1, "no error");
        if !write {
            bytes.copy_from_slice(&reply[32..]);
        }
        return crossed;
    }
}
