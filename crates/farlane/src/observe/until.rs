//! Sockets whose reads and writes end at one time, however slow the peer is.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

/// A blocking socket.
pub trait Limited: Read + Write {
    /// Limits the time of further reads and writes.
    fn limit(&self, time: Duration) -> io::Result<()>;
}

impl Limited for TcpStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

impl Limited for UnixStream {
    fn limit(&self, time: Duration) -> io::Result<()> {
        self.set_read_timeout(Some(time))?;
        self.set_write_timeout(Some(time))
    }
}

/// A socket with a time limit for all reads and writes together.
pub struct Until<S> {
    stream: S,
    until: Instant,
}

impl<S: Limited> Until<S> {
    /// Limits `stream` to this time from now on.
    pub fn new(stream: S, time: Duration) -> Self {
        Self { stream, until: Instant::now() + time }
    }

    fn limit(&self) -> io::Result<()> {
        match self.until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => self.stream.limit(left),
            _ => Err(ErrorKind::TimedOut.into()),
        }
    }
}

impl<S: Limited> Read for Until<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.read(buffer)
    }
}

impl<S: Limited> Write for Until<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
