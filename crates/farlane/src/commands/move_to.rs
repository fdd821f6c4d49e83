//! `farlane move`: gives a device to another group of hosts while it runs.

use super::Outcome;
use crate::link_end::LinkEnd;
use crate::node::NodeArgs;
use wire::frame::Role;

/// Move a device to another host while it runs
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  \
    farlane device --listen localhost --namespace ram=1G --group 1\n  \
    farlane host --connect localhost --group 1 --vfio-user /tmp/one\n  \
    farlane host --connect localhost --group 2 --hot-plug --vfio-user /tmp/two\n  \
    farlane move localhost --to 2\n\n\
    The first host finds the link of that port down, and nothing else: its other\n\
    links are not touched. The device resets itself; its data stay. The second\n\
    host, which has tried to connect all the time, offers it as an endpoint.\n\
    Unmount on the first host before: to its driver this is a drive pulled out.")]
pub struct Args {
    /// The device node: HOST[:PORT] or raw:INTERFACE,MAC
    #[arg(value_name = "ADDR")]
    address: String,
    /// The group of the host that is to have it; 0: whoever comes first
    #[arg(long, value_name = "GROUP")]
    to: u16,
    #[command(flatten)]
    node: NodeArgs,
}

/// Runs the command.
///
/// # Errors
/// One line for the user.
pub fn run(args: &Args) -> Outcome {
    let mut end = LinkEnd::connect(&args.address, &args.node, Role::Probe)?;
    end.tunnel.move_to(args.to);
    // The answer to what follows it says that it was read.
    end.tunnel.echo(1);
    end.answer()?;
    end.tunnel.goodbye();
    end.turn()?;
    Ok(())
}
