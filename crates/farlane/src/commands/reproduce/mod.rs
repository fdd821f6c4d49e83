//! `farlane reproduce`: simulates published experiments.

pub(super) mod expether;
pub(super) mod nvme_tsn;
mod plans;
#[cfg(test)]
mod tests;
mod tsn_ports;
mod tsn_vm;

use super::{Outcome, json};
use crate::output::{assign_stdout, wrong_usage};
use crate::progress::Progress;
use clap::{Subcommand, ValueEnum};
use papers::tsn_ports::{self as ports, Check};
use papers::{Changed, Lab, Row, Section};
use plans::Simulations;
use report::document::WRITTEN_BY;
use report::target::Target;
use report::{Failure, Page};
use schemars::JsonSchema;
use serde::Serialize;
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
struct Options<P: ValueEnum + Send + Sync + 'static> {
    /// Run only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',')]
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
        Publication::NvmeTsn(options) => nvme_tsn::run(options),
        Publication::Expether(options) => expether::run(options),
        Publication::TsnPorts(options) => tsn_ports::run(options),
        Publication::TsnVm(options) => tsn_vm::run(options),
    }
}

/// Figures and their expected values, of the parts that ran.
#[derive(Default, JsonSchema, Serialize)]
pub struct Checks {
    /// One element per figure, in the order of the cases.
    checks: Vec<Check>,
}

/// Results that contain a comparison with published figures.
trait Rows {
    type Row: Row + Clone + Serialize;

    /// Returns the rows of the parts that ran.
    fn rows(&self) -> &[Self::Row];
}

impl Rows for Checks {
    type Row = Check;

    fn rows(&self) -> &[Check] {
        &self.checks
    }
}

/// Version of the document.
const SCHEMA: u32 = 1;

/// A reproduced publication. Simulated figures are the same on any machine. Parts that `--only`
/// leaves out have no key.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Reproduction")]
pub struct Reproduction<R, T> {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// Title and authors of the publication.
    source: String,
    #[serde(flatten)]
    results: R,
    /// Only with `--set`: the settings, which differ from the publication's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
    /// Only with `--set`: the figures with the publication's settings and with those of `set`.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<Changed<T>>>,
}

/// A publication.
struct Source<'a, P> {
    name: &'a str,
    citation: String,
    /// Parts with published figures: the parts of `--plan` and `--set`.
    published: &'a [P],
    /// Returns the section of a figure.
    section: &'a dyn Fn(&str) -> String,
}

impl<P: ValueEnum + PartialEq + Send + Sync> Options<P> {
    /// Runs the requested parts of a publication, all if none is named, and prints their results.
    fn run<R: Default + Serialize + Rows>(
        &self,
        source: &Source<P>,
        simulate: impl Fn(&P, &mut R, Lab) -> Result<Vec<Section>, Failure>,
    ) -> Result<R, Failure> {
        let Self { json: as_json, html, plan, set, .. } = self;
        let parts = self.parts(source.published);
        assign_stdout(*as_json, &[("--html", html.as_ref())]);
        let mut page = Page::new(&format!("farlane reproduce {}", source.name));
        page.text(&format!("{}: published and simulated.", source.citation));
        let mut progress = Progress::new();
        let mut run = |results: &mut R, lab: Lab, show: &mut dyn FnMut(Section)| {
            for part in &parts {
                progress.show(&format!("simulating: {}", name_of(part)));
                let sections = simulate(part, results, lab)?;
                progress.done();
                sections.into_iter().for_each(&mut *show);
            }
            Ok::<_, Failure>(())
        };
        let (mut results, mut after) = (R::default(), R::default());
        // Simulations with settings are first: a mistake is found early.
        if !set.is_empty() {
            run(&mut after, &|simulation| plans::changed(&simulation, set), &mut |_| {})?;
        }
        if !as_json {
            println!("{}\n", source.citation);
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
            let cite = |row: &str| format!("{}, {}", source.citation, (source.section)(row));
            simulations.write(folder, results.rows(), cite)?;
        }
        let changed = (!set.is_empty()).then(|| Changed::all(results.rows(), after.rows()));
        changed.iter().for_each(|changed| show(Changed::section(changed, set)));
        let (source, set) = (source.citation.clone(), set.clone());
        let document = Reproduction { schema: SCHEMA, source, results, set, changed };
        let text = json(&document);
        if *as_json {
            println!("{text}");
        }
        if let Some(target) = html {
            page.details("JSON", &text);
            target.write(&page.finish(WRITTEN_BY))?;
        }
        Ok(document.results)
    }

    /// Returns the parts to run. `published` have published figures.
    fn parts(&self, published: &[P]) -> Vec<P> {
        let with_plans = self.plan.is_some() || !self.set.is_empty();
        let asked = |part: &P| match &self.only[..] {
            [] => !with_plans || published.contains(part),
            only => only.contains(part),
        };
        let parts: Vec<P> =
            P::value_variants().iter().filter(|part| asked(part)).cloned().collect();
        if with_plans && let Some(other) = parts.iter().find(|part| !published.contains(part)) {
            let names: Vec<String> = published.iter().map(name_of).collect();
            let (other, names) = (name_of(other), names.join(", "));
            wrong_usage::<()>(format!(
                "--only {other}: with --plan or --set, expected a part with published figures: \
                 {names}"
            ));
        }
        parts
    }

    /// [`run`](Self::run) with expected figures. Fails if a figure differs from its expected value.
    fn run_checks(
        &self,
        name: &str,
        published: &ports::Published,
        simulate: impl Fn(&P, Lab) -> Result<(Vec<Check>, Vec<Section>), Failure>,
    ) -> Outcome {
        let section = |row: &str| {
            let case = row.split('.').next().unwrap_or_default();
            let data = published.cases.iter().find(|data| data.name == case);
            data.map_or_else(String::new, |data| format!("{}: {}", data.title, data.source))
        };
        let source = Source {
            name,
            citation: published.title.clone(),
            published: P::value_variants(),
            section: &section,
        };
        let results = self.run(&source, |part, results: &mut Checks, lab| {
            let (checks, sections) = simulate(part, lab)?;
            results.checks.extend(checks);
            Ok(sections)
        })?;
        match results.checks.iter().filter(|check| !check.holds).count() {
            0 => Ok(()),
            failed => Err(Failure(format!("{failed} figures differ from their expected values"))),
        }
    }
}

/// Returns the name of a part.
fn name_of<P: ValueEnum>(part: &P) -> String {
    part.to_possible_value().map_or_else(String::new, |value| value.get_name().to_owned())
}
