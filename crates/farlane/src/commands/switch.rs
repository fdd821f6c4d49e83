//! `farlane switch`: a second switch behind the first.

use super::Outcome;
use crate::commands::device::print_event;
use crate::node::{NodeArgs, check_links, instance, listening, print_report};
use crate::signals::stop_on_signals;
use crate::trace_args::TraceArgs;
use live::net::{CarrierListener, Peer};
use live::{Clock, DeviceNode, wait_for_links};
use wire::frame::Role;
use wire::trace::NodeRole;

/// Put a switch between one host and several device nodes
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  \
    farlane switch --listen localhost:61421 --connect localhost\n  \
    farlane host --connect localhost:61421 --vfio-user /tmp/farlane\n\n\
    Ctrl-C tells both sides and ends; a second one ends at once. Counters of errors\n\
    and traffic are printed at the end, and on SIGUSR1. SIGUSR2 stops a trace, and\n\
    starts it again.")]
pub struct Args {
    /// Where to listen for the host: HOST[:PORT], port 0 takes any free one, or raw:INTERFACE
    #[arg(long, value_name = "ADDR", default_value = "127.0.0.1:61421")]
    listen: String,
    /// Device nodes, one a downstream port: HOST[:PORT] or raw:INTERFACE,MAC.
    /// The port is 61420 without one
    #[arg(long = "connect", value_name = "ADDR", required = true)]
    connect: Vec<String>,
    /// The group that this switch belongs to towards its device nodes, as a host does; hosts of
    /// every group can use the switch
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    group: u16,
    /// Let endpoints reach each other
    #[arg(long)]
    p2p: bool,
    #[command(flatten)]
    node: NodeArgs,
    #[command(flatten)]
    trace: TraceArgs,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let address = listening(&args.listen, args.node.insecure)?;
    let peers = args.node.peers(&args.connect)?;
    check_links(&peers);
    let options =
        args.node.settings_for(peers.iter().flat_map(Peer::addresses).chain([&address]))?;
    let stop = stop_on_signals()?;
    let listener = CarrierListener::bind(&address, options.links()?)?;
    let switch = options.switch(&peers, args.group, args.p2p)?;
    let clock = Clock::start();
    let tracer = args.trace.open(NodeRole::Switch, instance(), clock)?;
    let settings = options.tunnel(Role::Device);
    let switch = switch.traced(tracer.clone());
    let mut node = DeviceNode::new(clock, options.poller()?, listener, settings, switch)?
        .with(|node| node.for_switch().with_rate_limit(options.limit()));
    wait_for_links(&mut node, &stop)?;
    eprintln!("listening on {}", node.address()?);
    let control = || {
        args.trace.switch(&tracer, &stop);
        stop.request()
    };
    let ran = node.run(stop.fd(), control, print_event);
    let traced = args.trace.close(&tracer);
    print_report(&node.report());
    ran?;
    traced
}
