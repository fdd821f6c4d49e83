//! `farlane switch`: a second switch behind the first.

use super::Outcome;
use crate::commands::device::tell;
use crate::links::{PATIENCE, wait_for_links};
use crate::node::{NodeArgs, instance, port_count, print_report};
use crate::signals::Stop;
use crate::trace_to::TraceArgs;
use live::attached::Switch;
use live::links::Links;
use live::net::{Listener, resolve_local};
use live::{Clock, DeviceNode};
use switch::Upstream;
use wire::frame::Role;
use wire::trace::NodeRole;

/// Put a switch between one host and several device nodes
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  \
    farlane switch --listen 127.0.0.1:4421 --connect 127.0.0.1:4420\n  \
    farlane host --connect 127.0.0.1:4421 --vfio-user /tmp/farlane\n\n\
    Ctrl-C tells both sides and ends; a second one ends at once. Counters of errors\n\
    and traffic are printed at the end, and on SIGUSR1.")]
pub struct Args {
    /// Where to listen for the host; port 0 takes any free one
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:4421")]
    listen: String,
    /// Device nodes, one a downstream port
    #[arg(long = "connect", value_name = "ADDR", required = true)]
    connect: Vec<String>,
    /// Let endpoints reach each other
    #[arg(long)]
    p2p: bool,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    trace: TraceArgs,
}

/// Runs the command.
///
/// # Errors
/// One line for the user.
pub fn run(args: &Args) -> Outcome {
    let address = resolve_local(&args.listen, args.node.insecure)?;
    let peers = args
        .connect
        .iter()
        .map(|text| resolve_local(text, args.node.insecure))
        .collect::<Result<Vec<_>, _>>()?;
    let stop = Stop::on_signals()?;
    let listener = Listener::bind(address)?;
    let upstream = Upstream::new(switch::upstream::Settings {
        ports: port_count(peers.len())?,
        max_payload: usize::from(args.node.mps),
        p2p: args.p2p,
        tunnel: args.node.tunnel(Role::Host),
    });
    let clock = Clock::start();
    let tracer = args.trace.open(NodeRole::Switch, instance(), clock)?;
    let switch =
        Switch::new(upstream, Links::new(&peers).limited(args.node.limit()).traced(tracer.clone()));
    let settings = args.node.tunnel(Role::Device);
    let mut node = DeviceNode::new(clock, args.node.poller()?, listener, settings, switch)?
        .limited(args.node.limit());
    wait_for_links(&mut node, PATIENCE, &stop)?;
    eprintln!("listening on {}", node.address()?);
    let ran = node.run(stop.fd(), || stop.wanted(), tell);
    args.trace.close(&tracer)?;
    ran?;
    print_report(&node.report());
    Ok(())
}
