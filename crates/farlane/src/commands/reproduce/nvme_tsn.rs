//! `farlane reproduce nvme-tsn`.

use super::Options;
use crate::output::note;
use crate::plan_args::{refused, with_settings};
use clap::ValueEnum;
use papers::nvme_tsn::{
    self, ChangedFigure, Depth, NvmeTsnParameter, PushedTunnel, Requests, Speed, Tables, TsnRead,
    published,
};
use papers::{Figure, Section};
use plan::Plan;
use report::target::Target;
use report::{Failure, Outcome};
use schemars::JsonSchema;
use serde::Serialize;
use sim::Config;
use std::path::{Path, PathBuf};

/// Parts, outputs, plans and settings.
#[derive(clap::Args, Debug)]
pub struct Args {
    #[command(flatten)]
    options: Options<Part>,
    /// Write the simulation of each figure as a plan for `farlane sim`, into the folder DIR. Runs
    /// only the part table
    #[arg(long, value_name = "DIR", conflicts_with = "only")]
    plan: Option<PathBuf>,
    /// Set a key of these plans, such as drive.reads_in_flight=4; repeatable. Shows how the figures
    /// change. Runs only the part table
    #[arg(long, value_name = "KEY=VALUE", conflicts_with_all = ["only", "plan"])]
    set: Vec<String>,
}

/// A part of the experiment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Part {
    /// Published and simulated figures, and the parameters
    Table,
    /// Possible causes of the published read latency over TSN
    TsnRead,
    /// Latencies at 10, 25, 50 and 100 Gb/s
    Speeds,
    /// Effect of push compared with a directly attached drive, at 1 to 100 Gb/s
    Push,
    /// Time per command by queue depth
    Depth,
    /// Sweep of MPS, MRRS and reads in flight
    Mrrs,
}

/// Results of the parts that ran.
#[derive(Default, JsonSchema, Serialize)]
pub struct NvmeTsnResults {
    /// Part `table`: the published figures, in this order: `config_read_direct`, `_tcp`, `_tsn`,
    /// `t_tunnel_tcp`, `_tsn` in ns, `read_4k_direct`, `_tcp`, `_tsn`, `write_4k_direct`, `_tcp`,
    /// `_tsn` in us.
    #[serde(skip_serializing_if = "Option::is_none")]
    rows: Option<Vec<Figure>>,
    /// Only with `--set`: the settings, which differ from the publication's.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    set: Vec<String>,
    /// Only with `--set`: the figures with the publication's settings and with those of `set`.
    #[serde(skip_serializing_if = "Option::is_none")]
    changed: Option<Vec<ChangedFigure>>,
    /// Part `table`: the parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    parameters: Option<Vec<NvmeTsnParameter>>,
    /// Part `tsn-read`: possible causes of the published read over TSN.
    #[serde(skip_serializing_if = "Option::is_none")]
    tsn_read: Option<TsnRead>,
    /// Part `speeds`: one element per topology and rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    speeds: Option<Vec<Speed>>,
    /// Part `push`: one element per topology and rate.
    #[serde(skip_serializing_if = "Option::is_none")]
    push: Option<Vec<PushedTunnel>>,
    /// Part `depth`: one element per workload, rate and depth.
    #[serde(skip_serializing_if = "Option::is_none")]
    depth: Option<Vec<Depth>>,
    /// Part `mrrs`: a sweep of payload and request sizes.
    #[serde(skip_serializing_if = "Option::is_none")]
    requests: Option<Requests>,
}

/// Runs the requested parts.
pub(super) fn run(args: &Args) -> Outcome {
    let Args { options, plan, set } = args;
    let published = published();
    let citation = published.citation();
    let only = if plan.is_some() || !set.is_empty() { &[Part::Table][..] } else { &options.only };
    // Mistakes in settings are found before anything runs.
    let changed = changed(set)?;
    options.run_parts(only, "nvme-tsn", citation, |part, results: &mut NvmeTsnResults| {
        let mut sections = simulate(part, results)?;
        let Some(rows) = &results.rows else { return Ok(sections) };
        if let Some(folder) = plan {
            write_plans(folder, &published, rows)?;
        }
        if !set.is_empty() {
            let before = Tables { rows: rows.clone() };
            let after = nvme_tsn::tables(&published, changed.clone())?;
            let all = ChangedFigure::all(&before, &after);
            sections.push(ChangedFigure::section(&all, set));
            (results.set, results.changed) = (set.clone(), Some(all));
        }
        Ok(sections)
    })
}

/// Returns the simulations of the part `table` with these settings.
fn changed(set: &[String]) -> Result<Vec<(String, Config)>, Failure> {
    let change = |(row, config): (String, Config)| {
        let text = plan::write(&config)?;
        let plan = Plan::parse(&row, &text).and_then(|plan| with_settings(plan, set));
        let planned = plan.and_then(|plan| plan.build()).map_err(refused)?;
        Ok((row, planned.config))
    };
    let all = nvme_tsn::simulations().into_iter();
    all.filter(|_| !set.is_empty()).map(change).collect()
}

/// Writes the plan of each row's simulation, with the figures as a comment.
fn write_plans(folder: &Path, published: &nvme_tsn::Published, rows: &[Figure]) -> Outcome {
    let failed = |error| Failure(format!("cannot create {}: {error}", folder.display()));
    std::fs::create_dir_all(folder).map_err(failed)?;
    for (name, config) in nvme_tsn::simulations() {
        let row = rows.iter().find(|row| row.figure == name).expect("a row of the table");
        let text = plan::write(&config)?;
        let Figure { unit, published: figure, simulated, .. } = row;
        let comment = format!(
            "# {}, {}\n# {name}: {figure} {unit} published, {simulated} {unit} simulated\n\n",
            published.citation(),
            published.source(&name),
        );
        let path = folder.join(&name).with_extension("toml");
        Target::File(path).write(&(comment + &text))?;
    }
    let folder = folder.display();
    note(format_args!("{folder} has no plans of t_tunnel, which follows from configuration reads"));
    Ok(())
}

fn simulate(part: &Part, results: &mut NvmeTsnResults) -> Result<Vec<Section>, Failure> {
    let published = published();
    Ok(match part {
        Part::Table => {
            let tables: Tables = nvme_tsn::tables(&published, nvme_tsn::simulations())?;
            let sections = vec![tables.section(&published), nvme_tsn::parameter_section()];
            results.rows = Some(tables.rows);
            results.parameters = Some(nvme_tsn::parameters());
            sections
        }
        Part::TsnRead => {
            let result = nvme_tsn::tsn_read::simulate(&published)?;
            vec![nvme_tsn::tsn_read::section(results.tsn_read.insert(result))]
        }
        Part::Speeds => {
            let result = nvme_tsn::speeds::simulate()?;
            vec![nvme_tsn::speeds::section(results.speeds.insert(result))]
        }
        Part::Push => {
            let result = nvme_tsn::push::simulate()?;
            vec![nvme_tsn::push::section(results.push.insert(result))]
        }
        Part::Depth => {
            let result = nvme_tsn::depth::simulate()?;
            vec![nvme_tsn::depth::section(results.depth.insert(result))]
        }
        Part::Mrrs => {
            let result = nvme_tsn::requests::simulate()?;
            vec![nvme_tsn::requests::section(results.requests.insert(result))]
        }
    })
}
