//! Descriptors that the node closes without using them: sockets whose close blocks until a peer
//! reads. The peer never reads.

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

/// Time that the close of such a socket takes: longer than the working client waits.
const LINGER: Duration = Duration::from_secs(30);
/// Number of descriptors in a message: one more than permitted.
const TOO_MANY: usize = 17;
const EMFILE: u32 = 24;
const DMA_UNMAP: u16 = 3;
/// Number of rounds of the working client in the meantime.
const ROUNDS: u64 = 100;

/// Returns a socket whose close takes [`LINGER`] as long as its peer exists, and the peer.
fn lingering() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let mut socket = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    sockopt::set_socket_linger(&socket, Some(LINGER)).unwrap();
    socket.set_nonblocking(true).unwrap();
    while socket.write(&[0; 1 << 16]).is_ok() {}
    (socket, listener.accept().unwrap().0)
}

/// Makes `give` pass such a socket to the node, and closes the socket here before the node does,
/// because only the last close blocks. Repeats this with another socket if the node was faster.
/// Returns the result of `give`, and the peer.
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
            // Ends the close in this process.
            drop(peer);
            closing.join().unwrap();
            None
        });
        if let Some(given) = given {
            return given;
        }
    }
}

/// Connects to `path`, sends `first`, and sends a socket whose close blocks. The node closes the
/// connection without reading it. Returns the peer of the socket.
fn leave(path: &Path, first: &[u8]) -> TcpStream {
    let (mut socket, peer) = give_away(|fd| {
        let mut socket = UnixStream::connect(path).unwrap();
        // The node may have closed the connection before the descriptor came.
        socket.write_all(first).and_then(|()| Ok(send(&socket, &[0; 16], &[fd])?)).ok()?;
        Some(socket)
    });
    socket.set_read_timeout(Some(LIMIT)).unwrap();
    // The end of the connection, or a reset because of unread bytes.
    assert!(matches!(socket.read(&mut [0]), Ok(0) | Err(_)));
    peer
}

#[test]
fn unread_descriptors_block_only_their_client() {
    let mut nodes = Nodes::start("hostile-sockets");
    let (path, rounds) = (nodes.socket(), nodes.rounds.clone());
    let mut peers = Vec::new();
    nodes.beside_a_working_client(|host| {
        // The socket is the last of too many descriptors.
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
        // The socket is in the connection of a second client.
        peers.push(leave(&path, &[]));
        is_undisturbed(&rounds, ROUNDS);
        drop(drive);
        host.process.line("endpoint 1: VMM gone");
        // The socket follows an invalid header.
        peers.push(leave(&path, &[0xff; 16]));
        is_undisturbed(&rounds, ROUNDS);
    });
    drop(peers);
    nodes.stop();
}
