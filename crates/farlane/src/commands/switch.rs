//! `farlane switch`: a switch node between a host and device nodes.

use super::{Failure, Outcome};
use crate::commands::device::serve_alone;
use crate::fault_args::NodeFaultArgs;
use crate::key_args::follow;
use crate::log::LogArgs;
use crate::node::{NodeArgs, check_links, instance, listeners, listening_on, print_report};
use crate::observe_args::ObserveArgs;
use crate::output::caught;
use crate::sandbox_args::{SandboxArgs, needs_of, ports};
use crate::service;
use crate::signals::stop_on_signals;
use crate::trace_args::TraceArgs;
use live::net::{Address, Peer, ReservedAddress};
use live::{Clock, DeviceNode, wait_for_links};
use tracing::info;
use wire::frame::Role;
use wire::trace::NodeRole;

/// Put a switch between one host and several device nodes
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane switch --listen localhost:61421 --connect localhost\n  \
    farlane host --connect localhost:61421 --vfio-user /tmp/farlane\n\n\
    Ctrl-C closes the links and ends the node; a second Ctrl-C ends it at once. The\n\
    node prints counters of errors and traffic at the end and on SIGUSR1. SIGUSR2\n\
    stops a trace; the next one continues it.")]
pub struct Args {
    /// One or two addresses to listen on for the host: HOST[:PORT] or raw:INTERFACE, with a comma
    /// between two. HOST alone means port 61420; port 0 takes any free port
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:61421", value_delimiter = ',')]
    listen: Vec<String>,
    /// Device node; repeat for each downstream port, up to 32: HOST[:PORT], with port 61420 by
    /// default, or raw:INTERFACE,MAC
    #[arg(long = "connect", value_name = "ADDRESS", required = true)]
    connect: Vec<String>,
    /// Group as which this switch attaches to its device nodes, 0 to 65535. The switch itself
    /// accepts hosts of every group
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    group: u16,
    /// Allow peer-to-peer requests between endpoints
    #[arg(long)]
    p2p: bool,
    /// Options of every node.
    #[command(flatten)]
    pub node: NodeArgs,
    #[command(flatten)]
    faults: NodeFaultArgs,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    observe: ObserveArgs,
    #[command(flatten)]
    sandbox: SandboxArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// Resolves the own addresses and the peers. A mistake in an option ends the process.
fn addresses(args: &Args) -> Result<(Vec<Address>, Vec<Peer>), Failure> {
    let own = listening_on(&args.listen, args.node.keys.protection())?;
    let peers = args.node.peers(&args.connect)?;
    check_links(&peers);
    Ok((own, peers))
}

/// Checks the options and what they name, without a change.
pub fn checks(args: &Args) -> Vec<Outcome> {
    let mut checks = args.node.checks();
    checks.push(caught(|| addresses(args).map(drop)).flatten());
    checks
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    args.log.start();
    let (own, peers) = addresses(args)?;
    let addresses = || peers.iter().flat_map(Peer::paths).flat_map(Peer::addresses).chain(&own);
    let options = args.node.settings_for(addresses())?;
    let stop = stop_on_signals()?;
    let reserve = |address| ReservedAddress::new(address, options.links()?);
    let reserved = own.iter().map(reserve).collect::<Result<_, _>>()?;
    let mut needs = needs_of(&args.node, &options, &args.trace, addresses());
    needs.connect = ports(&peers);
    let observed = args.observe.bind("switch", &options, &mut needs)?;
    // Before anything starts threads.
    let restrictions = args.sandbox.enter(&needs)?;
    let serving = observed.start("switch", &options)?;
    let _watch = follow(options.credentials.as_ref(), &stop);
    let (listener, further) = listeners(reserved)?;
    let switch = options.switch(&peers, args.group, args.p2p)?;
    let clock = Clock::start();
    let tracer = args.trace.open(NodeRole::Switch, instance(), clock)?;
    let settings = options.tunnel(Role::Device);
    let switch = switch.traced(tracer.clone());
    let node = DeviceNode::new(clock, options.poller()?, listener, settings, switch)?;
    let mut node = (further.into_iter().try_fold(node, DeviceNode::listening_with)?)
        .with(|node| node.for_switch().with_rate_limit(options.limit()))
        .with_faults(args.faults.faults());
    wait_for_links(&mut node, &stop)?;
    let links = node.attached_mut().links_mut().identities();
    links.iter().for_each(|line| info!("{line}"));
    info!("sandbox: {restrictions}");
    let control = || {
        args.trace.switch(&tracer, &stop);
        service::request(&stop)
    };
    let ran = serve_alone(&mut node, &args.node, &serving.board, &stop, control);
    let traced = args.trace.close(&tracer);
    print_report("", &node.report());
    ran?;
    traced
}
