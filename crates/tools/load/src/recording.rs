//! The cost of recording: alternating rounds with and without a trace.

use crate::case::{CASES, Case};
use crate::local::{LocalLink, Node};
use crate::testbed::{LoadGenerator, tunnelled};
use crate::{Console, TraceTarget};
use live::attached::Switch;
use live::{Clock, Stop, Waiting};
use node::push;
use report::Failure;
use report::latency::Latency;
use switch::aggregate::Policy;
use wire::Duration;

/// Duration of a round: short, so that the machine's speed is equal in all rounds of a sample.
const SPAN: Duration = Duration::from_ms(20);

/// All samples of one workload.
pub struct Cost {
    /// The workload.
    pub case: Case,
    /// Maximum TLP payload in bytes.
    pub mps: u16,
    /// Samples in order of time: median latencies of three adjacent rounds in nanoseconds, without
    /// recording, with recording, and without recording on a second machine, which shows the noise.
    pub samples: Vec<[u64; 3]>,
}

/// Measures the time that recording into a ring file adds to one command at a time, until `stop` is
/// set.
///
/// # Errors
/// If a machine does not come up, or the file cannot be written.
pub fn measure(
    waiting: Waiting,
    mps: u16,
    pairs: u32,
    (console, warn): (&mut dyn Console, fn(&str)),
    stop: &Stop,
) -> Result<Vec<Cost>, Failure> {
    let folder = tempfile::tempdir()?;
    let trace = TraceTarget::ring(folder.path().join("run.trace"), 64 << 20, warn);
    let (clock, max_payload, aggregation) = (Clock::start(), mps, Policy::Adaptive);
    let push = push::Settings::default();
    let link = LocalLink { clock, waiting, max_payload, aggregation, push, cipher: None };
    let plain = TraceTarget::default();
    let mut machines = Vec::new();
    for trace in [&plain, &trace, &plain] {
        machines.push(tunnelled(link, trace)?);
    }
    let mut costs = Vec::new();
    for case in CASES.into_iter().filter(|case| case.iodepth == 1) {
        let mut cost = Cost { case, mps, samples: Vec::new() };
        for pair in 0..pairs {
            if stop.is_set() {
                break;
            }
            console.progress(&format!("recording: {}, pair {} of {pairs}", case.name(), pair + 1));
            cost.samples.push(measure_sample(&mut machines, case, pair as usize)?);
        }
        if !cost.samples.is_empty() {
            costs.push(cost);
        }
    }
    Ok(costs)
}

/// Runs one round of each kind. The order rotates, so that none has an advantage.
fn measure_sample(
    machines: &mut [(LoadGenerator<Switch>, Node)],
    case: Case,
    first: usize,
) -> Result<[u64; 3], Failure> {
    let mut p50 = [0; 3];
    for sample in 0..3 {
        let at = (first + sample) % 3;
        p50[at] = machines[at].0.round(case, SPAN, &mut Latency::default())?.p50_ns;
    }
    Ok(p50)
}
