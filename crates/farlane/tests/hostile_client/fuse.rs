//! A file system in this process with one file. Its reads and writes can be made to hang
//! (linux/fuse.h, version 7.31).

use crate::support::huge::mount;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;

// Opcodes.
const LOOKUP: u32 = 1;
const FORGET: u32 = 2;
const GETATTR: u32 = 3;
const OPEN: u32 = 14;
const READ: u32 = 15;
const FLUSH: u32 = 25;
const INIT: u32 = 26;

/// Number of the file's node. The root has number 1.
const FILE: u64 = 2;

/// Size of the file in bytes.
pub const SIZE: u64 = 1 << 20;

/// A file system without a mount point: only this value can reach it. Drop ends all hanging reads
/// and writes.
pub struct FileSystem {
    files: Vec<File>,
    silent: Arc<AtomicBool>,
    reads: Arc<AtomicUsize>,
    end: Option<UnixStream>,
    server: Option<JoinHandle<()>>,
}

impl FileSystem {
    /// Creates the file system, and opens the file `times` times. Fails without the right to mount.
    pub fn new(times: usize) -> Result<Self, Errno> {
        let open = rustix::fs::open;
        let device =
            open("/dev/fuse", OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?;
        let number = device.as_raw_fd().to_string();
        let options =
            [("fd", &*number), ("rootmode", "40000"), ("user_id", "0"), ("group_id", "0")];
        let mount = mount("fuse", &options)?;
        let silent = Arc::new(AtomicBool::new(false));
        let (end, ended) = UnixStream::pair().unwrap();
        let reads = Arc::new(AtomicUsize::new(0));
        let (quiet, count) = (silent.clone(), reads.clone());
        let server = std::thread::spawn(move || serve(File::from(device), &ended, &quiet, &count));
        let (end, server) = (Some(end), Some(server));
        let mut system = Self { files: Vec::new(), silent, reads, end, server };
        for _ in 0..times {
            let flags = OFlags::RDWR | OFlags::CLOEXEC;
            let file = rustix::fs::openat(&mount, "file", flags, Mode::empty())?;
            system.files.push(File::from(file));
        }
        Ok(system)
    }

    /// Returns descriptor `time` of the file, from 0.
    pub fn file(&self, time: usize) -> BorrowedFd<'_> {
        self.files[time].as_fd()
    }

    /// Returns the number of reads that have begun.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }

    /// Makes all later reads and writes hang.
    pub fn fall_silent(&self) {
        self.silent.store(true, Ordering::SeqCst);
    }
}

impl Drop for FileSystem {
    fn drop(&mut self) {
        // Ended before the files are closed, because a close would wait for an answer.
        drop(self.end.take());
        let _ = self.server.take().map(JoinHandle::join);
    }
}

/// Answers requests until the other end of `ended` is closed. Then the device is closed, which ends
/// every wait.
fn serve(mut device: File, ended: &UnixStream, silent: &AtomicBool, reads: &AtomicUsize) {
    let mut request = vec![0; 1 << 20];
    loop {
        let mut fds = [PollFd::new(&device, PollFlags::IN), PollFd::new(ended, PollFlags::IN)];
        poll(&mut fds, None).unwrap();
        if !fds[1].revents().is_empty() {
            return;
        }
        let Ok(length) = device.read(&mut request) else { continue };
        let header = &request[..length.min(40)];
        let opcode = u32::from_le_bytes(header[4..8].try_into().unwrap());
        reads.fetch_add(usize::from(opcode == READ), Ordering::SeqCst);
        // A close is always answered. Otherwise a test that fails could not end.
        if opcode == FORGET || (silent.load(Ordering::SeqCst) && opcode != FLUSH) {
            continue;
        }
        let node = u64::from_le_bytes(header[16..24].try_into().unwrap());
        let (error, body) = answer(opcode, node);
        let mut reply = ((16 + body.len()) as u32).to_le_bytes().to_vec();
        reply.extend((-error).to_le_bytes());
        reply.extend(&header[8..16]);
        reply.extend(body);
        // The write fails if nobody waits for the answer any more.
        let _ = device.write(&reply);
    }
}

/// Returns an errno, and the bytes after the header.
fn answer(opcode: u32, node: u64) -> (i32, Vec<u8>) {
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect();
    match opcode {
        // fuse_init_out: version, flags, limits.
        INIT => {
            let mut body: Vec<u8> = words(&[7, 31, 0, 0, 0, 4096, 1]);
            body.resize(64, 0);
            (0, body)
        }
        // fuse_entry_out: node, generation, two validity times, attributes.
        LOOKUP => {
            let mut body: Vec<u8> = words(&[FILE as u32, 0, 0, 0, 3600, 0, 3600, 0, 0, 0]);
            body.extend(attributes(FILE));
            (0, body)
        }
        // fuse_attr_out: validity time, attributes.
        GETATTR => {
            let mut body: Vec<u8> = words(&[3600, 0, 0, 0]);
            body.extend(attributes(node));
            (0, body)
        }
        // fuse_open_out: handle, FOPEN_DIRECT_IO and FOPEN_NOFLUSH.
        OPEN => (0, words(&[1, 0, 1 | 1 << 5, 0])),
        FLUSH => (0, Vec::new()),
        _ => (Errno::NOSYS.raw_os_error(), Vec::new()),
    }
}

/// Returns the structure fuse_attr.
fn attributes(node: u64) -> Vec<u8> {
    let mode: u32 = if node == FILE { 0o100_666 } else { 0o40_755 };
    let mut out = Vec::new();
    [node, SIZE, 0, 0, 0, 0].iter().for_each(|word| out.extend(word.to_le_bytes()));
    [0, 0, 0, mode, 1, 0, 0, 0, 4096, 0].iter().for_each(|word| out.extend(word.to_le_bytes()));
    out
}
