//! `--sandbox`: what a node gives up when it starts.

use crate::node::NodeArgs;
use crate::output::warning;
use crate::trace_args::TraceArgs;
use clap::Args;
use live::NodeSettings;
use live::net::{Address, Peer};
use report::Failure;
use sandbox::{Access, InForce, Layers, Needs};
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use storage::media::{Aio, Backing};

/// The option of device, host and switch nodes.
#[derive(Args, Clone, Debug)]
pub struct SandboxArgs {
    /// Restrictions of the running node: on, off, or a list of capabilities, landlock and seccomp.
    /// docs/security.md describes them
    #[arg(long, value_name = "LAYERS", default_value_t = Layers::ON)]
    sandbox: Layers,
}

impl SandboxArgs {
    /// Restricts this process for good; print the result once the node has started. Call it before
    /// other threads start: they are not restricted. Fails as [`sandbox::restrict`].
    pub fn enter(&self, needs: &Needs) -> Result<InForce, Failure> {
        if self.sandbox != Layers::OFF
            && let Ok(threads @ 2..) = sandbox::threads()
        {
            warning(format_args!("{} threads started before the sandbox", threads - 1));
        }
        let entered = sandbox::restrict(self.sandbox, needs);
        entered.map_err(|error| Failure(format!("cannot enter the sandbox: {error}")))
    }
}

/// The needs that all nodes share: links with `addresses`, the file of a trace, and the files that a
/// running node reads again.
pub fn needs_of<'a>(
    args: &NodeArgs,
    node: &NodeSettings,
    trace: &TraceArgs,
    addresses: impl IntoIterator<Item = &'a Address>,
) -> Needs {
    let mut needs = Needs {
        packet_sockets: addresses.into_iter().any(|address| matches!(address, Address::Raw(_))),
        high_priority: node.marking.priority == Some(7),
        ..Needs::default()
    };
    if let Some(file) = trace.target().file() {
        needs.file(&file.settings.path, Access::Write);
    }
    let keys = node.credentials.iter().flat_map(|credentials| credentials.files());
    let own = args.file.iter().map(|file| file.path.clone());
    keys.chain(own).for_each(|file| needs.file(&file, Access::Read));
    needs
}

/// The TCP ports of the peers.
pub fn ports(peers: &[Peer]) -> Vec<u16> {
    let port = |address: &Address| match address {
        Address::Tcp(address) => Some(address.port()),
        Address::Raw(_) | Address::Other(_) => None,
    };
    peers.iter().flat_map(Peer::paths).flat_map(Peer::addresses).filter_map(port).collect()
}

/// Adds what a namespace needs: its file, and the record next to it; for RAM, the limit of the
/// control group.
pub fn add_backing(needs: &mut Needs, backing: &Backing) {
    add_proc(needs);
    let Backing::File { path, options } = backing else {
        return needs.path("/sys/fs/cgroup", Access::Read);
    };
    needs.io_uring |= options.aio != Aio::Threads;
    let access = if options.read_only { Access::Read } else { Access::Write };
    needs.file(path, access);
    if !path.metadata().is_ok_and(|found| found.file_type().is_block_device()) {
        return;
    }
    // The device's state and users, through links from `/sys/dev/block`.
    needs.path("/sys", Access::Read);
    let Ok(device) = path.canonicalize() else { return };
    if options.read_only {
        let mut record = device.into_os_string();
        record.push(".farlane");
        needs.path(record, Access::Read);
    } else {
        // The record is replaced by rename. This opens the other devices of the folder too; a
        // device node in a folder of its own prevents it.
        needs.path(device.parent().unwrap_or(Path::new("/")), Access::Write);
    }
}

/// Adds what a drive in a folder needs.
pub fn add_drive(needs: &mut Needs, folder: &Path) {
    needs.io_uring = true;
    add_proc(needs);
    needs.path(folder, Access::Write);
}

/// Adds `/proc`: the ID of the boot, free memory, and descriptors of this process. Landlock denies
/// what belongs to other processes and needs the rights of ptrace(2), such as their memory.
pub fn add_proc(needs: &mut Needs) {
    needs.path("/proc", Access::Read);
}
