//! A switch with faults, in user space: frames from one port to the other, some
//! lost, doubled or late, by a seed; nonsense in between.

use live::net::{Filter, Interface, Namespace, PacketSocket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use wire::raw::ETHERTYPE;

/// What happens to frames, in thousandths.
#[derive(Clone, Copy, Default)]
pub struct Faults {
    pub lost: u64,
    pub doubled: u64,
    pub late: u64,
    pub nonsense: u64,
}

/// What has happened.
#[derive(Default)]
pub struct Count {
    pub lost: AtomicU64,
    pub doubled: AtomicU64,
    pub late: AtomicU64,
    pub nonsense: AtomicU64,
}

/// Runs until it is dropped.
pub struct Relay {
    pub count: Arc<Count>,
    cut: Arc<AtomicBool>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Between two interfaces of `place`.
    pub fn start(place: &Namespace, ports: [&str; 2], faults: Faults, seed: u64) -> Self {
        let sockets = ports.map(|port| {
            place
                .enter(|| {
                    let port = Interface::find(port).unwrap();
                    PacketSocket::open(&port, ETHERTYPE, &Filter::everything()).unwrap()
                })
                .unwrap()
        });
        let (count, cut, stop) = (Arc::<Count>::default(), Arc::default(), Arc::default());
        let mut worker = Worker {
            sockets,
            faults,
            random: seed,
            held: [None, None],
            count: count.clone(),
            cut: Arc::clone(&cut),
        };
        let stopped = Arc::<AtomicBool>::clone(&stop);
        let thread = std::thread::spawn(move || {
            while !stopped.load(Ordering::SeqCst) {
                worker.turn();
            }
        });
        Self { count, cut, stop, thread: Some(thread) }
    }

    /// Lets nothing pass from now on, or everything again.
    pub fn cut(&self, cut: bool) {
        self.cut.store(cut, Ordering::SeqCst);
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

struct Worker {
    sockets: [PacketSocket; 2],
    faults: Faults,
    random: u64,
    /// Late frames, by the port they go to.
    held: [Option<Vec<u8>>; 2],
    count: Arc<Count>,
    cut: Arc<AtomicBool>,
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
                if !self.cut.load(Ordering::SeqCst) {
                    self.pass(to, &buffer[..length]);
                }
            }
        }
    }

    fn pass(&mut self, to: usize, frame: &[u8]) {
        let late = self.held[to].take();
        let Faults { lost, doubled, late: delayed, nonsense } = self.faults;
        match self.roll() {
            roll if roll < lost => Self::add(&self.count.lost),
            roll if roll < lost + doubled => {
                Self::add(&self.count.doubled);
                self.put(to, frame);
                self.put(to, frame);
            }
            roll if roll < lost + doubled + delayed => {
                Self::add(&self.count.late);
                self.held[to] = Some(frame.to_vec());
            }
            roll if roll < lost + doubled + delayed + nonsense => {
                Self::add(&self.count.nonsense);
                let mut mangled = frame.to_vec();
                // Version, kind, length, connection: none of it could be true.
                let (at, bits) =
                    [(14, 0xe0), (14, 0x0c), (15, 0xf0), (18, 0xff)][self.roll() as usize % 4];
                mangled[at] |= bits;
                self.put(to, &mangled);
                self.put(to, frame);
            }
            _ => self.put(to, frame),
        }
        if let Some(late) = late {
            self.put(to, &late);
        }
    }

    fn put(&mut self, to: usize, frame: &[u8]) {
        // What does not fit is one more lost frame.
        let _ = self.sockets[to].send(frame);
    }

    /// 0 to 999 (xorshift64).
    fn roll(&mut self) -> u64 {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        self.random % 1000
    }

    fn add(counter: &AtomicU64) {
        counter.fetch_add(1, Ordering::Relaxed);
    }
}
