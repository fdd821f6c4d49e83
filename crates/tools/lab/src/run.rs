//! A whole lab: every bridge, one after the other.

use crate::experiment::Experiment;
use crate::results::Results;
use crate::site::Site;
use crate::{Bridge, check, machine, measure};
use latency_linux::Operator;
use report::Failure;
use tsn::taprio;

/// Measures the bridges, and takes everything down; `progress` is told what is done now. What a lab
/// of the same name left that was killed is taken down first.
///
/// # Errors
/// Software gates cannot keep the list; a lab of this name runs; files cannot be made.
pub fn run(
    experiment: &Experiment,
    bridges: &[Bridge],
    operator: &dyn Operator,
    progress: &mut dyn FnMut(&str),
) -> Result<Results, Failure> {
    if let Some((list, _)) = &experiment.gates {
        check::keepable(list)?;
    }
    let (mut site, left) = Site::open(&experiment.place, operator)?;
    if left > 0 {
        operator.inform(&format!("note: took down what an earlier lab left ({left} things)"));
    }
    if !experiment.keep.is_empty() {
        std::fs::create_dir_all(&experiment.keep)?;
    }
    let list = experiment.gates.as_ref();
    let mut results = Results {
        schema: 1,
        name: experiment.place.0.clone(),
        ended: "done".to_owned(),
        gates: list.map_or(String::new(), |(list, _)| taprio::words(list)),
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
