//! Jobs in fio's terms on live drives, for `farlane io`.
//!
//! A [`Request`] describes the work. A [`Session`] is a target with its drive. A [`Runner`] runs
//! the groups of sections on each target in turn. A [`Recorder`] stores the results of each
//! section.

mod attach;
mod beside;
mod further;
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

pub use machine::{Client, Event, InitiatorMachine};
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

/// The action after an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnError {
    /// End the run.
    Stop,
    /// Continue, and wait for a drive whose link is lost.
    Continue,
}

/// Settings of the targets and of the end of a run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Action after an error or a lost link.
    pub on_error: OnError,
    /// Maximum time to wait for a drive whose link is lost.
    pub reconnect: Duration,
    /// Maximum time to wait for a node at the start.
    pub wait: Duration,
    /// Index of the drive behind a node, from 0; required if there are several drives.
    pub drive: Option<usize>,
    /// The group of hosts that this host belongs to.
    pub group: u16,
    /// Method of ringing doorbells of vfio-user servers.
    pub doorbells: Doorbells,
    /// Method of finding completions of vfio-user servers.
    pub completions: Completions,
    /// Settings of push.
    pub push: push::Settings,
    /// I/O queue pairs per connection of a link to a node; `None`: a link has one connection.
    pub queues_per_link: Option<u16>,
    /// Settings of the host node.
    pub node: NodeSettings,
    /// Target of the host node's trace.
    pub trace: TraceTarget,
}
