//! Commands to a server, the replies to the commands, and commands of the server for host memory.
//!
//! The checks are as strict as in QEMU's client (`hw/vfio-user/proxy.c`): each reply must have the
//! ID and the command of a sent message. If the server violates the protocol, the caller gets an
//! error that names the socket and the message, and nothing more is sent.

use super::Now;
use super::memory::HostMemory;
use crate::MAX_DATA_XFER;
use crate::connection::{Closed, Connection, Incoming, Outgoing};
use crate::guest::{ClientFile, Worker, Workers};
use bytes::Bytes;
use rustix::event::{PollFd, PollFlags, Timespec};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use wire::vfio_user::{Command, DmaAccess, Header, Kind};
use wire::{Duration, Instant};

/// Time limit for a reply, as in QEMU.
pub const REPLY_LIMIT: Duration = Duration::from_ms(5_000);

/// The maximum number of writes without a reply. At this number the next write waits for a reply.
const MAX_UNANSWERED: usize = 64;

/// The maximum time that one call of poll(2) waits.
const LOOK: Duration = Duration::from_ms(100);

/// The maximum number of messages that are handled between two checks of the time.
const BATCH: usize = 64;

/// Why a server cannot be used: one line with the path of the socket and the reason.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {message}", socket.display())]
pub struct Error {
    socket: PathBuf,
    message: String,
    /// Whether no reply arrived, because the connection ended or the time limit passed.
    silent: bool,
}

impl Error {
    /// An error of the server at `socket`.
    pub fn new(socket: &Path, message: impl Into<String>) -> Self {
        Self { socket: socket.to_owned(), message: message.into(), silent: false }
    }

    /// Appends a hint.
    pub fn hint(mut self, text: &str) -> Self {
        self.message = format!("{}; {text}", self.message);
        self
    }

    fn silent(self) -> Self {
        Self { silent: true, ..self }
    }

    /// Appends a possible reason, `why`, if the error is that no reply arrived.
    pub fn perhaps(mut self, why: &str) -> Self {
        if self.silent {
            self.message = format!("{}: {why}", self.message);
        }
        self
    }
}

/// The maximum number of DMA commands of the server that wait for the caller. At this number the
/// socket is not read.
const MAX_DEFERRED: usize = 64;

/// A DMA command of the server that the caller carries out.
#[derive(Debug)]
pub struct DmaRequest {
    header: Header,
    /// The range of host memory.
    pub access: DmaAccess,
    /// The bytes to write; `None` for a read.
    pub data: Option<Bytes>,
}

/// The payload and the descriptors of a reply.
pub(super) type Reply = (Bytes, Vec<ClientFile>);

/// A command that was sent.
#[derive(Clone, Copy, Debug)]
struct Sent {
    id: u16,
    command: Command,
    until: Instant,
}

/// The connection to a server.
pub struct Channel {
    path: PathBuf,
    now: Now,
    connection: Connection,
    next_id: u16,
    /// Writes whose reply has not arrived, in order of sending.
    posted: VecDeque<Sent>,
    /// Commands of [`request`](Self::request) whose reply has not arrived, in order of sending.
    requested: VecDeque<Sent>,
    /// Replies to these commands, or the errno.
    answers: VecDeque<(u16, Result<Bytes, u32>)>,
    /// DMA commands that the caller has not taken.
    deferred: VecDeque<DmaRequest>,
    /// DMA commands that the caller has not answered.
    unanswered: usize,
    /// The command that [`exchange`](Self::exchange) waits for; `reply` is the reply or the errno.
    asked: Option<Sent>,
    reply: Option<Result<Reply, u32>>,
    /// Messages that the socket has not yet accepted, and whether they are replies to the server.
    outbox: VecDeque<(Outgoing, bool)>,
    /// Memory for DMA commands; `None`: the caller carries them out.
    memory: Option<Rc<HostMemory>>,
    /// Closes descriptors from the server in another thread, because closing can block.
    _worker: Worker,
}

impl Channel {
    /// Connects to the server at `path`. Does not block: if the server's queue of waiting clients
    /// is full, connecting fails.
    pub fn connect(path: &Path, now: Now, memory: Option<Rc<HostMemory>>) -> Result<Self, Error> {
        let connected = SocketAddrUnix::new(path).and_then(|address| {
            let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
            let socket =
                rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
            rustix::net::connect(&socket, &address).map(|()| socket)
        });
        let socket = connected.map_err(|errno| match errno {
            Errno::AGAIN => Error::new(path, "the server accepts no client now"),
            Errno::NAMETOOLONG => Error::new(path, "the path is too long for a Unix socket"),
            errno => Error::new(path, std::io::Error::from(errno).to_string()),
        })?;
        let workers = Workers::new().map_err(|errno| Error::new(path, errno.to_string()))?;
        let worker = workers.for_endpoint();
        Ok(Self {
            path: path.to_owned(),
            now,
            connection: Connection::new(socket, worker.disposal()),
            next_id: 0,
            posted: VecDeque::new(),
            requested: VecDeque::new(),
            answers: VecDeque::new(),
            deferred: VecDeque::new(),
            unanswered: 0,
            asked: None,
            reply: None,
            outbox: VecDeque::new(),
            memory,
            _worker: worker,
        })
    }

    /// An error of this server.
    pub fn error(&self, message: impl Into<String>) -> Error {
        Error::new(&self.path, message)
    }

    /// An error in a command or in its reply.
    pub fn fail(&self, command: Command, why: impl std::fmt::Display) -> Error {
        self.error(format!("{}: {why}", name(command)))
    }

    /// The time at which the oldest command without a reply times out; `None` if all have replies.
    pub fn reply_until(&self) -> Option<Instant> {
        self.oldest().map(|sent| sent.until)
    }

    /// The oldest command of [`post`](Self::post) and [`request`](Self::request) without a reply.
    fn oldest(&self) -> Option<Sent> {
        let both = [self.posted.front(), self.requested.front()];
        both.into_iter().flatten().min_by_key(|sent| sent.until).copied()
    }

    /// Sends a command without waiting; returns its ID. [`next_answer`](Self::next_answer) returns the
    /// reply.
    pub fn request(
        &mut self,
        command: Command,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<u16, Error> {
        let sent = self.send(command, payload, fds)?;
        self.requested.push_back(sent);
        Ok(sent.id)
    }

    /// Whether the socket is not read until DMA commands are answered or replies are sent.
    pub fn is_held(&self) -> bool {
        let replies = self.outbox.iter().filter(|(_, is_reply)| *is_reply);
        self.unanswered >= MAX_DEFERRED || replies.take(BATCH).count() == BATCH
    }

    /// Whether messages wait for room in the socket; [`service`](Self::service) tries again.
    pub fn is_blocked(&self) -> bool {
        !self.outbox.is_empty() || self.connection.blocked()
    }

    /// The next reply to a command of [`request`](Self::request): its ID, and the payload or the
    /// errno.
    pub fn next_answer(&mut self) -> Option<(u16, Result<Bytes, u32>)> {
        self.answers.pop_front()
    }

    /// The next DMA command for the caller. Answer each.
    pub fn next_dma(&mut self) -> Option<DmaRequest> {
        self.deferred.pop_front()
    }

    /// Answers a DMA command; `result` has the bytes read, or none for a write.
    pub fn answer_dma(&mut self, request: DmaRequest, result: Result<&[u8], Errno>) {
        self.unanswered -= 1;
        let payload = result.map(|data| {
            let mut reply = Vec::with_capacity(DmaAccess::LENGTH + data.len());
            request.access.encode(&mut reply);
            reply.extend_from_slice(data);
            reply
        });
        self.answer(request.header, payload);
    }

    /// Sends a command and waits for the reply, at most [`REPLY_LIMIT`].
    pub fn exchange(
        &mut self,
        command: Command,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<Reply, Error> {
        let sent = self.send(command, payload, fds)?;
        self.asked = Some(sent);
        self.wait(sent, |channel| channel.reply.is_some())?;
        self.asked = None;
        match self.reply.take().expect("waited for") {
            Ok(reply) => Ok(reply),
            Err(errno) => Err(self.refused(command, errno)),
        }
    }

    /// Sends a command without waiting for the reply, which is checked when it arrives. Waits for
    /// an earlier reply if too many are missing.
    pub fn post(&mut self, command: Command, payload: &[u8]) -> Result<(), Error> {
        if self.posted.len() >= MAX_UNANSWERED {
            let first = self.posted[0];
            self.wait(first, |channel| channel.posted.len() < MAX_UNANSWERED)?;
        }
        let sent = self.send(command, payload, &[])?;
        self.posted.push_back(sent);
        Ok(())
    }

    fn send(
        &mut self,
        command: Command,
        payload: &[u8],
        fds: &[BorrowedFd<'_>],
    ) -> Result<Sent, Error> {
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        let sent = Sent { id, command, until: (self.now)() + REPLY_LIMIT };
        let mut bytes = Header::command(id, command, payload.len()).encode().to_vec();
        bytes.extend_from_slice(payload);
        let copies: Result<Vec<OwnedFd>, _> =
            fds.iter().map(|fd| fd.try_clone_to_owned()).collect();
        let fds = copies.map_err(|error| self.fail(command, error))?;
        self.outbox.push_back((Outgoing { bytes, fds }, false));
        self.flush().map_err(|why| self.fail(command, why).silent())?;
        // The rest of the message is sent during the wait for the reply.
        Ok(sent)
    }

    /// Handles received messages without waiting. Returns whether there was a message.
    pub fn service(&mut self) -> Result<bool, Error> {
        let oldest = self.oldest();
        let any = self.step().map_err(|why| match (why, oldest) {
            (Stop::Closed(closed), None) => self.error(closed),
            (Stop::Closed(closed), Some(sent)) => self.fail(sent.command, closed),
            (Stop::Lie(error), _) => error,
        })?;
        // The reply may have arrived while this process did not run, or wait behind DMA commands.
        let waits = any || self.unanswered >= MAX_DEFERRED;
        let late = self.oldest().filter(|sent| !waits && (self.now)() > sent.until);
        late.map_or(Ok(any), |late| Err(self.late(late.command)))
    }

    /// Handles messages until `done` returns true. Fails if the reply to `sent` is late.
    fn wait(&mut self, sent: Sent, done: impl Fn(&Self) -> bool) -> Result<(), Error> {
        loop {
            self.step().map_err(|why| match why {
                Stop::Closed(closed) => self.fail(sent.command, closed).silent(),
                Stop::Lie(error) => error,
            })?;
            if done(self) {
                return Ok(());
            }
            let left = sent.until - (self.now)();
            if left == Duration::ZERO {
                return Err(self.late(sent.command));
            }
            let mut events = PollFlags::IN;
            events.set(PollFlags::OUT, self.is_blocked());
            let within = Timespec { tv_sec: 0, tv_nsec: left.min(LOOK).as_ns() as i64 };
            let mut fds = [PollFd::new(&self.connection.socket, events)];
            // After an error of poll(2) the loop tries again.
            let _ = rustix::event::poll(&mut fds, Some(&within));
        }
    }

    fn late(&self, command: Command) -> Error {
        let seconds = REPLY_LIMIT.as_ns() / 1_000_000_000;
        self.fail(command, format!("no reply within {seconds} s")).silent()
    }

    /// Sends as much as the socket accepts, and handles received messages.
    fn step(&mut self) -> Result<bool, Stop> {
        let mut any = false;
        for _ in 0..BATCH {
            // If the server does not read the replies, its further commands are not answered.
            self.flush().map_err(Stop::Closed)?;
            if self.is_held() {
                break;
            }
            match self.connection.receive() {
                Ok(Some(message)) => self.handle(message).map_err(Stop::Lie)?,
                Ok(None) => break,
                Err(closed) => return Err(Stop::Closed(sentence(closed))),
            }
            any = true;
        }
        Ok(any)
    }

    fn flush(&mut self) -> Result<(), String> {
        loop {
            let sent = match self.connection.blocked() {
                true => self.connection.resume(),
                false => match self.outbox.pop_front() {
                    Some((message, _)) => self.connection.send(message),
                    None => return Ok(()),
                },
            };
            if !sent.map_err(sentence)? {
                return Ok(());
            }
        }
    }

    fn handle(&mut self, message: Incoming) -> Result<(), Error> {
        let Header { id, command, kind, .. } = message.header;
        if kind == Kind::Command {
            self.serve(&message);
            return Ok(());
        }
        let asked = self.asked.filter(|sent| sent.id == id && self.reply.is_none());
        let place = |sent: &VecDeque<Sent>| sent.iter().position(|sent| sent.id == id);
        let requested = asked.is_none().then(|| place(&self.requested)).flatten();
        let posted = place(&self.posted);
        let sent = match (asked, requested, posted) {
            (Some(sent), ..) => sent,
            (_, Some(at), _) => self.requested.remove(at).expect("found there"),
            (_, _, Some(at)) => self.posted.remove(at).expect("found there"),
            (None, None, None) => {
                let reason = format!("a reply to message {id:#x}, which was not sent");
                return Err(self.error(reason));
            }
        };
        if command != sent.command.number() {
            let reason = format!("the reply is one to command {command}");
            return Err(self.fail(sent.command, reason));
        }
        if let Some(errno) = message.refusal {
            return Err(self.fail(sent.command, format!("the reply is too large: {errno}")));
        }
        let answer = match message.header.error {
            Some(errno) => Err(errno),
            None => Ok((message.payload, message.fds)),
        };
        match (asked, requested, answer) {
            (Some(_), _, answer) => self.reply = Some(answer),
            (_, Some(_), answer) => {
                self.answers.push_back((id, answer.map(|(payload, _)| payload)))
            }
            (_, _, Err(errno)) => return Err(self.refused(sent.command, errno)),
            (_, _, Ok(_)) => {}
        }
        Ok(())
    }

    fn refused(&self, command: Command, errno: u32) -> Error {
        let why = std::io::Error::from_raw_os_error(errno.min(4095) as i32);
        self.fail(command, format!("refused: {why}"))
    }

    /// Answers a command of the server.
    fn serve(&mut self, message: &Incoming) {
        let header = message.header;
        let payload = &message.payload;
        let access = match (Command::from_number(header.command), message.refusal) {
            (_, Some(errno)) => Err(errno),
            (Some(Command::DmaRead), _) => read_access(payload).map(|access| (access, None)),
            (Some(Command::DmaWrite), _) => write_access(payload),
            _ => Err(Errno::NOTSUP),
        };
        let answer = access.and_then(|(access, data)| {
            let Some(memory) = &self.memory else {
                self.deferred.push_back(DmaRequest { header, access, data });
                self.unanswered += 1;
                return Ok(None);
            };
            let mut reply = Vec::new();
            access.encode(&mut reply);
            match data {
                Some(data) => memory.dma_write(access.address, &data).ok_or(Errno::FAULT)?,
                None => {
                    let read = memory.dma_read(access.address, access.count as usize);
                    reply.extend_from_slice(&read.ok_or(Errno::FAULT)?);
                }
            }
            Ok(Some(reply))
        });
        if let Some(answer) = answer.transpose() {
            self.answer(header, answer);
        }
    }

    /// Sends the reply to a command of the server, unless it wants none.
    fn answer(&mut self, header: Header, answer: Result<Vec<u8>, Errno>) {
        let bytes = match answer {
            Ok(payload) => [header.reply(payload.len()).encode().to_vec(), payload].concat(),
            Err(errno) => {
                let errno = NonZeroU32::new(errno.raw_os_error() as u32);
                header.error_reply(errno.unwrap_or(NonZeroU32::MIN)).encode().to_vec()
            }
        };
        if !header.no_reply {
            self.outbox.push_back((Outgoing::new(bytes), true));
        }
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.connection.socket.as_fd()
    }
}

/// Why a step cannot continue.
enum Stop {
    /// The connection has ended, for this reason.
    Closed(String),
    /// The server violated the protocol.
    Lie(Error),
}

/// Why a connection has ended, in words for the user of the client.
fn sentence(closed: Closed) -> String {
    match closed {
        Closed::Eof => "the server closed the connection".to_owned(),
        Closed::Malformed => "the server sent an invalid vfio-user header".to_owned(),
        Closed::Descriptors => "the server sent far too many descriptors".to_owned(),
        closed => closed.to_string(),
    }
}

/// The command's name in the specification, without `VFIO_USER_`.
fn name(command: Command) -> String {
    let mut name = String::new();
    for letter in format!("{command:?}").chars() {
        if letter.is_uppercase() && !name.is_empty() {
            name.push('_');
        }
        name.push(letter.to_ascii_uppercase());
    }
    name
}

/// The range of a DMA read.
fn read_access(payload: &[u8]) -> Result<DmaAccess, Errno> {
    let access = DmaAccess::decode(payload).map_err(|_| Errno::INVAL)?;
    if access.count > MAX_DATA_XFER as u64 { Err(Errno::INVAL) } else { Ok(access) }
}

/// The range and the bytes of a DMA write.
fn write_access(payload: &Bytes) -> Result<(DmaAccess, Option<Bytes>), Errno> {
    let access = DmaAccess::decode(payload).map_err(|_| Errno::INVAL)?;
    let data = payload.slice(DmaAccess::LENGTH..);
    if data.len() as u64 != access.count { Err(Errno::INVAL) } else { Ok((access, Some(data))) }
}
