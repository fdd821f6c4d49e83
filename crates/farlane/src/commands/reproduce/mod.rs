//! `farlane reproduce`: simulates published experiments.

pub(super) mod expether;
pub(super) mod nvme_tsn;
mod tsn_ports;
mod tsn_vm;

use super::{Outcome, json};
use crate::output::assign_stdout;
use crate::progress::Progress;
use clap::{Subcommand, ValueEnum};
use papers::Section;
use papers::tsn_ports::Check;
use report::document::WRITTEN_BY;
use report::target::Target;
use report::{Failure, Page};
use schemars::JsonSchema;
use serde::Serialize;
use std::cell::Cell;

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
    NvmeTsn(nvme_tsn::Args),
    /// NEC, "End-to-End Adaptive Packet Aggregation ...", Hot Interconnects 2014
    #[command(after_help = "Examples:\n  farlane reproduce expether --only table --json\n  \
        farlane reproduce expether --html expether.html")]
    Expether(Options<expether::Part>),
    /// Ports of TSN bridges: figures of other simulators and papers, and cases with exact results
    #[command(after_help = "Examples:\n  farlane reproduce tsn-ports --only gates\n  \
        farlane reproduce tsn-ports --html tsn-ports.html\n\n\
        The exit status is 1 if a case is not as expected.")]
    TsnPorts(Options<tsn_ports::Part>),
    /// Linaro, "Network Latency with Time Sensitive Networking on Virtual Machine"
    #[command(after_help = "Examples:\n  farlane reproduce tsn-vm --only clocks\n  \
        farlane reproduce tsn-vm --html tsn-vm.html\n\n\
        The exit status is 1 if the model contradicts a statement.")]
    TsnVm(Options<tsn_vm::Part>),
}

/// Parts to run, and outputs.
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
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    match &args.publication {
        Publication::NvmeTsn(args) => nvme_tsn::run(args),
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

/// Version of the document.
const SCHEMA: u32 = 1;

/// A reproduced publication. Simulated figures are the same on any machine. Parts that `--only`
/// leaves out have no key.
#[derive(JsonSchema, Serialize)]
#[schemars(rename = "Reproduction")]
pub struct Reproduction<R> {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// Title and authors of the publication.
    source: String,
    #[serde(flatten)]
    results: R,
}

impl<P: ValueEnum + PartialEq + Send + Sync> Options<P> {
    /// Runs the requested parts of the publication `name`, all if none is named, and prints their
    /// results.
    fn run<R: Default + Serialize>(
        &self,
        name: &str,
        citation: String,
        simulate: impl Fn(&P, &mut R) -> Result<Vec<Section>, Failure>,
    ) -> Outcome {
        self.run_parts(&self.only, name, citation, simulate)
    }

    /// [`run`](Self::run) with these parts.
    fn run_parts<R: Default + Serialize>(
        &self,
        only: &[P],
        name: &str,
        citation: String,
        simulate: impl Fn(&P, &mut R) -> Result<Vec<Section>, Failure>,
    ) -> Outcome {
        assign_stdout(self.json, &[("--html", self.html.as_ref())]);
        let mut page = Page::new(&format!("farlane reproduce {name}"));
        page.text(&format!("{citation}: published and simulated."));
        if !self.json {
            println!("{citation}\n");
        }
        let mut document = Reproduction { schema: SCHEMA, source: citation, results: R::default() };
        let mut progress = Progress::new();
        let asked = |part: &&P| only.is_empty() || only.contains(part);
        for part in P::value_variants().iter().filter(asked) {
            let name = part.to_possible_value().map_or_else(String::new, |v| v.get_name().into());
            progress.show(&format!("simulating: {name}"));
            let sections = simulate(part, &mut document.results)?;
            progress.done();
            for section in sections {
                section.write(&mut page);
                if !self.json {
                    println!("{}", section.text());
                }
            }
        }
        let text = json(&document);
        if self.json {
            println!("{text}");
        }
        if let Some(target) = &self.html {
            page.details("JSON", &text);
            target.write(&page.finish(WRITTEN_BY))?;
        }
        Ok(())
    }

    /// [`run`](Self::run) with expected figures. Fails if a figure differs from its expected value.
    fn run_checks(
        &self,
        name: &str,
        citation: String,
        simulate: impl Fn(&P) -> Result<(Vec<Check>, Vec<Section>), Failure>,
    ) -> Outcome {
        let failed = Cell::new(0);
        self.run(name, citation, |part, results: &mut Checks| {
            let (checks, sections) = simulate(part)?;
            results.checks.extend(checks);
            failed.set(results.checks.iter().filter(|check| !check.holds).count());
            Ok(sections)
        })?;
        match failed.get() {
            0 => Ok(()),
            failed => Err(Failure(format!("{failed} figures differ from their expected values"))),
        }
    }
}
