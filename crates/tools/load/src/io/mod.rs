//! Jobs in fio's words on live drives: what `farlane io` runs.
//!
//! A [`Request`] says what to do. A [`Session`] is a target with its drive, a [`Runner`] runs the
//! groups of sections on the targets in turn, and a [`Recorder`] for each section has what they came
//! to.

mod attach;
mod beside;
mod group;
pub mod job_file;
mod machine;
mod peer;
mod record;
mod run;
mod samples;
mod section;
mod session;
mod target;

pub use machine::{Client, Event, IoTarget};
pub use peer::Process;
pub use record::{Bin, Outage, Recorder, Row, Timeline};
pub use run::{End, GroupResult, Runner};
pub use samples::{Samples, SharedSamples};
pub use section::{KEYS, Request, Section, Setting, Verify, section};
pub use session::Session;
pub use target::{Completions, LoadTarget};

use crate::TraceTarget;
use live::NodeSettings;
use node::push;
use vfio_user::client::Doorbells;
use wire::Duration;

/// What to do after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// End the run.
    Stop,
    /// Go on, and wait for a drive whose link is lost.
    Continue,
}

/// How targets are reached, and when a run ends.
#[derive(Clone, Debug)]
pub struct Settings {
    /// After an error or with a lost link.
    pub on_error: OnError,
    /// How long to wait for a drive whose link is lost.
    pub reconnect: Duration,
    /// How long to wait for a node at the start.
    pub wait: Duration,
    /// Which drive behind a node, from 0; needed if there are several.
    pub drive: Option<usize>,
    /// The group of hosts that this host belongs to.
    pub group: u16,
    /// How doorbells of vfio-user servers are rung.
    pub doorbells: Doorbells,
    /// How completions of vfio-user servers are noticed.
    pub completions: Completions,
    /// What is pushed.
    pub push: push::Settings,
    /// How the host node waits and sends.
    pub node: NodeSettings,
    /// What the host node records.
    pub trace: TraceTarget,
}
