//! The targets of the load: nodes and vfio-user servers.

use super::{Args, Failure};
use crate::node::far_side;
use crate::output::wrong_usage;
use load::io::{Completions, LoadTarget};

/// The value of `--completions`.
#[derive(clap::ValueEnum, Clone, Copy, Debug)]
pub enum CompletionsOption {
    /// Wait for interrupts
    Msix,
    /// Poll the completion queues
    Polled,
}

impl From<CompletionsOption> for Completions {
    fn from(option: CompletionsOption) -> Self {
        match option {
            CompletionsOption::Msix => Self::Msix,
            CompletionsOption::Polled => Self::Polled,
        }
    }
}

impl Args {
    /// The targets: first those of `--connect`, then those of `--vfio-user`. Ends the process if
    /// `--trace` cannot record them. Fails as [`far_side`].
    pub fn targets(&self) -> Result<Vec<LoadTarget>, Failure> {
        match (self.connect.len(), self.vfio_user.len()) {
            _ if !self.trace.is_set() => {}
            (1, 0) => {}
            (0, 1) => wrong_usage(
                "--trace does not apply to --vfio-user: data pass through shared memory, not as TLPs; \
                 use --trace of the host node",
            ),
            _ => wrong_usage("--trace applies only to a single --connect"),
        }
        let node = |name: &String| {
            let peer = far_side(name, self.node.keys.protection())?;
            Ok(LoadTarget::Node { name: name.clone(), peer })
        };
        let nodes = self.connect.iter().map(node);
        let servers = self.vfio_user.iter().cloned().map(LoadTarget::VfioUser).map(Ok);
        nodes.chain(servers).collect()
    }
}
