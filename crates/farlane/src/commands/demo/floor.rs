//! The raw round trip: 64 bytes of TCP there and back on loopback, waiting as
//! the data path does.

use crate::analyse::latency::Latency;
use crate::commands::Failure;
use live::net::{Connection, Listener};
use live::{Clock, Poller, Waiting};
use std::net::{Ipv4Addr, SocketAddr};

const BYTES: usize = 64;

/// Measures `n` round trips, after a warm-up.
///
/// # Errors
/// If loopback does not work.
pub fn measure(clock: Clock, waiting: Waiting, n: usize) -> Result<Latency, Failure> {
    let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
    let address = listener.address()?;
    let echo = std::thread::spawn(move || echo(clock, waiting, &listener));
    let poller = Poller::new(waiting)?;
    let connection = Connection::connect(address)?;
    while !connection.established()? {
        std::thread::yield_now();
    }
    poller.add(&connection, false)?;
    let mut end = End { clock, poller, connection };
    let warm_up = n / 10;
    let mut times = Latency::new();
    for round in 0..warm_up + n {
        let start = clock.now();
        end.connection.send(vec![0; BYTES])?;
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
    /// Waits for one message; `false` at the end.
    fn receive(&mut self) -> Result<bool, Failure> {
        let mut got = 0;
        while got < BYTES {
            match self.connection.receive()? {
                Some(bytes) if bytes.is_empty() => return Ok(false),
                Some(bytes) => {
                    got += bytes.len();
                    self.poller.busy(self.clock.now());
                }
                None => self.poller.wait(&self.clock, None)?,
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
            None => poller.wait(&clock, None)?,
        }
    };
    poller.add(&connection, false)?;
    let mut end = End { clock, poller, connection };
    while end.receive()? {
        end.connection.send(vec![0; BYTES])?;
    }
    Ok(())
}
