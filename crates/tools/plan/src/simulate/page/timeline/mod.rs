//! Ports over time: gates, frames and fragments, queues and credit around the longest wait.

mod view;
mod words;

use super::Subject;
use crate::simulate::places;
use crate::simulate::timeline::PortTimeline;
use report::Page;
use view::View;
use wire::Duration;

/// Maximum number of ports that are drawn.
const MOST: usize = 6;

/// Adds the ports with the longest waits.
pub(super) fn section(page: &mut Page, subject: &Subject<'_>) {
    let drawn = |port: &&PortTimeline| port.chosen || port.wait() > Duration::ZERO;
    let (shown, rest): (Vec<_>, Vec<_>) = subject.ports.iter().partition(drawn);
    let (shown, more) = shown.split_at(shown.len().min(MOST));
    if shown.is_empty() {
        return;
    }
    page.section("Ports along time");
    page.text(
        "What each port did around the frame that waited there longest, from its arrival in the \
         queue to its last bit: by class, the highest first, the gate, what was on the line, how \
         many frames the queue held, and the credit in bits of a credit-based shaper. The ports \
         come in the order of that wait as a share of their gate cycle.",
    );
    for port in shown {
        let view = port.timeline.as_ref().map(|timeline| View::new(subject, port, timeline));
        match view.map(|view| (view.words(), view.lanes())) {
            Some((words, lanes)) if !lanes.lanes.is_empty() => {
                page.lanes(&named(subject, port), &words, &lanes);
            }
            _ => page.note(&format!("{}: no frame at the chosen time.", named(subject, port))),
        }
    }
    let names = |ports: &[&PortTimeline]| {
        let names = ports.iter().map(|port| named(subject, port));
        names.collect::<Vec<_>>().join(", ")
    };
    for (kind, ports) in [
        ("Not shown, for their longest waits are shorter", more),
        ("Not shown, for no frame waited there", &rest[..]),
    ] {
        if !ports.is_empty() {
            page.note(&format!("{kind}: {}.", names(ports)));
        }
    }
}

fn named(subject: &Subject<'_>, port: &PortTimeline) -> String {
    (subject.words.named)(&places::way(&subject.config.network, port.place))
}
