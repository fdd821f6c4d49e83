//! The medium network of CoRE4INET. INET's validation compares its credit-based and its
//! asynchronous shaper with this network.

use super::star::Star;
use super::{CaseLab, Figures, Latencies, credit, eligibility};
use report::Failure;
use sim::ethernet::port::Algorithm;
use sim::ethernet::traffic::Pattern;
use sim::network::TrafficConfig;
use wire::{Duration, Instant};

/// Bytes without tag, interval, priority: best effort, medium, high, critical.
const STREAMS: [(usize, u64, u8); 4] =
    [(1518 - 4, 125, 0), (322 - 4, 250, 5), (322 - 4, 125, 6), (1522 - 4, 300, 7)];
/// The figures with [`ROOM`].
const ROWS: [&str; 12] = [
    "medium_min",
    "medium_max",
    "medium_mean",
    "medium_sigma",
    "high_min",
    "high_max",
    "high_mean",
    "high_sigma",
    "critical_min",
    "critical_max",
    "critical_mean",
    "critical_sigma",
];
/// Maximum number of frames in a queue.
const ROOM: usize = 4;

/// Simulates strict priority without shapers.
#[cfg(test)]
pub(super) fn unshaped(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    simulate(lab, [Algorithm::StrictPriority, Algorithm::StrictPriority])
}

/// Simulates the shapers of the credit-based table.
pub(super) fn credit_based(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    simulate(lab, [credit::shaper(10_976_000), credit::shaper(21_952_000)])
}

/// Simulates the shapers of the asynchronous table: one frame per interval, and a burst of one
/// frame.
pub(super) fn asynchronous(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let shaper = |interval_us: u64| {
        let bits = 322 * 8;
        eligibility::shaper(bits * 1_000_000 / interval_us, bits)
    };
    simulate(lab, [shaper(250), shaper(125)])
}

fn simulate(lab: CaseLab<'_>, shapers: [Algorithm; 2]) -> Result<Figures, Failure> {
    let (observed, streams) = run_with(lab.rows(&ROWS), &shapers, ROOM)?;
    let [medium, high, critical] = [1, 2, 3].map(|at: usize| observed.latencies(&[streams[at]]));
    let (less, streams) = run_with(lab.rows(&["lost_with_room_for_3"]), &shapers, ROOM - 1)?;
    let lost = streams[1..].iter().map(|stream| less.lost(*stream)).sum::<u64>();
    let statistics = |of: Latencies| [of.min, of.max, of.mean, of.deviation];
    let values = [medium, high, critical].map(statistics);
    let mut figures: Figures =
        ROWS.into_iter().zip(values.as_flattened().iter().copied()).collect();
    figures.push(("lost_with_room_for_3", lost as f64));
    Ok(figures)
}

fn run_with(
    lab: CaseLab<'_>,
    shapers: &[Algorithm; 2],
    room: usize,
) -> Result<(super::Observed, Vec<sim::ethernet::traffic::StreamId>), Failure> {
    let mut star = Star::new(STREAMS.len(), Duration::from_us(8));
    let port = star.port();
    port.classes.iter_mut().for_each(|class| class.queue_frames = room);
    for (class, shaper) in (5..).zip(shapers) {
        port.classes[class].algorithm = shaper.clone();
    }
    let senders = star.senders.clone();
    let streams = STREAMS.iter().zip(senders).map(|((length, interval, priority), sender)| {
        // The medium stream starts 1 ns later, so that the higher priority is first.
        let start = Instant::from_ns(u64::from(*priority == 5));
        let pattern = Pattern::Periodic(Duration::from_us(*interval));
        let stream = TrafficConfig::new(0, *length, *priority, pattern);
        star.tree.stream(sender, TrafficConfig { start, ..stream })
    });
    let streams = streams.collect();
    let observed = lab.run(&mut star.tree, Duration::from_ms(1000))?;
    Ok((observed, streams))
}
