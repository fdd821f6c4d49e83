//! The state of a switch's links and their paths, which
//! [`SwitchNode`](crate::SwitchNode) keeps.

use ::switch::tunnel::Cause;
use std::ops::RangeInclusive;
use wire::frame::{HEADER, Hello, Reject};
use wire::{Duration, Instant, earliest};

/// Pause between attempts to connect.
pub const RETRY_PAUSE: Duration = Duration::from_ms(200);
/// Time limit of an attempt to connect. The kernel retries TCP for minutes with
/// growing pauses, and would reach a restarted node too late.
pub const CONNECT_TIMEOUT: Duration = Duration::from_ms(2_000);
/// Bytes of the largest tunnel frame, which a link may send in one turn.
pub const FRAME: usize = (32 << 10) + HEADER;

/// An event of a link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkEvent {
    /// A link came up, with the peer's Hello: enumerate below its port.
    Up(usize, Hello),
    /// The path of a link is lost. The link stays up; an attempt to carry its session on follows.
    Interrupted(usize, Cause),
    /// The session of a link goes on over another path.
    Resumed(usize),
    /// A link went down.
    Down {
        /// The link.
        link: usize,
        /// The cause.
        cause: Cause,
        /// The buses below its port, for
        /// [`HostNode::clear_bus_masters`](crate::HostNode::clear_bus_masters).
        buses: RangeInclusive<u8>,
    },
    /// An attempt failed; another follows.
    Failed {
        /// The link.
        link: usize,
        /// The number of the attempt, as in [`Output::Connect`](crate::switch::Output).
        attempt: usize,
        /// The reason.
        why: String,
        /// The next attempts will fail too, because the peer is incompatible;
        /// such a failure is reported once.
        permanent: bool,
    },
    /// The reply to an echo arrived: the link and the number of the echo.
    Echo(usize, u64),
}

/// The state of the path of a link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Path {
    /// No path; the next attempt starts at this time.
    Waiting(Instant),
    /// Connecting since this time.
    Connecting(Instant),
    /// Connected; the path accepts this many bytes now.
    Open(usize),
    /// Closed; the tunnel has not yet reported this.
    Closed,
    /// No further attempt: this end has sent Goodbye.
    Ended,
}

/// One link.
#[derive(Debug)]
pub(crate) struct Link {
    pub path: Path,
    /// Failed attempts.
    pub failed: usize,
    /// Whether the link is up, with or without a path.
    pub up: bool,
    /// Whether the session has no path.
    pub interrupted: bool,
    /// Why the last attempt failed, if the next attempts will fail for the same reason.
    pub refusal: Option<Cause>,
    /// Why an end refused the other on the present path.
    pub failure: Option<String>,
    /// When the tunnel must be polled.
    pub timer: Option<Instant>,
}

impl Link {
    /// A link whose first attempt starts at once.
    pub(crate) fn new() -> Self {
        let path = Path::Waiting(Instant::ZERO);
        let (up, interrupted, refusal, failure, timer) = (false, false, None, None, None);
        Self { path, failed: 0, up, interrupted, refusal, failure, timer }
    }

    /// When the link must be polled.
    pub(crate) fn timer(&self) -> Option<Instant> {
        let path = match self.path {
            Path::Waiting(at) => Some(at),
            Path::Connecting(since) => Some(since + CONNECT_TIMEOUT),
            Path::Open(_) | Path::Closed => return self.timer,
            Path::Ended => return None,
        };
        // An interrupted session ends at some time, whatever becomes of its path.
        earliest([path, self.timer.filter(|_| self.interrupted)])
    }

    /// Records that the current attempt failed; returns its number.
    pub(crate) fn fail(&mut self, now: Instant) -> usize {
        let attempt = self.failed;
        self.failed = attempt.wrapping_add(1);
        self.path = Path::Waiting(now + RETRY_PAUSE);
        attempt
    }

    /// Handles the loss of a path whose session goes on. Returns the event of `link`, unless the
    /// session had no path before.
    pub(crate) fn interrupt(
        &mut self,
        now: Instant,
        link: usize,
        cause: Cause,
    ) -> Option<LinkEvent> {
        let first = !std::mem::replace(&mut self.interrupted, true);
        // The first attempt is made at once.
        self.path = Path::Waiting(if first { now } else { now + RETRY_PAUSE });
        first.then_some(LinkEvent::Interrupted(link, cause))
    }

    /// Handles the loss of the path because of `cause`; returns the event of `link`. `buses` are
    /// below the link.
    pub(crate) fn lost(
        &mut self,
        now: Instant,
        (link, buses): (usize, RangeInclusive<u8>),
        cause: Cause,
    ) -> Option<LinkEvent> {
        (self.timer, self.interrupted) = (None, false);
        if std::mem::take(&mut self.up) {
            self.path = Path::Waiting(now + RETRY_PAUSE);
            return Some(LinkEvent::Down { link, cause, buses });
        }
        let attempt = self.fail(now);
        let why = cause.to_string();
        use Cause::{ClosedUngreeted, Disconnected, Goodbye, Lost, Rejected, Ungreeted};
        let transient = matches!(
            cause,
            Disconnected
                | Lost
                | Goodbye
                | ClosedUngreeted
                | Ungreeted
                | Rejected(Reject::Interrupted)
        );
        if !transient && self.refusal.as_ref() == Some(&cause) {
            return None;
        }
        self.refusal = (!transient).then_some(cause);
        Some(LinkEvent::Failed { link, attempt, why, permanent: !transient })
    }
}
