//! A target of a run: connects to it, selects the drive, brings the drive up, and shuts it down.

use super::Settings;
use super::further::{Further, FurtherSettings, divide};
use super::group::JobShare;
use super::machine::{Client, InitiatorMachine};
use super::peer::Process;
use super::section::{Request, Section};
use super::target::{Completions, LoadTarget};
use crate::Console;
use crate::initiator_host::{Hardware, InitiatorHost, RAM_BASE};
use live::attached::Switch;
use live::net::Peer;
use live::trace::Tracer;
use live::vfio_client;
use live::{Clock, LinkWait, Stop, random_number};
use node::slot::{self, OwnSlot};
use nvme::initiator::{self, Driver, NamespaceInfo, QueueMemory};
use pcie::enumerate::{self, Node};
use pcie::root;
use report::span::size;
use report::{Failure, Outcome};
use std::fmt::Display;
use std::path::Path;
use vfio_user::client::{Doorbells, HostMemory};
use wire::trace::NodeRole;
use workload::{Fio, MOST_ENTRIES, Written};

/// Size of commands for which queues are allocated: the largest of farlane's drives (MDTS). If a
/// drive permits only smaller commands, the number of entries is checked later.
const SMALLEST_TRANSFER: usize = 128 << 10;
/// Bytes of host memory for everything except queues and buffers.
const BASE_MEMORY: u64 = 16 << 20;
const MOST_MEMORY: u64 = 3 << 30;
/// Number of attachments for which memory is reserved. A drive that returns gets new queues.
const ATTACHMENTS: u64 = 64;
/// Bytes per entry of a queue pair: its queue entries, and a PRP list of at most one page.
const ENTRY_MEMORY: u64 = 64 + 16 + 4096;

/// A target under load: a machine and its drive.
pub struct Session {
    /// The target's name.
    pub name: String,
    /// The machine.
    pub machine: InitiatorMachine,
    /// The place of the drive's function.
    pub slot: OwnSlot,
    /// Driver of the drive, unless a group owns it.
    pub driver: Option<Driver>,
    /// Settings of new drivers.
    pub settings: initiator::Settings,
    /// By namespace: ranges that earlier sections certainly wrote.
    pub written: Vec<(u32, Vec<Written>)>,
    /// For a vfio-user server: the methods of ringing doorbells and finding completions.
    pub ways: Option<(Doorbells, &'static str)>,
    /// Process at the other end, if it is visible.
    pub peer: Option<Process>,
    /// The queues whose jobs run here.
    pub(super) share: JobShare,
    /// The further connections of the link.
    pub(super) further: Vec<Further>,
    pub(super) tracer: Tracer,
}

impl Session {
    /// Connects to the target and brings its drive up. Other targets are processed meanwhile.
    ///
    /// # Errors
    /// One line with the reason of a failure.
    pub fn start(
        options: &Settings,
        request: &Request,
        target: &LoadTarget,
        (stop, console): (&Stop, &mut dyn Console),
        others: &mut [Self],
    ) -> Result<Self, Failure> {
        let clock = others.first().map_or_else(Clock::start, |other| other.machine.clock());
        let mut settings = queues(request);
        // Commands wait while a link is interrupted.
        settings.timeout = settings.timeout + options.node.survive;
        let ram = memory(request, settings)?;
        let (first, further) = divide(options, target, settings, (clock, ram));
        let (machine, tracer, peer) = match target {
            LoadTarget::Node { peer, .. } => {
                connect(&first, peer, (clock, ram), console, || serve(stop, others))?
            }
            LoadTarget::VfioUser(socket) => {
                settings.interrupts = options.completions == Completions::Msix;
                let (machine, peer) = open(options, socket, (clock, ram))?;
                (machine, Tracer::off(), peer)
            }
        };
        let mut machine = machine;
        match bring_up(&mut machine, (options, target, settings), further, stop) {
            Ok((slot, driver, further)) => Ok(Self {
                name: target.to_string(),
                ways: ways(&mut machine, options),
                machine,
                slot,
                driver: Some(driver),
                settings,
                written: Vec::new(),
                peer,
                share: JobShare(0..further.first().map_or(usize::MAX, Further::first_queue)),
                further,
                tracer,
            }),
            Err(failure) => {
                machine.close()?;
                options.trace.close(&tracer)?;
                Err(failure)
            }
        }
    }

    /// Returns the driver, which no group may own.
    pub fn driver(&self) -> &Driver {
        self.driver.as_ref().expect("no group has it")
    }

    /// Returns the namespace of a section.
    ///
    /// # Errors
    /// One line that names the existing namespaces.
    pub fn namespace(&self, section: &Section) -> Result<NamespaceInfo, Failure> {
        let wanted = section.workload.nsid();
        let all = self.driver().namespaces();
        let found = all.iter().find(|namespace| namespace.nsid == wanted);
        found.copied().ok_or_else(|| {
            let list: Vec<_> = all.iter().map(|namespace| namespace.nsid.to_string()).collect();
            let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
            let message = format!("nsid {wanted}: the drive's namespaces are: {list}");
            Failure(section.origin.fail(message).to_string())
        })
    }

    /// Returns the parameters of a section's jobs in its namespace; `None` for configuration reads.
    ///
    /// # Errors
    /// As [`namespace`](Self::namespace).
    pub fn fio(&self, section: &Section) -> Result<Option<Fio>, Failure> {
        let namespace = self.namespace(section)?;
        Ok(section.fio(namespace.blocks << namespace.block_shift))
    }

    /// Checks that the drive supports the commands of a section.
    ///
    /// # Errors
    /// One line that names the section's place.
    pub fn check(&self, section: &Section) -> Outcome {
        let checked = self.fio(section)?.map_or(Ok(()), |fio| fio.check([self.driver()]));
        checked.map_err(|message| Failure(section.origin.fail(message).to_string()))
    }

    /// Shuts the drive down in order and sends Goodbye. The trace is closed in any case.
    ///
    /// # Errors
    /// The first step that failed.
    pub fn close(mut self, options: &Settings) -> Outcome {
        let down = match self.driver.take() {
            // A lost drive cannot be shut down.
            None => Ok(Ok(())),
            Some(mut driver) => self.machine.run(async move { driver.shutdown().await }),
        };
        self.further.iter().for_each(Further::begin_close);
        let mut closed = self.machine.close();
        for further in &mut self.further {
            closed = closed.and(further.close());
        }
        let traced = options.trace.close(&self.tracer);
        down?.map_err(|error| Failure(format!("the drive did not shut down: {error}")))?;
        closed.and(traced)
    }

    /// Stops or restarts the trace if a signal requests it. Returns a message about the change.
    pub fn switch_trace(&self, options: &Settings, stop: &Stop) -> Option<String> {
        options.trace.switch(&self.tracer, stop)
    }
}

/// Processes the other targets. Fails if a target fails, or with Ctrl-C.
fn serve(stop: &Stop, others: &mut [Session]) -> Outcome {
    for other in others {
        other.machine.pump()?;
    }
    if stop.is_set() { Err(Failure("interrupted".into())) } else { Ok(()) }
}

/// Connects to a node; calls `meanwhile` in each iteration.
pub(super) fn connect(
    options: &Settings,
    peer: &Peer,
    (clock, ram): (Clock, usize),
    console: &mut dyn Console,
    mut meanwhile: impl FnMut() -> Outcome,
) -> Result<(InitiatorMachine, Tracer, Option<Process>), Failure> {
    let mut node = options.node.clone();
    if let Some(narrowed) = node.fit(peer.paths().flat_map(Peer::addresses))? {
        console.note(&narrowed.to_string());
    }
    let switch = node.switch(std::slice::from_ref(peer), options.group, false)?;
    let mps = usize::from(node.max_payload);
    let enumeration = enumerate::Settings {
        max_payload: mps,
        contents: true,
        outage: node.survive,
        ..enumerate::Settings::default()
    };
    let root = root::Settings { max_payload: mps, ..root::Settings::default() };
    let hardware = Hardware { root, enumeration, ram, packets: 0, push: options.push };
    let tracer = options.trace.open(NodeRole::Host, random_number(), clock)?;
    let mut links = LinkWait::new(clock.now(), options.wait);
    let ready = |switch: &mut Switch| {
        meanwhile()?;
        Ok(links.check(clock.now(), switch)?)
    };
    let switch = switch.traced(tracer.clone());
    let host = InitiatorHost::power_on(clock, node.poller()?, hardware, switch, ready)?;
    Ok((InitiatorMachine::Network(Box::new(host)), tracer, Process::listening(peer.addresses())))
}

fn open(
    options: &Settings,
    socket: &Path,
    (clock, ram): (Clock, usize),
) -> Result<(InitiatorMachine, Option<Process>), Failure> {
    let failed = |error: &dyn Display| Failure(format!("--vfio-user {error}"));
    let memory = HostMemory::new(RAM_BASE, ram).map_err(|errno| failed(&errno))?;
    let settings = vfio_client::Settings {
        socket: socket.to_owned(),
        doorbells: options.doorbells,
        polled: options.completions == Completions::Polled,
    };
    let ram = memory.ram();
    let machine =
        vfio_client::VfioUserClient::connect(clock, options.node.poller()?, settings, memory);
    let mut machine = machine.map_err(|error| failed(&error))?;
    let peer = machine.server().map(Process::new);
    Ok((InitiatorMachine::VfioUser(Box::new(Client::new(machine, ram))), peer))
}

/// Brings the drive up, with the queues of further connections, whose threads are started.
fn bring_up(
    machine: &mut InitiatorMachine,
    (options, target, settings): (&Settings, &LoadTarget, initiator::Settings),
    further: Vec<FurtherSettings>,
    stop: &Stop,
) -> Result<(OwnSlot, Driver, Vec<Further>), Failure> {
    let slot = prepare(machine, options, target, settings)?;
    let own = further.first().map_or(settings.io_queues, |one| one.queues.start);
    let start = |one| Further::start(one, stop);
    let mut further = further.into_iter().map(start).collect::<Result<Vec<_>, _>>()?;
    let mut queues = Vec::new();
    for one in &mut further {
        queues.extend(one.queues(machine)?);
    }
    let settings = initiator::Settings { io_queues: own, ..settings };
    match (attach(machine, slot.node(), settings, queues)?, machine.why_lost()) {
        (Err(_), Some(lost)) => Err(Failure(lost)),
        (Err(error), None) => Err(Failure(format!("{}: {error}", slot.node().bdf))),
        (Ok(driver), _) => {
            further.iter().for_each(|one| one.attach(driver.info()));
            Ok((slot, driver, further))
        }
    }
}

/// Selects the drive and prepares its function.
///
/// # Errors
/// One line that names the function or the target.
pub(super) fn prepare(
    machine: &mut InitiatorMachine,
    options: &Settings,
    target: &LoadTarget,
    settings: initiator::Settings,
) -> Result<OwnSlot, Failure> {
    let drives = machine.drives().map_err(|Failure(why)| match target {
        LoadTarget::Node { .. } => Failure(why),
        LoadTarget::VfioUser(socket) => Failure(format!("--vfio-user {}: {why}", socket.display())),
    })?;
    let (node, port) = choose(drives, options, target)?;
    let bdf = node.bdf;
    let failed = |why: &dyn Display| Failure(format!("{bdf}: {why}"));
    let enumeration = machine.bring_up_with(settings).enumeration;
    let settings_of_slot = slot::Settings { enumeration, owner: random_number() as u32 | 1 };
    let mut slot = OwnSlot::new(port, node, machine.bus(), settings_of_slot);
    machine.ready(&mut slot)?.map_err(|why| failed(&why))?;
    Ok(slot)
}

/// Brings up the drive of a ready function, with the queues of further connections.
///
/// # Errors
/// If the machine fails.
pub fn attach(
    machine: &mut InitiatorMachine,
    function: &Node,
    settings: initiator::Settings,
    further: Vec<QueueMemory>,
) -> Result<Result<Driver, initiator::Error>, Failure> {
    let (bring_up, function) = (machine.bring_up_with(settings), function.clone());
    let attached = machine.run(async move { bring_up.attach_with(&function, further).await })?;
    Ok(attached.map(|(_, driver)| driver))
}

/// Returns the methods of ringing doorbells and finding completions.
fn ways(machine: &mut InitiatorMachine, options: &Settings) -> Option<(Doorbells, &'static str)> {
    let InitiatorMachine::VfioUser(client) = machine else { return None };
    let mapped = client.machine.maps_doorbells();
    let doorbells = if mapped { Doorbells::Mapped } else { Doorbells::Message };
    Some((doorbells, options.completions.name()))
}

/// Returns settings with queues for all sections: one pair per job of the group with
/// the most jobs.
fn queues(request: &Request) -> initiator::Settings {
    let fios = |group: &[Section]| -> Vec<workload::Fio> {
        group.iter().filter_map(|section| section.workload.fio()).collect()
    };
    let commands = fios(&request.sections).iter().map(|fio| fio.commands(SMALLEST_TRANSFER)).max();
    let jobs = |group| fios(group).iter().map(|fio| fio.numjobs).sum::<usize>();
    let (entries, jobs) = (commands.unwrap_or(1) + 1, request.groups().map(jobs).max());
    initiator::Settings {
        io_queues: jobs.unwrap_or(1).clamp(1, u16::MAX.into()) as u16,
        entries: entries.clamp(2, MOST_ENTRIES) as u16,
        ..initiator::Settings::default()
    }
}

/// Returns the bytes of host memory for the buffers and queues of all sections. The error describes
/// what is too large.
fn memory(request: &Request, settings: initiator::Settings) -> Result<usize, Failure> {
    let mut buffers = 0u64;
    for section in &request.sections {
        let Some(fio) = section.workload.fio() else { continue };
        let page = (fio.bs as u64).next_multiple_of(4096);
        buffers += page * fio.iodepth as u64 * fio.numjobs as u64;
        if buffers > MOST_MEMORY {
            let message = format!(
                "the buffers of all sections, iodepth × bs × numjobs each, need {}: at most {}",
                size(buffers),
                size(MOST_MEMORY)
            );
            return Err(Failure(section.origin.fail(message).to_string()));
        }
    }
    let queue = u64::from(settings.entries) * ENTRY_MEMORY + 16_384;
    let queues = queue * u64::from(settings.io_queues);
    let least = BASE_MEMORY + buffers + queues;
    let wanted = least + queues * (ATTACHMENTS - 1);
    Ok(wanted.min(least + MOST_MEMORY) as usize)
}

fn choose(
    mut drives: Vec<(Node, Node)>,
    options: &Settings,
    target: &LoadTarget,
) -> Result<(Node, Node), Failure> {
    let (count, number) = match target {
        LoadTarget::Node { .. } => (drives.len(), options.drive),
        LoadTarget::VfioUser(_) => (drives.len(), None),
    };
    match number {
        None if count == 1 => Ok(drives.remove(0)),
        Some(number) if number < count => Ok(drives.swap_remove(number)),
        _ if count == 0 => Err(Failure(format!("no drive found behind {target}"))),
        chosen => {
            let name =
                |(number, (node, _)): (usize, &(Node, Node))| format!("{number} ({})", node.bdf);
            let list: Vec<_> = drives.iter().enumerate().map(name).collect();
            let option = chosen.map_or("--drive is missing".to_owned(), |n| format!("--drive {n}"));
            Err(Failure(format!("{option}: the drives behind {target} are {}", list.join(", "))))
        }
    }
}
