//! What recording costs: rounds with and without, one right after the other.

use super::case::{CASES, Case};
use super::run::{Station, tunnelled};
use crate::local::{Ends, Node};
use crate::progress::Progress;
use crate::trace_to::TraceArgs;
use live::attached::Switch;
use live::{Clock, Waiting};
use report::Failure;
use report::latency::Latency;
use switch::aggregate::Policy;
use wire::Duration;

/// A round: short, so that all of a turn meet the same machine.
const SPAN: Duration = Duration::from_ms(20);

/// Median latencies of one turn in nanoseconds.
#[derive(Clone, Copy, Debug, Default)]
pub struct Turn {
    /// Without recording.
    pub without: u64,
    /// With recording.
    pub with: u64,
    /// Without once more, on a machine of its own: what chance makes of it.
    pub control: u64,
}

/// One workload, every turn.
pub struct Cost {
    /// What ran.
    pub case: Case,
    /// Largest TLP payload.
    pub mps: u16,
    /// In the order of time.
    pub turns: Vec<Turn>,
}

/// Measures what recording into a ring file adds to one command at a time.
///
/// # Errors
/// If a machine does not come up, or the file cannot be written.
pub fn measure(
    waiting: Waiting,
    mps: u16,
    pairs: u32,
    progress: &mut Progress,
) -> Result<Vec<Cost>, Failure> {
    let folder = tempfile::tempdir()?;
    let trace = TraceArgs::ring(folder.path().join("run.trace"), 64 << 20);
    let (clock, max_payload, aggregation) = (Clock::start(), mps, Policy::Adaptive);
    let ends = Ends { clock, waiting, max_payload, aggregation };
    let plain = TraceArgs::default();
    let mut machines = Vec::new();
    for trace in [&plain, &trace, &plain] {
        machines.push(tunnelled(ends, trace)?);
    }
    let mut costs = Vec::new();
    for case in CASES.into_iter().filter(|case| case.iodepth == 1) {
        let mut cost = Cost { case, mps, turns: Vec::new() };
        for pair in 0..pairs {
            progress.show(&format!("recording: {}, pair {} of {pairs}", case.name(), pair + 1));
            cost.turns.push(one_turn(&mut machines, case, pair as usize)?);
        }
        costs.push(cost);
    }
    Ok(costs)
}

/// A round of each; which comes first changes, for none may profit.
fn one_turn(
    machines: &mut [(Station<Switch>, Node)],
    case: Case,
    first: usize,
) -> Result<Turn, Failure> {
    let mut p50 = [0; 3];
    for turn in 0..3 {
        let at = (first + turn) % 3;
        p50[at] = machines[at].0.round(case, SPAN, &mut Latency::default())?.p50_ns;
    }
    Ok(Turn { without: p50[0], with: p50[1], control: p50[2] })
}
