//! Experiments with `farlane latency` on one machine: talker – bridge – listener are built,
//! measured and taken down ([`run`]), or printed as lines of a shell ([`script`], [`boards`]). What
//! came of it is shown here ([`show`]), and what came of single runs ([`view`]).

pub mod boards;
mod bridge;
mod cables;
mod check;
mod child;
mod ends;
mod experiment;
mod journal;

mod machine;
mod measure;
mod place;
mod reads;
mod results;
mod run;
pub mod script;
pub mod show;
mod site;
mod step;
mod stress;
mod threads;
pub mod view;
mod window;

pub use boards::Boards;
pub use bridge::Bridge;
pub use cables::Far;
pub use experiment::Experiment;

pub use place::Place;
pub use results::Results;
pub use run::run;
pub use stress::Stress;
pub use window::{Gates, absolute};
