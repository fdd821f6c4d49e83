//! Tests of descriptors of a client that are not memory, and of files that hang. To simulate such a
//! file, the worker drops a value whose drop blocks.

use super::*;
use crate::action::Input;
use crate::connection::Incoming;
use crate::guest::MAX_WORKERS;
use crate::session::Session;
use std::fs::File;
use std::sync::mpsc::{Receiver, Sender, channel};

const NOW: Instant = Instant::ZERO;
const RANGE: u64 = 0x1_0000;

/// A file on a disk. The file is deleted when its last descriptor is closed.
fn file() -> File {
    let folder = std::env::current_exe().unwrap().parent().unwrap().to_owned();
    let file = rustix::fs::open(
        &folder,
        rustix::fs::OFlags::TMPFILE | rustix::fs::OFlags::RDWR,
        rustix::fs::Mode::RWXU,
    );
    let file = File::from(file.unwrap());
    file.set_len(0x4000).unwrap();
    let known = rustix::fs::fcntl_get_seals(&file);
    assert!(known.is_err(), "{}: on tmpfs; this test needs a disk", folder.display());
    file
}

/// Sends a command and does not wait for its reply.
fn begin(session: &mut Session, command: Command, payload: Vec<u8>, fd: Option<OwnedFd>) {
    let header = Header::command(1, command, payload.len());
    let fds = fd.map(|fd| ClientFile::new(fd, session.worker.disposal())).into_iter().collect();
    let message = Incoming { header, payload: payload.into(), fds, refusal: None };
    session.handle(NOW, Input::Message(message));
}

fn command(session: &mut Session, command: Command, payload: Vec<u8>, fd: Option<OwnedFd>) {
    begin(session, command, payload, fd);
    let reply = session.outgoing().expect("a reply");
    assert_eq!(Header::decode(&reply.bytes).unwrap().error, None);
}

fn unmap() -> Vec<u8> {
    let (argsz, flags) = (DmaUnmap::LENGTH as u32, 0);
    encoded(|out| DmaUnmap { argsz, flags, address: RANGE, size: 0x4000 }.encode(out))
}

fn map(session: &mut Session, address: u64, fd: Option<OwnedFd>) {
    let payload = encoded(|out| DmaMap { flags: 3, offset: 0, address, size: 0x4000 }.encode(out));
    command(session, Command::DmaMap, payload, fd);
}

/// A session with a client that has negotiated a version.
fn session() -> Session {
    let mut session = Session::new(plain_endpoint()).unwrap();
    session.handle(NOW, Input::Connected);
    command(&mut session, Command::Version, vec![0; 4], None);
    session
}

fn woken(session: &Session) {
    assert!(is_readable(&session.workers.wake, 20), "the worker has dropped nothing");
    session.workers.clear_wake();
}

#[test]
fn memory_on_a_disk_and_what_is_no_file_are_reached_by_messages() {
    for fd in [file().into(), eventfd()] {
        let mut session = session();
        map(&mut session, RANGE, Some(fd));
        let ram = Shared::new("ram", 0, 0x4000).unwrap();
        map(&mut session, 0x2_0000, Some(ram.file));
        assert!(matches!(session.dma_write(NOW, RANGE, &[1]), Access::Pending(_)));
        let message = session.outgoing().expect("a message");
        let header = Header::decode(&message.bytes).unwrap();
        assert_eq!(header.command, Command::DmaWrite.number());
        // An access to a mapped range waits for the pending write, because no request may pass a
        // posted write.
        assert_eq!(session.dma_read(NOW, 0x2_0000, 4), Access::Full);
        assert!(matches!(session.dma_read(NOW, RANGE, 4), Access::Pending(_)));
    }
}

/// A value whose drop blocks until the sender of the channel is dropped.
struct Hangs(Receiver<()>);

impl Drop for Hangs {
    fn drop(&mut self) {
        let _ = self.0.recv();
    }
}

/// Makes the session's worker hang until the returned value is dropped.
fn hang(session: &Session) -> Sender<()> {
    let (release, waits) = channel();
    session.worker.disposal().dispose(Hangs(waits));
    release
}

#[test]
fn a_worker_that_hangs_stops_the_descriptors_of_its_client_alone() {
    let mut session = session();
    let release = hang(&session);
    // All descriptors must be closed.
    let mut sent = 0;
    while session.accepts_input() {
        command(
            &mut session,
            Command::DmaUnmap,
            [24, 2].map(u32::to_le_bytes).concat().into_iter().chain([0; 16]).collect(),
            Some(eventfd()),
        );
        sent += 1;
        assert!(sent < 1000);
    }
    assert!(sent > 4);
    drop(release);
    while !session.accepts_input() {
        woken(&session);
    }
}

#[test]
fn clients_that_connect_again_leave_a_bounded_number_of_threads() {
    let mut session = Session::new(plain_endpoint()).unwrap();
    let mut stuck = Vec::new();
    while session.workers.has_room() {
        session.handle(NOW, Input::Connected);
        command(&mut session, Command::Version, vec![0; 4], None);
        stuck.push(hang(&session));
        session.handle(NOW, Input::Disconnected);
        assert!(stuck.len() <= MAX_WORKERS);
    }
    assert_eq!(stuck.len(), MAX_WORKERS);
    stuck.pop();
    while !session.workers.has_room() {
        woken(&session);
    }
}

#[test]
fn memory_is_unmapped_although_files_hang() {
    const NAME: &str = "behind a file that hangs";
    let mapped = || std::fs::read_to_string("/proc/self/maps").unwrap().contains(NAME);
    let mut session = session();
    let _release = hang(&session);
    for by_leaving in [false, true] {
        let Shared { file, .. } = Shared::new(NAME, 0, 0x4000).unwrap();
        map(&mut session, RANGE, Some(file));
        assert!(mapped());
        if by_leaving {
            session.handle(NOW, Input::Disconnected);
        } else {
            command(&mut session, Command::DmaUnmap, unmap(), None);
        }
        while mapped() {
            woken(&session);
        }
    }
}
