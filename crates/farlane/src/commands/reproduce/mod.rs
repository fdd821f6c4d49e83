//! `farlane reproduce`: published experiments, simulated.

mod expether;
mod nvme_tsn;

use super::Outcome;
use crate::progress::Progress;
use crate::stdout::assign_stdout;
use clap::{Subcommand, ValueEnum};
use papers::Section;
use report::target::Target;
use report::{Failure, Page};
use serde::Serialize;

/// Simulate a published experiment and print both side by side
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  farlane reproduce nvme-tsn\n  \
    farlane reproduce nvme-tsn --only table --json\n  \
    farlane reproduce expether --html expether.html\n\n\
    Virtual time: the same figures on any machine.")]
pub struct Args {
    #[command(subcommand)]
    publication: Publication,
}

/// The publication.
#[derive(Subcommand, Debug)]
enum Publication {
    /// Missing Link Electronics, "Latency Analysis for NVMe/TSN"
    #[command(after_help = "Examples:\n  farlane reproduce nvme-tsn --only table --json\n  \
        farlane reproduce nvme-tsn --html nvme-tsn.html")]
    NvmeTsn(Options<nvme_tsn::Part>),
    /// NEC, "End-to-End Adaptive Packet Aggregation ...", Hot Interconnects 2014
    #[command(after_help = "Examples:\n  farlane reproduce expether --only table --json\n  \
        farlane reproduce expether --html expether.html")]
    Expether(Options<expether::Part>),
}

/// Which parts run, and where the results go.
#[derive(clap::Args, Debug)]
struct Options<P: ValueEnum + Send + Sync + 'static> {
    /// Only these parts
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<P>,
    /// One JSON document instead of tables; docs/json.md describes it
    #[arg(long)]
    json: bool,
    /// Also write a self-contained page with plots; with - to standard output,
    /// in place of the text
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    match &args.publication {
        Publication::NvmeTsn(options) => nvme_tsn::run(options),
        Publication::Expether(options) => expether::run(options),
    }
}

/// A publication with the document of its results.
struct Reproduction<'a, D> {
    /// What the command calls it.
    name: &'static str,
    /// Title and authors.
    citation: &'a str,
    /// The document of `--json`, to be filled.
    document: D,
}

impl<D: Serialize> Reproduction<'_, D> {
    /// Runs the requested parts, all if none is named, and prints their results.
    fn run<P>(
        mut self,
        options: &Options<P>,
        mut simulate: impl FnMut(&P, &mut D) -> Result<Vec<Section>, Failure>,
    ) -> Outcome
    where
        P: ValueEnum + PartialEq + Send + Sync,
    {
        assign_stdout(options.json, &[("--html", options.html.as_ref())])?;
        let mut page = Page::new(&format!("farlane reproduce {}", self.name));
        page.text(&format!("{}: published and simulated.", self.citation));
        if !options.json {
            println!("{}\n", self.citation);
        }
        let mut progress = Progress::new();
        let asked = |part: &&P| options.only.is_empty() || options.only.contains(part);
        for part in P::value_variants().iter().filter(asked) {
            let name = part.to_possible_value().map_or_else(String::new, |v| v.get_name().into());
            progress.show(&format!("simulating: {name}"));
            let sections = simulate(part, &mut self.document)?;
            progress.done();
            for section in sections {
                section.write(&mut page);
                if !options.json {
                    println!("{}", section.text());
                }
            }
        }
        let text = crate::commands::json(&self.document);
        if options.json {
            println!("{text}");
        }
        if let Some(target) = &options.html {
            page.details("JSON", &text);
            let page = page.finish(&format!("Written by farlane {}.", env!("CARGO_PKG_VERSION")));
            target.write(&page)?;
        }
        Ok(())
    }
}
