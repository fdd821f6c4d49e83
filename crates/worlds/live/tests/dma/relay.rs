//! A faulty switch in user space: forwards frames between two ports; some are lost, duplicated
//! or delayed, by a seed, and invalid frames are added.

use live::net::{Filter, Interface, Namespace, PacketSocket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use stats::random::Random;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use wire::raw::ETHERTYPE;

/// A fault, by its index in the arrays of shares and counts.
pub const FAULTS: [&str; 4] = ["lost", "doubled", "late", "nonsense"];

/// The state that a relay and its thread share.
#[derive(Default)]
pub struct State {
    /// Number of occurrences of each fault.
    pub count: [AtomicU64; 4],
    /// Whether all frames are blocked.
    pub cut: AtomicBool,
    stop: AtomicBool,
}

/// Runs until it is dropped.
pub struct Relay {
    pub state: Arc<State>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Connects two interfaces of `place`, with faults in thousandths of the frames.
    pub fn start(place: &Namespace, ports: [&str; 2], faults: [u64; 4], seed: u64) -> Self {
        let sockets = ports.map(|port| {
            place
                .enter(|| {
                    let port = Interface::find(port).unwrap();
                    PacketSocket::open(&port, ETHERTYPE, &Filter::everything()).unwrap()
                })
                .unwrap()
        });
        let state = Arc::<State>::default();
        let (held, random) = ([None, None], Random::new(seed));
        let mut worker = Worker { sockets, faults, random, held, state: state.clone() };
        let thread = std::thread::spawn(move || {
            while !worker.state.stop.load(Ordering::SeqCst) {
                worker.turn();
            }
        });
        Self { state, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.state.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    sockets: [PacketSocket; 2],
    faults: [u64; 4],
    random: Random,
    /// Delayed frames, by output port.
    held: [Option<Vec<u8>>; 2],
    state: Arc<State>,
}

impl Worker {
    fn turn(&mut self) {
        let mut fds: Vec<_> =
            self.sockets.iter().map(|socket| PollFd::new(socket, PollFlags::IN)).collect();
        let soon = Timespec { tv_sec: 0, tv_nsec: 2_000_000 };
        let idle = matches!(poll(&mut fds, Some(&soon)), Ok(0));
        drop(fds);
        let mut buffer = [0; 2048];
        for port in 0..2 {
            let to = 1 - port;
            if idle && let Some(late) = self.held[to].take() {
                self.put(to, &late);
            }
            for _ in 0..16 {
                let received = self.sockets[port].receive(&mut buffer);
                let Ok(Some(length)) = received else { break };
                if !self.state.cut.load(Ordering::SeqCst) {
                    self.pass(to, &buffer[..length]);
                }
            }
        }
    }

    fn pass(&mut self, to: usize, frame: &[u8]) {
        let late = self.held[to].take();
        let (roll, mut bound) = (self.random.below(1000), 0);
        let fault = self.faults.iter().position(|share| {
            bound += share;
            roll < bound
        });
        if let Some(fault) = fault {
            self.state.count[fault].fetch_add(1, Ordering::Relaxed);
        }
        match fault.map(|fault| FAULTS[fault]) {
            Some("lost") => {}
            Some("late") => self.held[to] = Some(frame.to_vec()),
            Some("nonsense") => {
                let mut mangled = frame.to_vec();
                // Version, kind, length, connection: all invalid.
                let (at, bits) =
                    [(14, 0xe0), (14, 0x0c), (15, 0xf0), (18, 0xff)][self.random.below(4) as usize];
                mangled[at] |= bits;
                self.put(to, &mangled);
                self.put(to, frame);
            }
            doubled => {
                (0..1 + usize::from(doubled.is_some())).for_each(|_| self.put(to, frame));
            }
        }
        if let Some(late) = late {
            self.put(to, &late);
        }
    }

    fn put(&mut self, to: usize, frame: &[u8]) {
        // A frame that does not fit is lost.
        let _ = self.sockets[to].send(frame);
    }
}
