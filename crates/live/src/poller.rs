//! Waiting for file descriptors and timers: epoll, with an optional spin.

use crate::clock::Clock;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use wire::{Duration, Instant};

/// How a node waits when it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Sleeps in the kernel at once.
    Block,
    /// Looks again and again for this long, then sleeps.
    Spin(Duration),
}

/// An epoll instance.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    waiting: Waiting,
    busy_until: Instant,
}

impl Poller {
    /// A poller that watches nothing yet.
    ///
    /// # Errors
    /// If the kernel gives no epoll instance.
    pub fn new(waiting: Waiting) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self { epoll, events: Vec::with_capacity(64), waiting, busy_until: Instant::ZERO })
    }

    /// Watches `fd` for input, and for output if `output` is set.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn add(&self, fd: impl AsFd, output: bool) -> io::Result<()> {
        Ok(epoll::add(&self.epoll, fd, epoll::EventData::new_u64(0), flags(output))?)
    }

    /// Changes what `fd` is watched for.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn modify(&self, fd: impl AsFd, output: bool) -> io::Result<()> {
        Ok(epoll::modify(&self.epoll, fd, epoll::EventData::new_u64(0), flags(output))?)
    }

    /// Watches `fd` no more. Closing it does the same.
    pub fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Notes that something happened: the spin begins anew.
    pub fn busy(&mut self, now: Instant) {
        if let Waiting::Spin(span) = self.waiting {
            self.busy_until = now + span;
        }
    }

    /// Returns when some descriptor is ready or `until` has come; at once
    /// while spinning. What is ready is not said: nodes look at all they have.
    /// Says whether it asked the kernel, or only spun.
    ///
    /// # Errors
    /// As `epoll_wait(2)`; interruption by a signal is none.
    pub fn wait(&mut self, clock: &Clock, until: Option<Instant>) -> io::Result<bool> {
        let now = clock.now();
        if now < self.busy_until {
            // Whoever we wait for may have been put on this very core.
            std::thread::yield_now();
            return Ok(false);
        }
        let timeout = until.map(|at| {
            let ns = (at - now).as_ns().saturating_add(1) as i64;
            Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
        });
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(true),
            Err(error) => Err(error.into()),
        }
    }
}

fn flags(output: bool) -> epoll::EventFlags {
    if output { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN }
}
