//! INET's showcase of the time-aware shaper.

use super::star::{Star, gates};
use super::{CaseLab, Figures};
use report::Failure;
use sim::ethernet::traffic::Pattern;
use sim::network::TrafficConfig;
use wire::Duration;

/// Bytes without tag of a best-effort frame that takes 1500 bytes on the line, preamble included.
const BEST_EFFORT: usize = 1500 - 8 - 4;
/// Bytes without tag of a high-priority frame, which has 64 bytes with its tag.
const HIGH: usize = 64 - 4;
const SEEDS: u64 = 3;

pub(super) fn simulate(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let plain = simulate_with(lab.rows(&["unshaped_max", "unshaped_wait"]), false)?;
    let shaped = simulate_with(lab.rows(&["shaped_min", "shaped_max"]), true)?;
    Ok(vec![
        ("shaped_min", shaped.0),
        ("shaped_max", shaped.1),
        ("unshaped_max", plain.1),
        ("unshaped_wait", plain.1 - plain.0),
    ])
}

/// Returns the shortest and the longest latency of the high priority in microseconds.
fn simulate_with(lab: CaseLab<'_>, shaped: bool) -> Result<(f64, f64), Failure> {
    let (mut min, mut max) = (f64::INFINITY, 0f64);
    for seed in 0..SEEDS {
        let mut star = Star::new(2, Duration::ZERO);
        if shaped {
            star.port().gates = Some(gates(&[(1 << 4, 20.0), (1, 980.0)]));
        }
        let random = Pattern::Poisson(Duration::from_us(200));
        let best_effort = TrafficConfig { seed, ..TrafficConfig::new(0, BEST_EFFORT, 0, random) };
        star.tree.stream(star.senders[0], best_effort);
        let periodic = Pattern::Periodic(Duration::from_ms(1));
        let high = TrafficConfig::new(0, HIGH, 4, periodic);
        let high = star.tree.stream(star.senders[1], high);
        let observed = lab.run(&mut star.tree, Duration::from_ms(1000))?;
        let latencies = observed.latencies(&[high]);
        (min, max) = (min.min(latencies.min), max.max(latencies.max));
    }
    Ok((min, max))
}
