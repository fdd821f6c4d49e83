//! One live run of a plan: starts the network, the device nodes and the hosts, and collects the
//! results.

use crate::cpus::Cpus;
use crate::cuts::Cuts;
use crate::device::{DrivePlan, in_ram};
use crate::host::{HostOptions, HostResult, RunningHost, Shared};
use crate::network::{INTERFACE, RigNetwork, address};
use crate::settings::LinkParts;
use crate::switch_node::SwitchPlan;
use credentials::Credentials;
use live::attached::Switch;
use live::net::{Address, DEFAULT_PORT, Namespace, Peer, Protection};
use live::{Attached, Clock, LinkWait, NvmeDrive, PATIENCE, Poller, Stop, Waiting, random_number};
use load::initiator_host::{Hardware, InitiatorHost};
use load::local::Node;
use load::{Console, TraceTarget};
use node::faults::{Fault, FaultKind, Faults};
use node::push;
use pcie::{enumerate, root};
use plan::simulate::node_name;
use plan::{Planned, PlannedLink};
use report::Failure;
use sim::drive::DriveConfig;
use sim::measure::CommandRecord;
use sim::transport::TransportConfig;
use sim::world::{Attached as Below, HostConfig, SwitchConfig};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration as Pause;
use storage::media::Backing;
use switch::congestion::Config as Congestion;
use wire::trace::NodeRole;
use wire::{Duration, Instant};

/// How a plan is run live.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// How nodes wait.
    pub waiting: Waiting,
    /// Whether data are verified.
    pub verify: bool,
    /// Whether commands are listed, up to [`MOST_LISTED`] of all hosts together.
    pub list: bool,
    /// Namespaces of drives by the drive's name; others are in RAM.
    pub backing: BTreeMap<String, Vec<Backing>>,
    /// The key of the nodes and their peers; `None`: links without authentication and encryption.
    pub credentials: Option<Arc<Credentials>>,
    /// Where the nodes record: the first host into this file, others beside it.
    pub trace: TraceTarget,
}

/// The results of a live run.
#[derive(Debug, Default)]
pub struct LiveRun {
    /// The results of the hosts, in the order of the plan.
    pub hosts: Vec<HostResult>,
    /// Whether a signal ended the run.
    pub interrupted: bool,
    /// Why results of a host are missing, or why its list of commands is cut.
    pub failure: Option<Failure>,
}

impl LiveRun {
    /// Returns the results of a run without failure.
    ///
    /// # Errors
    /// The failure of a host.
    pub fn whole(mut self) -> Result<Self, Failure> {
        self.failure.take().map_or(Ok(self), Err)
    }

    /// Takes the listed commands of all hosts.
    pub fn take_commands(&mut self) -> Vec<CommandRecord> {
        let lists = self.hosts.iter_mut().map(|host| std::mem::take(&mut host.list));
        let joined = lists.reduce(|mut all, mut list| {
            all.append(&mut list);
            all
        });
        joined.unwrap_or_default()
    }
}

/// Maximum number of listed commands: 0.8 GB. The list is in memory, because writing files slows
/// hosts down.
pub const MOST_LISTED: usize = 1 << 22;
/// Time from the start of a run with faults to the start of the workloads: hosts bring their drives
/// up and fill them before.
const LEAD: Duration = Duration::from_ms(3_000);
/// How much later than [`LEAD`] the workloads of a run with faults may start.
const LATE: Duration = Duration::from_ms(500);
/// Longest time between two updates of the progress.
const LOOK: Pause = Pause::from_millis(100);

/// An event of a host's thread.
enum HostEvent {
    /// The host may start.
    Ready,
    /// The host has ended.
    Ended(Result<Box<HostResult>, Failure>),
}

/// Runs every node of a plan in network namespaces of this machine, until all workloads end. After
/// the start of the workloads, other hosts go on without a host that fails.
///
/// # Errors
/// If the network cannot be created, a node does not start, or no host has results.
pub fn run(
    plan: &Planned,
    options: &LiveOptions,
    (console, stop): (&mut dyn Console, &Stop),
) -> Result<LiveRun, Failure> {
    console.progress("network");
    let network = RigNetwork::new(plan)?;
    let (clock, mut used) = (Clock::start(), BTreeMap::new());
    let mut nodes = Vec::new();
    let mut start = |hosts: &Hosts<'_>, number: usize| {
        console.progress(&format!("nodes of host {}", plan.hosts[number]));
        let links: Vec<_> = plan.tunnel_links().filter(|link| link.host == number).collect();
        let mut addresses: Vec<Option<Peer>> = vec![None; links.len()];
        let below = |addresses: &[Option<Peer>], above: Option<usize>| -> Vec<Peer> {
            let ports = links.iter().zip(addresses).filter(|(link, _)| link.link.above == above);
            ports.filter_map(|(_, peer)| peer.clone()).collect()
        };
        // A switch node connects to the nodes of later links.
        for link in links.iter().rev() {
            let transport = link.link.transport;
            let ([_, station], _) = transport.stations().expect("a network");
            let used: &mut u16 = used.entry(station).or_default();
            let place = &network.stations[station];
            let listen = listen_address(transport, place, station, *used)?;
            *used += 1;
            let far =
                FarEnd::new(plan, options, link, below(&addresses, Some(link.at)), Some(LEAD));
            let trace = options.trace_of(number);
            let cpu = Some((hosts.cpus.clone(), station));
            let node = place.enter(|| far.start(&listen, clock, &trace, cpu))??;
            // Every station's interface has the same name.
            addresses[link.at] = Some(Peer::from(&node.address));
            nodes.push(node);
        }
        let peers = below(&addresses, None);
        match station_of(plan, number) {
            // The thread stays in the namespace.
            Some(station) => {
                let place = &network.stations[station];
                Ok(place.enter(|| hosts.start(number, peers, Some(station)))?)
            }
            None => Ok(hosts.start(number, peers, None)),
        }
    };
    let hosts = Hosts::new(plan, options, clock, LEAD);
    let all = (0..plan.hosts.len()).map(|number| start(&hosts, number)).collect();
    let result = hosts.collect(all, Some(&network), (console, stop));
    drop(nodes);
    result
}

/// Runs one host of a plan in the network namespace of the caller. `peers` are the drives' nodes.
///
/// # Errors
/// If the host does not start, or fails.
pub fn run_host(
    plan: &Planned,
    number: usize,
    peers: Vec<Peer>,
    options: &LiveOptions,
    (console, stop): (&mut dyn Console, &Stop),
) -> Result<LiveRun, Failure> {
    let hosts = Hosts::new(plan, options, Clock::start(), Duration::ZERO);
    let threads = Ok(vec![hosts.start(number, peers, None)]);
    hosts.collect(threads, None, (console, stop))
}

/// Serves the far end of a link in the network namespace of the caller, until the returned node is
/// dropped. `below` are the nodes below a switch node, by port.
///
/// # Errors
/// If the node does not start.
pub fn serve_link(
    plan: &Planned,
    link: &PlannedLink<'_>,
    below: Vec<Peer>,
    listen: &Address,
    options: &LiveOptions,
) -> Result<Node, Failure> {
    let far = FarEnd::new(plan, options, link, below, None);
    far.start(listen, Clock::start(), &options.trace_of(link.host), None)
}

/// Returns the station of a host; `None` without a network.
fn station_of(plan: &Planned, host: usize) -> Option<usize> {
    let own = plan.tunnel_links().find(|link| link.host == host)?;
    own.link.transport.stations().map(|([host, _], _)| host)
}

/// The node at the far end of a link.
struct FarEnd {
    /// Name of its trace.
    trace: String,
    kind: FarEndKind,
}

enum FarEndKind {
    Drive(Box<DrivePlan>),
    Switch(Box<SwitchPlan>),
}

impl FarEnd {
    /// Creates the node from a plan. `below` are the nodes below a switch node, by port. `lead` is
    /// the time from the node's start to the start of the workloads in a network of this process,
    /// in which cables are cut; otherwise the node's link goes down instead.
    fn new(
        plan: &Planned,
        options: &LiveOptions,
        link: &PlannedLink<'_>,
        below: Vec<Peer>,
        lead: Option<Duration>,
    ) -> Self {
        let PlannedLink { number, name, host, at, link } = *link;
        let faults = plan.live_faults(number).into_iter();
        let faults: Vec<Fault> = match lead {
            Some(lead) => faults
                .filter(|fault| fault.kind != FaultKind::LinkDown)
                .map(|fault| Fault { at: fault.at + lead, ..fault })
                .collect(),
            None => faults.collect(),
        };
        let select = |of_drive| {
            let own = faults.iter().filter(|fault| fault.kind.is_of_drive() == of_drive);
            own.cloned().collect()
        };
        let parts =
            LinkParts::new(link.switch, Some((link.transport, plan.congestion[host])), options);
        let trace = node_name(&plan.config.hosts[host], at);
        let kind = match link.drive {
            Some((_, drive)) => FarEndKind::Drive(Box::new(DrivePlan {
                serial: drive.serial.clone(),
                backing: options.backing(Some(name), drive),
                link: parts,
                max_payload: drive.max_payload,
                faults: [select(true), select(false)],
            })),
            None => {
                let faults = select(false);
                FarEndKind::Switch(Box::new(SwitchPlan { link: parts, peers: below, faults }))
            }
        };
        Self { trace, kind }
    }

    /// Starts the node; see [`DrivePlan::start`]. `trace` is the trace of its host.
    fn start(
        self,
        at: &Address,
        clock: Clock,
        trace: &TraceTarget,
        cpu: Option<(Cpus, usize)>,
    ) -> Result<Node, Failure> {
        let trace = trace.for_node(&self.trace);
        match self.kind {
            FarEndKind::Drive(drive) => drive.start(at, clock, trace, cpu),
            FarEndKind::Switch(switch) => switch.start(at, clock, trace, cpu),
        }
    }
}

impl LiveOptions {
    /// Creates options of a run that only measures: with drives in RAM, without keys and traces.
    pub fn new(waiting: Waiting) -> Self {
        Self {
            waiting,
            verify: false,
            list: false,
            backing: BTreeMap::new(),
            credentials: None,
            trace: TraceTarget::default(),
        }
    }

    /// Returns where a host records. Its nodes record beside it.
    fn trace_of(&self, host: usize) -> TraceTarget {
        match host {
            0 => self.trace.clone(),
            host => self.trace.for_node(&format!("host{host}")),
        }
    }

    /// Returns the namespaces of a drive; `None` for the name of a drive without a tunnel.
    fn backing(&self, name: Option<&str>, drive: &DriveConfig) -> Vec<Backing> {
        let given = name.and_then(|name| self.backing.get(name));
        given.cloned().unwrap_or_else(|| in_ram(drive))
    }
}

/// The hosts of a run.
struct Hosts<'a> {
    plan: &'a Planned,
    options: &'a LiveOptions,
    clock: Clock,
    shared: Arc<Shared>,
    events: Sender<(usize, HostEvent)>,
    received: Receiver<(usize, HostEvent)>,
    cpus: Cpus,
    /// Time from the start of the clock to the start of workloads with faults.
    lead: Duration,
}

/// The thread of a host.
type HostThread = std::thread::JoinHandle<()>;

impl<'a> Hosts<'a> {
    fn new(plan: &'a Planned, options: &'a LiveOptions, clock: Clock, lead: Duration) -> Self {
        let (events, received) = channel();
        let cpus = Cpus::new(plan);
        Self { plan, options, clock, shared: Arc::default(), events, received, cpus, lead }
    }

    /// Starts a host in a thread, in the namespace of the caller, on the CPU of a station or on any.
    fn start(&self, number: usize, peers: Vec<Peer>, station: Option<usize>) -> HostThread {
        let config = self.plan.config.hosts[number].clone();
        let part = HostPart {
            number,
            clock: self.clock,
            live: self.options.clone(),
            trace: self.options.trace_of(number),
            options: HostOptions {
                number: number as u16,
                verify: self.options.verify,
                list: if self.options.list { MOST_LISTED / self.plan.hosts.len() } else { 0 },
                seed: self.plan.config.seed,
            },
            congestion: self.plan.congestion[number],
            shared: self.shared.clone(),
            events: self.events.clone(),
            cpu: station.map(|station| (self.cpus.clone(), station)),
        };
        match config.attached.clone() {
            Below::Switch(switch) => {
                std::thread::spawn(move || part.switched(&config, &switch, &peers))
            }
            Below::Direct(drive) => {
                let (serial, max_payload) = (drive.serial.clone(), drive.max_payload);
                let backing = self.options.backing(None, &drive);
                let switch = SwitchConfig::new(max_payload, Vec::new());
                let link = LinkParts::new(&switch, None, self.options);
                let faults = drive.faults.iter().filter(|fault| fault.kind.is_of_drive());
                let faults =
                    faults.map(|fault| Fault { at: fault.at + self.lead, ..fault.clone() });
                let faults = [faults.collect(), Faults::default()];
                let drive = DrivePlan { serial, backing, link, max_payload, faults };
                std::thread::spawn(move || part.direct(&config, &drive))
            }
        }
    }

    /// Waits until all hosts are ready, starts their workloads, and waits for their ends.
    fn collect(
        self,
        threads: Result<Vec<HostThread>, Failure>,
        network: Option<&RigNetwork>,
        (console, stop): (&mut dyn Console, &Stop),
    ) -> Result<LiveRun, Failure> {
        let Self { plan, options, shared, events, received, clock, .. } = self;
        drop(events);
        let (threads, mut failure) = match threads {
            Ok(threads) => (threads, None),
            Err(failure) => (Vec::new(), Some(failure)),
        };
        let (count, mut ready) = (threads.len(), 0);
        let mut hosts: Vec<HostResult> = Vec::new();
        hosts.resize_with(plan.hosts.len(), HostResult::default);
        let mut has_results = false;
        let mut started = None;
        let mut cuts = network.map_or_else(Cuts::none, |_| Cuts::new(plan));
        let shifted = |fault: Fault| fault.kind != FaultKind::LinkDown;
        let mut links = 0..plan.links.len();
        let is_faulty = |host: &HostConfig| match &host.attached {
            Below::Direct(drive) => !drive.faults.is_empty(),
            Below::Switch(_) => false,
        };
        let has_faults = network.is_some()
            && (links.any(|link| plan.live_faults(link).into_iter().any(shifted))
                || plan.config.hosts.iter().any(is_faulty));
        let start_at = Instant::ZERO + if has_faults { LEAD } else { Duration::ZERO };
        if failure.is_some() {
            shared.stop();
        }
        loop {
            let elapsed = |started: Option<Instant>| started.map(|started| clock.now() - started);
            let soon = if has_faults { Pause::from_millis(1) } else { LOOK };
            let wait = elapsed(started).map_or(soon, |elapsed| cuts.pause(elapsed, LOOK));
            match received.recv_timeout(wait) {
                Ok((_, HostEvent::Ready)) => ready += 1,
                Ok((host, HostEvent::Ended(Ok(result)))) => {
                    let (listed, count) = (result.list.len(), result.commands);
                    if options.list && count > listed as u64 {
                        let name = &plan.hosts[host];
                        failure.get_or_insert(Failure(format!(
                            "host {name}: tables, page and deadlines cover only the first {listed} \
                             of {count} commands; shorten the workload"
                        )));
                    }
                    hosts[host] = *result;
                    has_results = started.is_some();
                }
                Ok((host, HostEvent::Ended(Err(Failure(why))))) => {
                    let why = format!("host {}: {why}", plan.hosts[host]);
                    match started {
                        None => shared.stop(),
                        Some(_) => console.line(&why),
                    }
                    failure.get_or_insert(Failure(why));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let is_late = has_faults && started.is_none() && clock.now() > start_at + LATE;
            if is_late && failure.is_none() {
                shared.stop();
                failure = Some(Failure("the hosts were not ready when the faults began".into()));
            }
            if ready == count && !shared.is_stopped() && clock.now() >= start_at {
                started.get_or_insert_with(|| clock.now());
                shared.go();
            }
            if let (Some(elapsed), Some(network)) = (elapsed(started), network) {
                let cut = cuts.carry_out(elapsed, (plan, network), |text| console.line(&text));
                if let Err(why) = cut {
                    shared.stop();
                    failure.get_or_insert(why);
                }
            }
            if stop.is_set() {
                shared.stop();
            }
            let done = shared.transfers.load(Ordering::Relaxed);
            console.progress(&match ready == count {
                true => format!("{done} transfers"),
                false => format!("{ready} of {count} hosts are ready"),
            });
        }
        threads.into_iter().for_each(|thread| drop(thread.join()));
        console.done();
        match failure {
            Some(failure) if !has_results => Err(failure),
            failure => Ok(LiveRun { hosts, interrupted: stop.is_set(), failure }),
        }
    }
}

/// Returns the address at which the device node with this number of a station listens.
fn listen_address(
    transport: &TransportConfig,
    place: &Namespace,
    station: usize,
    number: u16,
) -> Result<Address, Failure> {
    match transport {
        TransportConfig::Raw(_) => {
            let text = format!("raw:{INTERFACE}");
            Ok(place.enter(|| Address::to_listen(&text, Protection::Insecure))??)
        }
        _ => Ok(SocketAddr::from((address(station), DEFAULT_PORT + number)).into()),
    }
}

/// What the thread of a host needs, apart from its plan.
struct HostPart {
    number: usize,
    clock: Clock,
    live: LiveOptions,
    trace: TraceTarget,
    options: HostOptions,
    congestion: Congestion,
    shared: Arc<Shared>,
    events: Sender<(usize, HostEvent)>,
    /// The station whose CPU the host uses; `None`: any CPU.
    cpu: Option<(Cpus, usize)>,
}

impl HostPart {
    fn direct(self, config: &HostConfig, drive: &DrivePlan) {
        let made = (|| {
            let drive = drive.open(self.clock, &TraceTarget::default())?;
            let host = InitiatorHost::power_on(
                self.clock,
                Poller::new(self.live.waiting)?,
                hardware(config),
                drive,
                |_: &mut NvmeDrive| Ok(true),
            )?;
            RunningHost::new(self.clock, host, config)
        })();
        self.carry_out(config, made);
    }

    fn switched(self, config: &HostConfig, switch: &SwitchConfig, peers: &[Peer]) {
        let made = (|| {
            let transport = config.links().first().map(|link| (link.transport, self.congestion));
            let parts = LinkParts::new(switch, transport, &self.live);
            let tracer = self.trace.open(NodeRole::Host, random_number(), self.clock)?;
            let switch = parts.switch(peers)?.traced(tracer);
            let mut wait = LinkWait::new(self.clock.now(), PATIENCE);
            let clock = self.clock;
            let ready = |switch: &mut Switch| Ok(wait.check(clock.now(), switch)?);
            let poller = Poller::new(self.live.waiting)?;
            let host = InitiatorHost::power_on(clock, poller, hardware(config), switch, ready)?;
            RunningHost::new(clock, host, config)
        })();
        self.carry_out(config, made);
    }

    /// Runs the workload, and reports the result.
    fn carry_out<A: Attached + crate::host::Links>(
        self,
        config: &HostConfig,
        made: Result<RunningHost<A>, Failure>,
    ) {
        let Self { number, shared, events, cpu, .. } = &self;
        let run = || {
            let mut host = made?;
            if let Some((cpus, station)) = cpu {
                cpus.keep(*station)?;
            }
            host.fill(&config.workload, shared)?;
            let _ = events.send((*number, HostEvent::Ready));
            let ran = match host.wait_for_start(shared)? {
                true => host.run(config, self.options, shared),
                false => Ok(HostResult::default()),
            };
            // The results are complete, whatever happens to the links now.
            let _ = host.close();
            ran
        };
        let result = run();
        let _ = events.send((*number, HostEvent::Ended(result.map(Box::new))));
    }
}

/// Returns the settings of a host's hardware.
fn hardware(config: &HostConfig) -> Hardware {
    let (root, software) = (&config.root, &config.software);
    Hardware {
        root: root::Settings {
            max_payload: root.max_payload,
            completion_size: root.completion_size,
            ecrc: root.ecrc,
            ..root::Settings::default()
        },
        enumeration: enumerate::Settings {
            max_payload: software.max_payload,
            max_read_request: software.max_read_request,
            ecrc: root.ecrc,
            contents: true,
            outage: config.outage(),
            ..enumerate::Settings::default()
        },
        ram: root.memory,
        packets: 0,
        push: push::Settings { mode: root.push, ..push::Settings::default() },
    }
}
