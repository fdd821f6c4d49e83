//! The life of a switch's links: what their paths are, and what becomes of
//! them. [`SwitchNode`](crate::SwitchNode) keeps it.

use ::switch::tunnel::Cause;
use std::ops::RangeInclusive;
use wire::frame::{HEADER, Hello};
use wire::{Duration, Instant};

/// Pause between attempts to connect.
pub const RETRY_PAUSE: Duration = Duration::from_ms(200);
/// How long a path may take to connect. A kernel alone would try TCP for
/// minutes, with ever longer pauses, and so miss a node that is back.
pub const CONNECT_TIMEOUT: Duration = Duration::from_ms(2_000);
/// Bytes of the largest frame of a tunnel: what a link may send before the next
/// has its turn.
pub const FRAME: usize = (32 << 10) + HEADER;

/// What the owner of links should know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A link is up, with the far side's greeting: look below its port.
    Up(usize, Hello),
    /// A link is down that was up.
    Down {
        /// Which.
        link: usize,
        /// Why.
        cause: Cause,
        /// The buses below its port, for
        /// [`HostNode::forget_masters`](crate::HostNode::forget_masters).
        buses: RangeInclusive<u8>,
    },
    /// An attempt failed; another follows.
    Failed {
        /// Which link.
        link: usize,
        /// Which attempt, as in [`Output::Connect`](crate::switch::Output).
        attempt: usize,
        /// Why.
        why: String,
        /// It will fail again, for the far side is of another kind; that is
        /// told once.
        permanent: bool,
    },
    /// An echo came back.
    Echo(usize, u64),
}

/// The path of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// None; the next attempt is made then.
    Waiting(Instant),
    /// On its way, since then.
    Connecting(Instant),
    /// The tunnel has it. It takes so many bytes now.
    Open(usize),
    /// It is gone; the tunnel has not said so yet.
    Closed,
    /// Never again: this end has said goodbye.
    Ended,
}

/// One link.
#[derive(Debug)]
pub(crate) struct Link {
    pub path: Path,
    /// Attempts that failed, those on the way not counted.
    pub failed: usize,
    pub up: bool,
    /// Why the last attempt failed, if the next will too.
    pub refusal: Option<Cause>,
    /// When the tunnel wants to be polled.
    pub timer: Option<Instant>,
}

impl Link {
    /// One to be connected at once.
    pub fn new() -> Self {
        let path = Path::Waiting(Instant::ZERO);
        Self { path, failed: 0, up: false, refusal: None, timer: None }
    }

    /// When something is due.
    pub fn timer(&self) -> Option<Instant> {
        match self.path {
            Path::Waiting(at) => Some(at),
            Path::Connecting(since) => Some(since + CONNECT_TIMEOUT),
            Path::Open(_) | Path::Closed => self.timer,
            Path::Ended => None,
        }
    }

    /// The attempt of now has failed; yields its number.
    pub fn fail(&mut self, now: Instant) -> usize {
        let attempt = self.failed;
        self.failed = attempt.wrapping_add(1);
        self.path = Path::Waiting(now + RETRY_PAUSE);
        attempt
    }

    /// The tunnel has given the path up because of `cause`: what is to be said
    /// of link `link`, above `buses`.
    pub fn lost(
        &mut self,
        now: Instant,
        (link, buses): (usize, RangeInclusive<u8>),
        cause: Cause,
    ) -> Option<LinkEvent> {
        self.timer = None;
        if std::mem::take(&mut self.up) {
            self.path = Path::Waiting(now + RETRY_PAUSE);
            return Some(LinkEvent::Down { link, cause, buses });
        }
        let attempt = self.fail(now);
        let why = cause.to_string();
        let transient = matches!(cause, Cause::Disconnected | Cause::Lost | Cause::Goodbye);
        if !transient && self.refusal.as_ref() == Some(&cause) {
            return None;
        }
        self.refusal = (!transient).then_some(cause);
        Some(LinkEvent::Failed { link, attempt, why, permanent: !transient })
    }
}
