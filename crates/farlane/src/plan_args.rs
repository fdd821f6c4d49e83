//! The plan of a run, and settings that change it.

use crate::output::wrong_usage;
use clap::Args;
use plan::run::tables::TableFolders;
use plan::run::text_with_settings;
use plan::{KeyError, Origin, Plan, Planned};
use report::Failure;
use std::path::{Path, PathBuf};

/// A plan and changes of its keys.
#[derive(Args, Clone, Debug)]
pub struct PlanArgs {
    /// Plan (TOML)
    #[arg(value_name = "PLAN")]
    plan: PathBuf,
    /// Set a key of the plan, given by its dotted path, such as link.rate=10G; repeatable
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

impl PlanArgs {
    /// The plan's file, as given.
    pub fn name(&self) -> String {
        self.plan.display().to_string()
    }

    /// The plan's file, and the settings.
    pub fn source(&self) -> (&Path, &[String]) {
        (&self.plan, &self.set)
    }

    /// Reads the plan. A mistake in an option ends the process.
    pub fn read(&self) -> Result<Plan, Failure> {
        with_settings(Plan::read(&self.plan)?, &self.set).map_err(refused)
    }

    /// The text of the plan, with the options as comments.
    pub fn text(&self, plan: &Plan) -> String {
        text_with_settings(&plan.text, &self.set)
    }
}

/// Returns the plan with the settings of `--set`.
pub fn with_settings(plan: Plan, set: &[String]) -> Result<Plan, KeyError> {
    set.iter().try_fold(plan, |plan, text| {
        let (key, value) = text.split_once('=').unwrap_or_else(|| {
            wrong_usage(format!("invalid value '{text}' for --set: expected KEY=VALUE"))
        });
        plan.with(key, value, "--set")
    })
}

/// Builds a plan. A mistake in an option ends the process.
pub fn built(plan: &Plan) -> Result<Planned, Failure> {
    plan.build().map_err(refused)
}

/// A mistake in the plan is a failure. A mistake in an option ends the process.
pub fn refused(error: KeyError) -> Failure {
    match error.origin {
        Origin::Option(_) => wrong_usage(error),
        Origin::File { .. } => Failure(error.to_string()),
    }
}

/// Folders for tables.
#[derive(Args, Clone, Debug)]
pub struct TableArgs {
    /// Write tables of commands, stages, links, streams and histograms as CSV files into the folder
    /// DIR, which must be empty
    #[arg(long, value_name = "DIR")]
    csv: Option<PathBuf>,
    /// Write the tables of --csv as Parquet files
    #[arg(long, value_name = "DIR")]
    parquet: Option<PathBuf>,
}

impl TableArgs {
    /// The folders.
    pub fn folders(&self) -> TableFolders {
        let (csv, parquet) = (self.csv.clone(), self.parquet.clone());
        TableFolders { csv, parquet, frames: false }
    }
}
