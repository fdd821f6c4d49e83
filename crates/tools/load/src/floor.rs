//! The raw round trip: 64 bytes over TCP on loopback in both directions, with the waiting mode of
//! the data path.

use live::net::{Connection, LinkSettings, Listener};
use live::{Clock, Poller, Waiting};
use report::Failure;
use report::latency::Latency;
use std::net::{Ipv4Addr, SocketAddr};

const BYTES: usize = 64;

/// Measures `n` round trips, after a warm-up.
///
/// # Errors
/// If the kernel provides no connection, or the connection ends early.
pub fn measure(clock: Clock, waiting: Waiting, n: usize) -> Result<Latency, Failure> {
    let listener =
        Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)), LinkSettings::default())?;
    let address = listener.address()?;
    let echo = std::thread::spawn(move || echo(clock, waiting, &listener));
    let poller = Poller::new(waiting)?;
    let connection = Connection::connect(address, &LinkSettings::default())?;
    while !connection.established()? {
        std::thread::yield_now();
    }
    poller.add(&connection, false)?;
    let mut end = End { clock, poller, connection };
    let warm_up = n / 10;
    let mut times = Latency::default();
    for round in 0..warm_up + n {
        let start = clock.now();
        end.connection.send(vec![0; BYTES].into())?;
        if !end.receive()? {
            return Err(Failure("the echo of the round trip measurement ended early".into()));
        }
        if round >= warm_up {
            times.record(clock.now() - start);
        }
    }
    drop(end);
    let _ = echo.join();
    Ok(times)
}

struct End {
    clock: Clock,
    poller: Poller,
    connection: Connection,
}

impl End {
    fn receive(&mut self) -> Result<bool, Failure> {
        let mut got = 0;
        while got < BYTES {
            match self.connection.receive()? {
                Some(bytes) if bytes.is_empty() => return Ok(false),
                Some(bytes) => {
                    got += bytes.len();
                    self.poller.busy(self.clock.now());
                }
                None => drop(self.poller.wait(&self.clock, None)?),
            }
        }
        Ok(true)
    }
}

fn echo(clock: Clock, waiting: Waiting, listener: &Listener) -> Result<(), Failure> {
    let mut poller = Poller::new(waiting)?;
    poller.add(listener, false)?;
    let connection = loop {
        match listener.accept() {
            Some(connection) => break connection,
            None => drop(poller.wait(&clock, None)?),
        }
    };
    poller.add(&connection, false)?;
    let mut end = End { clock, poller, connection };
    while end.receive()? {
        end.connection.send(vec![0; BYTES].into())?;
    }
    Ok(())
}

/// Bytes of one write to the stream.
const STREAM_WRITE: usize = 128 << 10;

/// Copies of the payload in the processes, in addition to the kernel's copies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Copies {
    /// No copy: the same buffers are used again.
    None,
    /// One copy from memory before sending, and one copy to memory after receiving, as in a drive
    /// and a host.
    OnEachSide,
}

/// Bytes of the memory for copies: larger than the caches near a core.
const MEMORY: usize = 64 << 20;

/// Copies a write's payload to or from the next place in `memory`.
struct Copier {
    memory: Vec<u8>,
    at: usize,
}

impl Copier {
    fn new() -> Self {
        Self { memory: vec![0x5a; MEMORY], at: 0 }
    }

    fn next(&mut self, length: usize) -> &mut [u8] {
        if self.at + length > self.memory.len() {
            self.at = 0;
        }
        self.at += length;
        &mut self.memory[self.at - length..self.at]
    }
}

/// Measures a one-way TCP stream on loopback in 128 KiB writes: bytes per second over `span`.
///
/// # Errors
/// If the kernel provides no connection, or the connection ends early.
pub fn stream(clock: Clock, span: wire::Duration, copies: Copies) -> Result<u64, Failure> {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
    let mut sender = std::net::TcpStream::connect(listener.local_addr()?)?;
    let (mut receiver, _) = listener.accept()?;
    let copier = || (copies == Copies::OnEachSide).then(Copier::new);
    let (mut from, mut to) = (copier(), copier());
    let reader = std::thread::spawn(move || {
        let mut buffer = vec![0; STREAM_WRITE * 2];
        let mut total = 0u64;
        while let Ok(bytes) = receiver.read(&mut buffer) {
            if bytes == 0 {
                break;
            }
            if let Some(memory) = &mut to {
                memory.next(bytes).copy_from_slice(&buffer[..bytes]);
            }
            total += bytes as u64;
        }
        total
    });
    let mut data = vec![0x5a; STREAM_WRITE];
    let start = clock.now();
    while clock.now() < start + span {
        if let Some(memory) = &mut from {
            data.copy_from_slice(memory.next(STREAM_WRITE));
        }
        sender.write_all(&data)?;
    }
    drop(sender);
    let total = reader.join().map_err(|_| Failure("the reader panicked".into()))?;
    let elapsed = (clock.now() - start).as_ns().max(1);
    Ok((u128::from(total) * 1_000_000_000 / u128::from(elapsed)) as u64)
}
