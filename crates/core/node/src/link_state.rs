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
    /// A link and one of its paths, which is lost; another one carries the link.
    PathLost(usize, usize, Cause),
    /// A link and a further path that carries it.
    PathUp(usize, usize),
    /// A link and the path that has taken over from a silent or lost one.
    FailedOver(usize, usize),
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

/// One path of a link.
#[derive(Debug)]
pub(crate) struct Lane {
    pub path: Path,
    /// Failed attempts.
    pub failed: usize,
    /// Why an end refused the other on the present path.
    pub failure: Option<String>,
    /// Why the path was lost last, or could not join, since it carried the link.
    pub lost: Option<Cause>,
}

/// One link.
#[derive(Debug)]
pub(crate) struct Link {
    /// One or two. While the link is down, one of them connects at a time.
    pub lanes: Vec<Lane>,
    /// The lane that connects while the link is down.
    turn: usize,
    /// Whether the link is up, with or without a path.
    pub up: bool,
    /// Whether the session has no path.
    pub interrupted: bool,
    /// Whether the session ends when the far side's lease does.
    pub over: bool,
    /// Whether the session uses several paths at the same time.
    pub several: bool,
    /// Why the last attempt failed, if the next attempts will fail for the same reason.
    pub refusal: Option<Cause>,
    /// When the tunnel must be polled.
    pub timer: Option<Instant>,
}

impl Link {
    /// A link of `lanes` paths, whose first attempt starts at once.
    pub(crate) fn new(lanes: usize) -> Self {
        let path = Path::Waiting(Instant::ZERO);
        let lane = || Lane { path, failed: 0, failure: None, lost: None };
        Self {
            lanes: std::iter::repeat_with(lane).take(lanes).collect(),
            turn: 0,
            up: false,
            interrupted: false,
            over: false,
            several: false,
            refusal: None,
            timer: None,
        }
    }

    /// Whether a lane without a path may connect now.
    pub(crate) fn may_connect(&self, lane: usize) -> bool {
        match (self.up, self.interrupted) {
            (false, _) => lane == self.turn,
            (true, true) => !self.over,
            (true, false) => self.several,
        }
    }

    /// When the link must be polled.
    pub(crate) fn timer(&self) -> Option<Instant> {
        let of_lane = |(number, lane): (usize, &Lane)| match lane.path {
            Path::Waiting(at) => Some(at).filter(|_| self.may_connect(number)),
            Path::Connecting(since) => Some(since + CONNECT_TIMEOUT),
            Path::Open(_) | Path::Closed => self.timer,
            Path::Ended => None,
        };
        let lanes = earliest(self.lanes.iter().enumerate().map(of_lane));
        // An interrupted session ends at some time, whatever becomes of its paths.
        earliest([lanes, self.timer.filter(|_| self.interrupted)])
    }

    /// Records that the current attempt of a lane failed; returns its number.
    pub(crate) fn fail(&mut self, now: Instant, lane: usize) -> usize {
        let count = self.lanes.len();
        let failing = &mut self.lanes[lane];
        let attempt = failing.failed;
        failing.failed = attempt.wrapping_add(1);
        failing.path = Path::Waiting(now + RETRY_PAUSE);
        self.turn = (lane + 1) % count;
        attempt
    }

    /// Handles the loss of a path whose session goes on; `interrupted` states that it has no other.
    /// Returns the event of `link`.
    pub(crate) fn path_lost(
        &mut self,
        now: Instant,
        (link, lane): (usize, usize),
        interrupted: bool,
        cause: Cause,
    ) -> Option<LinkEvent> {
        let first = interrupted && !std::mem::replace(&mut self.interrupted, interrupted);
        // The first attempt is made at once.
        self.lanes[lane].path = Path::Waiting(if first { now } else { now + RETRY_PAUSE });
        match (first, interrupted) {
            (true, _) => Some(LinkEvent::Interrupted(link, cause)),
            (false, true) => None,
            // Attempts that fail in the same way are reported once.
            (false, false) if self.lanes[lane].lost.as_ref() == Some(&cause) => None,
            (false, false) => {
                self.lanes[lane].lost = Some(cause.clone());
                Some(LinkEvent::PathLost(link, lane, cause))
            }
        }
    }

    /// Handles the loss of the path because of `cause`; returns the event of `link`. `buses` are
    /// below the link.
    pub(crate) fn lost(
        &mut self,
        now: Instant,
        (link, lane): (usize, usize),
        buses: RangeInclusive<u8>,
        cause: Cause,
    ) -> Option<LinkEvent> {
        (self.timer, self.interrupted, self.over, self.several) = (None, false, false, false);
        if std::mem::take(&mut self.up) {
            for lane in &mut self.lanes {
                lane.path = Path::Waiting(now + RETRY_PAUSE);
            }
            return Some(LinkEvent::Down { link, cause, buses });
        }
        let attempt = self.fail(now, lane);
        let why = cause.to_string();
        use Cause::{ClosedUngreeted, Disconnected, Goodbye, Lost, Rejected, Ungreeted};
        let transient = matches!(
            cause,
            Disconnected
                | Lost
                | Goodbye
                | ClosedUngreeted
                | Ungreeted
                | Rejected(Reject::Interrupted | Reject::NoLink)
        );
        if !transient && self.refusal.as_ref() == Some(&cause) {
            return None;
        }
        self.refusal = (!transient).then_some(cause);
        Some(LinkEvent::Failed { link, attempt, why, permanent: !transient })
    }
}
