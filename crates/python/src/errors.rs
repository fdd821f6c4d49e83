//! Exceptions of the package, which `farlane.errors` declares.

use plan::{KeyError, Origin};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Returns a `farlane.PlanError` with the place of the first mistake. `text` is the plan's own.
pub fn plan_error(py: Python<'_>, error: &KeyError, (name, text): (&str, &str)) -> PyErr {
    let (file, line, key) = match error.first() {
        Origin::File { file, line, .. } => {
            let other = match **file == *name {
                true => None,
                false => std::fs::read_to_string(&**file).ok(),
            };
            let text = other.as_deref().unwrap_or(text);
            let key = text.lines().nth(line.saturating_sub(1)).and_then(key_of_line);
            (Some(file.to_string()), Some(*line), key.map(str::to_owned))
        }
        Origin::Option(option) => {
            let setting = option.split_once(' ').map_or(&**option, |(_, setting)| setting);
            (None, None, setting.split_once('=').map(|(key, _)| key.to_owned()))
        }
    };
    new(py, "PlanError", (error.to_string(), file, line, key))
}

/// Returns the key that a line of a plan sets.
fn key_of_line(line: &str) -> Option<&str> {
    let (key, _) = line.split_once('=')?;
    let is_key = |one: char| one.is_alphanumeric() || "-_.\"'".contains(one);
    Some(key.trim()).filter(|key| !key.is_empty() && key.chars().all(is_key))
}

/// Returns a `farlane.SimulationError`.
pub fn simulation_error(py: Python<'_>, why: &str) -> PyErr {
    new(py, "SimulationError", (why.to_owned(),))
}

/// Returns a `ValueError`.
pub fn value_error(why: impl ToString) -> PyErr {
    PyValueError::new_err(why.to_string())
}

fn new<'py>(py: Python<'py>, class: &str, arguments: impl pyo3::call::PyCallArgs<'py>) -> PyErr {
    let made =
        py.import("farlane.errors").and_then(|module| module.getattr(class)?.call1(arguments));
    made.map_or_else(|error| error, PyErr::from_value)
}
