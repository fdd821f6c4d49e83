//! What a host node tells of links and VMMs that come and go: not more lines
//! than somebody can read, and the number of the rest.

use super::{HostEvent, News};
use crate::limiter::Kinds;

/// Lines of one kind before they are only counted.
const FIRST: u32 = 20;

/// Lines of one kind take no place from those of another: who makes a flood of
/// them hides nothing but its own.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// VMMs of an endpoint.
    Vmm(usize),
    /// The link of a port.
    Link(usize),
    /// An endpoint that is attached again, or not.
    Endpoint(usize),
    /// Data of an endpoint that were lost.
    Contents(usize),
    /// What is behind a port cannot be used.
    Changed(usize),
}

/// What is told of events, see the module.
pub(super) type HostLines = Kinds<Kind, HostEvent>;

/// The kind of an event that others can cause again and again.
pub(super) fn kind(event: &HostEvent) -> Option<(Kind, u32)> {
    let kind = match *event {
        HostEvent::VmmAttached(number) | HostEvent::VmmGone(number, _) => Kind::Vmm(number),
        HostEvent::LinkDown(port, _) | HostEvent::LinkUp(port) | HostEvent::Refused(port, _) => {
            Kind::Link(port)
        }
        HostEvent::Endpoint(number, News::Back | News::Changed(_)) => Kind::Endpoint(number),
        HostEvent::Endpoint(number, _) => Kind::Contents(number),
        HostEvent::Changed(port, _) => Kind::Changed(port),
        HostEvent::Offered(..)
        | HostEvent::Twins(..)
        | HostEvent::Report(_)
        | HostEvent::More(_) => return None,
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
    fn no_flood_hides_what_happens_to_another_endpoint_or_its_data() {
        let (mut lines, mut told) = (HostLines::new(HostEvent::More), Vec::new());
        let mut now = Instant::ZERO;
        // An hour of clients of one endpoint, of a link that comes and goes,
        // and of what is behind it.
        for second in 0..3600 {
            now += Duration::from_ms(1_000);
            lines.tell_rest(now, &mut |event| told.push(event));
            for _ in 0..10 {
                for event in [
                    HostEvent::VmmAttached(1),
                    HostEvent::VmmGone(1, "it closed".into()),
                    HostEvent::LinkUp(1),
                    HostEvent::Endpoint(0, News::Back),
                    HostEvent::Changed(1, "nothing there".into()),
                ] {
                    lines.pass(now, kind(&event), event, &mut |event| told.push(event));
                }
            }
            if second % 600 == 599 {
                for event in [
                    HostEvent::VmmGone(0, "it closed".into()),
                    HostEvent::LinkDown(0, Cause::Lost),
                    HostEvent::Changed(0, "nothing there".into()),
                    HostEvent::Endpoint(0, News::NewContents(ContentsChange::Incarnation)),
                    HostEvent::Endpoint(1, News::BackWithNewContents(ContentsChange::OtherHost)),
                ] {
                    let before = told.len();
                    lines.pass(now, kind(&event), event, &mut |event| told.push(event));
                    assert_eq!(told.len(), before + 1, "second {second}");
                }
            }
        }
        assert!(told.len() < 250, "{} lines", told.len());
    }
}
