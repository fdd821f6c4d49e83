//! A TCP relay whose connections tests cut and mend.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

/// The state of the path through a [`Cutter`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Path {
    /// Everything passes.
    Open,
    /// Connections are reset, and new ones too.
    Reset,
    /// Nothing passes, and nobody is told. Afterwards old connections deliver what they kept.
    Silent,
    /// The relay ends.
    Ended,
}

#[derive(Debug, Default)]
struct Shared {
    path: AtomicU8,
    /// Bytes that passed.
    passed: AtomicU64,
}

impl Shared {
    fn path(&self) -> Path {
        [Path::Open, Path::Reset, Path::Silent, Path::Ended]
            [usize::from(self.path.load(Ordering::SeqCst))]
    }
}

/// A running relay, which ends when the value is dropped.
pub struct Cutter {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// How often the threads look at the state.
const TICK: Duration = Duration::from_millis(2);

impl Cutter {
    /// Listens on loopback, and forwards every connection to `target`.
    pub fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("listen on loopback");
        listener.set_nonblocking(true).expect("a socket");
        let address = listener.local_addr().expect("bound");
        let shared = Arc::new(Shared::default());
        let own = shared.clone();
        thread::spawn(move || accept(&listener, target, &own));
        Self { address, shared }
    }

    /// The address to which clients connect.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts or mends the path.
    pub fn set(&self, path: Path) {
        self.shared.path.store(path as u8, Ordering::SeqCst);
    }

    /// Cuts the path for `time` and mends it.
    pub fn cut(&self, path: Path, time: Duration) {
        self.set(path);
        thread::sleep(time);
        self.set(Path::Open);
    }

    /// Waits until `bytes` more have passed: the path carries traffic.
    pub fn carries(&self, bytes: u64) {
        let passed = || self.shared.passed.load(Ordering::SeqCst);
        let before = passed();
        super::wait_until("traffic passes the relay", || passed() >= before + bytes);
    }
}

impl Drop for Cutter {
    fn drop(&mut self) {
        self.set(Path::Ended);
    }
}

fn accept(listener: &TcpListener, target: SocketAddr, shared: &Arc<Shared>) {
    while shared.path() != Path::Ended {
        match (shared.path(), listener.accept()) {
            (Path::Open, Ok((client, _))) => {
                if let Ok(server) = TcpStream::connect(target) {
                    for (from, to) in [(&client, &server), (&server, &client)] {
                        let ends = (from.try_clone(), to.try_clone());
                        let (Ok(from), Ok(to), shared) = (ends.0, ends.1, shared.clone()) else {
                            continue;
                        };
                        thread::spawn(move || pump(from, to, &shared));
                    }
                }
            }
            // The client waits for the first bytes of a connection that nobody serves.
            (Path::Silent, Ok((client, _))) => {
                let shared = shared.clone();
                thread::spawn(move || {
                    while shared.path() == Path::Silent {
                        thread::sleep(TICK);
                    }
                    drop(client);
                });
            }
            (_, Ok(_)) => {}
            (_, Err(_)) => thread::sleep(TICK),
        }
    }
}

/// Forwards one direction until it ends or is reset.
fn pump(mut from: TcpStream, mut to: TcpStream, shared: &Shared) {
    let _ = (from.set_nodelay(true), to.set_nodelay(true));
    let _ = from.set_nonblocking(false);
    let _ = from.set_read_timeout(Some(TICK));
    let mut buffer = vec![0; 64 << 10];
    loop {
        match shared.path() {
            Path::Open => {}
            Path::Silent => {
                thread::sleep(TICK);
                continue;
            }
            Path::Reset | Path::Ended => break,
        }
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) => {
                // What was read when the path fell silent waits here.
                while shared.path() == Path::Silent {
                    thread::sleep(TICK);
                }
                if shared.path() != Path::Open || to.write_all(&buffer[..length]).is_err() {
                    break;
                }
                shared.passed.fetch_add(length as u64, Ordering::SeqCst);
            }
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(_) => break,
        }
    }
    let _ = from.shutdown(std::net::Shutdown::Both);
    let _ = to.shutdown(std::net::Shutdown::Both);
}
