//! `farlane move`: moves a running device to another group of hosts.

use super::{Failure, Outcome};
use crate::link_end::LinkEnd;
use crate::node::{NodeArgs, group_name};
use wire::frame::{HostAfter, MoveStatus, Moved, Role};

/// Move a device to another group of hosts while the device runs
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  \
    farlane device --listen localhost --namespace ram=1G --group 1\n  \
    farlane host --connect localhost --group 1 --vfio-user /tmp/one\n  \
    farlane host --connect localhost --group 2 --hot-plug --vfio-user /tmp/two\n  \
    farlane move localhost --group 2\n\n\
    Unmount on the first host before the move: its driver sees a surprise removal.\n\
    Only the link of that port goes down. The device resets itself and keeps its data.\n\
    The second host connects and offers the device as an endpoint.\n\n\
    Switch nodes and device nodes without --group cannot be moved. A device node with\n\
    --group 0 accepts any host until it is moved.")]
pub struct Args {
    /// Device node: HOST[:PORT] or raw:INTERFACE,MAC
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// New group of the device; 0 is any host
    #[arg(long, value_name = "GROUP")]
    group: u16,
    #[command(flatten)]
    node: NodeArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let mut end = LinkEnd::connect(&args.address, &args.node, Role::Probe)?;
    let answer = end.move_to(args.group)?;
    end.close()?;
    let refused = |why: &str| Err(Failure(format!("{}: not moved: {why}", args.address)));
    match answer.status {
        MoveStatus::Done => {}
        MoveStatus::Fixed => return refused("the node was started without --group"),
        MoveStatus::Switch => return refused("a switch node cannot be moved"),
        MoveStatus::Unauthorized => {
            return refused("the key of this node lacks the right move there");
        }
        MoveStatus::Other(reason) => {
            return refused(&format!("unknown reason {reason}"));
        }
    }
    lines(&args.address, &answer).iter().for_each(|line| eprintln!("{line}"));
    Ok(())
}

/// The lines on stderr: result of the move and next steps.
fn lines(address: &str, answer: &Moved) -> Vec<String> {
    let [from, to] = [answer.from, answer.to].map(group_name);
    let host = match answer.host {
        HostAfter::None => "no host was attached",
        HostAfter::Stays => "its host stays attached",
        HostAfter::Disconnected => "its host is detached",
    };
    let mut lines = vec![format!("{address}: moved from {from} to {to}; {host}")];
    if answer.host == HostAfter::Disconnected {
        lines.push(
            "the driver of that host sees a surprise removal; unmount drives before a move".into(),
        );
    }
    if answer.host != HostAfter::Stays && !answer.awaited {
        lines.push(match answer.to {
            0 => "no host is waiting for the device".to_owned(),
            _ => format!("no host of {to} is waiting for the device"),
        });
    }
    lines
}
