//! Limits the lines that a host node reports about links and VMMs, and counts further events.

use super::{EndpointChange, HostEvent};
use crate::limiter::EventLimiter;

/// Lines of one kind before further ones are only counted.
const FIRST: u32 = 20;

/// The kinds of events, each limited separately.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// VMMs of an endpoint connect and disconnect.
    Vmm(usize),
    /// The link of a port.
    Link(usize),
    /// An endpoint is attached or detached.
    Endpoint(usize),
    /// Lost data of an endpoint.
    Contents(usize),
    /// Devices behind a port that cannot be used.
    Changed(usize),
}

/// The limiter of host events.
pub(super) type HostEventLimiter = EventLimiter<Kind, HostEvent>;

/// The kind of an event that peers or clients can cause repeatedly, with its initial limit.
pub(super) fn kind(event: &HostEvent) -> Option<(Kind, u32)> {
    let kind = match *event {
        HostEvent::VmmAttached(number) | HostEvent::VmmGone(number, _) => Kind::Vmm(number),
        HostEvent::LinkDown(port, _)
        | HostEvent::LinkInterrupted(port, _)
        | HostEvent::LinkResumed(port, _)
        | HostEvent::PathLost(port, ..)
        | HostEvent::PathUp(port, _)
        | HostEvent::LinkUp(port, _)
        | HostEvent::Refused(port, _) => Kind::Link(port),
        HostEvent::Endpoint(number, EndpointChange::Reattached | EndpointChange::Changed(_)) => {
            Kind::Endpoint(number)
        }
        HostEvent::Endpoint(number, _) => Kind::Contents(number),
        HostEvent::Unusable(port, _) => Kind::Changed(port),
        HostEvent::Offered(..)
        | HostEvent::DuplicateSerial(..)
        | HostEvent::Report(_)
        | HostEvent::Status(..)
        | HostEvent::Suppressed(_) => return None,
    };
    Some((kind, FIRST))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pcie::enumerate::ContentsChange;
    use switch::tunnel::Cause;
    use wire::{Duration, Instant};

    #[test]
    fn flood_of_one_endpoint_does_not_hide_events_of_others() {
        let (mut lines, mut emitted) = (HostEventLimiter::new(HostEvent::Suppressed), Vec::new());
        let mut now = Instant::ZERO;
        // For an hour, clients of one endpoint and its link connect and disconnect, and the device
        // changes.
        for second in 0..3600 {
            now += Duration::from_ms(1_000);
            lines.report_suppressed(now, &mut |event| emitted.push(event));
            for _ in 0..10 {
                for event in [
                    HostEvent::VmmAttached(1),
                    HostEvent::VmmGone(1, "it closed".into()),
                    HostEvent::LinkUp(1, None),
                    HostEvent::Endpoint(0, EndpointChange::Reattached),
                    HostEvent::Unusable(1, "no device found".into()),
                ] {
                    lines.pass(now, kind(&event), event, &mut |event| emitted.push(event));
                }
            }
            if second % 600 == 599 {
                for event in [
                    HostEvent::VmmGone(0, "it closed".into()),
                    HostEvent::LinkDown(0, Cause::Lost),
                    HostEvent::Unusable(0, "no device found".into()),
                    HostEvent::Endpoint(
                        0,
                        EndpointChange::NewContents(ContentsChange::Incarnation),
                    ),
                    HostEvent::Endpoint(
                        1,
                        EndpointChange::ReattachedWithNewContents(ContentsChange::OtherHost),
                    ),
                ] {
                    let before = emitted.len();
                    lines.pass(now, kind(&event), event, &mut |event| emitted.push(event));
                    assert_eq!(emitted.len(), before + 1, "second {second}");
                }
            }
        }
        assert!(emitted.len() < 250, "{} lines", emitted.len());
    }
}
