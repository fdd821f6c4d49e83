//! Points of a folder, for workers and engines.

use crate::errors::{simulation_error, value_error};
use crate::plan_object::{time, with_watch};
use crate::watch::{Control, whole};
use engines::machine;
use plan::run::points::{Folder, numbers};
use pyo3::prelude::*;
use report::Failure;
use std::path::{Path, PathBuf};

fn open(py: Python<'_>, folder: &Path) -> PyResult<Folder> {
    Folder::open(folder, &machine()).map_err(|Failure(why)| simulation_error(py, &why))
}

/// Runs points one after the other: all, or `only` some, such as `0-9,12`.
#[pyfunction]
pub fn work(
    py: Python<'_>,
    folder: PathBuf,
    only: Option<&str>,
    point_timeout: Option<&str>,
) -> PyResult<()> {
    let folder = open(py, &folder)?;
    let timeout = point_timeout.map(time).transpose()?;
    let only = match only {
        Some(text) => numbers(text).map_err(value_error)?,
        None => (0..folder.count()).collect(),
    };
    let run = |control: &Control| {
        with_watch(control, |watch| engines::work(&folder, &only, Some(1), timeout, watch))
    };
    let failed = whole(py, run)?.map_err(|Failure(why)| simulation_error(py, &why))?;
    match failed.first_key_value() {
        Some((number, why)) => Err(simulation_error(py, &format!("point {number}: {why}"))),
        None => Ok(()),
    }
}

/// Returns the points without results that have not failed.
#[pyfunction]
pub fn missing(py: Python<'_>, folder: PathBuf) -> PyResult<Vec<usize>> {
    Ok(open(py, &folder)?.missing())
}

/// Says why points failed that have no results.
#[pyfunction]
pub fn fail(py: Python<'_>, folder: PathBuf, points: Vec<usize>, why: &str) -> PyResult<()> {
    let folder = open(py, &folder)?;
    let missing = folder.missing();
    for number in points.iter().filter(|number| missing.contains(number)) {
        folder.fail(*number, why)?;
    }
    Ok(())
}
