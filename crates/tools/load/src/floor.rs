//! The raw round trip: 64 bytes over TCP in both directions, with the waiting mode of the data path.
//! The raw stream: as many bytes as TCP carries in one direction.

use linux::cpu::pin;
use live::net::{Connection, LinkSettings, Listener, Namespace};
use live::{Clock, Poller, Waiting};
use report::Failure;
use report::latency::Latency;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// Bytes of a message.
pub const BYTES: usize = 64;

/// The two ends between which a floor is measured.
pub struct FloorEnds<'a> {
    /// The namespace of the end that measures.
    pub near: &'a Namespace,
    /// The namespace of the other end.
    pub far: &'a Namespace,
    /// Address of the other end.
    pub address: IpAddr,
    /// CPU of the other end; `None`: any.
    pub far_cpu: Option<usize>,
    /// Bytes of an answer.
    pub reply: usize,
}

impl<'a> FloorEnds<'a> {
    /// Returns two ends on the loopback of a namespace, on any CPU.
    pub fn loopback(here: &'a Namespace, reply: usize) -> Self {
        let address = Ipv4Addr::LOCALHOST.into();
        Self { near: here, far: here, address, far_cpu: None, reply }
    }
}

/// Measures `n` round trips on loopback, after a warm-up.
///
/// # Errors
/// If the kernel provides no connection, or the connection ends early.
pub fn measure(clock: Clock, waiting: Waiting, n: usize) -> Result<Latency, Failure> {
    let here = Namespace::current()?;
    round_trips(&FloorEnds::loopback(&here, BYTES), clock, waiting, n)
}

/// Measures `n` round trips between two ends, after a warm-up.
///
/// # Errors
/// As [`measure`].
pub fn round_trips(
    ends: &FloorEnds<'_>,
    clock: Clock,
    waiting: Waiting,
    n: usize,
) -> Result<Latency, Failure> {
    let at = SocketAddr::from((ends.address, 0));
    let listener = ends.far.enter(|| Listener::bind(at, LinkSettings::default()))??;
    let address = listener.address()?;
    let (far_cpu, reply) = (ends.far_cpu, ends.reply);
    let echo = std::thread::spawn(move || {
        keep_on(far_cpu)?;
        echo(clock, waiting, &listener, reply)
    });
    let mut poller = Poller::new(waiting)?;
    let connect = || Connection::connect(address, &LinkSettings::default());
    let connection = ends.near.enter(connect)??;
    poller.add(&connection, true)?;
    while !connection.established()? {
        poller.wait(&clock, None)?;
    }
    poller.modify(&connection, false)?;
    let mut end = End { clock, poller, connection };
    let all = n + n / 10;
    let mut times = Latency::default();
    for round in 0..all {
        let start = clock.now();
        end.connection.send(vec![0; BYTES].into())?;
        if !end.receive(reply)? {
            return Err(Failure("the echo of the round trip measurement ended early".into()));
        }
        if round >= all - n {
            times.record(clock.now() - start);
        }
    }
    drop(end);
    echo.join().map_err(|_| Failure("the echo panicked".into()))??;
    Ok(times)
}

/// Keeps this thread on a CPU, if one is given.
fn keep_on(cpu: Option<usize>) -> Result<(), Failure> {
    cpu.map_or(Ok(()), pin).map_err(Failure)
}

struct End {
    clock: Clock,
    poller: Poller,
    connection: Connection,
}

impl End {
    /// Receives `bytes` bytes. Returns whether the connection was open so long.
    fn receive(&mut self, bytes: usize) -> Result<bool, Failure> {
        let mut got = 0;
        while got < bytes {
            match self.connection.receive()? {
                Some(part) if part.is_empty() => return Ok(false),
                Some(part) => {
                    got += part.len();
                    self.poller.busy(self.clock.now());
                }
                None => drop(self.poller.wait(&self.clock, None)?),
            }
        }
        Ok(true)
    }
}

/// Answers each message with `reply` bytes.
fn echo(clock: Clock, waiting: Waiting, listener: &Listener, reply: usize) -> Result<(), Failure> {
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
    while end.receive(BYTES)? {
        end.connection.send(vec![0; reply].into())?;
        while end.connection.room() == 0 {
            end.connection.flush()?;
        }
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
    let here = Namespace::current()?;
    stream_between(&FloorEnds::loopback(&here, BYTES), clock, span, copies)
}

/// Measures a one-way TCP stream from the near to the far end in 128 KiB writes, over `span`.
///
/// # Errors
/// As [`stream`].
pub fn stream_between(
    ends: &FloorEnds<'_>,
    clock: Clock,
    span: wire::Duration,
    copies: Copies,
) -> Result<u64, Failure> {
    use std::io::{Read, Write};
    let bind = || std::net::TcpListener::bind((ends.address, 0));
    let listener = ends.far.enter(bind)??;
    let address = listener.local_addr()?;
    let mut sender = ends.near.enter(|| std::net::TcpStream::connect(address))??;
    let (mut receiver, _) = listener.accept()?;
    let copier = || (copies == Copies::OnEachSide).then(Copier::new);
    let (mut from, mut to) = (copier(), copier());
    let far_cpu = ends.far_cpu;
    let reader = std::thread::spawn(move || {
        // A stream on another CPU is only slower.
        let _ = keep_on(far_cpu);
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
