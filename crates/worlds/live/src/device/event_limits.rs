//! Limits the lines that a device node reports about its peers, and counts further events.

use super::DeviceEvent;
use crate::limiter::EventLimiter;
use std::collections::VecDeque;
use wire::Instant;
use wire::frame::MoveStatus;

/// Lines about rejected peers and Move requests before further ones are only counted.
const REJECTIONS: u32 = 5;
/// Lines about hosts that connect and disconnect, and about the attached function, before further
/// ones are only counted.
const CHANGES: u32 = 20;
/// Number of rejected peers that are remembered.
const MAX_KNOWN: usize = 16;

/// The kinds of events, each limited separately.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    Rejected,
    /// A repeated rejection of the same peer: a waiting host tries five times per second.
    RejectedAgain,
    Move,
    Authenticated,
    Host,
    Attached,
    Fault,
}

#[derive(Debug)]
pub(super) struct EventLimits {
    /// The limiter of device events.
    pub events: EventLimiter<Kind, DeviceEvent>,
    /// Rejected peers, with the cause, since the last change of the host.
    known: VecDeque<String>,
    /// Rejections so far.
    turned_away: u64,
    /// Numbers of moves granted and refused.
    moves: [u64; 2],
}

impl Default for EventLimits {
    fn default() -> Self {
        let events = EventLimiter::new(DeviceEvent::Suppressed);
        Self { events, known: VecDeque::new(), turned_away: 0, moves: [0; 2] }
    }
}

impl EventLimits {
    /// Reports an event, or counts it.
    pub(super) fn pass(
        &mut self,
        now: Instant,
        event: DeviceEvent,
        emit: &mut impl FnMut(DeviceEvent),
    ) {
        let limit = match &event {
            DeviceEvent::TurnedAway(peer, cause) => {
                self.turned_away += 1;
                match self.is_known(format!("{} {cause}", peer.address.machine())) {
                    true => Some((Kind::RejectedAgain, 0)),
                    false => Some((Kind::Rejected, REJECTIONS)),
                }
            }
            DeviceEvent::Moved { answer, .. } => {
                self.moves[usize::from(answer.status != MoveStatus::Done)] += 1;
                Some((Kind::Move, REJECTIONS))
            }
            DeviceEvent::Authenticated(_) => Some((Kind::Authenticated, CHANGES)),
            DeviceEvent::HostUp(_)
            | DeviceEvent::HostInterrupted(..)
            | DeviceEvent::HostResumed(_)
            | DeviceEvent::HostPathLost(..)
            | DeviceEvent::HostPathUp(_)
            | DeviceEvent::HostFailedOver(_)
            | DeviceEvent::HostDown(..) => {
                self.known.clear();
                Some((Kind::Host, CHANGES))
            }
            DeviceEvent::Attached(_) => Some((Kind::Attached, CHANGES)),
            DeviceEvent::Fault(_) => Some((Kind::Fault, CHANGES)),
            DeviceEvent::Suppressed(_) | DeviceEvent::Report(_) | DeviceEvent::Status(..) => None,
        };
        self.events.pass(now, limit, event, emit);
    }

    /// Whether this peer was rejected before for this cause; remembers the peer.
    fn is_known(&mut self, peer: String) -> bool {
        if self.known.contains(&peer) {
            return true;
        }
        self.known.truncate(MAX_KNOWN - 1);
        self.known.push_front(peer);
        false
    }

    /// The counters of peers by name; `silent` ones closed without a Hello.
    pub(super) fn counts(&self, silent: u64) -> [(&'static str, u64); 4] {
        let [granted, refused] = self.moves;
        [
            ("turned_away", self.turned_away),
            ("without_greeting", silent),
            ("moves_granted", granted),
            ("moves_refused", refused),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::attached::Notice;
    use crate::net::{Address, Remote};
    use switch::tunnel::Cause;
    use wire::Duration;
    use wire::frame::Reject;

    fn peer(host: u8) -> Remote {
        Address::from(std::net::SocketAddr::from(([192, 0, 2, host], 5000))).into()
    }

    fn away(host: u8, cause: Cause) -> DeviceEvent {
        DeviceEvent::TurnedAway(peer(host), cause)
    }

    /// The reported events of `events`, which occur at intervals of `every`.
    fn emitted(
        every: Duration,
        events: impl Iterator<Item = DeviceEvent>,
    ) -> (Vec<DeviceEvent>, EventLimits) {
        let (mut limits, mut emitted, mut now) =
            (EventLimits::default(), Vec::new(), Instant::ZERO);
        for event in events {
            now += every;
            limits.events.report_suppressed(now, &mut |event| emitted.push(event));
            limits.pass(now, event, &mut |event| emitted.push(event));
        }
        (emitted, limits)
    }

    fn counted(emitted: &[DeviceEvent]) -> u64 {
        let count = |event: &DeviceEvent| match event {
            DeviceEvent::Suppressed(rest) => rest.count,
            _ => 1,
        };
        emitted.iter().map(count).sum()
    }

    #[test]
    fn a_host_that_waits_is_reported_once_and_then_counted() {
        let busy = || away(1, Cause::Rejected(Reject::Busy));
        // A minute, and a little more for the last report.
        let (emitted, limits) = emitted(Duration::from_ms(200), (0..320).map(|_| busy()));
        assert!(matches!(emitted[0], DeviceEvent::TurnedAway(..)));
        assert!(emitted[1..].iter().all(|event| matches!(event, DeviceEvent::Suppressed(_))));
        assert_eq!(emitted.len(), 7, "{emitted:?}");
        assert_eq!(limits.turned_away, 320);
        assert!(counted(&emitted) >= 310);
    }

    #[test]
    fn alternating_rejections_are_reported_in_few_lines() {
        let events = (0..10_000u32).map(|n| {
            let cause =
                if n % 2 == 0 { Cause::Lost } else { Cause::Rejected(Reject::Group(Some((1, 2)))) };
            away((n % 200) as u8, cause)
        });
        let (emitted, limits) = emitted(Duration::from_ms(1), events);
        // Five, and then one with each report of suppressed events.
        assert!(emitted.len() <= 5 + 2 * 4, "{} lines", emitted.len());
        assert_eq!(limits.turned_away, 10_000);
        let last = emitted.iter().rev().find_map(|event| match event {
            DeviceEvent::Suppressed(rest) => Some(&rest.last),
            _ => None,
        });
        assert!(matches!(**last.expect("the rest"), DeviceEvent::TurnedAway(..)));
    }

    #[test]
    fn hosts_that_wait_do_not_hide_a_stranger() {
        let waits = |n: u32| away((n % 2) as u8, Cause::Rejected(Reject::Group(Some((1, 2)))));
        let stranger = || away(9, Cause::UnknownProtocol(b"GET /".to_vec()));
        // Two of them for ten minutes, and at the end one line about a stranger.
        let events = (0..6000).map(waits).chain([stranger(), stranger()]);
        let (emitted, _) = emitted(Duration::from_ms(100), events);
        let is_stranger = |event: &DeviceEvent| {
            matches!(event, DeviceEvent::TurnedAway(_, Cause::UnknownProtocol(_)))
        };
        assert_eq!(emitted.iter().filter(|event| is_stranger(event)).count(), 1, "{emitted:?}");
        assert!(emitted.len() < 20, "{} lines", emitted.len());
    }

    #[test]
    fn reconnecting_hosts_are_reported_in_few_lines() {
        let events = (0..10_000).map(|n| match n % 2 {
            0 => DeviceEvent::HostUp(peer(1)),
            _ => DeviceEvent::HostDown(Some(peer(1)), Cause::Goodbye),
        });
        let (emitted, _) = emitted(Duration::from_ms(1), events);
        assert!((21..=28).contains(&emitted.len()), "{} lines", emitted.len());
    }

    #[test]
    fn hosts_that_come_and_go_do_not_hide_what_happens_to_the_media() {
        let events = (0..10_000).map(|_| DeviceEvent::HostUp(peer(1)));
        let lost = DeviceEvent::Attached(Notice::Warning("disk.img has no record".to_owned()));
        let (emitted, _) = emitted(Duration::from_ms(1), events.chain([lost]));
        assert!(matches!(emitted.last(), Some(DeviceEvent::Attached(_))), "{emitted:?}");
    }
}
