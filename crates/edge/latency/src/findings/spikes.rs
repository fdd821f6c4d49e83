//! Spikes with equal times between them: something that runs by a timer gets in the way.

use super::{Context, Finding, Kind, Point};
use crate::statistics::median;

/// Spikes at least: with fewer, equal distances are chance.
const LEAST: usize = 5;
/// A spike is so many deviations (medians of absolute ones) above the median: of normal noise,
/// whose deviation is 1.48 of these, one sample in 10^8 is.
const DEVIATIONS: i64 = 8;
/// Frames at most between two of one spike.
const NEAR: usize = 3;
/// Of 10 distances so many agree with the period, each to a tenth of it.
const AGREE: usize = 8;

/// The first frame of each spike, its highest latency and where it was.
struct Spike {
    from: u64,
    sequence: u64,
    highest: i64,
}

/// Periodic spikes, if there are any.
pub fn find(points: &[Point], context: &Context) -> Option<Finding> {
    let usual = median(points.iter().map(|point| point.latency));
    let deviation = median(points.iter().map(|point| (point.latency - usual).abs()));
    let above = usual + DEVIATIONS * deviation.max(1);
    let spikes = spikes(points, above);
    // With more than one frame in ten it is no spike but how it is.
    if spikes.len() < LEAST || spikes.len() * 10 > points.len() {
        return None;
    }
    let gaps: Vec<u64> = spikes.windows(2).map(|pair| pair[1].from - pair[0].from).collect();
    let period = median(gaps.iter().map(|gap| *gap as i64)) as u64;
    let agrees = |gap: &&u64| {
        // One that did not show leaves twice the distance.
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

/// Samples above the level; those that are near to each other are one spike.
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
