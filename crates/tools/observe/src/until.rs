//! Sockets whose reads and writes end at one time, however slow the peer is.

use rustix::net::sockopt::{Timeout, set_socket_timeout};
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

/// A socket with a time limit for all reads and writes together.
pub struct Until<S> {
    stream: S,
    until: Instant,
}

impl<S: AsFd> Until<S> {
    /// Limits `stream` to this time from now on.
    pub fn new(stream: S, time: Duration) -> Self {
        Self { stream, until: Instant::now() + time }
    }

    fn limit(&self) -> io::Result<()> {
        match self.until.checked_duration_since(Instant::now()) {
            Some(left) if !left.is_zero() => {
                set_socket_timeout(&self.stream, Timeout::Recv, Some(left))?;
                Ok(set_socket_timeout(&self.stream, Timeout::Send, Some(left))?)
            }
            _ => Err(ErrorKind::TimedOut.into()),
        }
    }
}

impl<S: AsFd + Read> Read for Until<S> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.read(buffer)
    }
}

impl<S: AsFd + Write> Write for Until<S> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.limit()?;
        self.stream.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.stream.flush()
    }
}
