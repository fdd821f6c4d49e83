//! Plans of the simulations of a publication, and simulations with other settings.

use crate::output::{note, wrong_usage};
use crate::plan_args::with_settings;
use papers::{Row, Simulation};
use plan::{KeyError, Origin, Plan};
use report::target::Target;
use report::{Failure, Outcome};
use sim::Config;
use std::cell::RefCell;
use std::path::Path;

/// The simulations that ran.
#[derive(Default)]
pub(super) struct Simulations(RefCell<Vec<Simulation>>);

impl Simulations {
    /// Keeps a simulation from which figures follow.
    pub fn keep(&self, simulation: Simulation) -> Config {
        let config = simulation.config.clone();
        if !simulation.rows.is_empty() {
            self.0.borrow_mut().push(simulation);
        }
        config
    }

    /// Returns whether a figure follows from a simulation.
    #[cfg(test)]
    pub fn has(&self, figure: &str) -> bool {
        self.0.borrow().iter().any(|one| one.rows.iter().any(|row| row == figure))
    }

    /// Returns all simulations from which figures follow.
    #[cfg(test)]
    pub fn all(&self) -> Vec<Simulation> {
        self.0.borrow().clone()
    }

    /// Writes a plan of each simulation into `folder`, with its figures as a comment. Notes each
    /// figure without a plan. `source` returns publication and section of a figure.
    pub fn write<R: Row>(
        &self,
        folder: &Path,
        rows: &[R],
        source: impl Fn(&str) -> String,
    ) -> Outcome {
        let failed = |error| Failure(format!("cannot create {}: {error}", folder.display()));
        std::fs::create_dir_all(folder).map_err(failed)?;
        let simulations = self.0.borrow();
        for row in rows.iter().map(Row::name) {
            if !simulations.iter().any(|simulation| simulation.rows.contains(&row)) {
                note(format_args!("no plan of {row}: no simulation has this figure"));
            }
        }
        for (at, Simulation { name, rows: figures, config }) in simulations.iter().enumerate() {
            let text = match plan::write(config) {
                Ok(text) => text,
                Err(error) => {
                    note(format_args!("no plan of {}: {error}", figures.join(", ")));
                    continue;
                }
            };
            let mut comment = format!("# {}\n", source(&figures[0]));
            for row in rows.iter().filter(|row| figures.contains(&row.name())) {
                let (name, unit, [published, simulated]) = (row.name(), row.unit(), row.values());
                comment += &format!("# {name}: {published} {unit} published, {simulated} {unit}");
                let plans = simulations.iter().filter(|one| one.rows.contains(&name)).count();
                comment += &match plans {
                    1 => " simulated\n".to_owned(),
                    plans => format!(" simulated, from {plans} plans\n"),
                };
            }
            let same = |some: &[Simulation]| some.iter().filter(|one| one.name == *name).count();
            let file = match (same(&simulations), same(&simulations[..at])) {
                (1, _) => format!("{name}.toml"),
                (_, before) => format!("{name}-{}.toml", before + 1),
            };
            Target::File(folder.join(file)).write(&format!("{comment}\n{text}"))?;
        }
        Ok(())
    }
}

/// Returns the configuration of a simulation with these settings. A mistake in a setting ends the
/// process.
pub(super) fn changed(simulation: &Simulation, set: &[String]) -> Result<Config, Failure> {
    let Simulation { name, config, .. } = simulation;
    let text = plan::write(config).map_err(|error| format!("no plan of {name}: {error}"))?;
    let plan = Plan::parse(name, &text).and_then(|plan| with_settings(plan, set));
    let refused = |error: KeyError| match error.origin {
        Origin::Option(_) => wrong_usage(format!("{error} (plan {name})")),
        Origin::File { .. } => Failure(error.to_string()),
    };
    Ok(plan.and_then(|plan| plan.build()).map_err(refused)?.config)
}
