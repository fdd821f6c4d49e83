//! Enhanced transmission selection: the shares of classes on a full line.

use super::star::Star;
use super::{CaseLab, Figures};
use report::Failure;
use sim::ethernet::port::Algorithm;
use sim::ethernet::traffic::Pattern;
use sim::network::TrafficConfig;
use wire::Duration;

/// Class, its weight in per cent, bytes of its frames with tag and FCS, and their interval in ns.
/// Each class offers more than its share.
const CLASSES: [(usize, u8, usize, u64); 3] =
    [(0, 20, 1522, 300), (1, 30, 300, 50), (2, 50, 1000, 100)];

pub(super) fn simulate(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let mut star = Star::new(CLASSES.len(), Duration::ZERO);
    for (class, weight, ..) in CLASSES {
        star.port().classes[class].algorithm = Algorithm::Ets { weight };
    }
    let senders = star.senders.clone();
    let streams = CLASSES.iter().zip(senders).map(|((class, _, bytes, interval), sender)| {
        let every = Pattern::Periodic(Duration::from_us(*interval));
        star.tree.stream(sender, TrafficConfig::new(0, bytes - 4, *class as u8, every))
    });
    let streams: Vec<_> = streams.collect();
    let lab = lab.rows(&["weight_20", "weight_30", "weight_50", "line"]);
    let observed = lab.run(&mut star.tree, Duration::from_ms(1000))?;
    let line = |at: usize| observed.arrivals(streams[at]).len() * (CLASSES[at].2 + 8 + 12);
    let all: usize = (0..CLASSES.len()).map(line).sum();
    let share = |at: usize| 100.0 * line(at) as f64 / all as f64;
    let busy = 8.0 * all as f64 / 1e6;
    Ok(vec![
        ("weight_20", share(0)),
        ("weight_30", share(1)),
        ("weight_50", share(2)),
        ("line", busy),
    ])
}
