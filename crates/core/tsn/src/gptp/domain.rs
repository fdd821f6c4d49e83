//! A domain of a time-aware system: announcements, port roles, and time from the grandmaster
//! (IEEE 802.1AS-2020, 10.2, 10.3, 11.2.13 to 11.2.15).
//!
//! All `now` are picoseconds of the free-running oscillator.

use wire::Duration;

use super::best_master::{self, ClockIdentity, PortIdentity, PriorityVector, Role, SystemIdentity};
use super::link_delay::LinkDelay;
use super::message::{Body, Message, corrected, correction, split};
use super::oscillator::Stamp;
use super::ratio::RateRatio;

/// Message intervals and timeouts of a domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DomainConfig {
    /// domainNumber.
    pub number: u8,
    /// The system's quality as grandmaster of this domain. With priority1 of 255 the system cannot
    /// be grandmaster.
    pub own: SystemIdentity,
    /// log2 of the seconds between two Syncs: -3 by default (initialLogSyncInterval, 11.5.2.3).
    pub log_sync: i8,
    /// log2 of the seconds between two Announces: 0 by default (10.7.2.2).
    pub log_announce: i8,
    /// Sync intervals without a Sync after which the master's time is lost: 3 by default
    /// (syncReceiptTimeout, 10.7.3.1).
    pub sync_timeout: u8,
    /// Announce intervals without an Announce after which the master is lost: 3 by default
    /// (announceReceiptTimeout, 10.7.3.2).
    pub announce_timeout: u8,
}

impl DomainConfig {
    /// Domain `number` with the defaults of the standard.
    pub const fn new(number: u8, own: SystemIdentity) -> Self {
        let (log_sync, log_announce) = (-3, 0);
        Self { number, own, log_sync, log_announce, sync_timeout: 3, announce_timeout: 3 }
    }
}

/// 2^`log` seconds; `log` is limited to -20 to 20.
pub fn interval(log: i8) -> Duration {
    const SECOND: u64 = 1_000_000_000_000;
    let log = log.clamp(-20, 20);
    Duration::from_ps(if log < 0 { SECOND >> -log } else { SECOND << log })
}

/// The last announcement at a port.
#[derive(Clone, Debug)]
struct Heard {
    vector: PriorityVector,
    path: Vec<ClockIdentity>,
    until: i64,
}

/// The grandmaster's time from a Sync and its Follow_Up.
#[derive(Clone, Copy, Debug)]
struct Received {
    /// Reception of the Sync, in picoseconds of the oscillator.
    at: i64,
    /// The grandmaster's time at `at` is `origin + correction`, in picoseconds.
    origin: i64,
    correction: i64,
    /// The rate of the grandmaster relative to the own oscillator.
    rate: RateRatio,
}

/// A measured offset between the own clock and the grandmaster's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sample {
    /// How far the own clock is ahead, in picoseconds.
    pub offset: i64,
    /// Time of the own clock at the measurement, in picoseconds.
    pub at: i64,
}

/// A domain.
#[derive(Clone, Debug)]
pub struct Domain {
    config: DomainConfig,
    /// Whether the own clock may already be grandmaster.
    ready: bool,
    heard: Vec<Option<Heard>>,
    roles: Vec<Role>,
    master: Option<PriorityVector>,
    /// The Sync without its Follow_Up: its sequence number and stamp.
    sync: Option<(u16, Stamp)>,
    received: Option<Received>,
    /// When the master's time is lost, in picoseconds of the oscillator.
    synced_until: i64,
    next_sync: i64,
    next_announce: i64,
    sequence: u16,
    announces: u16,
}

impl Domain {
    /// A domain of a system with `ports` ports that starts at `now`.
    pub fn new(config: DomainConfig, ports: usize, now: i64) -> Self {
        Self {
            config,
            ready: true,
            heard: vec![None; ports],
            roles: vec![Role::Disabled; ports],
            master: None,
            sync: None,
            received: None,
            synced_until: now,
            next_sync: now,
            next_announce: now,
            sequence: 0,
            announces: 0,
        }
    }

    /// The role of each port.
    pub fn roles(&self) -> &[Role] {
        &self.roles
    }

    /// The grandmaster, if one is known.
    pub fn grandmaster(&self) -> Option<ClockIdentity> {
        self.master.map(|vector| vector.root.clock)
    }

    /// Whether this system is the grandmaster.
    pub fn is_grandmaster(&self) -> bool {
        self.grandmaster() == Some(self.config.own.clock)
    }

    /// Whether the grandmaster's time arrives, or this system is the grandmaster.
    pub fn is_synced(&self, now: i64) -> bool {
        self.is_grandmaster() || now < self.synced_until
    }

    /// Sets whether the own clock may be grandmaster. Initially true.
    pub fn set_ready(&mut self, ready: bool) {
        self.ready = ready;
    }

    /// Drops earlier time stamps, which are invalid after a step of the clock.
    pub fn forget_stamps(&mut self) {
        self.sync = None;
    }

    /// Selects the grandmaster and the roles again. Returns whether the grandmaster has changed.
    pub fn select(&mut self, links: &[LinkDelay], now: i64) -> bool {
        for heard in &mut self.heard {
            heard.take_if(|heard| heard.until <= now);
        }
        // Announcements of a port whose time is lost are outdated (10.3.11, syncReceiptTimeout).
        if let Some(port) = self.slave()
            && self.synced_until <= now
            && self.received.take().is_some()
        {
            self.heard[port] = None;
        }
        let heard: Vec<_> = self.heard.iter().map(|h| h.as_ref().map(|h| h.vector)).collect();
        let able: Vec<_> = links.iter().map(LinkDelay::is_able).collect();
        let before = (self.grandmaster(), self.slave());
        let own = self.config.own;
        let own = if self.ready { own } else { SystemIdentity { priority1: u8::MAX, ..own } };
        (self.master, self.roles) = best_master::roles(own, &heard, &able);
        if self.slave() != before.1 {
            (self.sync, self.received) = (None, None);
        }
        before.0 != self.grandmaster()
    }

    fn slave(&self) -> Option<usize> {
        self.roles.iter().position(|role| *role == Role::Slave)
    }

    /// Handles a message received at a port. Appends messages to send to `out`. Returns a sample
    /// for the servo after a Sync and its Follow_Up.
    pub fn handle(
        &mut self,
        (port, link): (usize, &LinkDelay),
        message: &Message,
        stamp: Stamp,
        out: &mut Vec<(usize, Message)>,
    ) -> Option<Sample> {
        match &message.body {
            Body::Announce { root, steps, path } => {
                self.hear(port, message, (*root, *steps, path), stamp.free);
            }
            Body::Sync if self.slave() == Some(port) => {
                self.sync = Some((message.sequence, stamp));
            }
            Body::FollowUp { origin, rate } if self.slave() == Some(port) => {
                let (_, stamp) = self.sync.take_if(|sync| sync.0 == message.sequence)?;
                let upstream = RateRatio::from_scaled(*rate);
                // The delay is in the partner's time (11.2.14.2.1).
                let delay = upstream.convert(link.delay()?);
                let received = Received {
                    at: stamp.free,
                    origin: *origin,
                    correction: corrected(message.correction).saturating_add(delay),
                    rate: upstream.times(link.ratio()),
                };
                self.received = Some(received);
                self.synced_until =
                    after(stamp.free, self.config.log_sync, self.config.sync_timeout);
                self.send_sync(out);
                let master = received.origin.saturating_add(received.correction);
                return Some(Sample {
                    offset: stamp.steered.saturating_sub(master),
                    at: stamp.steered,
                });
            }
            _ => {}
        }
        None
    }

    fn hear(
        &mut self,
        port: usize,
        message: &Message,
        (root, steps, path): (SystemIdentity, u16, &[ClockIdentity]),
        now: i64,
    ) {
        let own = self.config.own.clock;
        // Announcements that have passed this system are ignored (10.3.11.2.1, qualifyAnnounce).
        if message.source.clock == own || steps >= 255 || path.contains(&own) {
            return;
        }
        let vector = PriorityVector { root, steps, source: message.source };
        let until = after(now, self.config.log_announce, self.config.announce_timeout);
        self.heard[port] = Some(Heard { vector, path: path.to_vec(), until });
    }

    /// Appends the messages that are due at `now` to `out`. Returns the next due time.
    pub fn due(&mut self, now: i64, out: &mut Vec<(usize, Message)>) -> i64 {
        if self.next_announce <= now {
            self.next_announce = after(now, self.config.log_announce, 1);
            self.announce(out);
        }
        if self.next_sync <= now {
            self.next_sync = after(now, self.config.log_sync, 1);
            if self.is_grandmaster() {
                self.send_sync(out);
            }
        }
        let mut next = self.next_sync.min(self.next_announce);
        let aged = self.heard.iter().flatten().map(|heard| heard.until);
        let lost = self.received.map(|_| self.synced_until);
        next = aged.chain(lost).fold(next, i64::min);
        next.max(now + 1)
    }

    fn announce(&mut self, out: &mut Vec<(usize, Message)>) {
        let Some(PriorityVector { root, steps, .. }) = self.master else { return };
        self.announces = self.announces.wrapping_add(1);
        let from = self.slave().and_then(|port| self.heard[port].as_ref());
        let mut path = from.map_or_else(Vec::new, |heard| heard.path.clone());
        path.push(self.config.own.clock);
        let body = Body::Announce { root, steps, path };
        self.to_masters(self.announces, self.config.log_announce, &body, out);
    }

    fn send_sync(&mut self, out: &mut Vec<(usize, Message)>) {
        self.sequence = self.sequence.wrapping_add(1);
        self.to_masters(self.sequence, self.config.log_sync, &Body::Sync, out);
    }

    fn to_masters(
        &self,
        sequence: u16,
        log_interval: i8,
        body: &Body,
        out: &mut Vec<(usize, Message)>,
    ) {
        for (port, _) in self.roles.iter().enumerate().filter(|(_, role)| **role == Role::Master) {
            let (source, domain) = (self.source(port), self.config.number);
            let body = body.clone();
            out.push((
                port,
                Message { domain, correction: 0, source, sequence, log_interval, body },
            ));
        }
    }

    fn source(&self, port: usize) -> PortIdentity {
        PortIdentity { clock: self.config.own.clock, port: port as u16 + 1 }
    }

    /// Makes the Follow_Up for a Sync that left at `stamp`. `adjustment` is the rate of the clock
    /// relative to its oscillator. `None` for an older Sync, or without the grandmaster's time.
    pub fn sent(
        &self,
        port: usize,
        message: &Message,
        stamp: Stamp,
        adjustment: RateRatio,
    ) -> Option<Message> {
        if message.sequence != self.sequence {
            return None;
        }
        let (origin, correction, rate) = match self.received {
            _ if self.is_grandmaster() => {
                let (origin, rest) = split(stamp.steered);
                (origin, rest, adjustment)
            }
            Some(Received { at, origin, correction: since, rate }) => {
                // The residence time, converted to the grandmaster's rate (11.2.15.2.3).
                let residence = rate.convert(stamp.free.saturating_sub(at));
                (origin, correction(since.saturating_add(residence)), rate)
            }
            None => return None,
        };
        let body = Body::FollowUp { origin, rate: rate.scaled() };
        Some(Message { correction, source: self.source(port), body, ..message.clone() })
    }
}

/// The time `count` intervals of 2^`log` seconds after `from`, in picoseconds.
fn after(from: i64, log: i8, count: u8) -> i64 {
    from.saturating_add((interval(log).as_ps() * u64::from(count)) as i64)
}
