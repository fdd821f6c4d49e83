//! The options of push.

use crate::output::one_of;
use ::node::push::{Mode, Settings};
use clap::Args;
use report::span;
use std::fmt::{self, Display, Formatter};

/// Options of host nodes.
#[derive(Args, Clone, Debug)]
pub struct PushArgs {
    /// What the host sends to NVMe controllers before a doorbell. off: nothing; entries: submission
    /// queue entries; all: also PRP and SGL lists and the data of writes
    #[arg(long, value_name = "MODE", default_value_t = Mode::All, value_parser = one_of(Mode::ALL, Mode::name))]
    push: Mode,
    /// Limit of pushed bytes per link for commands without a completion entry
    #[arg(long, value_name = "BYTES", default_value_t = Settings::default().bound as u64, value_parser = span::bytes)]
    push_bound: u64,
}

/// Formats the mode as on the command line.
impl Display for PushArgs {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        self.push.fmt(f)
    }
}

impl PushArgs {
    /// The settings of a host node.
    pub fn settings(&self) -> Settings {
        let bound = usize::try_from(self.push_bound).unwrap_or(usize::MAX);
        Settings { mode: self.push, bound }
    }
}
