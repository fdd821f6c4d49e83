//! Verification that the neighbour supports fragments (IEEE 802.3-2022, 99.4.3, figure 99-8).
//!
//! The port sends a verify packet and waits for a respond packet, up to `attempts` times. The port
//! preempts no frame before it has received a respond packet.

use std::ops::RangeInclusive;
use wire::{Duration, Instant};

/// How a port verifies that its neighbour supports fragments.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Whether the port verifies (the inverse of disableVerify, 99.4.7.3). If false, the port
    /// preempts without verification.
    pub enabled: bool,
    /// How long the port waits for each respond packet, within [`Config::TIMES`] (30.14.1.6,
    /// aMACMergeVerifyTime).
    pub time: Duration,
    /// The most verify packets sent; at least 1 (verifyLimit, 99.4.7.3).
    pub attempts: u32,
}

impl Config {
    /// The range of [`Config::time`]: 1 to 128 ms (30.14.1.6).
    pub const TIMES: RangeInclusive<Duration> = Duration::from_ms(1)..=Duration::from_ms(128);
}

impl Default for Config {
    /// With verification, three attempts of 10 ms.
    fn default() -> Self {
        Self { enabled: true, time: Duration::from_ms(10), attempts: 3 }
    }
}

/// The state of verification (30.14.1.2, aMACMergeStatusVerify).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Nothing was sent yet.
    Initial,
    /// The port waits for the respond packet, or will send another verify packet.
    Verifying,
    /// The neighbour has answered.
    Succeeded,
    /// The neighbour has not answered. Verification starts again only after the link was down.
    Failed,
    /// The port does not verify.
    Disabled,
}

/// An action of the port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a verify packet now.
    SendVerify,
    /// Send a respond packet now.
    SendRespond,
    /// Do nothing until this time or until an input. `None`: only an input matters.
    Timeout(Option<Instant>),
}

/// The verification of a port at which preemption is enabled (pEnable). A port that reassembles
/// frames but never cuts them also needs a `Verification`, to answer. It sets [`Config::enabled`]
/// to false and ignores [`Verification::is_active`].
///
/// Verify and respond packets leave after express frames and before preemptable frames. Call
/// [`Verification::poll`] when the port can send one, because the waiting time starts with the
/// packet (figure 99-8, WAIT_FOR_RESPONSE).
#[derive(Clone, Debug)]
pub struct Verification {
    config: Config,
    is_up: bool,
    /// Whether a received verify packet has no answer yet (send_r).
    owes_respond: bool,
    sent: u32,
    /// When the last attempt ends.
    until: Option<Instant>,
    status: Status,
}

impl Verification {
    /// The verification of a port whose link is up.
    ///
    /// # Panics
    /// If the time is not in [`Config::TIMES`] or there are no attempts.
    pub fn new(config: Config) -> Self {
        assert!(Config::TIMES.contains(&config.time), "verify time of {}", config.time);
        assert!(config.attempts > 0, "verification without attempts");
        let status = Status::Disabled;
        let mut new =
            Self { config, is_up: true, owes_respond: false, sent: 0, until: None, status };
        new.reset();
        new
    }

    /// The state of verification.
    pub fn status(&self) -> Status {
        self.status
    }

    /// Whether the port may preempt (pActive, 99.4.7.3).
    pub fn is_active(&self) -> bool {
        matches!(self.status, Status::Succeeded | Status::Disabled)
    }

    /// Whether the link is up.
    pub fn is_link_up(&self) -> bool {
        self.is_up
    }

    /// Records that the link is down. This deletes the result of verification.
    pub fn link_down(&mut self) {
        self.is_up = false;
        self.reset();
    }

    /// Records that the link is up. Verification starts.
    pub fn link_up(&mut self) {
        self.is_up = true;
    }

    /// Records a received verify packet. After several verify packets the port still owes only one
    /// respond packet. Ignored while the link is down.
    pub fn handle_verify(&mut self) {
        self.owes_respond = self.is_up;
    }

    /// Records a received respond packet. Ignored unless the port waits for one.
    pub fn handle_respond(&mut self) {
        if self.status == Status::Verifying {
            self.status = Status::Succeeded;
            self.until = None;
        }
    }

    /// Whether the port will send packets, now or later, if the neighbour does not answer.
    pub fn is_pending(&self) -> bool {
        let asks = matches!(self.status, Status::Initial | Status::Verifying);
        self.is_up && (self.owes_respond || asks)
    }

    /// Whether a packet is due at `now`.
    pub fn is_due(&self, now: Instant) -> bool {
        let waits =
            self.sent == self.config.attempts || self.until.is_some_and(|until| now < until);
        self.is_pending() && (self.owes_respond || !waits)
    }

    /// The action at `now`. A respond packet precedes a verify packet (figure 99-5).
    pub fn poll(&mut self, now: Instant) -> Output {
        if !self.is_up {
            return Output::Timeout(None);
        }
        if std::mem::take(&mut self.owes_respond) {
            return Output::SendRespond;
        }
        if let Some(until) = self.until.filter(|&until| now < until) {
            return Output::Timeout(Some(until));
        }
        if !matches!(self.status, Status::Initial | Status::Verifying) {
            return Output::Timeout(None);
        }
        if self.sent == self.config.attempts {
            self.status = Status::Failed;
            self.until = None;
            return Output::Timeout(None);
        }
        self.sent += 1;
        self.until = Some(now + self.config.time);
        self.status = Status::Verifying;
        Output::SendVerify
    }

    fn reset(&mut self) {
        self.owes_respond = false;
        self.sent = 0;
        self.until = None;
        self.status = if self.config.enabled { Status::Initial } else { Status::Disabled };
    }
}
