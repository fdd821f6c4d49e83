//! Targets of the load: nodes, and vfio-user servers.

use live::net::Peer;
use std::fmt;
use std::path::PathBuf;

/// A drive's node or server.
#[derive(Clone, Debug)]
pub enum LoadTarget {
    /// A device or switch node.
    Node {
        /// Name of the node: its address as given.
        name: String,
        /// Resolved address of the node.
        peer: Peer,
    },
    /// The socket of a vfio-user server.
    VfioUser(PathBuf),
}

impl fmt::Display for LoadTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Node { name, .. } => f.write_str(name),
            Self::VfioUser(socket) => socket.display().fmt(f),
        }
    }
}

/// The method of finding completions of a vfio-user server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completions {
    /// By interrupts.
    Msix,
    /// By polling the completion queues all the time.
    Polled,
}

impl Completions {
    /// Returns the name of the method.
    pub fn name(self) -> &'static str {
        match self {
            Self::Msix => "msix",
            Self::Polled => "polled",
        }
    }
}
