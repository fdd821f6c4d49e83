//! `farlane device`: serves a drive.

mod foreign;
mod parts;

use super::drive::show::shown;
use super::{Failure, Outcome};
use crate::fault_args::DriveFaultArgs;
use crate::key_args::follow;
use crate::log::{self, Level, LogArgs, Subject};
use crate::namespace::Namespace;
use crate::node::{NodeArgs, group_name, instance, listeners, listening_on, print_report};
use crate::observe_args::ObserveArgs;
use crate::output::{caught, warning, wrong_usage};
use crate::reload;
use crate::sandbox_args::{SandboxArgs, add_backing, add_drive, needs_of};
use crate::service;
use crate::signals::stop_on_signals;
use crate::trace_args::TraceArgs;
use clap::{ArgGroup, value_parser};
use live::attached::{Attached, Notice, QUEUES, drive_settings};
use live::device::{DeviceEvent, serve};
use live::net::{Address, Remote, ReservedAddress};
use live::{Clock, Control, DeviceNode, NodeSettings, NvmeDrive, Stop};
use nvme::{MAX_QUEUES, NamespaceAccess};
use observe::Board;
use parts::FurtherThreads;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;
use switch::push_store::CAPACITY;
use switch::tunnel::{Cause, LEASE, Settings};
use tracing::info;
use wire::Duration;
use wire::frame::{LinkConnection, MoveStatus, Moved, Role};
use wire::trace::NodeRole;

/// Serve an NVMe drive to hosts, one for each of its controllers
#[derive(clap::Args, Debug)]
#[command(group = ArgGroup::new("storage").required(true).multiple(true))]
#[command(after_help = "Examples:\n  \
    farlane device --namespace ram=256M\n  \
    farlane device --listen 0.0.0.0 --insecure --namespace file=disk.img,size=10G\n  \
    farlane device --namespace file=huge.img,size=1T,sparse\n  \
    farlane drive create mydrive --capacity 10G && farlane device --drive mydrive\n  \
    farlane device --namespace ram=256M --aggregation wait=1us --rate-limit 1G\n  \
    farlane device --listen raw:eth0 --insecure --namespace ram=256M\n\n\
    In a NAMESPACE, PATH may be a block device. size=SIZE creates or extends the file\n\
    and reserves what it adds; with sparse, a block takes space after its first write. A file never\n\
    shrinks. The file PATH.farlane records which contents a written file has.\n\n\
    Ctrl-C finishes pending commands, makes the data durable and ends the node; a\n\
    second Ctrl-C ends it at once. The node prints counters of errors and traffic at\n\
    the end and on SIGUSR1. SIGUSR2 stops a trace; the next one continues it.")]
pub struct Args {
    /// One or two addresses to listen on: HOST[:PORT] or raw:INTERFACE, with a comma between two. The
    /// default port is 61420; 0 takes any free one. Repeat for each further controller
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    listen: Vec<String>,
    /// Namespace: ram=SIZE[,block=512|4096][,ro] or
    /// file=PATH[,size=SIZE[,sparse]][,block=512|4096][,ro][,use-existing-data][,aio=io_uring|threads][,cache.direct=on|off].
    /// Repeatable
    #[arg(long = "namespace", value_name = "NAMESPACE", group = "storage")]
    namespaces: Vec<Namespace>,
    /// How hosts should use each controller (ANA), in the order of --listen, separated by commas:
    /// optimized (default), non-optimized, inaccessible
    #[arg(long, value_name = "STATES", value_delimiter = ',', value_parser = parse_access)]
    access: Vec<NamespaceAccess>,
    /// Folder of a drive that `farlane drive create` made
    #[arg(long, value_name = "DIR", group = "storage", conflicts_with_all = ["namespaces", "serial"])]
    drive: Option<PathBuf>,
    /// Serve the PCI device of another program instead of a drive: its vfio-user socket. The device
    /// reaches host memory by message only
    #[arg(long, value_name = "SOCKET", group = "storage", conflicts_with_all = ["namespaces", "drive", "serial", "queues", "queues_per_link", "doorbell_buffer", "use_existing_data", "access", "faults", "trace"])]
    vfio_user_endpoint: Option<PathBuf>,
    /// Keep the data of block devices and serve them for reading and writing. For one namespace
    /// only, write use-existing-data in its NAMESPACE
    #[arg(long, conflicts_with = "drive")]
    use_existing_data: bool,
    /// Serial number, 1 to 20 ASCII characters. By default it is derived from the first file or the
    /// address
    #[arg(long, value_name = "TEXT", value_parser = parse_serial)]
    serial: Option<String>,
    /// I/O queue pairs, 1 to 2048, each with an interrupt vector. Each vector that a VMM uses takes
    /// one file descriptor of the host node
    #[arg(long, value_name = "COUNT", default_value_t = QUEUES, value_parser = value_parser!(u16).range(1..=i64::from(MAX_QUEUES)))]
    queues: u16,
    /// I/O queue pairs per connection of a link; each connection has a thread of its own on both nodes.
    /// By default a link has one connection
    #[arg(long, value_name = "COUNT", value_parser = value_parser!(u16).range(1..=i64::from(MAX_QUEUES)), conflicts_with_all = ["drive", "doorbell_buffer", "gate", "faults", "trace"])]
    queues_per_link: Option<u16>,
    /// Support Doorbell Buffer Config. The guest exits less often, but the drive reads the new
    /// doorbell value over the link before it fetches commands
    #[arg(long)]
    doorbell_buffer: bool,
    /// Group of hosts that may attach, 0 to 65535; 0: any host. `farlane move` changes it. Without
    /// this option any host may attach, and the device cannot be moved
    #[arg(long, value_name = "GROUP")]
    group: Option<u16>,
    /// Options of every node.
    #[command(flatten)]
    pub node: NodeArgs,
    #[command(flatten)]
    faults: DriveFaultArgs,
    #[command(flatten)]
    trace: TraceArgs,
    #[command(flatten)]
    observe: ObserveArgs,
    #[command(flatten)]
    sandbox: SandboxArgs,
    #[command(flatten)]
    log: LogArgs,
}

pub(crate) fn parse_serial(text: &str) -> Result<String, String> {
    let printable = text.bytes().all(|byte| (0x20..0x7f).contains(&byte));
    if printable && (1..=20).contains(&text.len()) {
        Ok(text.to_owned())
    } else {
        Err("expected 1 to 20 printable ASCII characters".into())
    }
}

fn parse_access(text: &str) -> Result<NamespaceAccess, String> {
    match text {
        "optimized" => Ok(NamespaceAccess::Optimized),
        "non-optimized" => Ok(NamespaceAccess::NonOptimized),
        "inaccessible" => Ok(NamespaceAccess::Inaccessible),
        _ => Err("expected optimized, non-optimized or inaccessible".into()),
    }
}

/// Resolves the addresses of each controller. Ends the process after a mistake in `--listen`, or in
/// an option that depends on the number of controllers.
fn addresses(args: &Args) -> Result<Vec<Vec<Address>>, Failure> {
    let protection = args.node.keys.protection();
    let resolve = |texts: &String| {
        let texts: Vec<_> = texts.split(',').map(str::to_owned).collect();
        listening_on(&texts, protection)
    };
    let addresses: Vec<_> = args.listen.iter().map(resolve).collect::<Result<_, _>>()?;
    let several = addresses.len() > 1;
    if several && args.trace.target().file().is_some() {
        return wrong_usage("--trace records one controller: expected one --listen");
    }
    if !args.access.is_empty() && (!several || args.access.len() != addresses.len()) {
        return wrong_usage(format!(
            "--access has {} states: expected one for each of several --listen, of which there are {}",
            args.access.len(),
            addresses.len()
        ));
    }
    Ok(addresses)
}

/// Checks the options and what they name, without a change.
pub fn checks(args: &Args) -> Vec<Outcome> {
    let mut checks = args.node.checks();
    checks.push(caught(|| addresses(args).map(drop)).flatten());
    checks.push(caught(|| parts::connections(args)).map(|_| ()));
    checks.extend(args.drive.iter().map(|folder| shown(folder).map(drop)));
    let backings = args.namespaces.iter().map(|one| one.backing(args.use_existing_data));
    checks.extend(backings.map(|backing| backing.check().map_err(Failure::from)));
    checks
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    args.log.start();
    if let Some(socket) = &args.vfio_user_endpoint {
        return foreign::run(args, socket);
    }
    let addresses = addresses(args)?;
    let several = addresses.len() > 1;
    let connections = parts::connections(args);
    let mut options = args.node.settings_for(addresses.iter().flatten())?;
    let shares = connections.map_or(addresses.len() as u64, |link| link.number.into());
    options.rate_limit = options.rate_limit.map(|rate| rate.shared_by(shares));
    let stop = stop_on_signals()?;
    let mps = usize::from(options.max_payload);
    let settings = nvme::Settings {
        doorbell_buffer: args.doorbell_buffer,
        ..drive_settings(mps, args.queues)
    };
    let backing = |one: &Namespace| one.backing(args.use_existing_data);
    let namespaces: Vec<_> = args.namespaces.iter().map(backing).collect();
    let reserve = |address: &Address| ReservedAddress::new(address, options.links()?);
    let reserve = |own: &Vec<_>| own.iter().map(reserve).collect::<Result<Vec<_>, _>>();
    let reserved: Vec<_> = addresses.iter().map(reserve).collect::<Result<_, _>>()?;
    let mut needs = needs_of(&args.node, &options, &args.trace, addresses.iter().flatten());
    namespaces.iter().for_each(|one| add_backing(&mut needs, one));
    args.drive.iter().for_each(|folder| add_drive(&mut needs, folder));
    let observed = args.observe.bind("device", &options, &mut needs)?;
    // Before anything starts threads.
    let restrictions = args.sandbox.enter(&needs)?;
    let serving = observed.start("device", &options)?;
    let _watch = follow(options.credentials.as_ref(), &stop);
    let serial = args.serial.as_deref();
    let controllers = addresses.len() as u16;
    let mut further = Vec::new();
    let (drive, sessions) = match &args.drive {
        Some(folder) => {
            let opened = NvmeDrive::open(folder, settings, controllers, |text| warning(text))?;
            (opened.drive, opened.sessions)
        }
        None => {
            let place = addresses[0][0].to_string();
            let drive = match connections {
                None => NvmeDrive::over(&namespaces, serial, &place, settings, controllers)?,
                Some(LinkConnection { queue_pairs, .. }) => {
                    let (drive, parts) =
                        NvmeDrive::divided(&namespaces, serial, &place, settings, queue_pairs)?;
                    further = parts;
                    drive
                }
            };
            (drive, Vec::new())
        }
    };
    options.connection = connections;
    let lease = if several { LEASE } else { Duration::ZERO };
    let tunnel = Settings { push: CAPACITY, lease, ..options.tunnel(Role::Device) };
    let clock = Clock::start();
    let tracer = args.trace.open(NodeRole::Device, instance(), clock)?;
    let [of_drive, of_node] = args.faults.split();
    let drive = drive.traced(tracer.clone()).with_faults(of_drive).with_access(&args.access);
    let mut sessions = sessions.into_iter();
    let start = |(drive, reserved): (NvmeDrive, Vec<ReservedAddress>)| {
        let (listener, further) = listeners(reserved)?;
        let node = DeviceNode::new(clock, options.poller()?, listener, tunnel, drive)?;
        let node = further.into_iter().try_fold(node, DeviceNode::listening_with)?;
        let node = node.with(|node| node.in_group(args.group).with_rate_limit(options.limit()));
        let node = node.with_faults(of_node.clone());
        let Some((session, goes_on)) = sessions.next() else { return Ok(node) };
        if goes_on.is_some() {
            info!("goes on for the host of a process that was killed");
        }
        node.with_session(session, goes_on)
    };
    let mut nodes = drive.controllers().zip(reserved).map(start).collect::<io::Result<Vec<_>>>()?;
    info!("sandbox: {restrictions}");
    let mut listening = Vec::new();
    for (number, node) in nodes.iter().enumerate() {
        let line = format!("{}listening on {}", controller(several, number), node.addresses()?);
        info!("{line}");
        listening.push(line);
    }
    let print = |number, event| {
        let name = controller(several, number);
        match event {
            DeviceEvent::Report(report) => print_report(&name, &report),
            DeviceEvent::Status(request, mut status) => {
                if several {
                    status.links[0].name = format!("controller {}", number + 1);
                }
                serving.board.show(request, number, *status);
            }
            event => {
                let controller = several.then_some(number + 1);
                log_event(&event, &name, Subject { controller, ..Subject::default() });
            }
        }
    };
    let stops = further.iter().map(|_| Stop::new()).collect::<io::Result<Vec<_>>>()?;
    let requesters = [&stop].into_iter().chain(&stops).map(Stop::requester);
    let requesters = requesters.collect::<io::Result<Vec<_>>>()?;
    serving.board.serve(requesters, nodes.len() + stops.len());
    reload::on_hangup(args.node.file.as_ref(), &serving.board, move |rate| {
        NodeSettings::limit_of(rate.map(|rate| rate.shared_by(shares)))
    })?;
    service::ready(&listening.join("; "));
    let mut ways = Vec::new();
    if connections.is_some() {
        let first = nodes.pop().expect("one controller");
        let (first, others) = first.with_connections(further.len() as u16)?;
        (nodes, ways) = (vec![first], others);
    }
    let ran = thread::scope(|scope| {
        let further = further.into_iter().zip(ways).zip(&stops);
        let further = further.map(|((part, way), stop)| (part, way, stop));
        let threads = FurtherThreads::start(
            scope,
            further,
            (clock, &options, tunnel),
            &stop,
            &serving.board,
        )?;
        let control = || {
            args.trace.switch(&tracer, &stop);
            let request = service::request(&stop);
            if request == Control::Report {
                threads.report();
            }
            request
        };
        let ran = serve(&mut nodes, stop.fd(), control, print);
        ran.map_err(Failure::from).and(threads.stop())
    });
    let traced = args.trace.close(&tracer);
    let reports = nodes.iter().map(|node| DeviceEvent::Report(node.report()));
    reports.enumerate().for_each(|(number, report)| print(number, report));
    ran?;
    info!("all data are on the media");
    traced
}

/// The name of a controller in front of a line, if there are several.
fn controller(several: bool, number: usize) -> String {
    if several { format!("controller {}: ", number + 1) } else { String::new() }
}

/// Serves with one node until `control` stops it: makes it known, answers requests for its state,
/// and reads its file again on SIGHUP.
pub(crate) fn serve_alone<A: Attached>(
    node: &mut DeviceNode<A>,
    args: &NodeArgs,
    board: &Arc<Board>,
    stop: &Stop,
    control: impl FnMut() -> Control,
) -> Outcome {
    let listening = format!("listening on {}", node.addresses()?);
    info!("{listening}");
    board.serve(vec![stop.requester()?], 1);
    reload::on_hangup(args.file.as_ref(), board, NodeSettings::limit_of)?;
    service::ready(&listening);
    let print = |event| match event {
        DeviceEvent::Status(request, status) => board.show(request, 0, *status),
        DeviceEvent::Report(report) => print_report("", &report),
        event => log_event(&event, "", Subject::default()),
    };
    Ok(node.run(stop.fd(), control, print)?)
}

/// Writes an event, except for reports, to the log; `name` begins the message.
fn log_event(event: &DeviceEvent, name: &str, subject: Subject<'_>) {
    let subject = Subject { peer: peer(event), ..subject };
    log::event(level(event), subject, format_args!("{name}{}", line(event)));
}

/// The severity of an event: lost links, rejected peers and faults are warnings.
fn level(event: &DeviceEvent) -> Level {
    match event {
        DeviceEvent::HostDown(_, Cause::Goodbye | Cause::Moved)
        | DeviceEvent::Authenticated(_)
        | DeviceEvent::HostUp(_)
        | DeviceEvent::HostResumed(_)
        | DeviceEvent::HostPathUp(_)
        | DeviceEvent::HostFailedOver(_)
        | DeviceEvent::Attached(Notice::Info(_))
        | DeviceEvent::Report(_)
        | DeviceEvent::Status(..) => Level::INFO,
        DeviceEvent::Moved { answer, .. } if answer.status == MoveStatus::Done => Level::INFO,
        DeviceEvent::Suppressed(rest) => level(&rest.last),
        DeviceEvent::HostInterrupted(..)
        | DeviceEvent::HostPathLost(..)
        | DeviceEvent::HostDown(..)
        | DeviceEvent::TurnedAway(..)
        | DeviceEvent::Moved { .. }
        | DeviceEvent::Attached(Notice::Warning(_))
        | DeviceEvent::Fault(_) => Level::WARN,
    }
}

/// The peer of an event.
fn peer(event: &DeviceEvent) -> Option<&Remote> {
    match event {
        DeviceEvent::Authenticated(peer)
        | DeviceEvent::HostUp(peer)
        | DeviceEvent::HostInterrupted(peer, _)
        | DeviceEvent::HostResumed(peer)
        | DeviceEvent::HostPathLost(peer, _)
        | DeviceEvent::HostPathUp(peer)
        | DeviceEvent::HostFailedOver(peer)
        | DeviceEvent::HostDown(Some(peer), _)
        | DeviceEvent::TurnedAway(peer, _)
        | DeviceEvent::Moved { by: peer, .. } => Some(peer),
        DeviceEvent::Suppressed(rest) => peer(&rest.last),
        DeviceEvent::HostDown(None, _)
        | DeviceEvent::Fault(_)
        | DeviceEvent::Attached(_)
        | DeviceEvent::Report(_)
        | DeviceEvent::Status(..) => None,
    }
}

/// Formats one line per event; empty for reports.
fn line(event: &DeviceEvent) -> String {
    match event {
        DeviceEvent::Authenticated(peer) => format!("accepted {peer}"),
        DeviceEvent::HostUp(peer) => format!("host {peer} attached"),
        DeviceEvent::HostInterrupted(peer, cause) => {
            format!("host {peer} interrupted, waits for a connection: {cause}")
        }
        DeviceEvent::HostResumed(peer) => format!("host {peer} resumed"),
        DeviceEvent::HostPathLost(peer, cause) => format!("host {peer}: path lost: {cause}"),
        DeviceEvent::HostPathUp(peer) => format!("host {peer}: further path up"),
        DeviceEvent::HostFailedOver(peer) => format!("host {peer}: this path takes over"),
        DeviceEvent::HostDown(Some(peer), cause) => format!("host {peer} detached: {cause}"),
        DeviceEvent::HostDown(None, cause) => {
            format!("the host of the killed process detached: {cause}")
        }
        DeviceEvent::TurnedAway(peer, cause) => format!("rejected {peer}: {cause}"),
        DeviceEvent::Moved { by, group, answer } => moved(&by.to_string(), *group, answer),
        DeviceEvent::Suppressed(rest) => {
            let events = match *rest.last {
                DeviceEvent::TurnedAway(..) => "rejected peers",
                DeviceEvent::Moved { .. } => "moves",
                _ => "such lines",
            };
            rest.line(events, &line(&rest.last))
        }
        DeviceEvent::Fault(fault) => format!("fault begins: {fault}"),
        DeviceEvent::Attached(Notice::Info(text) | Notice::Warning(text)) => text.clone(),
        DeviceEvent::Report(_) | DeviceEvent::Status(..) => String::new(),
    }
}

fn moved(by: &str, group: u16, answer: &Moved) -> String {
    let (from, to) = (group_name(answer.from), group_name(group));
    let why = match answer.status {
        MoveStatus::Done => return format!("{by} moved this device from {from} to {to}"),
        MoveStatus::Switch => "a switch node cannot be moved",
        MoveStatus::Unauthorized => "its key lacks the right move",
        _ => "the node was started without --group",
    };
    format!("rejected the move to {to} by {by}: {why}")
}
