//! `farlane bench --aggregation`: compares policies of aggregation.

mod html;
pub(in crate::commands) mod print;

use super::super::{Ended, Failure};
use super::Args;
use crate::output::wrong_usage;
use crate::progress::Progress;
use live::{Stop, Waiting};
use load::ablation::{AblationSettings, MPS, Transport, cases, measure};
use load::case::{Case, Path};
use wire::Duration;

/// Runs the command.
pub fn run(args: &Args, waiting: Waiting, stop: &Stop) -> Result<Ended, Failure> {
    let mps = match args.mps[..] {
        [] => MPS,
        [mps] if mps <= 1024 => mps,
        _ => wrong_usage("--mps with --aggregation: expected one size up to 1024"),
    };
    let (span, pair_span) = match args.quick {
        true => (Duration::from_ms(100), Duration::from_ms(20)),
        false => (Duration::from_ms(500), Duration::from_ms(100)),
    };
    let settings = AblationSettings {
        waiting,
        mps,
        transports: match &args.transport[..] {
            [] => vec![Transport::Tcp, Transport::Raw],
            some => some.iter().copied().map(Transport::from).collect(),
        },
        policies: args.aggregation.clone(),
        link_rate: args.line_rate,
        cases: selected(args),
        rounds: args.round.rounds(args.quick),
        span,
        pair_span,
    };
    let all = measure(&settings, &mut Progress::new(), stop)?;
    let document = print::document(&all);
    if args.round.json {
        println!("{}", crate::commands::json(&document));
    } else {
        print::table(&document);
    }
    if let Some(target) = &args.round.html {
        target.write(&html::page(&all, &document))?;
    }
    Ok(Ended::unless(all.interrupted))
}

/// The workloads that the options select. Ends the process if there is none.
fn selected(args: &Args) -> Vec<Case> {
    let all = cases().into_iter().filter(|case| args.selects(Path::Tunnelled, case));
    let cases: Vec<_> = all.collect();
    if cases.is_empty() {
        wrong_usage(
            "no workload matches --rw and --iodepth together: expected read or write with 8, \
             randread or randwrite with 1",
        )
    }
    cases
}
