//! Compares aggregation policies, over loopback and over a link that is the bottleneck, over TCP
//! and raw Ethernet.

mod network;
mod setup;
mod wire_cost;

pub use network::TestNetwork;
pub use setup::{Setup, cases};
pub use wire_cost::Cost;

use crate::Console;
use crate::case::Case;
use crate::testbed::Floor;
use live::{Clock, Stop, Waiting};
use report::Failure;
use schemars::JsonSchema;
use serde::Serialize;
use std::fmt;
use switch::aggregate::Policy;
use switch::congestion::Rate;
use wire::Duration;

wire::named! {
    /// The transport of TLPs.
    pub enum Transport {
        /// Over TCP.
        Tcp "tcp",
        /// Over raw Ethernet.
        Raw "raw",
    }
}

/// The link below the transport.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Link {
    /// Loopback.
    Loopback,
    /// A veth pair with a limited rate.
    Veth(Rate),
}

impl fmt::Display for Link {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Loopback => f.pad("loopback"),
            Self::Veth(rate) => {
                f.pad(&format!("veth {:.0} Mb/s", rate.bits_per_second as f64 / 1e6))
            }
        }
    }
}

/// Default payload size: the size in NEC's paper.
pub const MPS: u16 = 128;
/// Default rate. One core of a small machine can fill the link with frames of one TLP.
pub const RATE: Rate = Rate { bits_per_second: 100_000_000, burst: 1 };
/// Number of pairs of rounds that compare latencies.
const PAIRS: usize = 20;

/// The measurements to make.
#[derive(Clone, Debug)]
pub struct AblationSettings {
    /// How nodes wait.
    pub waiting: Waiting,
    /// Maximum TLP payload in bytes.
    pub mps: u16,
    /// The transports.
    pub transports: Vec<Transport>,
    /// The policies.
    pub policies: Vec<Policy>,
    /// The rate of the limited link.
    pub link_rate: Rate,
    /// Workloads, a subset of [`cases`].
    pub cases: Vec<Case>,
    /// Rounds of each workload.
    pub rounds: u32,
    /// Duration of a round.
    pub span: Duration,
    /// Duration of each round of a pair.
    pub pair_span: Duration,
}

/// Latencies of one command at a time, with per-tlp and adaptive in pairs of rounds.
#[derive(Clone, Debug)]
pub struct Pairs {
    /// The link.
    pub link: Link,
    /// The transport.
    pub transport: Transport,
    /// The workload.
    pub rw: &'static str,
    /// Median latencies in nanoseconds, per-tlp and adaptive.
    pub p50: Vec<(u64, u64)>,
}

/// The measured rate of the limited link with frames of one size.
#[derive(Clone, Debug, JsonSchema, Serialize)]
pub struct LinkCheck {
    /// Bytes after the Ethernet header in each frame.
    pub frame_payload: usize,
    /// Frames per second times the bits of a frame on a wire.
    pub wire_bits_per_s: f64,
}

/// All results.
pub struct Ablation {
    /// How nodes waited.
    pub waiting: Waiting,
    /// Maximum TLP payload in bytes.
    pub mps: u16,
    /// Latency and throughput of raw TCP.
    pub floor: Floor,
    /// Results for every link, transport and policy.
    pub setups: Vec<Setup>,
    /// Latencies of one command at a time.
    pub latencies: Vec<Pairs>,
    /// Measured rates of the limited link, which show that its token bucket counts correctly.
    pub check: Vec<LinkCheck>,
    /// Whether a signal ended the measurement.
    pub interrupted: bool,
}

/// Measures until `stop` is set.
///
/// # Errors
/// If no setup can be measured on this machine, or a machine fails.
pub fn measure(
    settings: &AblationSettings,
    console: &mut dyn Console,
    stop: &Stop,
) -> Result<Ablation, Failure> {
    let clock = Clock::start();
    let AblationSettings { waiting, mps, rounds, span, .. } = *settings;
    let mut all = Ablation {
        waiting,
        mps,
        floor: Floor::default(),
        setups: setups(settings, clock, console)?,
        latencies: Vec::new(),
        check: Vec::new(),
        interrupted: false,
    };
    for setup in &all.setups {
        if let Link::Veth(rate) = setup.link {
            setup.place.limit(rate)?;
        }
    }
    if all.setups.iter().any(|setup| setup.link != Link::Loopback) {
        console.progress("what the link lets pass");
        all.check = network::check(clock, settings.link_rate, Duration::from_ms(100))?;
    }
    'rounds: for round in 1..=rounds {
        console.progress(&format!("round {round} of {rounds}: raw TCP"));
        all.floor.measure(clock, waiting, span)?;
        for index in 0..all.setups[0].series.len() {
            for setup in &mut all.setups {
                if stop.is_set() {
                    break 'rounds;
                }
                let setup_name = format!("{}, {}, {}", setup.link, setup.transport, setup.policy);
                console.progress(&format!("round {round} of {rounds}: {setup_name}"));
                setup.round(index, span)?;
            }
        }
    }
    all.latencies = latencies(&mut all.setups, settings.pair_span, console, stop)?;
    all.interrupted = stop.is_set();
    console.done();
    Ok(all)
}

/// Brings up every link, transport and policy that this machine permits.
fn setups(
    settings: &AblationSettings,
    clock: Clock,
    console: &mut dyn Console,
) -> Result<Vec<Setup>, Failure> {
    let AblationSettings { waiting, mps, transports, policies, cases, .. } = settings;
    let mut setups = Vec::new();
    for link in [Link::Loopback, Link::Veth(settings.link_rate)] {
        for transport in transports {
            for policy in policies {
                console.progress(&format!("{link}, {transport}, {policy}: the drive is written"));
                match Setup::new(clock, *waiting, *mps, (link, *transport, *policy), cases) {
                    Ok(setup) => setups.push(setup),
                    // Setups that need no privileges are measured nevertheless.
                    Err(why) if (link, *transport) != (Link::Loopback, Transport::Tcp) => {
                        console.done();
                        console.warning(&format!("not measured: {transport} over {link}: {why}"));
                        break;
                    }
                    Err(why) => return Err(why),
                }
            }
        }
    }
    match setups.is_empty() {
        true => Err(Failure("no case can be measured on this machine".into())),
        false => Ok(setups),
    }
}

/// Measures latencies of one command at a time on links with both policies, until `stop` is set.
fn latencies(
    setups: &mut [Setup],
    span: Duration,
    console: &mut dyn Console,
    stop: &Stop,
) -> Result<Vec<Pairs>, Failure> {
    let mut all = Vec::new();
    let with = |policy: Policy| {
        let found = setups.iter().enumerate().filter(move |(_, setup)| setup.policy == policy);
        found.map(|(number, setup)| (number, setup.link, setup.transport)).collect::<Vec<_>>()
    };
    let (alone, adaptive) = (with(Policy::PerTlp), with(Policy::Adaptive));
    for (one, link, transport) in alone {
        let other = adaptive.iter().find(|(_, l, t)| (*l, *t) == (link, transport));
        let Some((other, ..)) = other else { continue };
        for index in 0..setups[one].series.len() {
            let case = setups[one].series[index].case;
            if case.iodepth != 1 {
                continue;
            }
            let mut pairs = Vec::new();
            for pair in 0..PAIRS {
                if stop.is_set() {
                    return Ok(all);
                }
                console.progress(&format!(
                    "{link}, {transport}, {}: pair {}",
                    case.name(),
                    pair + 1
                ));
                // The order alternates, so that neither policy has an advantage.
                let order = if pair % 2 == 0 { [one, *other] } else { [*other, one] };
                let mut p50 = [0; 2];
                for setup in order {
                    p50[usize::from(setup == *other)] = setups[setup].p50(index, span)?;
                }
                pairs.push((p50[0], p50[1]));
            }
            all.push(Pairs { link, transport, rw: case.rw, p50: pairs });
        }
    }
    Ok(all)
}
