//! A whole lab: every bridge, one after the other.

use crate::experiment::Experiment;
use crate::results::LabDocument;
use crate::site::Site;
use crate::{Bridge, check, machine, measure};
use latency_linux::Operator;
use report::Failure;
use tsn::taprio;

/// Measures the bridges, and removes everything; `progress` receives each step. Remains of a killed
/// lab with the same name are removed first.
///
/// # Errors
/// Software gates cannot execute the list, a lab with this name runs, or files cannot be created.
pub fn run(
    experiment: &Experiment,
    bridges: &[Bridge],
    operator: &dyn Operator,
    progress: &mut dyn FnMut(&str),
) -> Result<LabDocument, Failure> {
    let gates = experiment.gates.as_ref();
    gates.map_or(Ok(()), |gates| check::keepable(&gates.list))?;
    let (mut site, left) = Site::open(&experiment.place, operator)?;
    if left > 0 {
        operator.inform(&format!("note: took down what an earlier lab left ({left} things)"));
    }
    experiment.keep.as_ref().map_or(Ok(()), std::fs::create_dir_all)?;
    let mut results = LabDocument {
        schema: 1,
        name: experiment.place.0.clone(),
        ended: "done".to_owned(),
        gates: gates.map_or(String::new(), |gates| taprio::words(&gates.list)),
        machine: machine::settings(),
        bridges: Vec::new(),
    };
    for bridge in bridges {
        results.bridges.push(measure::measure(experiment, *bridge, &mut site, progress));
        if operator.has_stopped() {
            results.ended = "interrupted".to_owned();
            break;
        }
    }
    Ok(results)
}
