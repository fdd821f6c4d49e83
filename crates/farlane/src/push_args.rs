//! The options of push.

use ::node::push::{Mode, Settings};
use clap::Args;
use report::span;
use std::fmt::{self, Display, Formatter};

/// Options of host nodes.
#[derive(Args, Clone, Debug)]
pub struct PushArgs {
    /// What goes to NVMe controllers in front of a doorbell, so that they need not fetch it: off
    /// (nothing), entries (submission queue entries) or all (also PRP and SGL lists, and data for
    /// the drive)
    #[arg(long, value_name = "WHAT", default_value_t = Mode::All)]
    push: Mode,
    /// Bytes pushed over a link for the commands that are not complete
    #[arg(long, value_name = "SIZE", default_value_t = Settings::default().bound as u64, value_parser = span::bytes)]
    push_bound: u64,
}

/// What is pushed.
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
