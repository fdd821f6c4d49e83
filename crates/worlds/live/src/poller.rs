//! Waits for file descriptors and timers: epoll, with an optional spin.
//!
//! A node serves only the descriptors that are ready: [`Poller::take_ready`]. Epoll is
//! level-triggered: a descriptor with unread bytes is reported again.

use crate::clock::Clock;
use rustix::buffer::spare_capacity;
use rustix::event::{Timespec, epoll};
use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use wire::{Duration, Instant};

/// A spinning node tries recently ready descriptors without a system call to epoll. It calls
/// epoll at least this often.
const SPIN_REFRESH: Duration = Duration::from_us(250);
/// With more recent descriptors than this, epoll is cheaper.
const MAX_RECENT: usize = 4;
/// After this many failed attempts a descriptor is no longer tried: it may be closed.
const MAX_MISSES: u8 = 16;
/// Marks the token of a descriptor that is served only when epoll reports it.
const NO_SPIN: u64 = 1 << 63;
/// Readiness older than this is stale: a node that was not scheduled calls epoll again before it
/// counts a link as lost.
const STALE: Duration = Duration::from_ms(1);

/// The result of serving descriptors.
#[derive(Clone, Copy, Debug, Default)]
pub struct Activity {
    /// Whether something happened: call again before waiting.
    pub moved: bool,
    /// The next timer.
    pub timer: Option<Instant>,
}

/// How a node waits when it has nothing to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Waiting {
    /// Sleeps in the kernel at once.
    Block,
    /// Polls for this long, then sleeps.
    Spin(Duration),
}

/// The state of descriptors, by token.
#[derive(Default)]
struct Known {
    /// Descriptors that are or may be ready and were not yet taken.
    ready: Vec<u64>,
    /// Recently ready descriptors, each with its number of failed attempts.
    recent: Vec<(u64, u8)>,
}

/// An epoll instance with an optional spin.
pub struct Poller {
    epoll: OwnedFd,
    events: Vec<epoll::Event>,
    waiting: Waiting,
    busy_until: Instant,
    known: RefCell<Known>,
    /// Time of the last call of epoll, and whether it was in this turn.
    updated: Instant,
    fresh: bool,
}

impl Poller {
    /// A poller that watches nothing yet.
    ///
    /// # Errors
    /// If the kernel provides no epoll instance.
    pub fn new(waiting: Waiting) -> io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        Ok(Self {
            epoll,
            events: Vec::with_capacity(64),
            waiting,
            busy_until: Instant::ZERO,
            known: RefCell::default(),
            updated: Instant::ZERO,
            fresh: false,
        })
    }

    /// How the poller waits.
    pub fn waiting(&self) -> Waiting {
        self.waiting
    }

    /// Watches `fd` for input, and for output if `output` is set.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn add(&self, fd: impl AsFd, output: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token(&fd));
        Ok(epoll::add(&self.epoll, fd, data, flags(output))?)
    }

    /// Watches `fd` for input that may wait until the next call of epoll. Spinning never tries
    /// `fd`.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn add_without_spin(&self, fd: impl AsFd) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token(&fd) | NO_SPIN);
        Ok(epoll::add(&self.epoll, fd, data, flags(false))?)
    }

    /// Changes the events for which `fd` is watched.
    ///
    /// # Errors
    /// As `epoll_ctl(2)`.
    pub fn modify(&self, fd: impl AsFd, output: bool) -> io::Result<()> {
        let data = epoll::EventData::new_u64(token(&fd));
        Ok(epoll::modify(&self.epoll, fd, data, flags(output))?)
    }

    /// Stops watching `fd`. Closing `fd` has the same effect.
    pub fn remove(&self, fd: impl AsFd) {
        let _ = epoll::delete(&self.epoll, fd);
    }

    /// Restarts the spin after activity.
    pub fn busy(&mut self, now: Instant) {
        if let Waiting::Spin(span) = self.waiting {
            self.busy_until = now + span;
        }
    }

    /// Whether to serve `fd`: epoll reported it ready, or spinning tries it. Returns true once
    /// per report.
    pub fn take_ready(&self, fd: impl AsFd) -> bool {
        let (token, Known { ready, recent }) = (token(&fd), &mut *self.known.borrow_mut());
        let Some(at) = ready.iter().position(|other| *other == token) else { return false };
        ready.swap_remove(at);
        recent.iter_mut().filter(|(other, _)| *other == token).for_each(|(_, misses)| *misses = 0);
        true
    }

    /// Whether a ready descriptor was not yet [taken](Self::take_ready).
    pub fn has_ready(&self) -> bool {
        !self.known.borrow().ready.is_empty()
    }

    /// Updates the ready descriptors, unless [`wait`](Self::wait) has just done so for this turn at
    /// `now`. Returns whether any may be ready.
    ///
    /// # Errors
    /// As `epoll_wait(2)`.
    pub fn refresh(&mut self, now: Instant) -> io::Result<bool> {
        if !self.fresh || now >= self.updated + STALE {
            self.update(now)?;
        }
        Ok(!self.known.get_mut().ready.is_empty())
    }

    /// Updates the ready descriptors if they are older than a millisecond. Call it at the start of
    /// a turn at `now` that sends first.
    ///
    /// # Errors
    /// As `epoll_wait(2)`.
    pub fn refresh_if_stale(&mut self, now: Instant) -> io::Result<()> {
        if now >= self.updated + STALE {
            self.refresh(now)?;
        }
        Ok(())
    }

    /// Ends a turn, so that the next one updates the ready descriptors.
    pub fn end_turn(&mut self) {
        self.fresh = false;
    }

    /// Returns when a descriptor is ready or `until` has come. While spinning it returns at
    /// once, and recent descriptors count as ready.
    ///
    /// # Errors
    /// As `epoll_wait(2)`; interruption by a signal is not an error.
    pub fn wait(&mut self, clock: &Clock, until: Option<Instant>) -> io::Result<()> {
        let now = clock.now();
        if now < self.busy_until {
            // The awaited thread may need this core.
            std::thread::yield_now();
            return self.update(now);
        }
        let timeout = until.map(|at| {
            let ns = (at - now).as_ns().saturating_add(1) as i64;
            Timespec { tv_sec: ns / 1_000_000_000, tv_nsec: ns % 1_000_000_000 }
        });
        let recent = &mut self.known.get_mut().recent;
        if recent.len() > MAX_RECENT {
            recent.clear();
        }
        self.epoll_wait(timeout)?;
        self.updated = clock.now();
        Ok(())
    }

    /// Updates the ready descriptors: by epoll, or by a guess while spinning.
    fn update(&mut self, now: Instant) -> io::Result<()> {
        let Known { ready, recent } = self.known.get_mut();
        let few = !recent.is_empty() && recent.len() <= MAX_RECENT;
        if few && now < self.busy_until && now < self.updated + SPIN_REFRESH {
            recent.iter_mut().for_each(|(_, misses)| *misses += 1);
            recent.retain(|(_, misses)| *misses <= MAX_MISSES);
            ready.clear();
            ready.extend(recent.iter().map(|(token, _)| token));
            self.fresh = true;
            return Ok(());
        }
        self.epoll_wait(Some(Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        self.updated = now;
        Ok(())
    }

    fn epoll_wait(&mut self, timeout: Option<Timespec>) -> io::Result<()> {
        self.events.clear();
        match epoll::wait(&self.epoll, spare_capacity(&mut self.events), timeout.as_ref()) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        self.fresh = true;
        let Known { ready, recent } = self.known.get_mut();
        ready.clear();
        // Copied, because the kernel's structure is packed.
        for token in self.events.iter().map(|event| { event.data }.u64()) {
            ready.push(token & !NO_SPIN);
            let known = token & NO_SPIN != 0 || recent.iter().any(|(other, _)| *other == token);
            if recent.len() <= MAX_RECENT && !known {
                recent.push((token, 0));
            }
        }
        Ok(())
    }
}

/// Readable while one of its descriptors is ready.
impl AsFd for Poller {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

/// The token of a descriptor: its number, unique while it is open.
fn token(fd: &impl AsFd) -> u64 {
    fd.as_fd().as_raw_fd() as u64
}

fn flags(output: bool) -> epoll::EventFlags {
    if output { epoll::EventFlags::IN | epoll::EventFlags::OUT } else { epoll::EventFlags::IN }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::os::unix::net::UnixStream;

    #[test]
    fn readiness_is_reported_once_and_again_while_it_lasts() {
        let mut poller = Poller::new(Waiting::Block).unwrap();
        let [(mut near, first), (far, second)] = [(); 2].map(|()| UnixStream::pair().unwrap());
        poller.add(&first, false).unwrap();
        poller.add(&second, false).unwrap();
        near.write_all(b"x").unwrap();
        let clock = Clock::start();
        poller.wait(&clock, None).unwrap();
        assert!(poller.take_ready(&first) && !poller.take_ready(&second));
        assert!(!poller.take_ready(&first), "reported once");
        poller.wait(&clock, None).unwrap();
        assert!(poller.take_ready(&first), "nobody has read it");
        (&first).read_exact(&mut [0]).unwrap();
        drop(far);
        poller.wait(&clock, None).unwrap();
        assert!(!poller.take_ready(&first) && poller.take_ready(&second), "the end is reported");
    }

    #[test]
    fn turn_polls_once_and_late_turn_polls_first() {
        let mut poller = Poller::new(Waiting::Block).unwrap();
        let (mut near, fd) = UnixStream::pair().unwrap();
        poller.add(&fd, false).unwrap();
        let mut now = Instant::ZERO + Duration::from_ms(5_000);
        assert!(!poller.refresh(now).unwrap());
        near.write_all(b"x").unwrap();
        assert!(!poller.refresh(now).unwrap(), "it is still the same turn");
        poller.end_turn();
        poller.refresh_if_stale(now).unwrap();
        assert!(!poller.take_ready(&fd), "the last answer is new enough to send first");
        now += STALE;
        poller.refresh_if_stale(now).unwrap();
        assert!(poller.take_ready(&fd));
    }

    #[test]
    fn spinning_poller_tries_recently_ready_descriptors() {
        let mut poller = Poller::new(Waiting::Spin(Duration::from_ms(50))).unwrap();
        let [(mut near, first), (mut far, second)] = [(); 2].map(|()| UnixStream::pair().unwrap());
        poller.add(&first, false).unwrap();
        poller.add(&second, false).unwrap();
        let start = Instant::ZERO + Duration::from_ms(5_000);
        poller.busy(start);
        near.write_all(b"x").unwrap();
        let mut ready_at = |now| {
            poller.end_turn();
            poller.refresh(now).unwrap();
            [poller.take_ready(&first), poller.take_ready(&second)]
        };
        assert_eq!(ready_at(start), [true, false]);
        (&first).read_exact(&mut [0]).unwrap();
        far.write_all(b"x").unwrap();
        assert_eq!(ready_at(start + Duration::from_us(1)), [true, false], "it may be");
        assert_eq!(ready_at(start + SPIN_REFRESH), [false, true], "all are asked for");
        assert_eq!(ready_at(start + SPIN_REFRESH + Duration::from_us(1)), [true, true]);
        assert_eq!(ready_at(start + Duration::from_ms(50)), [false, true], "the spin is over");
    }
}
