//! The server of one endpoint, for an event loop. The loop waits until the server's descriptor is
//! readable, calls [`service`](Server::service), then calls [`poll`](Server::poll) until `poll`
//! returns `None`.

use super::action::Input;
use super::connection::{Closed, Connection};
use super::listener::{Listener, SocketFolder};
use super::session::Session;
use super::{Access, Action, BindError, EndpointInfo, Presence, Token};
use crate::guest::Worker;
use bytes::Bytes;
use rustix::event::{Timespec, epoll};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use std::mem::MaybeUninit;
use std::path::Path;
use wire::Instant;

/// The maximum number of messages that one call of [`Server::service`] handles, so that the clients
/// of other endpoints do not wait too long.
const BATCH: usize = 64;

/// The maximum number of sockets of rejected clients that are not yet closed. At this number no
/// more clients are rejected: they wait.
const MAX_TURNED_AWAY: usize = 16;

const LISTENER: epoll::EventData = epoll::EventData::new_u64(0);
const CLIENT: epoll::EventData = epoll::EventData::new_u64(1);
const UNMASK: epoll::EventData = epoll::EventData::new_u64(2);
const WORKERS: epoll::EventData = epoll::EventData::new_u64(3);

/// The socket of one endpoint, and its client.
#[derive(Debug)]
pub struct Server {
    listener: Listener,
    /// Whether `epoll` watches the listener.
    accepts: bool,
    connection: Option<Connection>,
    /// The state of the client and the endpoint, except the sockets. Methods of the session that
    /// queue messages for the client have a counterpart in `Server`, which also sends the messages.
    pub session: Session,
    /// Closes the sockets of rejected clients in a thread. Closing a socket also closes descriptors
    /// that were not received, which can block for ever.
    turned_away: Worker,
    /// Watches the listener, the client, the INTx unmask descriptor and the workers, so that the
    /// owner of the server has to wait on only one descriptor.
    epoll: OwnedFd,
    /// The events of the client's socket that `epoll` watches.
    interest: epoll::EventFlags,
    /// The session's number for the INTx unmask descriptor, and a copy of the descriptor, which
    /// `epoll` watches. Without a copy, a descriptor that the session has closed could not be
    /// removed from `epoll` while the client keeps it open.
    unmask: (u64, Option<OwnedFd>),
    /// Why the last client's connection ended.
    closed: Option<Closed>,
}

impl Server {
    /// Offers an endpoint on the socket `directory/number/cntrl`. Error: see [`BindError`].
    pub fn bind(directory: &Path, number: usize, info: EndpointInfo) -> Result<Self, BindError> {
        Self::bind_in(&directory.into(), number, info)
    }

    /// As [`bind`](Self::bind), for the clients of `sockets`.
    ///
    /// # Errors
    /// See [`BindError`].
    pub fn bind_in(
        sockets: &SocketFolder,
        number: usize,
        info: EndpointInfo,
    ) -> Result<Self, BindError> {
        let session = Session::new(info)?;
        let listener = Listener::bind(sockets, number)?;
        let fail =
            |errno: Errno| BindError::Io { path: listener.path.clone(), source: errno.into() };
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC).map_err(fail)?;
        let input = epoll::EventFlags::IN;
        epoll::add(&epoll, &listener.socket, LISTENER, input).map_err(fail)?;
        epoll::add(&epoll, &session.workers.wake, WORKERS, input).map_err(fail)?;
        Ok(Self {
            listener,
            accepts: true,
            connection: None,
            turned_away: session.workers.for_endpoint(),
            session,
            epoll,
            interest: epoll::EventFlags::empty(),
            unmask: (0, None),
            closed: None,
        })
    }

    /// The path that clients connect to.
    pub fn path(&self) -> &Path {
        &self.listener.path
    }

    /// Whether a client is connected.
    pub fn connected(&self) -> bool {
        self.connection.is_some()
    }

    /// Why the last client's connection ended, or why the last client was rejected; `None` if the
    /// reason was already taken.
    pub fn take_closed(&mut self) -> Option<Closed> {
        self.closed.take()
    }

    /// Accepts clients, receives messages and sends queued messages. Never blocks. Makes only one
    /// system call if nothing is ready, so it can be called in every turn of a loop.
    pub fn service(&mut self, now: Instant) {
        let mut events = [MaybeUninit::uninit(); 4];
        let now_at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut events, Some(&now_at_once)) else {
            return;
        };
        if events.is_empty() {
            return;
        }
        let ready = |which| events.iter().any(|event| { event.data } == which);
        if ready(WORKERS) {
            self.session.workers.clear_wake();
        }
        if ready(UNMASK) {
            self.session.interrupts.unmask_ready();
        }
        if ready(CLIENT) {
            self.receive(now);
        }
        // The listener is handled after the current client: if this client has disconnected,
        // another client can be accepted.
        if ready(LISTENER) {
            self.accept(now);
        }
        self.flush(now);
    }

    fn can_serve_client(&self) -> bool {
        self.connection.is_none() && self.session.workers.has_room()
    }

    /// Whether a waiting client can be served or rejected.
    fn may_accept(&self) -> bool {
        self.can_serve_client() || self.turned_away.disposals() < MAX_TURNED_AWAY
    }

    fn accept(&mut self, now: Instant) {
        while self.may_accept()
            && let Some(socket) = self.listener.accept()
        {
            if !self.can_serve_client() {
                // The rejected client sees an end of file.
                drop(Connection::new(socket, self.turned_away.disposal()));
                self.session.counters.turned_away += 1;
                if self.connection.is_none() {
                    self.closed = Some(Closed::NoWorker);
                }
                continue;
            }
            self.connection = Some(Connection::new(socket, self.session.worker.disposal()));
            self.interest = epoll::EventFlags::empty();
            self.session.handle(now, Input::Connected);
            self.receive(now);
        }
    }

    fn receive(&mut self, now: Instant) {
        for _ in 0..BATCH {
            let Some(connection) = &mut self.connection else { return };
            if !self.session.accepts_input() {
                if connection.hung_up() {
                    self.close(now, Closed::Eof);
                }
                return;
            }
            match connection.receive() {
                Ok(Some(message)) => self.session.handle(now, Input::Message(message)),
                Ok(None) => return,
                Err(closed) => return self.close(now, closed),
            }
        }
    }

    fn close(&mut self, now: Instant, why: Closed) {
        if let Some(connection) = self.connection.take() {
            // The worker can close the socket later.
            let _ = epoll::delete(&self.epoll, &connection.socket);
        }
        self.closed = Some(why);
        self.session.handle(now, Input::Disconnected);
    }

    fn flush(&mut self, now: Instant) {
        if let Some(why) = self.session.client.must_close.take() {
            self.close(now, why);
        }
        while let Some(connection) = &mut self.connection {
            let sent = if connection.blocked() {
                connection.resume()
            } else {
                match self.session.outgoing() {
                    Some(message) => connection.send(message),
                    None => break,
                }
            };
            match sent {
                Ok(true) => {}
                Ok(false) => break,
                // Messages that the client sent before the end, but that were not received, are
                // lost.
                Err(closed) => self.close(now, closed),
            }
        }
        self.watch(now);
    }

    /// Updates the events that `epoll` watches: those that can be handled now, and always the
    /// disconnection of the client.
    fn watch(&mut self, now: Instant) {
        let (unmask, generation) = self.session.interrupts.unmask_fd();
        if self.unmask.0 != generation {
            if let Some(old) = self.unmask.1.take() {
                let _ = epoll::delete(&self.epoll, &old);
            }
            // Edge-triggered, because an eventfd that counts down by 1 at each read (EFD_SEMAPHORE)
            // could otherwise be readable for ever.
            let once = epoll::EventFlags::IN | epoll::EventFlags::ET;
            let copy = unmask.and_then(|fd| fd.try_clone_to_owned().ok());
            let copy = copy.filter(|fd| epoll::add(&self.epoll, fd, UNMASK, once).is_ok());
            self.unmask = (generation, copy);
        }
        if self.accepts != self.may_accept() {
            self.accepts = !self.accepts;
            let mut events = epoll::EventFlags::empty();
            events.set(epoll::EventFlags::IN, self.accepts);
            let _ = epoll::modify(&self.epoll, &self.listener.socket, LISTENER, events);
        }
        let Some(connection) = &self.connection else { return };
        let mut events = epoll::EventFlags::RDHUP;
        events.set(epoll::EventFlags::IN, self.session.accepts_input());
        events.set(epoll::EventFlags::OUT, connection.blocked());
        if events == self.interest {
            return;
        }
        let result = if self.interest.is_empty() {
            epoll::add(&self.epoll, &connection.socket, CLIENT, events)
        } else {
            epoll::modify(&self.epoll, &connection.socket, CLIENT, events)
        };
        self.interest = events;
        if let Err(errno) = result {
            self.close(now, Closed::Io(errno));
        }
    }

    /// The next action, if the owner of the server accepts an action now (`accepts`); see
    /// [`Session::poll`]. Call it until it returns `None`, then wait until the descriptor is
    /// readable or until [`Session::deadline`].
    pub fn poll(&mut self, now: Instant, accepts: bool) -> Option<Action> {
        let action = self.session.poll(now, accepts);
        if action.is_none() {
            self.flush(now);
        }
        action
    }

    /// Calls [`Session::reply`] and sends queued messages.
    pub fn reply(&mut self, now: Instant, token: Token, result: Result<&[u8], Errno>) {
        self.session.reply(now, token, result);
        self.flush(now);
    }

    /// Calls [`Session::dma_read`] and sends queued messages.
    pub fn dma_read(&mut self, now: Instant, address: u64, length: usize) -> Access<Bytes> {
        let read = self.session.dma_read(now, address, length);
        if !matches!(read, Access::Done(_)) {
            self.flush(now);
        }
        read
    }

    /// Calls [`Session::dma_write`] and sends queued messages.
    pub fn dma_write(&mut self, now: Instant, address: u64, data: &[u8]) -> Access<()> {
        let write = self.session.dma_write(now, address, data);
        if write != Access::Done(()) {
            self.flush(now);
        }
        write
    }

    /// Calls [`Session::set_presence`] and sends queued messages.
    pub fn set_presence(&mut self, now: Instant, presence: Presence) {
        self.session.set_presence(now, presence);
        self.flush(now);
    }
}

impl AsFd for Server {
    /// A descriptor that is readable when [`Server::service`] has something to do.
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}
