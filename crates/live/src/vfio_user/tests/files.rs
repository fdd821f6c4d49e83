//! DMA to files that are not mapped, and files that hang. A worker hangs here because it drops
//! a value whose drop blocks.

use super::*;
use crate::guest::MAX_WORKERS;
use crate::vfio_user::action::Input;
use crate::vfio_user::connection::Incoming;
use crate::vfio_user::session::Session;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::sync::mpsc::{Receiver, Sender, channel};

const NOW: Instant = Instant::ZERO;
const RANGE: u64 = 0x1_0000;

/// A file on a disk, which goes away with its last descriptor.
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
    let mut session = Session::new(testing::plain_endpoint()).unwrap();
    session.handle(NOW, Input::Connected);
    command(&mut session, Command::Version, vec![0; 4], None);
    session
}

/// A session whose range is `file`, with a descriptor for vector 0.
fn with_file(file: &File) -> (Session, OwnedFd) {
    let (mut session, event) = (session(), eventfd());
    map(&mut session, RANGE, Some(file.try_clone().unwrap().into()));
    let (data, action, index, start, count) = (IrqData::Eventfd, IrqAction::Trigger, 2, 0, 1);
    let payload = encoded(|out| IrqSet { data, action, index, start, count }.encode(out));
    command(&mut session, Command::DeviceSetIrqs, payload, Some(event.try_clone().unwrap()));
    (session, event)
}

/// Waits until DMA of the session has ended.
fn ended(session: &mut Session) -> (u64, Result<Bytes, DmaError>) {
    loop {
        if let Some(ended) = session.poll_dma(NOW) {
            return ended;
        }
        woken(session);
    }
}

fn woken(session: &Session) {
    assert!(is_readable(&session.workers.wake, 20), "the worker has ended no job");
    session.workers.clear_wake();
}

/// A value whose drop blocks until the other end is dropped.
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
fn a_file_is_read_and_written_by_the_worker() {
    let file = file();
    let (mut session, event) = with_file(&file);
    let Access::Pending(write) = session.dma_write(NOW, RANGE + 0x10, &[1, 2, 3]) else { panic!() };
    session.signal(0);
    assert_eq!(ended(&mut session), (write, Ok(Bytes::new())));
    assert_eq!(rung(&event), 1);
    let mut there = [0; 5];
    file.read_exact_at(&mut there, 0xf).unwrap();
    assert_eq!(there, [0, 1, 2, 3, 0]);
    let Access::Pending(read) = session.dma_read(NOW, RANGE + 0x11, 2) else { panic!() };
    assert_eq!(ended(&mut session), (read, Ok(Bytes::from_static(&[2, 3]))));
    // A truncated file is a fault and does not disconnect the client.
    file.set_len(0x1000).unwrap();
    let Access::Pending(read) = session.dma_read(NOW, RANGE + 0xffe, 4) else { panic!() };
    assert_eq!(ended(&mut session), (read, Err(DmaError::Fault)));
    assert_eq!(session.client.must_close.take(), None);
    let outside = session.dma_read(NOW, RANGE + 0x3ffe, 4);
    assert_eq!(outside, Access::Failed(DmaError::Fault));
}

#[test]
fn a_file_that_hangs_fails_in_time_and_is_not_written_late() {
    let file = file();
    let (mut session, event) = with_file(&file);
    let release = hang(&session);
    let Access::Pending(write) = session.dma_write(NOW, RANGE, &[9; 4]) else { panic!() };
    let Access::Pending(read) = session.dma_read(NOW, RANGE, 4) else { panic!() };
    session.signal(0);
    assert_eq!(session.poll_dma(NOW), None);
    assert_eq!(rung(&event), 0, "an interrupt passes no write");
    assert_eq!(session.deadline(), Some(NOW + DMA_DEADLINE));
    let late = NOW + DMA_DEADLINE;
    assert_eq!(session.poll_dma(late), Some((write, Err(DmaError::Timeout))));
    assert_eq!(session.poll_dma(late), Some((read, Err(DmaError::Timeout))));
    // The client is disconnected, and sees nothing that followed the lost write.
    assert_eq!(rung(&event), 0);
    let refused = session.dma_write(late, RANGE, &[1]);
    assert_eq!(refused, Access::Failed(DmaError::Fault));
    assert_eq!(session.client.must_close.take(), Some(Closed::WriteLost(RANGE)));
    // When the file answers, cancelled jobs are not carried out.
    drop(release);
    let Access::Pending(read) = session.dma_read(NOW, RANGE, 4) else { panic!() };
    assert_eq!(ended(&mut session), (read, Ok(Bytes::from_static(&[0; 4]))));
}

#[test]
fn no_access_passes_a_write_that_goes_another_way() {
    let file = file();
    let (mut session, _event) = with_file(&file);
    let ram = Shared::new("ram", 0, 0x4000).unwrap();
    let (mapped, by_message) = (0x2_0000, 0x3_0000);
    map(&mut session, mapped, Some(ram.file.try_clone().unwrap()));
    map(&mut session, by_message, None);
    let release = hang(&session);
    assert_eq!(session.dma_write(NOW, mapped, &[1]), Access::Done(()));
    assert!(matches!(session.dma_read(NOW, RANGE, 4), Access::Pending(_)));
    // A write may pass a read; nothing may pass a write.
    assert_eq!(session.dma_write(NOW, mapped, &[2]), Access::Done(()));
    assert!(matches!(session.dma_write(NOW, RANGE, &[3]), Access::Pending(_)));
    for other in [mapped, by_message, RANGE + 0x3fff] {
        let length = if other == RANGE + 0x3fff { 1 } else { 4 };
        let (read, write) =
            (session.dma_read(NOW, other, length), session.dma_write(NOW, other, &[4]));
        if other < mapped {
            assert!(matches!((read, write), (Access::Pending(_), Access::Pending(_))));
        } else {
            assert_eq!((read, write), (Access::Full, Access::Full));
        }
    }
    drop(release);
    for _ in 0..4 {
        assert!(ended(&mut session).1.is_ok());
    }
    assert_eq!(session.dma_write(NOW, mapped, &[5]), Access::Done(()));
    assert!(matches!(session.dma_write(NOW, by_message, &[6]), Access::Pending(_)));
    assert_eq!(session.dma_write(NOW, RANGE, &[7]), Access::Full);
}

#[test]
fn what_waits_for_a_file_is_bounded() {
    let file = file();
    let (mut session, _event) = with_file(&file);
    let release = hang(&session);
    let mut bytes = 0;
    while matches!(session.dma_write(NOW, RANGE, &[1; 0x4000]), Access::Pending(_)) {
        bytes += 0x4000;
        assert!(bytes <= 2 << 20);
    }
    assert_eq!(session.dma_read(NOW, RANGE, 4), Access::Full);
    drop(release);
    assert!(ended(&mut session).1.is_ok());
    assert!(matches!(session.dma_write(NOW, RANGE, &[1; 0x4000]), Access::Pending(_)));
}

#[test]
fn a_descriptor_that_is_no_file_is_a_fault() {
    let mut session = session();
    map(&mut session, RANGE, Some(eventfd()));
    let Access::Pending(read) = session.dma_read(NOW, RANGE, 8) else { panic!() };
    assert_eq!(ended(&mut session), (read, Err(DmaError::Fault)));
}

#[test]
fn a_worker_that_hangs_stops_the_descriptors_of_its_client_alone() {
    let mut session = session();
    let release = hang(&session);
    // All of them must be closed.
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
    let mut session = Session::new(testing::plain_endpoint()).unwrap();
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

/// Answers the current command as the owner.
fn carry_out(session: &mut Session) {
    while let Some(action) = session.poll(NOW) {
        match action {
            Action::BarRead { token, length, .. } => {
                session.reply(NOW, token, Ok(&vec![0; length]));
            }
            Action::Reset { token, .. } | Action::ConfigWrite { token, .. } => {
                session.reply(NOW, token, Ok(&[]));
            }
            _ => {}
        }
    }
}

#[test]
fn no_answer_passes_a_write_to_a_file() {
    let commands = [
        (Command::DmaUnmap, unmap()),
        (Command::DeviceReset, Vec::new()),
        (Command::RegionRead, access(0, 0x1c, 4, &[])),
        (Command::RegionWrite, access(region_index::CONFIG, 4, 2, &[0, 0])),
    ];
    for (command, payload) in commands {
        for released in [true, false] {
            let file = file();
            let (mut session, _event) = with_file(&file);
            carry_out(&mut session);
            let release = hang(&session);
            let Access::Pending(write) = session.dma_write(NOW, RANGE, &[9; 4]) else { panic!() };
            begin(&mut session, command, payload.clone(), None);
            carry_out(&mut session);
            assert!(session.outgoing().is_none(), "{command:?} is answered before the write");
            assert_eq!(session.deadline(), Some(NOW + DMA_DEADLINE), "{command:?}");
            if released {
                drop(release);
                assert_eq!(ended(&mut session), (write, Ok(Bytes::new())));
                assert_eq!(session.poll(NOW), None);
                assert!(session.outgoing().is_some(), "{command:?} is not answered");
            } else {
                // The write may still be carried out: the client is disconnected without an answer.
                let _ = session.poll(NOW + DMA_DEADLINE);
                assert_eq!(session.client.must_close.take(), Some(Closed::WriteLost(RANGE)));
            }
        }
    }
}

#[test]
fn a_doorbell_does_not_wait_for_a_write_to_a_file_and_messages_delay_nothing() {
    let file = file();
    let (mut session, _event) = with_file(&file);
    map(&mut session, 0x3_0000, None);
    carry_out(&mut session);
    assert!(matches!(session.dma_write(NOW, 0x3_0000, &[6]), Access::Pending(_)));
    assert!(session.outgoing().is_some(), "the message");
    begin(&mut session, Command::RegionRead, access(0, 0x1c, 4, &[]), None);
    carry_out(&mut session);
    assert!(session.outgoing().is_some(), "QEMU answers no message before");
    let (mut session, _event) = with_file(&file);
    carry_out(&mut session);
    let _release = hang(&session);
    assert!(matches!(session.dma_write(NOW, RANGE, &[9; 4]), Access::Pending(_)));
    begin(&mut session, Command::RegionWrite, access(0, 0x1000, 4, &[1, 0, 0, 0]), None);
    assert!(session.outgoing().is_some());
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
