//! The lease of a link to a device that hosts can also reach over other links (`docs/protocol.md`,
//! "Lease"). The device carries requests of a host out only for a time after a word of the host that
//! is surely not older. A host that gives a link up waits until the lease is over, so no request of
//! the link has an effect after its retry over another link.

use super::{Cause, Interruption, MAX_PATHS, Output, Tunnel};
use wire::frame::Control;
use wire::{Duration, Instant};

/// The share of the lease after which a device asks again.
const ASKS: u64 = 4;
/// The longest lease that a host respects.
const LONGEST: Duration = Duration::from_ms(10_000);

/// A device's end: how long it may carry requests out.
#[derive(Debug)]
pub(super) struct Held {
    span: Duration,
    /// The number of the next Echo.
    next: u64,
    /// The times of the last Echos to this host, by their number.
    asked: [Option<Instant>; ASKS as usize],
    /// When the next Echo is due.
    pub due: Instant,
    /// The end of the lease.
    pub until: Instant,
}

impl Held {
    /// A lease of this length, over before it begins.
    pub(super) fn new(span: Duration) -> Self {
        let (asked, zero) = (Default::default(), Instant::ZERO);
        Self { span, next: 0, asked, due: zero, until: zero }
    }

    /// Begins with another host, whose answers alone count.
    pub(super) fn begin(&mut self) {
        *self = Self { next: self.next, ..Self::new(self.span) };
    }

    /// The number of an Echo to send now.
    pub(super) fn ask(&mut self, now: Instant) -> u64 {
        let number = self.next;
        self.asked[(number % ASKS) as usize] = Some(now);
        self.next += 1;
        self.due = now + Duration::from_ns(self.span.as_ns() / ASKS);
        number
    }

    /// Handles the answer to an Echo. The host was there when the Echo left, or later.
    pub(super) fn answered(&mut self, number: u64) {
        let age = self.next.wrapping_sub(number);
        if let Some(at) = self.asked[(number % ASKS) as usize]
            && (1..=ASKS).contains(&age)
        {
            self.until = self.until.max(at + self.span);
        }
    }
}

/// A host's end: until when the device may carry requests out.
#[derive(Debug, Default)]
pub(super) struct Given {
    span: Duration,
    /// The time of the turn in which the last Echo arrived. If the process stalled in this turn, the
    /// device may have sent it later, so the lease counts from the next turn.
    asked: Option<Instant>,
    until: Instant,
}

impl Given {
    /// Begins with a device that announced a lease.
    pub(super) fn begin(lease_ms: u32) -> Self {
        let span = Duration::from_ms(lease_ms.into()).min(LONGEST);
        // The clocks of both ends may run apart by a quarter.
        Self { span: span + Duration::from_ns(span.as_ns() / 4), ..Self::default() }
    }

    /// Handles an Echo of the device, which is going to be answered.
    pub(super) fn asked(&mut self, now: Instant) {
        self.asked = Some(now).filter(|_| self.span > Duration::ZERO);
    }

    /// When the lease is surely over.
    pub(super) fn until(&mut self, now: Instant) -> Instant {
        if let Some(asked) = self.asked {
            self.until = now + self.span;
            self.asked.take_if(|_| now > asked);
        }
        self.until
    }
}

impl Tunnel {
    /// Takes the link down, and ends its session even if it survives connections.
    /// Waits until the far side's lease is over.
    pub fn take_down(&mut self, now: Instant, cause: Cause) {
        self.end_session(now, cause);
    }

    /// Ends an interrupted session as soon as the far side's lease is over, however long it could
    /// survive.
    pub fn give_up(&mut self, now: Instant) {
        if let Some(interruption) = &mut self.interrupted {
            interruption.until = now.min(interruption.until);
        }
    }

    /// Takes the link down when the far side carries nothing out any more.
    pub(super) fn end_session(&mut self, now: Instant, cause: Cause) {
        let ended = matches!(cause, Cause::Goodbye | Cause::SessionGone);
        if !self.is_up() || ended || self.given.until(now) <= now {
            return self.close(cause);
        }
        for path in 0..MAX_PATHS {
            if self.paths[path].abandon() {
                self.outputs.push_back(Output::PathLost(path, cause.clone()));
            }
        }
        self.session.interrupt();
        self.interrupted = Some(Interruption { cause, until: now, over: true });
    }

    /// Whether the session ends when the far side's lease does.
    pub fn is_over(&self) -> bool {
        self.interrupted.as_ref().is_some_and(|interruption| interruption.over)
    }

    /// Until when this end, a device with a lease, may carry out what it has received; `None`
    /// without a lease.
    pub fn lease(&self) -> Option<Instant> {
        let until = if self.is_up() { self.held.until } else { Instant::ZERO };
        Some(until).filter(|_| self.settings.lease > Duration::ZERO)
    }

    /// Asks the host again, when a lease of this end needs it.
    pub(super) fn ask_for_lease(&mut self, now: Instant) {
        if self.settings.lease > Duration::ZERO && now >= self.held.due {
            let path = &mut self.paths[self.session.active];
            path.queue_control(Control::Echo(self.held.ask(now)));
        }
    }
}
