//! `farlane switch`: a switch node between a host and device nodes.

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
    Ctrl-C closes the links and ends the node; a second Ctrl-C ends it at once. The\n\
    node prints counters of errors and traffic at the end and on SIGUSR1. SIGUSR2\n\
    stops a trace, and starts it again.")]
pub struct Args {
    /// Address to listen on for the host: HOST[:PORT], port 0 for any free one, or raw:INTERFACE
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:61421")]
    listen: String,
    /// Device node, one per downstream port: HOST[:PORT], with port 61420 by default, or
    /// raw:INTERFACE,MAC
    #[arg(long = "connect", value_name = "ADDRESS", required = true)]
    connect: Vec<String>,
    /// Group of this switch towards its device nodes. Hosts of every group can use the switch
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    group: u16,
    /// Allow peer-to-peer requests between endpoints
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
