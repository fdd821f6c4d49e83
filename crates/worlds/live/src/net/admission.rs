//! Admits connections under TLS: a thread of its own accepts TCP connections and completes their
//! handshakes, so that strangers take no time of the thread that serves the node's host.

use super::connection::Listener;
use super::tls::TlsConnection;
use credentials::Credentials;
use linux::time::thread_processor_time;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::collections::{HashMap, VecDeque};
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
/// The share of one core that the thread may use: 1 of this number.
const SHARE: u32 = 8;
/// Processor time that the thread may use at once.
const BURST: Duration = Duration::from_millis(100);

/// A connection after its handshake.
enum Outcome {
    Admitted(Box<TlsConnection>),
    Refused(SocketAddr, String),
}

/// Accepts connections under TLS.
#[derive(Debug)]
pub struct Admission {
    pub(super) listener: Arc<Listener>,
    outcomes: Receiver<Outcome>,
    /// Readable while outcomes wait.
    wake: UnixStream,
    /// Connections refused since the last call of [`refusal`](Self::refusal).
    refused: VecDeque<(SocketAddr, String)>,
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
        let (sender, outcomes) = mpsc::sync_channel(MOST_WAITING);
        let door =
            Door { listener: listener.clone(), credentials, sender, waker, pending: Vec::new() };
        let named = thread::Builder::new().name("admission".into());
        let thread = Some(named.spawn(move || door.run(&stopped))?);
        let refused = VecDeque::new();
        Ok(Self { listener, outcomes, wake, refused, stop: Some(stop), thread })
    }

    /// The next admitted connection.
    pub fn accept(&mut self) -> Option<TlsConnection> {
        while matches!((&self.wake).read(&mut [0; 64]), Ok(bytes) if bytes > 0) {}
        loop {
            match self.outcomes.try_recv().ok()? {
                Outcome::Admitted(connection) => return Some(*connection),
                Outcome::Refused(peer, why) => self.refused.push_back((peer, why)),
            }
        }
    }

    /// The next refused connection, and why. Call it after [`accept`](Self::accept) has returned
    /// `None`.
    pub fn refusal(&mut self) -> Option<(SocketAddr, String)> {
        self.refused.pop_front()
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
    /// Set at the end of the handshake, with the reason if it failed.
    finish: Option<Option<String>>,
}

/// The state of the thread.
struct Door {
    listener: Arc<Listener>,
    credentials: Arc<Credentials>,
    sender: SyncSender<Outcome>,
    waker: UnixStream,
    /// In the order of their arrival.
    pending: Vec<Pending>,
}

impl Door {
    /// Admits connections until `stopped` ends.
    fn run(mut self, stopped: &UnixStream) {
        let mut budget = Budget::start();
        while let Some(accepts) = self.wait(stopped) {
            for index in self.next_steps() {
                let ready = self.pending[index].connection.established(wire::Instant::ZERO);
                self.pending[index].ready = false;
                match ready {
                    Ok(false) => {}
                    Ok(true) => self.pending[index].finish = Some(None),
                    Err(why) => self.pending[index].finish = Some(Some(why.to_string())),
                }
            }
            self.finish();
            if accepts {
                self.accept();
            }
            if let Some(pause) = budget.pause() {
                thread::sleep(pause);
            }
        }
    }

    /// Waits until a connection arrives or is ready; returns whether one arrives. `None` at the end
    /// of `stopped`.
    fn wait(&mut self, stopped: &UnixStream) -> Option<bool> {
        let input = PollFlags::IN;
        let mut fds = vec![PollFd::new(stopped, input), PollFd::new(&*self.listener, input)];
        fds.extend(self.pending.iter().map(|pending| PollFd::new(&pending.connection, input)));
        let timeout = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
        let _ = poll(&mut fds, (!self.pending.is_empty()).then_some(&timeout));
        let ready: Vec<bool> = fds.iter().map(|fd| !fd.revents().is_empty()).collect();
        for (pending, ready) in self.pending.iter_mut().zip(&ready[2..]) {
            pending.ready = *ready;
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
            let why = "no TLS handshake within 2 s".to_owned();
            let Some(result) = pending.finish.take().or(late.then_some(Some(why))) else {
                continue;
            };
            let connection = self.pending.remove(index).connection;
            let peer = connection.tcp.peer;
            self.report(match result {
                None => Outcome::Admitted(connection.into()),
                Some(why) => Outcome::Refused(peer, why),
            });
        }
    }

    /// Passes an outcome to the node, unless too many wait.
    fn report(&mut self, outcome: Outcome) {
        if self.sender.try_send(outcome).is_ok() {
            let _ = self.waker.write(&[1]);
        }
    }

    fn accept(&mut self) {
        for _ in 0..MOST_ACCEPTED {
            let Some(tcp) = self.listener.accept() else { return };
            let machine = machine(tcp.peer.ip());
            let Ok(connection) = TlsConnection::accept(tcp, &self.credentials) else { continue };
            self.make_room(machine);
            let since = Instant::now();
            self.pending.push(Pending { connection, since, machine, ready: false, finish: None });
        }
    }

    /// Closes the oldest connection of `machine` if it has too many, or of the machine with the
    /// most if there are too many in total.
    fn make_room(&mut self, machine: IpAddr) {
        let counts = self.counts();
        let many = counts.get(&machine).is_some_and(|count| *count >= MOST_PER_MACHINE);
        let largest = counts.iter().max_by_key(|(_, count)| **count).map(|(machine, _)| *machine);
        let from = match (many, largest) {
            (true, _) => machine,
            (false, Some(largest)) if self.pending.len() >= MOST => largest,
            _ => return,
        };
        let oldest = self.pending.iter().position(|pending| pending.machine == from);
        let oldest = self.pending.remove(oldest.expect("it was counted"));
        let why = "too many TLS handshakes of this machine at once".into();
        self.report(Outcome::Refused(oldest.connection.tcp.peer, why));
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

/// Limits the processor time of the thread to its share.
struct Budget {
    since: Instant,
    used: Duration,
}

impl Budget {
    fn start() -> Self {
        Self { since: Instant::now(), used: thread_processor_time() }
    }

    /// How long the thread has to sleep to stay within its share.
    fn pause(&mut self) -> Option<Duration> {
        let due = (thread_processor_time() - self.used) * SHARE;
        let elapsed = self.since.elapsed();
        if elapsed >= due {
            *self = Self::start();
        }
        due.checked_sub(elapsed + BURST * SHARE).filter(|pause| !pause.is_zero())
    }
}
