//! Trace files read back: what one or several nodes saw, on one timeline.
//!
//! [`Run`] opens the files of one run and brings their clocks together;
//! [`Run::analyse`] goes through the TLPs of the point nearest to the host,
//! and [`Run::journey`] tells when each of them was at the other points.

pub mod capture;
pub mod chart;
mod clock;
mod decode;
mod drive;
mod file;
mod index;
mod journey;
mod path;
pub mod perfetto;
mod run;
mod select;
mod stats;
#[cfg(test)]
mod tests;
mod told;
mod trouble;

pub use clock::Offset;
pub use drive::Turn;
pub use file::{Item, TraceFile};
pub use index::{Frame, Index};
pub use journey::{Point, Station};
pub use path::{Leg, Part, Stage, by_part, by_stage, listed, path};
pub use run::{Found, Node, Parent, Run};
pub use select::{Opcode, Selection, Span, parse_time};
pub use stats::{Kind, PartTime, StageTime, Statistics, kind};
pub use told::{InDrive, MediaAccess};
pub use trouble::{Trouble, Troubles};
