//! Reads the trace files of one or several nodes and puts them on one timeline.
//!
//! [`Run`] opens the files of one run and aligns their clocks. [`Run::analyse`] processes the TLPs
//! of the point nearest to the host. [`Run::locations`] returns the times of each TLP at the other
//! points.

mod anomalies;
pub mod capture;
pub mod chart;
mod clock;
pub mod compare;
mod decode;
mod drive;
mod drive_timing;
mod file;
mod follow;
mod index;
mod locations;
pub mod measures;
mod path;
pub mod perfetto;
mod push;
pub mod rings;
mod run;
mod select;
mod stats;
#[cfg(test)]
mod tests;

pub use anomalies::{Anomalies, Anomaly};
pub use clock::ClockOffset;
pub use drive::StateChange;
pub use drive_timing::{DriveTiming, MediaAccess};
pub use file::{Item, TraceFile};
pub use follow::PortFollower;
pub use index::{Frame, Index};
pub use locations::{Location, Point};
pub use measures::{Measure, MeasureKind};
pub use path::{Leg, Part, Stage, by_part, by_stage, listed, path};
pub use push::PushTotals;
pub use run::{Finding, Node, Parent, Run};
pub use select::{Opcode, Selection, Span, parse_time};
pub use stats::{CommandType, FromPush, PartTime, Spread, StageTime, Statistics, kind};
