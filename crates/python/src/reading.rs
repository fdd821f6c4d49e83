//! Traces, samples and reproduced publications.

use crate::errors::{simulation_error, value_error};
use crate::table::Table;
use crate::watch::whole;
use analysis::trace_report::command_rows;
use papers::Simulation;
use pyo3::prelude::*;
use report::Failure;
use std::fs::File;
use std::path::PathBuf;

/// Reads the traces of the nodes of one run: a row for each command.
#[pyfunction]
pub fn read_trace(py: Python<'_>, files: Vec<PathBuf>) -> PyResult<Table> {
    let rows = whole(py, |_| command_rows(&files))?.map_err(value_error)?;
    Table::new(rows.into()).map_err(value_error)
}

/// Reads a CSV or Parquet file with one row per event.
#[pyfunction]
pub fn read_samples(py: Python<'_>, file: PathBuf) -> PyResult<Table> {
    let failed = |error| value_error(format!("{}: {error}", file.display()));
    let rows = whole(py, |_| columns::Table::read(File::open(&file)?))?.map_err(failed)?;
    Table::new(rows).map_err(value_error)
}

/// Simulates parts of a publication, all if none is named. Returns the JSON document.
#[pyfunction]
pub fn reproduce(py: Python<'_>, publication: &str, only: Vec<String>) -> PyResult<String> {
    let simulate = papers::reproduce(publication, &only).map_err(value_error)?;
    let document = whole(py, |control| {
        let lab = |simulation: Simulation| match control.is_stopped() {
            true => Err(Failure("interrupted".to_owned())),
            false => Ok(simulation.config),
        };
        simulate(&lab)
    })?;
    document.map(|document| document.to_string()).map_err(|why| simulation_error(py, &why.0))
}
