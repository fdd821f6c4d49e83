//! What recording costs: pairs of rounds, with and without, one right after
//! the other.

use super::case::{CASES, Case};
use super::run::{Station, tunnelled};
use crate::analyse::latency::Latency;
use crate::commands::Failure;
use crate::progress::Progress;
use crate::trace_to::TraceArgs;
use live::attached::Switch;
use live::{Clock, Waiting};
use wire::Duration;

/// One workload, every pair.
pub struct Cost {
    /// What ran.
    pub case: Case,
    /// Largest TLP payload.
    pub mps: u16,
    /// Median latencies in nanoseconds: without and with recording.
    pub pairs: Vec<(u64, u64)>,
}

/// Measures what recording into a ring file adds to one command at a time.
///
/// # Errors
/// If a machine does not come up, or the file cannot be written.
pub fn measure(
    waiting: Waiting,
    mps: u16,
    pairs: u32,
    span: Duration,
    progress: &mut Progress,
) -> Result<Vec<Cost>, Failure> {
    let clock = Clock::start();
    let path = std::env::temp_dir().join(format!("farlane-bench-{}.trace", std::process::id()));
    let trace = TraceArgs::ring(path.clone(), 64 << 20);
    let (mut plain, _near) = tunnelled(clock, waiting, mps, &TraceArgs::default())?;
    let (mut recorded, far) = tunnelled(clock, waiting, mps, &trace)?;
    let mut costs = Vec::new();
    for case in CASES.into_iter().filter(|case| case.iodepth == 1) {
        let mut cost = Cost { case, mps, pairs: Vec::new() };
        for pair in 0..pairs {
            progress.show(&format!("recording: {}, pair {} of {pairs}", case.name(), pair + 1));
            cost.pairs.push(one_pair(&mut plain, &mut recorded, case, span, pair % 2 == 1)?);
        }
        costs.push(cost);
    }
    drop(recorded);
    drop(far);
    for file in [path.clone(), path.with_extension("trace.device0")] {
        let _ = std::fs::remove_file(file);
    }
    Ok(costs)
}

/// Without and with; which comes first changes, for neither may profit.
fn one_pair(
    plain: &mut Station<Switch>,
    recorded: &mut Station<Switch>,
    case: Case,
    span: Duration,
    swap: bool,
) -> Result<(u64, u64), Failure> {
    let p50 = |station: &mut Station<Switch>| {
        station.round(case, span, &mut Latency::new()).map(|round| round.p50_ns)
    };
    if swap {
        let with = p50(recorded)?;
        return Ok((p50(plain)?, with));
    }
    let without = p50(plain)?;
    Ok((without, p50(recorded)?))
}
