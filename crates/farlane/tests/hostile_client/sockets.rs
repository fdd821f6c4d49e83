//! Descriptors that the node closes without having wanted them: sockets that
//! linger until a peer reads, which it never does.

use super::{Nodes, is_undisturbed};
use crate::support::Drive;
use crate::support::process::LIMIT;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::sockopt;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use testkit::vfio_user::send;

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

/// Has `give` pass a lingering socket to the node, and closes ours before the
/// node closes its own: only the last close lingers. Again with another socket
/// if the node was faster. What `give` returned, and the peer.
fn give_away<T: Send>(give: impl Fn(BorrowedFd<'_>) -> Option<T> + Sync) -> (T, TcpStream) {
    let deadline = Instant::now() + LIMIT;
    loop {
        assert!(Instant::now() < deadline, "the node always closed before us");
        let (socket, peer) = lingering();
        let given = thread::scope(|threads| {
            let closing = threads.spawn(|| {
                let given = give(socket.as_fd());
                drop(socket);
                given
            });
            let soon = Instant::now() + LINGER / 100;
            while !closing.is_finished() && Instant::now() < soon {
                thread::yield_now();
            }
            if closing.is_finished() {
                return closing.join().unwrap().map(|given| (given, peer));
            }
            // Ends our close.
            drop(peer);
            closing.join().unwrap();
            None
        });
        if let Some(given) = given {
            return given;
        }
    }
}

/// Connects, says `first`, and leaves a lingering socket in a socket that the
/// node closes unread. The peer.
fn leave(path: &Path, first: &[u8]) -> TcpStream {
    let (mut socket, peer) = give_away(|fd| {
        let mut socket = UnixStream::connect(path).unwrap();
        // The node may have closed it before the descriptor came.
        socket.write_all(first).and_then(|()| Ok(send(&socket, &[0; 16], &[fd])?)).ok()?;
        Some(socket)
    });
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    // Its end, or a reset for what was not read.
    assert!(matches!(socket.read(&mut [0]), Ok(0) | Err(_)));
    peer
}

#[test]
fn unread_descriptors_block_only_their_client() {
    let mut nodes = Nodes::start("hostile-sockets");
    let (path, rounds) = (nodes.socket(), nodes.rounds.clone());
    let mut peers = Vec::new();
    nodes.beside_a_working_client(|host| {
        // The last of too many.
        let drive = Drive::attach(&path);
        let event = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let (client, sent) = (&drive.client, AtomicUsize::new(0));
        let ((), peer) = give_away(|fd| {
            let mut fds = vec![event.as_fd(); TOO_MANY];
            fds[TOO_MANY - 1] = fd;
            sent.fetch_add(1, Ordering::Relaxed);
            client.send(DMA_UNMAP, &[0; 24], &fds).ok()
        });
        for _ in 0..sent.into_inner() {
            assert_eq!(client.receive(DMA_UNMAP).map(|_| ()), Err(EMFILE));
        }
        peers.push(peer);
        is_undisturbed(&rounds, ROUNDS);
        // Of a second client.
        peers.push(leave(&path, &[]));
        is_undisturbed(&rounds, ROUNDS);
        drop(drive);
        host.process.line("endpoint 1: VMM gone");
        // Behind what is no header.
        peers.push(leave(&path, &[0xff; 16]));
        is_undisturbed(&rounds, ROUNDS);
    });
    drop(peers);
    nodes.stop();
}
