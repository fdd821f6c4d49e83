//! `farlane bench --aggregation`: policies side by side, over loopback and over
//! a link that is the bottleneck, over TCP and raw Ethernet.

mod html;
mod network;
mod print;
mod setup;
mod wire_cost;

use super::super::{Ended, Failure};
use super::{Args, Floor};
use crate::output::{warning, wrong_usage};
use crate::progress::Progress;
use crate::signals::Stop;
use live::{Clock, Waiting};
use print::{Check, LatencyPair};
use setup::Setup;
use std::fmt;
use switch::aggregate::Policy;
use switch::congestion::Rate;
use wire::Duration;

wire::named! {
    /// What carries TLPs.
    #[derive(clap::ValueEnum)]
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
    /// A veth pair with a rate.
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

/// The payload by default: NEC's.
pub const MPS: u16 = 128;
/// The rate by default: what one core of a small machine fills with frames of one TLP.
pub const RATE: Rate = Rate { bits_per_second: 100_000_000, burst: 1 };
/// Pairs of rounds that compare latencies.
const PAIRS: usize = 20;

/// Everything measured.
pub struct Ablation {
    pub waiting: Waiting,
    pub mps: u16,
    pub floor: Floor,
    pub setups: Vec<Setup>,
    pub latencies: Vec<LatencyPair>,
    /// The measured rate of the limited link: proof that its token bucket counts right.
    pub check: Vec<Check>,
    /// Whether a signal ended it.
    pub interrupted: bool,
}

/// Runs the command.
pub fn run(args: &Args, waiting: Waiting, stop: &Stop) -> Result<Ended, Failure> {
    let mps = match args.mps[..] {
        [] => MPS,
        [mps] if mps <= 1024 => mps,
        _ => wrong_usage("--aggregation measures at one --mps, up to 1024"),
    };
    let clock = Clock::start();
    let mut progress = Progress::new();
    let (rounds, span) = match args.quick {
        true => (3, Duration::from_ms(100)),
        false => (7, Duration::from_ms(500)),
    };
    let rounds = args.rounds.unwrap_or(rounds);
    let mut all = Ablation {
        waiting,
        mps,
        floor: Floor::default(),
        setups: setups(args, clock, waiting, mps, &mut progress)?,
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
        progress.show("what the link lets pass");
        all.check = network::check(clock, args.link_rate, Duration::from_ms(100))?;
    }
    'rounds: for round in 1..=rounds {
        progress.show(&format!("round {round} of {rounds}: raw TCP"));
        all.floor.measure(clock, waiting, span)?;
        for index in 0..all.setups[0].series.len() {
            for setup in &mut all.setups {
                if stop.is_set() {
                    break 'rounds;
                }
                let what = format!("{}, {}, {}", setup.link, setup.transport, setup.policy);
                progress.show(&format!("round {round} of {rounds}: {what}"));
                setup.round(index, span)?;
            }
        }
    }
    let pair_span = Duration::from_ms(if args.quick { 20 } else { 100 });
    all.latencies = latencies(&mut all.setups, pair_span, &mut progress, stop)?;
    all.interrupted = stop.is_set();
    progress.done();
    let document = print::document(&all);
    if args.json {
        println!("{}", crate::commands::json(&document));
    } else {
        print::table(&document);
    }
    if let Some(target) = &args.html {
        target.write(&html::page(&all, &document))?;
    }
    Ok(Ended::unless(all.interrupted))
}

/// Every link, transport and policy that this machine allows.
fn setups(
    args: &Args,
    clock: Clock,
    waiting: Waiting,
    mps: u16,
    progress: &mut Progress,
) -> Result<Vec<Setup>, Failure> {
    let transports = match &args.transport[..] {
        [] => vec![Transport::Tcp, Transport::Raw],
        some => some.to_vec(),
    };
    let cases: Vec<_> = setup::cases()
        .into_iter()
        .filter(|case| args.selects(super::Path::Tunnelled, case))
        .collect();
    if cases.is_empty() {
        wrong_usage(
            "no workload fits --rw and --iodepth together: read and write at 8, randread and \
             randwrite at 1",
        )
    }
    let mut setups = Vec::new();
    for link in [Link::Loopback, Link::Veth(args.link_rate)] {
        for transport in &transports {
            for policy in &args.aggregation {
                progress.show(&format!("{link}, {transport}, {policy}: the drive is written"));
                match Setup::new(clock, waiting, mps, (link, *transport, *policy), &cases) {
                    Ok(setup) => setups.push(setup),
                    // What may be had without privileges is measured all the same.
                    Err(why) if (link, *transport) != (Link::Loopback, Transport::Tcp) => {
                        progress.done();
                        warning(format_args!("not measured: {transport} over {link}: {why}"));
                        break;
                    }
                    Err(why) => return Err(why),
                }
            }
        }
    }
    match setups.is_empty() {
        true => Err(Failure("nothing can be measured here".into())),
        false => Ok(setups),
    }
}

/// Latencies of one command at a time where both policies are there, until it is told to stop.
fn latencies(
    setups: &mut [Setup],
    span: Duration,
    progress: &mut Progress,
    stop: &Stop,
) -> Result<Vec<LatencyPair>, Failure> {
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
                progress.show(&format!("{link}, {transport}, {}: pair {}", case.name(), pair + 1));
                // The order alternates, so that neither has an advantage.
                let order = if pair % 2 == 0 { [one, *other] } else { [*other, one] };
                let mut p50 = [0; 2];
                for setup in order {
                    p50[usize::from(setup == *other)] = setups[setup].p50(index, span)?;
                }
                pairs.push((p50[0], p50[1]));
            }
            all.push(print::latency(&setups[one], case.rw, &pairs));
        }
    }
    Ok(all)
}
