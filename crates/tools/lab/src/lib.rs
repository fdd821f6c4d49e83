//! Experiments with `farlane latency` on one machine. Talker, bridge and listener are built,
//! measured and removed ([`run`]), or printed as shell scripts ([`script`], [`boards`]). [`show`]
//! presents the results of a lab, [`view`] the results of single runs.
//!
//! # Modules
//!
//! - `run`: a whole lab: all bridges in turn
//! - `experiment`: the set-up and the runs of one bridge
//! - `measure`: builds one bridge, measures, and takes the bridge down
//! - `place`: names and addresses of the lab's network
//! - `bridge`: the kinds of bridges
//! - `cables`: the namespaces and the links between them
//! - `ends`: the interfaces of talker and listener
//! - `step`: the lab's actions as shell lines
//! - `site`: runs steps and programs, and undoes them
//! - `journal`: the actions to undo, on disk
//! - `child`: programs that the lab started
//! - `threads`: CPUs of the talker and of kernel threads
//! - `window`: gates, and the window of the measured frames
//! - `stress`: load by iperf3
//! - `reads`: NVMe reads through the bridge
//! - `check`: possible and active settings of the kernel
//! - `machine`: properties of the machine
//! - `results`: the document of the lab
//! - `twin`: the experiment in the simulator, beside its measurement
//! - [`show`]: the results as text and page
//! - [`view`]: documents of talkers and listeners as text, page and rows
//! - [`script`]: the lab as a shell script
//! - [`boards`]: the lab as two scripts, one per board

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
mod twin;
pub mod view;
mod window;

pub use boards::Boards;
pub use bridge::Bridge;
pub use cables::Far;
pub use experiment::Experiment;

pub use place::Place;
pub use results::LabDocument;
pub use run::run;
pub use stress::Stress;
pub use window::{Gates, absolute};
