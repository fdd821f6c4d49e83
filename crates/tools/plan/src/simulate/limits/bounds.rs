//! Computes the longest waits for closed gates from the configuration.

use super::{Assumptions, Row};
use crate::simulate::places::{self, Egress};
use sim::Config;
use sim::ethernet::frame::{FCS, HEADER, MTU, PREAMBLE, TAG};
use wire::Duration;

const SOURCE: &str = "PCIe Base 4.0, 2.8 and 7.5.3.16; IEEE 802.1Q-2022, 8.6.8.4";

/// Returns two rows if there are gates: the longest closed span of any gate, and the waits of a
/// request and its answer on the worst link.
pub(super) fn rows(config: &Config, assumed: &Assumptions) -> Vec<Row> {
    let wiring = config.network.wiring();
    // For each drive, the ways over all links between it and its host.
    let links = places::links(config).enumerate();
    let drives = links.filter_map(|(number, (host, link))| Some((number, host, link.drive?.0)));
    let routes: Vec<(usize, [Vec<Egress<'_>>; 2])> = drives
        .map(|(number, host, drive)| {
            let mut ways = [Vec::new(), Vec::new()];
            for link in places::path(&config.hosts[host], drive) {
                let [down, up] = places::routes(&wiring, link.transport);
                ways[0].extend(down);
                ways[1].extend(up);
            }
            (number, ways)
        })
        .collect();
    let gated = routes.iter().flat_map(|(_, routes)| routes.iter().flatten());
    if !gated.clone().any(|egress| egress.gates.is_some()) {
        return Vec::new();
    }
    let closed = gated.map(longest_closed).max_by_key(rank);
    let both = routes.iter().map(|(link, routes)| round_trip(*link, routes)).max_by_key(rank);
    let range = assumed.completion_timeout;
    let row = |name: &str, found: Option<(Option<Duration>, String)>| {
        let (span, event) = found.unwrap_or((Some(Duration::ZERO), "no gates".into()));
        Row::new(name, (range.earliest, range.latest), SOURCE).planned(span, event)
    };
    vec![
        row("closed gate, and a frame behind it", closed),
        row("closed gates on the way of a request and its answer", both),
    ]
}

/// Returns the sort key of a wait. A wait without end is the longest.
fn rank(found: &(Option<Duration>, String)) -> u64 {
    found.0.map_or(u64::MAX, Duration::as_ps)
}

/// Returns the time of the largest frame with a tag, preamble included.
fn largest(egress: &Egress<'_>) -> Duration {
    egress.rate.duration(PREAMBLE + HEADER + TAG + MTU + FCS)
}

fn longest_closed(egress: &Egress<'_>) -> (Option<Duration>, String) {
    let name = format!("queue {} of {}", egress.queue, places::name(egress.place));
    let Some(gates) = egress.gates else { return (Some(Duration::ZERO), name) };
    match gates.longest_closed(egress.queue) {
        Some(span) if longest_wait(egress).is_some() => (Some(span + largest(egress)), name),
        Some(_) => (None, format!("{name}: no window holds the largest frame")),
        None => (None, format!("{name} never opens")),
    }
}

/// Returns the longest wait of the largest frame for its gate.
fn longest_wait(egress: &Egress<'_>) -> Option<Duration> {
    match egress.gates {
        Some(gates) => gates.longest_wait(egress.queue, largest(egress)),
        None => Some(Duration::ZERO),
    }
}

/// Returns the wait at all gates of both directions, each in its worst phase.
fn round_trip(link: usize, routes: &[Vec<Egress<'_>>; 2]) -> (Option<Duration>, String) {
    let mut sum = Duration::ZERO;
    for egress in routes.iter().flatten() {
        let Some(wait) = longest_wait(egress) else {
            let place = places::name(egress.place);
            return (None, format!("link {link}: queue {} of {place}", egress.queue));
        };
        sum = sum + wait + largest(egress);
    }
    let gates = routes.iter().flatten().filter(|egress| egress.gates.is_some()).count();
    (Some(sum), format!("link {link}: {gates} gates, each in its worst phase"))
}
