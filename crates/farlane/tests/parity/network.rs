//! A network under control of the test, which decides what is readable, what a read returns, and
//! how many bytes a write accepts.

use bytes::Bytes;
use live::net::{Address, OtherAddress, OtherCarrier};
use rustix::event::{EventfdFlags, eventfd};
use std::collections::VecDeque;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard};
use wire::Instant;

#[derive(Debug)]
struct State {
    /// A descriptor that is readable while the node has bytes to read. Each connection has its own
    /// descriptor, as each socket has.
    signal: Arc<OwnedFd>,
    offered: bool,
    closed: bool,
    inbox: VecDeque<Bytes>,
    room: usize,
    sent: Vec<Bytes>,
}

/// One node's end of a link, controlled by the test. The node uses it as an [`Address`] to connect
/// to or to listen on. Clones are the same end.
#[derive(Clone, Debug)]
pub struct Script {
    listener: Arc<OwnedFd>,
    state: Arc<Mutex<State>>,
}

fn signal() -> io::Result<Arc<OwnedFd>> {
    Ok(Arc::new(eventfd(0, EventfdFlags::NONBLOCK)?))
}

fn raise(signal: &OwnedFd) {
    rustix::io::write(signal, &1u64.to_ne_bytes()).expect("a counter that is read takes it");
}

fn lower(signal: &OwnedFd) {
    // The read fails if the signal was not raised.
    let _ = rustix::io::read(signal, &mut [0; 8]);
}

impl Script {
    /// Returns the address of the end.
    pub fn address(&self) -> Address {
        Address::Other(Arc::new(self.clone()))
    }

    /// Creates an end without a connection.
    ///
    /// # Errors
    /// If no descriptor can be created.
    pub fn new() -> io::Result<Self> {
        let state = State {
            signal: signal()?,
            offered: false,
            closed: false,
            inbox: VecDeque::new(),
            room: 0,
            sent: Vec::new(),
        };
        Ok(Self { listener: signal()?, state: Arc::new(Mutex::new(state)) })
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder panics")
    }

    /// Permits one connection.
    pub fn offer(&self) {
        self.state().offered = true;
        raise(&self.listener);
    }

    /// Drops the connection with all unread bytes, and permits no other connection.
    pub fn lose(&self) {
        let mut state = self.state();
        (state.offered, state.closed, state.room) = (false, true, 0);
        state.inbox.clear();
        raise(&state.signal);
    }

    /// Queues bytes for one read.
    pub fn give(&self, bytes: Bytes) {
        let mut state = self.state();
        state.inbox.push_back(bytes);
        raise(&state.signal);
    }

    /// Sets how many bytes writes accept from now on.
    pub fn set_room(&self, bytes: usize) {
        self.state().room = bytes;
    }

    /// Returns the bytes of each write since the last call.
    pub fn take_sent(&self) -> Vec<Bytes> {
        std::mem::take(&mut self.state().sent)
    }
}

impl OtherAddress for Script {
    fn connect(&self) -> io::Result<Box<dyn OtherCarrier>> {
        let signal = signal()?;
        let mut state = self.state();
        (state.signal, state.closed) = (signal.clone(), false);
        drop(state);
        Ok(Box::new(ScriptedConnection { script: self.clone(), signal }))
    }

    fn accept(&self) -> Option<Box<dyn OtherCarrier>> {
        let was_raised = rustix::io::read(&self.listener, &mut [0; 8]).is_ok();
        was_raised.then(|| self.connect().ok()).flatten()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.listener.as_fd()
    }
}

/// A node's connection through a [`Script`].
#[derive(Debug)]
struct ScriptedConnection {
    script: Script,
    signal: Arc<OwnedFd>,
}

impl OtherCarrier for ScriptedConnection {
    fn peer(&self) -> Address {
        self.script.address()
    }

    fn established(&mut self) -> io::Result<bool> {
        Ok(self.script.state().offered)
    }

    fn receive(&mut self, take: &mut dyn FnMut(Bytes)) -> bool {
        lower(&self.signal);
        let mut state = self.script.state();
        let (inbox, closed) = (std::mem::take(&mut state.inbox), state.closed);
        drop(state);
        inbox.into_iter().for_each(take);
        closed
    }

    fn send(&mut self, _: Instant, bytes: Bytes) -> io::Result<()> {
        let mut state = self.script.state();
        if state.closed {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        assert!(bytes.len() <= state.room, "no more is written than there is room for");
        state.room -= bytes.len();
        state.sent.push(bytes);
        Ok(())
    }

    fn room(&mut self) -> usize {
        self.script.state().room
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.signal.as_fd()
    }
}
