//! `farlane host`: offers remote endpoints to VMMs.

use super::{Failure, Outcome};
use crate::key_args::follow;
use crate::log::{self, Level, LogArgs, Subject};
use crate::node::{
    NodeArgs, check_links, instance, parse_mps, print_report, raise_descriptor_limit,
};
use crate::observe_args::ObserveArgs;
use crate::output::{caught, warning, wrong_usage};
use crate::push_args::PushArgs;
use crate::reload;
use crate::sandbox_args::{SandboxArgs, add_proc, needs_of, ports};
use crate::service;
use crate::signals::stop_on_signals;
use crate::trace_args::TraceArgs;
use linux::UserGroup;
use live::host::{EndpointChange, HostEvent, HostNode, MachineSettings};
use live::net::Peer;
use live::{Clock, LinkWait, NodeSettings};
use pcie::{enumerate, root};
use report::span;
use sandbox::Access;
use std::io;
use std::path::{Path, PathBuf};
use tracing::info;
use vfio_user::SocketFolder;
use wire::Duration;
use wire::trace::NodeRole;

/// Offer remote endpoints to QEMU and other vfio-user clients
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane host --connect 192.0.2.7 --insecure --vfio-user /tmp/farlane\n  \
    farlane host --connect localhost --group 2 --hot-plug --vfio-user /tmp/two\n  \
    farlane host --connect raw:eth0,02:00:5e:10:00:01 --insecure --vfio-user /tmp/farlane\n\n\
    The node prints the QEMU options on stdout, and PCI address, serial number and size\n\
    of each drive on stderr. Ctrl-C closes the links and ends the node; a second Ctrl-C\n\
    ends it at once. The node prints counters of errors and traffic at the end and on\n\
    SIGUSR1. SIGUSR2 stops a trace; the next one continues it.")]
pub struct Args {
    /// Device or switch node; repeat for each downstream port, up to 32: HOST[:PORT], with port
    /// 61420 by default, or raw:INTERFACE,MAC. Every address of a name is tried
    #[arg(long = "connect", value_name = "ADDRESS", required = true)]
    connect: Vec<String>,
    /// Folder of the sockets: endpoint N is offered on DIR/N/cntrl
    #[arg(long, value_name = "DIR")]
    vfio_user: PathBuf,
    /// Group whose members may connect to the sockets, such as kvm for QEMU under libvirt. The node
    /// must be in this group
    #[arg(long, value_name = "GROUP")]
    socket_group: Option<UserGroup>,
    /// Mode of the sockets, in octal. By default 0660 with --socket-group, else by the umask
    #[arg(long, value_name = "MODE", value_parser = socket_mode)]
    socket_mode: Option<u32>,
    /// Offer the doorbell page for mmap and poll it, for clients that need it. Polling keeps one
    /// core busy
    #[arg(long)]
    mmap_doorbells: bool,
    /// Allow peer-to-peer requests between endpoints
    #[arg(long)]
    p2p: bool,
    /// Largest read request of endpoints (Max_Read_Request_Size), a power of two from 128 to 4096
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = parse_mps)]
    mrrs: u16,
    /// Protect every TLP with an end-to-end CRC. A TLP with a wrong CRC closes its link and is
    /// counted
    #[arg(long)]
    ecrc: bool,
    /// Group of this host, 0 to 65535. A device of another group refuses this host; devices of
    /// group 0 accept any host
    #[arg(long, value_name = "GROUP", default_value_t = 0)]
    group: u16,
    /// Start even if some nodes are missing. Their endpoints are offered when the host node reaches
    /// them
    #[arg(long)]
    hot_plug: bool,
    /// Time to wait for the nodes at the start, such as 500ms. A number alone is in seconds
    #[arg(long, value_name = "TIME", default_value = "15s", value_parser = span::seconds)]
    wait: Duration,
    /// The time after which a guest gives up a command (nvme_core.io_timeout of Linux). It must be
    /// at least 3 s longer than --survive
    #[arg(long, value_name = "TIME", default_value = "30s", value_parser = span::seconds)]
    io_timeout: Duration,
    #[command(flatten)]
    push: PushArgs,
    /// Options of every node.
    #[command(flatten)]
    pub node: NodeArgs,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    observe: ObserveArgs,
    #[command(flatten)]
    sandbox: SandboxArgs,
    #[command(flatten)]
    log: LogArgs,
}

/// Resolves the peers. A mistake in an option ends the process.
fn peers(args: &Args) -> Result<Vec<Peer>, Failure> {
    let peers = args.node.peers(&args.connect)?;
    check_links(&peers);
    Ok(peers)
}

/// Checks the options and what they name, without a change.
pub fn checks(args: &Args) -> Vec<Outcome> {
    let mut checks = args.node.checks();
    checks.push(caught(|| check_time_outs(args)));
    checks.push(caught(|| peers(args).map(drop)).flatten());
    checks
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    args.log.start();
    check_time_outs(args);
    let peers = peers(args)?;
    let addresses = || peers.iter().flat_map(Peer::paths).flat_map(Peer::addresses);
    let options = args.node.settings_for(addresses())?;
    let switch = options.switch(&peers, args.group, args.p2p)?;
    raise_descriptor_limit();
    let stop = stop_on_signals()?;
    let mut needs = needs_of(&args.node, &options, &args.trace, addresses());
    needs.connect = ports(&peers);
    let sockets = sockets(args)?;
    // Only an existing folder can be allowed.
    sockets.create().map_err(io::Error::other)?;
    needs.path(&args.vfio_user, Access::Sockets);
    // Where the kernel has no Linux AIO, the node looks at descriptors of clients there.
    add_proc(&mut needs);
    let observed = args.observe.bind("host", &options, &mut needs)?;
    // Before anything starts threads.
    let restrictions = args.sandbox.enter(&needs)?;
    let serving = observed.start("host", &options)?;
    let _watch = follow(options.credentials.as_ref(), &stop);
    let mps = usize::from(options.max_payload);
    let clock = Clock::start();
    let tracer = args.trace.open(NodeRole::Host, instance(), clock)?;
    let mut links = LinkWait::new(clock.now(), args.wait);
    if args.hot_plug {
        links = links.allow_missing(|text| warning(text));
    }
    let settings = MachineSettings {
        root: root::Settings { max_payload: mps, ecrc: args.ecrc, ..root::Settings::default() },
        enumeration: enumerate::Settings {
            max_payload: mps,
            max_read_request: args.mrrs.into(),
            ecrc: args.ecrc,
            outage: options.survive,
            ..enumerate::Settings::default()
        },
        push: args.push.settings(),
    };
    let mut node = HostNode::start(
        clock,
        options.poller()?,
        settings,
        switch.traced(tracer.clone()),
        sockets,
        args.mmap_doorbells,
        |switch, now| {
            if stop.is_set() {
                let message = "interrupted by a signal while the node waited for its links";
                return Err(io::Error::other(message));
            }
            links.check(now, switch)
        },
    )?;
    node.identities().iter().for_each(|line| info!("{line}"));
    print_options(&node.sockets());
    for (number, summary) in node.summaries().iter().enumerate() {
        let subject = Subject { endpoint: Some(number), ..Subject::default() };
        log::event(Level::INFO, subject, format_args!("endpoint {number}: {summary}"));
    }
    info!("sandbox: {restrictions}");
    info!("ready");
    serving.board.serve(vec![stop.requester()?], 1);
    reload::on_hangup(args.node.file.as_ref(), &serving.board, NodeSettings::limit_of)?;
    service::ready(&format!("offers endpoints: {}", node.sockets().len()));
    let control = || {
        args.trace.switch(&tracer, &stop);
        service::request(&stop)
    };
    let ran = node.run(stop.fd(), control, |event| match event {
        HostEvent::Status(request, status) => serving.board.show(request, 0, *status),
        event => print_event(event),
    });
    let traced = args.trace.close(&tracer);
    print_report("", &node.report());
    ran?;
    traced
}

/// The folder of the sockets. Ends the process if the node is not in the group of the sockets: without
/// capabilities it could not give them away.
fn sockets(args: &Args) -> Result<SocketFolder, Failure> {
    let group = args.socket_group.as_ref();
    if let Some(UserGroup { name, .. }) = group.filter(|group| !group.is_own()) {
        return wrong_usage(format!(
            "--socket-group {name}: the node is not in this group; add its user to the group, or \
             write Group={name} in its unit"
        ));
    }
    Ok(SocketFolder {
        path: args.vfio_user.clone(),
        group: group.map(|group| group.id),
        mode: args.socket_mode.or(group.map(|_| 0o660)),
    })
}

/// Parses the mode of a socket.
fn socket_mode(text: &str) -> Result<u32, String> {
    let mode = text.strip_prefix('0').and_then(|digits| u32::from_str_radix(digits, 8).ok());
    mode.filter(|mode| *mode <= 0o777).ok_or_else(|| {
        format!("invalid mode '{text}': expected 0 and up to three octal digits, such as 0660")
    })
}

/// Ends the process if a guest would give up its commands before an interrupted link does. A loss is
/// noticed after 0.8 s, and the next attempt to connect takes up to 2 s.
fn check_time_outs(args: &Args) {
    let (survive, margin) = (args.node.survive, Duration::from_ms(3_000));
    if survive > Duration::ZERO && survive + margin > args.io_timeout {
        wrong_usage(format!(
            "--survive {}: guests give up a command after {} (--io-timeout), and --survive must end \
             3 s earlier",
            report::time(survive.as_ns() as f64),
            report::time(args.io_timeout.as_ns() as f64)
        ))
    }
}

/// Prints the options for QEMU 10.1.1 or newer.
fn print_options(sockets: &[PathBuf]) {
    println!("-machine q35,memory-backend=mem");
    println!("-object memory-backend-memfd,id=mem,size=512M,share=on");
    for socket in sockets {
        println!("-device '{}'", device_option(socket));
    }
}

fn device_option(socket: &Path) -> String {
    let path = std::path::absolute(socket).unwrap_or_else(|_| socket.to_owned());
    serde_json::json!({
        "driver": "vfio-user-pci",
        "socket": { "type": "unix", "path": path.to_string_lossy() },
    })
    .to_string()
}

fn print_event(event: HostEvent) {
    match &event {
        HostEvent::Report(report) => return print_report("", report),
        HostEvent::Offered(_, path, _) => println!("-device '{}'", device_option(path)),
        _ => {}
    }
    log::event(level(&event), subject(&event), line(&event));
}

/// The severity of an event: lost links and refusals are warnings, changed contents and unusable
/// devices are errors.
fn level(event: &HostEvent) -> Level {
    match event {
        HostEvent::VmmAttached(_)
        | HostEvent::VmmGone(..)
        | HostEvent::LinkResumed(..)
        | HostEvent::PathUp(..)
        | HostEvent::LinkUp(..)
        | HostEvent::Offered(..)
        | HostEvent::Endpoint(_, EndpointChange::Reattached)
        | HostEvent::Report(_)
        | HostEvent::Status(..) => Level::INFO,
        HostEvent::Suppressed(rest) => level(&rest.last),
        HostEvent::LinkDown(..)
        | HostEvent::LinkInterrupted(..)
        | HostEvent::PathLost(..)
        | HostEvent::Refused(..)
        | HostEvent::DuplicateSerial(..) => Level::WARN,
        HostEvent::Endpoint(..) | HostEvent::Unusable(..) => Level::ERROR,
    }
}

/// The port or the endpoint of an event.
fn subject(event: &HostEvent) -> Subject<'_> {
    match event {
        HostEvent::LinkDown(port, _)
        | HostEvent::LinkInterrupted(port, _)
        | HostEvent::LinkResumed(port, _)
        | HostEvent::PathLost(port, ..)
        | HostEvent::PathUp(port, _)
        | HostEvent::LinkUp(port, _)
        | HostEvent::Refused(port, _)
        | HostEvent::Unusable(port, _) => Subject { port: Some(*port), ..Subject::default() },
        HostEvent::Offered(number, ..)
        | HostEvent::VmmAttached(number)
        | HostEvent::VmmGone(number, _)
        | HostEvent::DuplicateSerial(number, _)
        | HostEvent::Endpoint(number, _) => {
            Subject { endpoint: Some(*number), ..Subject::default() }
        }
        HostEvent::Suppressed(rest) => subject(&rest.last),
        HostEvent::Report(_) | HostEvent::Status(..) => Subject::default(),
    }
}

/// One line per event; empty for reports.
fn line(event: &HostEvent) -> String {
    match event {
        HostEvent::VmmAttached(number) => format!("endpoint {number}: VMM attached"),
        HostEvent::VmmGone(number, why) => format!("endpoint {number}: VMM gone: {why}"),
        HostEvent::LinkDown(port, cause) => format!("port {port}: link down: {cause}"),
        HostEvent::LinkInterrupted(port, cause) => {
            format!("port {port}: link interrupted, waits for a connection: {cause}")
        }
        HostEvent::LinkResumed(port, after) => {
            format!("port {port}: link resumed after {}", report::time(after.as_ns() as f64))
        }
        HostEvent::PathLost(port, path, cause) => format!("port {port}: path {path} lost: {cause}"),
        HostEvent::PathUp(port, path) => format!("port {port}: path {path} up"),
        HostEvent::LinkUp(port, None) => format!("port {port}: link up"),
        HostEvent::LinkUp(port, Some(identity)) => format!("port {port}: link up: {identity}"),
        HostEvent::Refused(port, why) => format!("port {port}: no link to {why}"),
        HostEvent::Endpoint(number, news) => format!("endpoint {number}: {news}"),
        HostEvent::Unusable(port, why) => format!("port {port}: {why}"),
        HostEvent::Suppressed(rest) => rest.line("such lines", &line(&rest.last)),
        HostEvent::Offered(number, _, summary) => format!("endpoint {number}: offered: {summary}"),
        HostEvent::DuplicateSerial(number, other) => format!(
            "endpoints {other} and {number} have the same serial number: a guest refuses the \
             second; start one of the device nodes with another --serial"
        ),
        HostEvent::Report(_) | HostEvent::Status(..) => String::new(),
    }
}
