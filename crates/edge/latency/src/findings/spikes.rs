//! Spikes with equal times between them, caused by a periodic activity.

use super::{Context, Finding, Kind, Point};
use crate::statistics::median;

/// The least number of spikes. Fewer spikes may have equal distances by chance.
const LEAST: usize = 5;
/// A spike is at least this many deviations (medians of absolute deviations) above the median. For
/// normal noise, whose sigma is 1.48 deviations, this is one sample in 10^8.
const DEVIATIONS: i64 = 8;
/// The most frames between two samples of one spike.
const NEAR: usize = 3;
/// How many of 10 distances must agree with the period or its multiples, within a tenth of the
/// period.
const AGREE: usize = 8;

/// A spike: its first frame, its highest latency and the frame with that latency.
struct Spike {
    from: u64,
    sequence: u64,
    highest: i64,
}

/// The periodic spikes of a run, as one finding.
pub(super) fn find(points: &[Point], context: &Context) -> Option<Finding> {
    let usual = median(points.iter().map(|point| point.latency));
    let deviation = median(points.iter().map(|point| (point.latency - usual).abs()));
    let above = usual + DEVIATIONS * deviation.max(1);
    let spikes = spikes(points, above);
    // More than one frame in ten is normal behaviour, not a spike.
    if spikes.len() < LEAST || spikes.len() * 10 > points.len() {
        return None;
    }
    let gaps: Vec<u64> = spikes.windows(2).map(|pair| pair[1].from - pair[0].from).collect();
    let period = median(gaps.iter().map(|gap| *gap as i64)) as u64;
    let agrees = |gap: &&u64| {
        // A missing spike doubles the distance.
        let times = ((**gap + period / 2) / period.max(1)).max(1);
        gap.abs_diff(times * period) * 10 <= period && times <= 3
    };
    let agree = gaps.iter().filter(agrees).count();
    if agree * 10 < gaps.len() * AGREE {
        return None;
    }
    let highest = spikes.iter().map(|spike| spike.highest).max()?;
    let evidence = format!(
        "{} spikes, {agree} of {} distances between them are {period} ns, or two or three times \
         that, to a tenth: something runs by a timer",
        spikes.len(),
        gaps.len()
    );
    let frames = (spikes[0].sequence, spikes[spikes.len() - 1].sequence);
    let finding = context.finding(Kind::PeriodicSpikes, frames, evidence);
    let (n, size_ns) = (spikes.len() as u64, highest.abs_diff(usual));
    Some(Finding { n, size_ns, period_ns: Some(period), ..finding })
}

/// The spikes: samples with a latency above `above`. Samples near each other are one spike.
fn spikes(points: &[Point], above: i64) -> Vec<Spike> {
    let mut found: Vec<Spike> = Vec::new();
    let mut last = None;
    for (at, point) in points.iter().enumerate().filter(|(_, point)| point.latency > above) {
        match found.last_mut() {
            Some(spike) if last.is_some_and(|last| at - last <= NEAR) => {
                spike.highest = spike.highest.max(point.latency);
            }
            _ => {
                let Point { sequence, from, latency } = *point;
                found.push(Spike { from, sequence, highest: latency });
            }
        }
        last = Some(at);
    }
    found
}
