//! The state of a switch's links and their paths, which
//! [`SwitchNode`](crate::SwitchNode) keeps.

use ::switch::tunnel::Cause;
use std::ops::RangeInclusive;
use wire::frame::{HEADER, Hello};
use wire::{Duration, Instant};

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
    pub up: bool,
    /// Why the last attempt failed, if the next attempts will fail for the same reason.
    pub refusal: Option<Cause>,
    /// Why the present path failed.
    pub failure: Option<String>,
    /// When the tunnel must be polled.
    pub timer: Option<Instant>,
}

impl Link {
    /// A link whose first attempt starts at once.
    pub(crate) fn new() -> Self {
        let path = Path::Waiting(Instant::ZERO);
        Self { path, failed: 0, up: false, refusal: None, failure: None, timer: None }
    }

    /// When the link must be polled.
    pub(crate) fn timer(&self) -> Option<Instant> {
        match self.path {
            Path::Waiting(at) => Some(at),
            Path::Connecting(since) => Some(since + CONNECT_TIMEOUT),
            Path::Open(_) | Path::Closed => self.timer,
            Path::Ended => None,
        }
    }

    /// Records that the current attempt failed; returns its number.
    pub(crate) fn fail(&mut self, now: Instant) -> usize {
        let attempt = self.failed;
        self.failed = attempt.wrapping_add(1);
        self.path = Path::Waiting(now + RETRY_PAUSE);
        attempt
    }

    /// Handles the loss of the path because of `cause`; returns the event of `link`. `buses` are
    /// below the link.
    pub(crate) fn lost(
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
        use Cause::{ClosedUngreeted, Disconnected, Goodbye, Lost, Ungreeted};
        let transient =
            matches!(cause, Disconnected | Lost | Goodbye | ClosedUngreeted | Ungreeted);
        if !transient && self.refusal.as_ref() == Some(&cause) {
            return None;
        }
        self.refusal = (!transient).then_some(cause);
        Some(LinkEvent::Failed { link, attempt, why, permanent: !transient })
    }
}
