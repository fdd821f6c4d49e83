//! One live run of a plan: starts the network, the device nodes and the hosts, and collects the
//! results.

use crate::cuts::Cuts;
use crate::device::{DrivePlan, in_ram};
use crate::host::{HostOptions, HostResult, RunningHost, Shared, driver_settings};
use crate::network::{INTERFACE, RigNetwork, address};
use crate::settings::LinkParts;
use live::attached::Switch;
use live::links::Links;
use live::net::{Address, DEFAULT_PORT, Namespace, Protection};
use live::{Attached, Clock, LinkWait, NvmeDrive, PATIENCE, Poller, Stop, Waiting, random_number};
use load::initiator_host::{Hardware, InitiatorHost};
use load::local::Node;
use load::{Console, TraceTarget};
use node::push;
use pcie::{enumerate, root};
use plan::Planned;
use report::Failure;
use sim::transport::TransportConfig;
use sim::world::{Attached as Below, HostConfig, SwitchConfig};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::Duration as Pause;
use storage::media::Backing;
use wire::Instant;
use wire::frame::Role;
use wire::trace::NodeRole;

/// How a plan is run live.
#[derive(Clone, Debug)]
pub struct LiveOptions {
    /// How nodes wait.
    pub waiting: Waiting,
    /// Whether data are verified.
    pub verify: bool,
    /// Whether every command is listed.
    pub list: bool,
    /// Namespaces of drives by the drive's name; others are in RAM.
    pub backing: BTreeMap<String, Vec<Backing>>,
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
}

/// Longest time between two updates of the progress.
const LOOK: Pause = Pause::from_millis(100);

/// An event of a host's thread.
enum HostEvent {
    /// The host may start.
    Ready,
    /// The host has ended.
    Ended(Result<HostResult, Failure>),
}

/// Runs every node of a plan in network namespaces of this machine, until all workloads end.
///
/// # Errors
/// If the network cannot be created, a node does not start, or a machine fails.
pub fn run(
    plan: &Planned,
    options: &LiveOptions,
    (console, stop): (&mut dyn Console, &Stop),
) -> Result<LiveRun, Failure> {
    console.progress("network");
    let network = RigNetwork::new(plan)?;
    let mut site = Site { plan, options, network, clock: Clock::start(), used: BTreeMap::new() };
    let (mut nodes, mut threads) = (Vec::new(), Vec::new());
    let shared = Arc::new(Shared::default());
    let (events, received) = channel();
    for number in 0..plan.config.hosts.len() {
        console.progress(&format!("nodes of host {}", plan.hosts[number]));
        let started = site.start(number, &mut nodes, (&shared, &events));
        match started {
            Ok(thread) => threads.push(thread),
            Err(failure) => {
                shared.stop();
                threads.into_iter().for_each(|thread: HostThread| drop(thread.join()));
                return Err(failure);
            }
        }
    }
    drop(events);
    let results = collect((plan, &site.network), &shared, &received, (console, stop));
    threads.into_iter().for_each(|thread| drop(thread.join()));
    console.done();
    let hosts = results?;
    Ok(LiveRun { hosts, interrupted: stop.is_set() })
}

/// The thread of a host.
type HostThread = std::thread::JoinHandle<()>;

/// Waits until all hosts are ready, starts them, and waits for their ends.
fn collect(
    (plan, network): (&Planned, &RigNetwork),
    shared: &Shared,
    events: &Receiver<(usize, HostEvent)>,
    (console, stop): (&mut dyn Console, &Stop),
) -> Result<Vec<HostResult>, Failure> {
    let count = plan.hosts.len();
    let mut results: Vec<Option<HostResult>> = (0..count).map(|_| None).collect();
    let (mut ready, mut failure) = (0, None);
    let (clock, mut started, mut cuts) = (Clock::start(), None, Cuts::new(plan));
    loop {
        let elapsed = |started: Option<Instant>| started.map(|started| clock.now() - started);
        let wait = elapsed(started).map_or(LOOK, |elapsed| cuts.pause(elapsed, LOOK));
        match events.recv_timeout(wait) {
            Ok((_, HostEvent::Ready)) => ready += 1,
            Ok((host, HostEvent::Ended(Ok(result)))) => results[host] = Some(result),
            Ok((host, HostEvent::Ended(Err(Failure(why))))) => {
                shared.stop();
                failure.get_or_insert(Failure(format!("host {}: {why}", plan.hosts[host])));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => break,
        }
        if ready == count {
            started.get_or_insert_with(|| clock.now());
            shared.go();
        }
        if let Some(elapsed) = elapsed(started) {
            cuts.carry_out(elapsed, (plan, network), |text| console.line(&text))?;
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
    match failure {
        Some(failure) => Err(failure),
        None => Ok(results.into_iter().map(Option::unwrap_or_default).collect()),
    }
}

/// The place where nodes run.
struct Site<'a> {
    plan: &'a Planned,
    options: &'a LiveOptions,
    network: RigNetwork,
    clock: Clock,
    /// Number of device nodes per station so far.
    used: BTreeMap<usize, u16>,
}

impl Site<'_> {
    /// Starts the device nodes of a host, and the host in a thread.
    fn start(
        &mut self,
        number: usize,
        nodes: &mut Vec<Node>,
        (shared, events): (&Arc<Shared>, &Sender<(usize, HostEvent)>),
    ) -> Result<HostThread, Failure> {
        let config = self.plan.config.hosts[number].clone();
        let trace = match number {
            0 => self.options.trace.clone(),
            number => self.options.trace.for_node(&format!("host{number}")),
        };
        let first: usize = self.plan.config.hosts[..number].iter().map(|host| host.drives().len()).sum();
        let part = HostPart {
            number,
            clock: self.clock,
            waiting: self.options.waiting,
            trace: trace.clone(),
            options: HostOptions {
                number: number as u16,
                verify: self.options.verify,
                list: self.options.list,
                seed: self.plan.config.seed,
            },
            shared: shared.clone(),
            events: events.clone(),
        };
        let name = |at: usize| self.plan.drives.get(first + at).cloned().unwrap_or_default();
        let backing = |at: usize, drive| {
            self.options.backing.get(&name(at)).cloned().unwrap_or_else(|| in_ram(drive))
        };
        let switch = match &config.attached {
            Below::Switch(switch) => switch.clone(),
            Below::Direct(drive) => {
                let (serial, max_payload) = (drive.serial.clone(), drive.max_payload);
                let link = LinkParts::new(&SwitchConfig::new(max_payload, Vec::new()), None, self.options.waiting);
                let drive = DrivePlan { serial, backing: backing(0, drive), link, max_payload };
                return Ok(std::thread::spawn(move || part.direct(&config, &drive)));
            }
        };
        let mut peers = Vec::new();
        for (at, port) in switch.ports.iter().enumerate() {
            let ([_, station], _) = port.transport.stations().expect("a network");
            let link = LinkParts::new(&switch, Some(&port.transport), self.options.waiting);
            let drive = DrivePlan {
                serial: port.drive.serial.clone(),
                backing: backing(at, &port.drive),
                link,
                max_payload: port.drive.max_payload,
            };
            let (clock, trace) = (self.clock, trace.for_node(&format!("device{at}")));
            let used = self.used.entry(station).or_default();
            let place = &self.network.stations[station];
            let listen = listen_address(&port.transport, place, station, *used)?;
            *used += 1;
            let node = place.enter(|| drive.start(&listen, clock, trace))??;
            // Every station's interface has the same name.
            peers.push(node.address.clone());
            nodes.push(node);
        }
        let ([host, _], _) = switch.ports[0].transport.stations().expect("a network");
        let work = move || part.switched(&config, &switch, &peers);
        // The thread stays in the namespace.
        Ok(self.network.stations[host].enter(|| std::thread::spawn(work))?)
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
    waiting: Waiting,
    trace: TraceTarget,
    options: HostOptions,
    shared: Arc<Shared>,
    events: Sender<(usize, HostEvent)>,
}

impl HostPart {
    fn direct(self, config: &HostConfig, drive: &DrivePlan) {
        let made = (|| {
            let drive = drive.open(self.clock, &TraceTarget::default())?;
            let host = InitiatorHost::power_on(
                self.clock,
                Poller::new(self.waiting)?,
                hardware(config),
                drive,
                |_: &mut NvmeDrive| Ok(true),
            )?;
            RunningHost::new(self.clock, host, driver_settings(config))
        })();
        self.carry_out(config, made);
    }

    fn switched(
        self,
        config: &HostConfig,
        switch: &SwitchConfig,
        peers: &[Address],
    ) {
        let made = (|| {
            let parts = LinkParts::new(switch, Some(&switch.ports[0].transport), self.waiting);
            let upstream = switch::upstream::Settings {
                ports: peers.len() as u8,
                max_payload: switch.max_payload,
                p2p: false,
                tunnel: parts.tunnel(Role::Host),
            };
            let links = Links::new(peers).over(parts.links()?).limited(parts.node.limit());
            let tracer = self.trace.open(NodeRole::Host, random_number(), self.clock)?;
            let switch = Switch::new(upstream, links).traced(tracer);
            let mut wait = LinkWait::new(self.clock.now(), PATIENCE);
            let clock = self.clock;
            let ready = |switch: &mut Switch| Ok(wait.check(clock.now(), switch)?);
            let poller = Poller::new(self.waiting)?;
            let host = InitiatorHost::power_on(clock, poller, hardware(config), switch, ready)?;
            RunningHost::new(clock, host, driver_settings(config))
        })();
        self.carry_out(config, made);
    }

    /// Runs the workload, and reports the result.
    fn carry_out<A: Attached + crate::host::Links>(
        self,
        config: &HostConfig,
        made: Result<RunningHost<A>, Failure>,
    ) {
        let Self { number, shared, events, .. } = &self;
        let run = || {
            let mut host = made?;
            host.fill(&config.workload, shared)?;
            let _ = events.send((*number, HostEvent::Ready));
            let ran = match host.wait_for_start(shared)? {
                true => host.run(config, self.options, shared),
                false => Ok(HostResult::default()),
            };
            host.close()?;
            ran
        };
        let result = run();
        let _ = events.send((*number, HostEvent::Ended(result)));
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
            ..enumerate::Settings::default()
        },
        ram: root.memory,
        packets: 0,
        push: push::Settings { mode: root.push, ..push::Settings::default() },
    }
}
