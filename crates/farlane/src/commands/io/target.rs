//! What is put under load: nodes, and servers of vfio-user.

use super::Args;
use crate::output::wrong_usage;
use std::fmt;
use std::path::PathBuf;
use vfio_user::client::Doorbells;

/// A drive's node or server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LoadTarget {
    /// `--connect`.
    Connect(String),
    /// `--vfio-user`.
    VfioUser(PathBuf),
}

impl fmt::Display for LoadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connect(address) => f.write_str(address),
            Self::VfioUser(socket) => socket.display().fmt(f),
        }
    }
}

/// How completions of `--vfio-user` are noticed.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completions {
    /// By interrupts.
    Msix,
    /// By looking at the completion queues all the time.
    Polled,
}

impl Args {
    /// The targets: first those of `--connect`, then those of `--vfio-user`. Ends the process if
    /// `--trace` cannot record them.
    pub fn targets(&self) -> Vec<LoadTarget> {
        let nodes = self.connect.iter().cloned().map(LoadTarget::Connect);
        let servers = self.vfio_user.iter().cloned().map(LoadTarget::VfioUser);
        let targets: Vec<LoadTarget> = nodes.chain(servers).collect();
        match &targets[..] {
            _ if !self.trace.is_set() => targets,
            [LoadTarget::Connect(_)] => targets,
            [LoadTarget::VfioUser(_)] => wrong_usage(
                "--trace records TLPs, and none pass here: data move through shared memory; trace \
                 the host node",
            ),
            _ => wrong_usage("--trace records one --connect, not several targets"),
        }
    }
}

/// The value of `--doorbells`.
pub fn parse_doorbells(text: &str) -> Result<Doorbells, String> {
    let found = Doorbells::ALL.into_iter().find(|how| how.name() == text);
    found.ok_or_else(|| {
        format!("'{text}' is none of {}", Doorbells::ALL.map(|h| h.name()).join(", "))
    })
}
