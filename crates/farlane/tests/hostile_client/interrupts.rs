//! Descriptors of interrupts for which a write would block.

use super::Nodes;
use crate::support::Drive;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::fs::OFlags;

const SET_IRQS: u16 = 8;
const MSIX: u32 = 2;
const EINVAL: u32 = 22;

// Flags of VFIO_USER_DEVICE_SET_IRQS.
const NOTHING: u32 = 1;
const EVENTFD: u32 = 1 << 2;
const TRIGGER: u32 = 1 << 5;

/// Sets the descriptor of vector 0, or triggers the vector. The error is the errno of the reply.
fn vector(drive: &Drive, flags: u32, fds: &[BorrowedFd<'_>]) -> Result<(), u32> {
    let payload: Vec<u8> =
        [20, flags | TRIGGER, MSIX, 0, 1].into_iter().flat_map(u32::to_le_bytes).collect();
    drive.client.attempt(SET_IRQS, &payload, fds).map(|_| ())
}

/// Clears O_NONBLOCK, which a server may have set.
fn make_blocking(fd: &OwnedFd) {
    let flags = rustix::fs::fcntl_getfl(fd).unwrap();
    rustix::fs::fcntl_setfl(fd, flags - OFlags::NONBLOCK).unwrap();
}

fn full_pipe() -> (OwnedFd, OwnedFd) {
    let (read, write) = rustix::pipe::pipe_with(rustix::pipe::PipeFlags::NONBLOCK).unwrap();
    while rustix::io::write(&write, &[0; 4096]).is_ok() {}
    (read, write)
}

#[test]
fn blocking_descriptors_block_only_their_client() {
    let mut nodes = Nodes::start("hostile-interrupts");
    let socket = nodes.socket();
    nodes.beside_a_working_client(|_| {
        let mut drive = Drive::attach(&socket);
        let (_read, pipe) = full_pipe();
        assert_eq!(vector(&drive, EVENTFD, &[pipe.as_fd()]), Err(EINVAL), "a pipe");
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).unwrap();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        assert_eq!(vector(&drive, EVENTFD, &[event.as_fd()]), Ok(()));
        // The counter of the eventfd is full, and O_NONBLOCK is cleared after the server got the
        // descriptor.
        make_blocking(&event);
        // The controller signals vector 0 for each admin command. The client may trigger the vector
        // too.
        for _ in 0..100 {
            assert_eq!(drive.identify_namespace(1), (16 << 20) / 512);
        }
        assert_eq!(vector(&drive, NOTHING, &[]), Ok(()));
        drive.detach();
    });
    nodes.stop();
}
