//! `farlane reproduce`: simulates published experiments.

mod plans;
#[cfg(test)]
mod tests;

use super::{Outcome, json};
use crate::output::{assign_stdout, wrong_usage};
use crate::progress::Progress;
use clap::Subcommand;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use papers::{Changed, Checks, Lab, Part, Reproduction, Rows, Section};
use papers::{expether, nvme_tsn, tsn_ports, tsn_vm};
use plans::Simulations;
use report::document::WRITTEN_BY;
use report::target::Target;
use report::{Failure, Page};
use std::path::PathBuf;

/// Simulate a published experiment and compare the figures
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  farlane reproduce nvme-tsn\n  \
    farlane reproduce nvme-tsn --only table --json\n  \
    farlane reproduce expether --html expether.html\n\n\
    The simulation runs in virtual time: the figures are the same on any machine.")]
pub struct Args {
    #[command(subcommand)]
    publication: Publication,
}

/// The publication.
#[derive(Subcommand, Debug)]
enum Publication {
    /// Missing Link Electronics, "Latency Analysis for NVMe/TSN"
    #[command(after_help = "Examples:\n  farlane reproduce nvme-tsn --only table --json\n  \
        farlane reproduce nvme-tsn --html nvme-tsn.html\n  \
        farlane reproduce nvme-tsn --set drive.reads_in_flight=4\n  \
        farlane reproduce nvme-tsn --plan plans-of-nvme-tsn")]
    NvmeTsn(Options<nvme_tsn::Part>),
    /// NEC, "End-to-End Adaptive Packet Aggregation ...", Hot Interconnects 2014
    #[command(after_help = "Examples:\n  farlane reproduce expether --only table --json\n  \
        farlane reproduce expether --html expether.html\n  \
        farlane reproduce expether --set link.mtu=9000B")]
    Expether(Options<expether::Part>),
    /// Ports of TSN bridges: figures of other simulators and papers, and cases with exact results
    #[command(after_help = "Examples:\n  farlane reproduce tsn-ports --only gates\n  \
        farlane reproduce tsn-ports --html tsn-ports.html\n  \
        farlane reproduce tsn-ports --only gates --plan plans-of-gates\n\n\
        The exit status is 1 if a case is not as expected.")]
    TsnPorts(Options<tsn_ports::Part>),
    /// Linaro, "Network Latency with Time Sensitive Networking on Virtual Machine"
    #[command(after_help = "Examples:\n  farlane reproduce tsn-vm --only clocks\n  \
        farlane reproduce tsn-vm --html tsn-vm.html\n\n\
        The exit status is 1 if the model contradicts a statement.")]
    TsnVm(Options<tsn_vm::Part>),
}

/// Parts to run, outputs, plans and settings.
#[derive(clap::Args, Debug)]
struct Options<P: Part> {
    /// Run only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',', value_parser = part::<P>())]
    only: Vec<P>,
    /// Print one JSON document instead of tables; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Write an HTML page with plots. FILE - is standard output, instead of the tables
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
    /// Write the simulations of the published figures as plans for `farlane sim`, into the folder
    /// DIR
    #[arg(long, value_name = "DIR")]
    plan: Option<PathBuf>,
    /// Set a key of all these plans, such as link.propagation=50ns; repeatable. Shows how the
    /// figures change
    #[arg(long, value_name = "KEY=VALUE", conflicts_with = "plan")]
    set: Vec<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    match &args.publication {
        Publication::NvmeTsn(options) => options.run().map(drop),
        Publication::Expether(options) => options.run().map(drop),
        Publication::TsnPorts(options) => checked(&options.run()?),
        Publication::TsnVm(options) => checked(&options.run()?),
    }
}

/// Fails if a figure differs from its expected value.
fn checked(results: &Checks) -> Outcome {
    match results.checks.iter().filter(|check| !check.holds).count() {
        0 => Ok(()),
        failed => Err(Failure(format!("{failed} figures differ from their expected values"))),
    }
}

impl<P: Part> Options<P> {
    /// Runs the requested parts of a publication, all if none is named, and prints their results.
    fn run(&self) -> Result<P::Results, Failure> {
        let Self { json: as_json, html, plan, set, .. } = self;
        let (parts, citation) = (self.parts(), P::citation());
        assign_stdout(*as_json, &[("--html", html.as_ref())]);
        let mut page = Page::new(&format!("farlane reproduce {}", P::PUBLICATION));
        page.text(&format!("{citation}: published and simulated."));
        let mut progress = Progress::new();
        let mut run = |results: &mut P::Results, lab: Lab, show: &mut dyn FnMut(Section)| {
            for part in &parts {
                progress.show(&format!("simulating: {}", name_of(part)));
                let sections = part.simulate(results, lab)?;
                progress.done();
                sections.into_iter().for_each(&mut *show);
            }
            Ok::<_, Failure>(())
        };
        let (mut results, mut after) = (P::Results::default(), P::Results::default());
        // Simulations with settings are first: a mistake is found early.
        if !set.is_empty() {
            run(&mut after, &|simulation| plans::changed(&simulation, set), &mut |_| {})?;
        }
        if !as_json {
            println!("{citation}\n");
        }
        let simulations = Simulations::default();
        let mut show = |section: Section| {
            section.write(&mut page);
            if !as_json {
                println!("{}", section.text());
            }
        };
        run(&mut results, &|simulation| Ok(simulations.keep(simulation)), &mut show)?;
        if let Some(folder) = plan {
            let cite = |row: &str| format!("{citation}, {}", P::section(row));
            simulations.write(folder, results.rows(), cite)?;
        }
        let changed = (!set.is_empty()).then(|| Changed::all(results.rows(), after.rows()));
        changed.iter().for_each(|changed| show(Changed::section(changed, set)));
        let document = Reproduction::new(citation, results, set.clone(), changed);
        let text = json(&document);
        if *as_json {
            println!("{text}");
        }
        if let Some(target) = html {
            page.details("JSON", &text);
            target.write(&page.finish(WRITTEN_BY))?;
        }
        Ok(document.into_results())
    }

    /// Returns the parts to run.
    fn parts(&self) -> Vec<P> {
        let published = P::PUBLISHED;
        let with_plans = self.plan.is_some() || !self.set.is_empty();
        let asked = |part: &P| match &self.only[..] {
            [] => !with_plans || published.contains(part),
            only => only.contains(part),
        };
        let parts: Vec<P> = P::PARTS.iter().map(|(part, ..)| *part).filter(asked).collect();
        if with_plans && let Some(other) = parts.iter().find(|part| !published.contains(part)) {
            let names: Vec<_> = published.iter().map(name_of).collect();
            let (other, names) = (name_of(other), names.join(", "));
            wrong_usage::<()>(format!(
                "--only {other}: with --plan or --set, expected a part with published figures: \
                 {names}"
            ));
        }
        parts
    }
}

/// The parser of `--only`.
fn part<P: Part>() -> impl TypedValueParser<Value = P> {
    let values = P::PARTS.iter().map(|(_, name, help)| PossibleValue::new(*name).help(*help));
    let find = |name: String| P::find(&name).expect("a possible value");
    PossibleValuesParser::new(values).map(find)
}

/// Returns the name of a part.
fn name_of<P: Part>(part: &P) -> &'static str {
    P::PARTS.iter().find(|(own, ..)| own == part).map_or("", |(_, name, _)| name)
}
