//! Cyclic queuing and forwarding, computed by hand.

use super::star::{CABLE, at};
use super::{CaseLab, Figures};
use report::Failure;
use sim::ethernet::Rate;
use sim::ethernet::bridge::Mode;
use sim::ethernet::traffic::Pattern;
use sim::network::{TrafficConfig, Tree};
use tsn::{Clock, Cqf};
use wire::{Duration, Instant};

const CYCLE_US: u64 = 125;
/// Bytes of a frame with tag and FCS; 20.8 us with the preamble.
const FRAME: usize = 252;
/// Number of phases of the streams within the cycle that are simulated.
const PHASES: u64 = 25;

pub(super) fn simulate(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let mut figures = vec![("at_the_cycle", latencies(lab.rows(&["at_the_cycle"]), 3, 0, 1)?.0)];
    let names = [
        (1, "hops_1_min", "hops_1_max"),
        (2, "hops_2_min", "hops_2_max"),
        (4, "hops_4_min", "hops_4_max"),
    ];
    for (hops, min, max) in names {
        let phased =
            |lab: CaseLab<'_>, phase| latencies(lab, hops, phase * CYCLE_US * 1000 / PHASES, 3);
        let (mut shortest, mut longest) = ((f64::INFINITY, 0), (0f64, 0));
        for phase in 0..PHASES {
            let (least, most) = phased(lab, phase)?;
            if least < shortest.0 {
                shortest = (least, phase);
            }
            if most > longest.0 {
                longest = (most, phase);
            }
        }
        let (shortest, _) = phased(lab.rows(&[min]), shortest.1)?;
        let (_, longest) = phased(lab.rows(&[max]), longest.1)?;
        figures.extend([(min, shortest), (max, longest)]);
    }
    Ok(figures)
}

/// Returns the shortest and the longest latency of streams with one frame per cycle, from `senders`
/// stations over `bridges` bridges.
fn latencies(
    lab: CaseLab<'_>,
    bridges: usize,
    phase_ns: u64,
    senders: usize,
) -> Result<(f64, f64), Failure> {
    let mut tree = Tree::new(Rate::M100, CABLE);
    let receiver = tree.station();
    let senders: Vec<_> = (0..senders).map(|_| tree.station()).collect();
    let row: Vec<_> =
        (0..bridges).map(|_| tree.bridge(Mode::StoreAndForward, Duration::ZERO)).collect();
    for sender in &senders {
        tree.link(*sender, row[0]);
    }
    let mut ways: Vec<_> = row.windows(2).map(|pair| tree.link(pair[0], pair[1])).collect();
    ways.push(tree.link(row[bridges - 1], receiver));
    let cycle = Duration::from_us(CYCLE_US);
    let pair = Cqf { classes: [5, 6], cycle, base: Instant::ZERO };
    for way in ways {
        let port = tree.port(way);
        *port = port.clone().with_cqf(pair, Clock::default());
    }
    let streams = senders.iter().map(|sender| {
        let stream = TrafficConfig::new(0, FRAME - 4, 5, Pattern::Periodic(cycle));
        tree.stream(*sender, TrafficConfig { start: at(phase_ns as f64 / 1e3), ..stream })
    });
    let streams: Vec<_> = streams.collect();
    let observed = lab.run(&mut tree, Duration::from_ms(4))?;
    let latencies = observed.latencies(&streams);
    Ok((latencies.min, latencies.max))
}
