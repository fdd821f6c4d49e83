//! A time-aware system: its links, its domains, and the servo of its clock.

use std::collections::VecDeque;

use wire::Duration;

use super::best_master::{ClockIdentity, PortIdentity, Role};
use super::domain::{Domain, DomainConfig, Sample, interval};
use super::link_delay::LinkDelay;
use super::message::{Body, Message};
use super::oscillator::Stamp;
use super::ratio::RateRatio;
use super::servo::{Correction, Servo, ServoConfig};
use crate::LocalTime;

/// The parameters of a time-aware system.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeConfig {
    /// The clock identity.
    pub clock: ClockIdentity,
    /// The domains: one, or with hot standby (IEEE 802.1ASdm) the primary and the secondary.
    pub domains: Vec<DomainConfig>,
    /// log2 of the seconds between two Pdelay requests: 0 by default (11.5.2.2).
    pub log_delay: i8,
    /// meanLinkDelayThresh: 800 ns over copper (11.2.2, table 11-1).
    pub most_delay: Duration,
    /// The servo of the steered clock.
    pub servo: ServoConfig,
}

/// An action that the owner of a [`Node`] carries out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a message at a port, counted from 0. Report the sending time of an event message with
    /// [`Node::sent`].
    Send {
        /// The port.
        port: usize,
        /// The message.
        message: Message,
    },
    /// Set the frequency of the clock relative to the oscillator, in parts per 10^12.
    Frequency(i64),
    /// Step the clock by this many picoseconds.
    Step(i64),
    /// Do nothing until this time of the oscillator or until an input.
    Timeout(LocalTime),
}

/// A time-aware system. All `now` are times of its free-running oscillator.
#[derive(Clone, Debug)]
pub struct Node {
    config: NodeConfig,
    links: Vec<LinkDelay>,
    domains: Vec<Domain>,
    /// Index of the domain that the clock follows.
    using: usize,
    servo: Servo,
    /// Whether the clock has followed the first domain at least once.
    followed: bool,
    adjustment: RateRatio,
    next_request: i64,
    out: VecDeque<Output>,
    last: Option<Sample>,
}

impl Node {
    /// A system with `ports` ports that has just started.
    pub fn new(config: NodeConfig, ports: usize, now: LocalTime) -> Self {
        let now = now.as_ps();
        let link = |port| {
            let own = PortIdentity { clock: config.clock, port: port as u16 + 1 };
            LinkDelay::new(own, config.most_delay)
        };
        Self {
            links: (0..ports).map(link).collect(),
            domains: config.domains.iter().map(|domain| Domain::new(*domain, ports, now)).collect(),
            using: 0,
            servo: Servo::new(config.servo),
            followed: false,
            adjustment: RateRatio::default(),
            next_request: now,
            out: VecDeque::new(),
            last: None,
            config,
        }
    }

    /// The domain that the clock follows.
    pub fn domain(&self) -> &Domain {
        &self.domains[self.using]
    }

    /// Index of the domain that the clock follows, in the configuration.
    pub fn using(&self) -> usize {
        self.using
    }

    /// The role of a port in the domain that the clock follows.
    pub fn role(&self, port: usize) -> Role {
        self.domain().roles()[port]
    }

    /// The link delay measurement at a port, counted from 0.
    pub fn link(&self, port: usize) -> &LinkDelay {
        &self.links[port]
    }

    /// Whether the clock follows a grandmaster or belongs to the grandmaster. Otherwise the clock
    /// keeps its last frequency (holdover).
    pub fn is_synced(&self, now: LocalTime) -> bool {
        let domain = self.domain();
        domain.is_grandmaster() || domain.is_synced(now.as_ps()) && self.servo.is_locked()
    }

    /// Whether this system is the grandmaster, or the servo has settled since the grandmaster was
    /// selected.
    pub fn is_settled(&self) -> bool {
        self.domain().is_grandmaster() || self.servo.is_settled()
    }

    /// Drops earlier time stamps, which are invalid after the owner has set the clock.
    pub fn clock_was_set(&mut self) {
        self.domains.iter_mut().for_each(Domain::forget_stamps);
    }

    /// Handles a message received at a port. `stamp` is the reception time.
    pub fn handle(&mut self, port: usize, message: &Message, stamp: Stamp) {
        let link = &mut self.links[port];
        let answer = link.handle(message, stamp.free);
        self.out.extend(answer.map(|message| Output::Send { port, message }));
        let Some(number) = self.number_of(message) else { return };
        let mut out = Vec::new();
        let link = (port, &self.links[port]);
        let sample = self.domains[number].handle(link, message, stamp, &mut out);
        self.send(out);
        self.select(stamp.free);
        if let Some(sample) = sample.filter(|_| number == self.using) {
            self.steer(sample);
        }
    }

    /// Records that an event message left a port at `stamp`.
    pub fn sent(&mut self, port: usize, message: &Message, stamp: Stamp) {
        let follows = match message.body {
            Body::Sync => self.number_of(message).and_then(|number| {
                self.domains[number].sent(port, message, stamp, self.adjustment)
            }),
            _ => self.links[port].sent(message, stamp.free),
        };
        self.out.extend(follows.map(|message| Output::Send { port, message }));
    }

    /// The next action. Call this until it returns [`Output::Timeout`].
    pub fn poll(&mut self, now: LocalTime) -> Output {
        if let Some(output) = self.out.pop_front() {
            return output;
        }
        let now = now.as_ps();
        if self.next_request <= now {
            self.next_request = now + interval(self.config.log_delay).as_ps() as i64;
            for (port, link) in self.links.iter_mut().enumerate() {
                let message = link.request(self.config.log_delay);
                self.out.push_back(Output::Send { port, message });
            }
        }
        self.select(now);
        let mut out = Vec::new();
        let next = self.domains.iter_mut().map(|domain| domain.due(now, &mut out));
        let next = next.fold(self.next_request, i64::min);
        self.send(out);
        self.out.pop_front().unwrap_or(Output::Timeout(LocalTime::from_ps(next)))
    }

    fn number_of(&self, message: &Message) -> Option<usize> {
        self.config.domains.iter().position(|domain| domain.number == message.domain)
    }

    fn send(&mut self, messages: Vec<(usize, Message)>) {
        let send = |(port, message)| Output::Send { port, message };
        self.out.extend(messages.into_iter().map(send));
    }

    /// Selects the grandmasters again, and the domain to follow: the primary while it is synced,
    /// otherwise the secondary (hot standby, IEEE 802.1ASdm, clause 17).
    fn select(&mut self, now: i64) {
        let before = (self.using, self.domain().grandmaster());
        // A secondary grandmaster starts only after its clock has followed the primary domain, so
        // that both domains have the same time.
        self.followed |= self.servo.is_locked() && self.domains[0].is_synced(now);
        self.domains[1..].iter_mut().for_each(|domain| domain.set_ready(self.followed));
        for domain in &mut self.domains {
            domain.select(&self.links, now);
        }
        let synced = self.domains.iter().position(|domain| domain.is_synced(now));
        self.using = synced.unwrap_or(self.using);
        let after = (self.using, self.domain().grandmaster());
        // Another grandmaster may have another time (linuxptp also resets the servo); both domains
        // of hot standby have the same time.
        if before.0 == after.0 && before.1 != after.1 {
            self.servo.reset();
        }
    }

    fn steer(&mut self, sample: Sample) {
        self.last = Some(sample);
        let (ppt, step) = match self.servo.sample(sample.offset, sample.at) {
            Correction::None => return,
            Correction::Frequency(ppt) => (ppt, None),
            Correction::Step(ppt, ps) => (ppt, Some(ps)),
        };
        self.adjustment = RateRatio::from_ppt(ppt);
        self.out.push_back(Output::Frequency(ppt));
        if let Some(ps) = step {
            self.clock_was_set();
            self.out.push_back(Output::Step(ps));
        }
    }
}

/// Addresses and EtherType: frames of 802.1AS have no tag (11.3.3).
const FRAME_HEADER: usize = 14;

/// The frame of a message: addresses, EtherType, message.
pub fn frame(source: [u8; 6], message: &Message) -> Vec<u8> {
    let message = message.encode();
    let mut frame = Vec::with_capacity(FRAME_HEADER + message.len());
    frame.extend(super::message::ADDRESS);
    frame.extend(source);
    frame.extend(super::message::ETHER_TYPE.to_be_bytes());
    frame.extend(message);
    frame
}

/// The message in a frame. `None` if the frame has no valid message of 802.1AS.
pub fn message_of(frame: &[u8]) -> Option<Message> {
    let (header, message) = frame.split_first_chunk::<FRAME_HEADER>()?;
    let ours = header[..6] == super::message::ADDRESS
        && header[12..] == super::message::ETHER_TYPE.to_be_bytes();
    ours.then(|| Message::decode(message).ok())?
}
