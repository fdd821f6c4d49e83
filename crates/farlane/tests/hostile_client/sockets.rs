//! Descriptors that the node closes without having wanted them: sockets that
//! linger until a peer reads, which it never does.

use crate::drive::Drive;
use crate::{LIMIT, Nodes};
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::{Errno, IoSlice};
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg, sockopt};
use std::io::{Read, Write};
use std::mem::MaybeUninit;
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

/// How long the end of a socket takes; longer than the working client waits.
const LINGER: Duration = Duration::from_secs(30);
/// A message may come with one descriptor less.
const TOO_MANY: usize = 17;
const EMFILE: u32 = 24;
const DMA_UNMAP: u16 = 3;
/// Rounds of the working client beside it.
const ROUNDS: u64 = 100;

/// A socket whose end takes [`LINGER`] as long as the other is there.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    sockopt::set_socket_linger(&socket, Some(LINGER)).unwrap();
    socket.set_nonblocking(true).unwrap();
    while socket.write(&[0; 1 << 16]).is_ok() {}
    (socket, listener.accept().unwrap().0)
}

fn send(socket: &UnixStream, bytes: &[u8], fd: BorrowedFd<'_>) -> Result<usize, Errno> {
    let fds = [fd];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)
}

/// Connects, says `first`, and leaves `fd` in a socket that the node closes
/// unread; again, if it was faster than we.
fn leave(path: &std::path::Path, first: &[u8], fd: BorrowedFd<'_>) {
    let deadline = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < deadline, "always closed before the descriptor came");
        let mut socket = UnixStream::connect(path).unwrap();
        let said = socket.write_all(first).is_ok();
        if said && send(&socket, &[0; 16], fd).is_ok() {
            socket.set_read_timeout(Some(LIMIT)).unwrap();
            // Its end, or a reset for what was not read.
            assert!(matches!(socket.read(&mut [0]), Ok(0) | Err(_)));
            return;
        }
    }
}

#[test]
fn descriptors_that_nobody_takes_stop_nobody() {
    let mut nodes = Nodes::start("hostile-sockets");
    let (path, rounds) = (nodes.socket(), nodes.rounds.clone());
    let (sockets, peers): (Vec<_>, Vec<_>) = (0..3).map(|_| lingering()).unzip();
    nodes.beside_a_working_client(|host| {
        let mut sockets = sockets.into_iter();
        let mut next = || sockets.next().unwrap();
        let undisturbed = || {
            let (before, deadline) = (rounds.load(Ordering::Relaxed), Instant::now() + LIMIT);
            while rounds.load(Ordering::Relaxed) < before + ROUNDS {
                assert!(Instant::now() < deadline, "the working client is held up");
                std::thread::yield_now();
            }
        };
        // The last of too many.
        let drive = Drive::attach(&path);
        let (event, socket) = (eventfd(0, EventfdFlags::CLOEXEC).unwrap(), next());
        let mut fds = vec![event.as_fd(); TOO_MANY];
        fds[TOO_MANY - 1] = socket.as_fd();
        let refused = drive.client().attempt(DMA_UNMAP, &[0; 24], &fds);
        assert_eq!(refused.map(|_| ()), Err(EMFILE));
        drop(socket);
        undisturbed();
        // Of a second client.
        leave(&path, &[], next().as_fd());
        undisturbed();
        drop(drive);
        host.process.stderr.wait_for("endpoint 1: VMM gone", LIMIT);
        // Behind what is no header.
        leave(&path, &[0xff; 16], next().as_fd());
        undisturbed();
    });
    drop(peers);
    nodes.stop();
}
