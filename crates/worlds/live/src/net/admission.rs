//! Admits connections under TLS: a thread of its own accepts TCP connections and completes their
//! handshakes, so that strangers take no time of the thread that serves the node's host.

use super::connection::Listener;
use super::tls::TlsConnection;
use crate::budget::Budget;
use crate::clock::Clock;
use credentials::Credentials;
use linux::time::thread_processor_time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::HashMap;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::mpsc::{self, Receiver, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

/// Time for a handshake.
const PATIENCE: Duration = Duration::from_secs(2);
/// Connections whose handshake is under way.
const MOST: usize = 256;
/// Connections of one machine whose handshake is under way.
const MOST_PER_MACHINE: usize = 32;
/// Connections advanced in one turn.
const MOST_STEPS: usize = 8;
/// Connections accepted in one turn.
const MOST_ACCEPTED: usize = 16;
/// Admitted and refused connections that wait for the node. Further ones are closed.
const MOST_WAITING: usize = 64;
/// The thread may use 1/`SHARE` of a core.
const SHARE: u64 = 8;
/// Processor time that the thread may use at once.
const BURST: wire::Duration = wire::Duration::from_ms(100);

/// Accepts connections under TLS.
#[derive(Debug)]
pub struct Admission {
    pub(super) listener: Arc<Listener>,
    admitted: Receiver<Box<TlsConnection>>,
    refused: Receiver<(SocketAddr, String)>,
    /// Readable while outcomes wait.
    wake: UnixStream,
    /// Its end ends the thread.
    stop: Option<UnixStream>,
    thread: Option<JoinHandle<()>>,
}

impl Admission {
    /// Admits the connections of `listener`.
    ///
    /// # Errors
    /// If no socket pair or thread can be created.
    pub fn start(listener: Listener, credentials: Arc<Credentials>) -> io::Result<Self> {
        let listener = Arc::new(listener);
        let (wake, waker) = UnixStream::pair()?;
        let (stop, stopped) = UnixStream::pair()?;
        wake.set_nonblocking(true)?;
        waker.set_nonblocking(true)?;
        let (admit, admitted) = mpsc::sync_channel(MOST_WAITING);
        let (refuse, refused) = mpsc::sync_channel(MOST_WAITING);
        let (pending, own) = (Vec::new(), listener.clone());
        let door = Door { listener: own, credentials, admit, refuse, waker, pending };
        let named = thread::Builder::new().name("admission".into());
        let thread = Some(named.spawn(move || door.run(&stopped))?);
        Ok(Self { listener, admitted, refused, wake, stop: Some(stop), thread })
    }

    /// The next admitted connection.
    pub fn accept(&mut self) -> Option<TlsConnection> {
        let next = self.admitted.try_recv().or_else(|_| {
            // What comes after this read wakes the node again.
            while matches!((&self.wake).read(&mut [0; 64]), Ok(bytes) if bytes > 0) {}
            self.admitted.try_recv()
        });
        next.ok().map(|connection| *connection)
    }

    /// The next refused connection, and why. Call it after [`accept`](Self::accept) has returned
    /// `None`.
    pub fn refusal(&mut self) -> Option<(SocketAddr, String)> {
        self.refused.try_recv().ok()
    }
}

impl AsFd for Admission {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        drop(self.stop.take());
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// A connection whose handshake is under way.
struct Pending {
    connection: TlsConnection,
    since: Instant,
    machine: IpAddr,
    ready: bool,
    /// Set at the end of the handshake, with the error if it failed.
    outcome: Option<io::Result<()>>,
}

/// The state of the thread.
struct Door {
    listener: Arc<Listener>,
    credentials: Arc<Credentials>,
    admit: SyncSender<Box<TlsConnection>>,
    refuse: SyncSender<(SocketAddr, String)>,
    waker: UnixStream,
    /// In the order of their arrival.
    pending: Vec<Pending>,
}

impl Door {
    /// Admits connections until `stopped` ends.
    fn run(mut self, stopped: &UnixStream) {
        let (mut budget, clock) = (Budget::new(SHARE, BURST), Clock::start());
        let mut used = thread_processor_time();
        while let Some(accepts) = self.wait(stopped) {
            for index in self.next_steps() {
                let pending = &mut self.pending[index];
                let established = pending.connection.established(wire::Instant::ZERO);
                pending.outcome = established.map(|done| done.then_some(())).transpose();
            }
            self.finish();
            if accepts {
                self.accept();
            }
            let before = std::mem::replace(&mut used, thread_processor_time());
            budget.charge((used - before).as_nanos() as u64);
            let now = clock.now();
            if !budget.is_left(now) {
                thread::sleep(Duration::from_nanos((budget.resumes() - now).as_ns()));
            }
        }
    }

    /// Waits until a connection arrives or is ready; returns whether one arrives. `None` at the end
    /// of `stopped`.
    fn wait(&mut self, stopped: &UnixStream) -> Option<bool> {
        let input = PollFlags::IN;
        let mut fds = vec![PollFd::new(stopped, input), PollFd::new(&*self.listener, input)];
        fds.extend(self.pending.iter().map(|pending| {
            let full = pending.connection.tcp.is_full();
            let events = if full { input | PollFlags::OUT } else { input };
            PollFd::new(&pending.connection, events)
        }));
        // A gate may hold the node's part of a handshake.
        let gated: Vec<bool> =
            self.pending.iter().map(|pending| pending.connection.tcp.opens.is_some()).collect();
        let wait = if gated.contains(&true) { 1_000_000 } else { 100_000_000 };
        let timeout = Timespec { tv_sec: 0, tv_nsec: wait };
        let _ = poll(&mut fds, (!self.pending.is_empty()).then_some(&timeout));
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for ((pending, ready), gated) in self.pending.iter_mut().zip(&ready[2..]).zip(gated) {
            pending.ready = *ready || gated;
        }
        (!ready[0]).then_some(ready[1])
    }

    /// The next connections to advance: first those of machines with few connections, so that a
    /// machine that opens many delays only its own.
    fn next_steps(&self) -> Vec<usize> {
        let ready = |index: &usize| self.pending[*index].ready;
        let mut ready: Vec<usize> = (0..self.pending.len()).filter(ready).collect();
        let counts = self.counts();
        ready.sort_by_key(|index| counts[&self.pending[*index].machine]);
        ready.truncate(MOST_STEPS);
        ready
    }

    /// Number of connections by machine.
    fn counts(&self) -> HashMap<IpAddr, usize> {
        let mut counts = HashMap::new();
        for pending in &self.pending {
            *counts.entry(pending.machine).or_default() += 1;
        }
        counts
    }

    /// Passes on the connections whose handshake has ended, or takes too long.
    fn finish(&mut self) {
        for index in (0..self.pending.len()).rev() {
            let pending = &mut self.pending[index];
            let late = pending.since.elapsed() >= PATIENCE;
            let too_late = || Err(io::Error::other("no TLS handshake within 2 s"));
            let outcome = pending.outcome.take().or_else(|| late.then(too_late));
            let Some(outcome) = outcome else { continue };
            let connection = self.pending.remove(index).connection;
            let peer = connection.tcp.peer;
            match outcome {
                Ok(()) => {
                    // The connection is closed if too many wait.
                    let _ = self.admit.try_send(connection.into());
                    let _ = self.waker.write(&[1]);
                }
                Err(why) => self.refuse(peer, why.to_string()),
            }
        }
    }

    /// Reports a refused connection, unless too many reports wait.
    fn refuse(&mut self, peer: SocketAddr, why: String) {
        if self.refuse.try_send((peer, why)).is_ok() {
            let _ = self.waker.write(&[1]);
        }
    }

    fn accept(&mut self) {
        for _ in 0..MOST_ACCEPTED {
            let Some(tcp) = self.listener.accept() else { return };
            let (peer, machine) = (tcp.peer, machine(tcp.peer.ip()));
            let own = self.pending.iter().filter(|pending| pending.machine == machine).count();
            if own >= MOST_PER_MACHINE {
                self.refuse(peer, "too many TLS handshakes of this machine at once".into());
                continue;
            }
            let Ok(connection) = TlsConnection::accept(tcp, &self.credentials) else { continue };
            self.make_room();
            let since = Instant::now();
            self.pending.push(Pending { connection, since, machine, ready: false, outcome: None });
        }
    }

    /// If there are too many connections, closes the oldest of the machine with the most.
    fn make_room(&mut self) {
        if self.pending.len() < MOST {
            return;
        }
        let counts = self.counts();
        let most = counts.into_iter().max_by_key(|(_, count)| *count).map(|(machine, _)| machine);
        let oldest = self.pending.iter().position(|pending| Some(pending.machine) == most);
        let oldest = self.pending.remove(oldest.expect("it was counted"));
        self.refuse(oldest.connection.tcp.peer, "too many TLS handshakes at once".into());
    }
}

/// The part of an address that a machine cannot choose: of IPv6 the network (RFC 4291, 2.5.1).
fn machine(address: IpAddr) -> IpAddr {
    match address {
        IpAddr::V6(address) if address.to_ipv4_mapped().is_none() => {
            Ipv6Addr::from_bits(address.to_bits() >> 64 << 64).into()
        }
        address => address.to_canonical(),
    }
}
