//! What is put under load: nodes, and servers of vfio-user.

use live::net::Peer;
use std::fmt;
use std::path::PathBuf;

/// A drive's node or server.
#[derive(Clone, Debug)]
pub enum LoadTarget {
    /// A device or switch node.
    Node {
        /// Its address as it was given.
        name: String,
        /// Where it is.
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

/// How completions of a vfio-user server are noticed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Completions {
    /// By interrupts.
    Msix,
    /// By looking at the completion queues all the time.
    Polled,
}

impl Completions {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Msix => "msix",
            Self::Polled => "polled",
        }
    }
}
