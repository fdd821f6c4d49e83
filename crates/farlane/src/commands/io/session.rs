//! The host node of a run: connects, chooses the drive, brings it up, and shuts it down.

use super::Args;
use super::options::{Request, Section};
use crate::link_wait::LinkWait;
use crate::node::instance;
use crate::rig::{Hardware, Rig};
use crate::signals::Stop;
use live::Clock;
use live::attached::Switch;
use live::net::Peer;
use live::trace::Tracer;
use nvme::initiator::{self, Driver, NamespaceInfo};
use pcie::enumerate::{self, Kind, Node};
use pcie::root;
use report::span::size;
use report::{Failure, Outcome};
use wire::trace::NodeRole;
use workload::{MOST_ENTRIES, nvme_functions};

/// Queues are made for commands of this size, the largest of our own drives (MDTS); whether
/// those of a drive that moves less at once hold enough of them is checked then.
const SMALLEST_TRANSFER: usize = 128 << 10;
/// Host memory for everything but queues and buffers.
const BASE_MEMORY: u64 = 16 << 20;
/// Host memory at most, as of simulated hosts.
const MOST_MEMORY: u64 = 3 << 30;
/// A drive that comes back gets fresh queues: memory is kept for so many times.
const ATTACHMENTS: u64 = 64;
/// Bytes that an entry of a queue pair takes: its entries, and a PRP list of at most a page.
const ENTRY_MEMORY: u64 = 64 + 16 + 4096;
/// Port type of a switch's downstream port (PCIe Base 4.0, section 7.5.3.2).
const DOWNSTREAM: u8 = 6;

/// A run's machine and drive.
pub struct Session {
    /// The machine.
    pub rig: Rig<Switch>,
    /// The drive's function.
    pub node: Node,
    /// The port of our own switch that it is below.
    pub port: Option<Node>,
    /// Its driver, unless jobs have it.
    pub driver: Option<Driver>,
    /// How drivers are made.
    pub settings: initiator::Settings,
    /// Ctrl-C.
    pub stop: Stop,
    tracer: Tracer,
}

impl Session {
    /// Connects to the node and brings the drive up. One line says why it fails.
    pub fn start(args: &Args, request: &Request) -> Result<Self, Failure> {
        let peers = args.node.peers(std::slice::from_ref(&args.connect))?;
        let options = args.node.with_fitting_payload(peers.iter().flat_map(Peer::addresses))?;
        let switch = options.switch(&peers, args.group, false)?;
        let settings = queues(request);
        let mps = usize::from(options.mps);
        let enumeration = enumerate::Settings {
            max_payload: mps,
            contents: true,
            ..enumerate::Settings::default()
        };
        let hardware = Hardware {
            root: root::Settings { max_payload: mps, ..root::Settings::default() },
            enumeration,
            ram: memory(request, settings)?,
            packets: 0,
        };
        let stop = Stop::on_signals()?;
        let clock = Clock::start();
        let tracer = args.trace.open(NodeRole::Host, instance(), clock)?;
        let mut links = LinkWait::new(clock.now(), args.wait);
        let ready = |switch: &mut Switch| match stop.is_set() {
            true => Err(Failure("interrupted".into())),
            false => links.look(clock.now(), switch),
        };
        let switch = switch.traced(tracer.clone());
        let mut rig = Rig::power_on(clock, options.poller()?, hardware, switch, ready)?;
        let found = choose(&rig, args).and_then(|node| {
            let driver = rig.bring_up(&node, settings)?;
            Ok((node, driver))
        });
        match found {
            Ok((node, driver)) => {
                let port = port_above(&rig, &node);
                Ok(Self { rig, node, port, driver: Some(driver), settings, stop, tracer })
            }
            Err(failure) => {
                rig.machine.close()?;
                args.trace.close(&tracer)?;
                Err(failure)
            }
        }
    }

    /// The drive that no job has.
    pub fn driver(&self) -> &Driver {
        self.driver.as_ref().expect("no job has it")
    }

    /// The namespace of a section. The error names those that there are.
    pub fn namespace(&self, section: &Section) -> Result<NamespaceInfo, Failure> {
        let wanted = section.workload.nsid();
        let all = self.driver().namespaces();
        let found = all.iter().find(|namespace| namespace.nsid == wanted);
        found.copied().ok_or_else(|| {
            let list: Vec<_> = all.iter().map(|namespace| namespace.nsid.to_string()).collect();
            let list = if list.is_empty() { "none".to_owned() } else { list.join(", ") };
            let what = format!("nsid {wanted}: the drive's namespaces are: {list}");
            Failure(section.origin.fail(what).to_string())
        })
    }

    /// Checks that the drive can do what a section asks. The error names the section's place.
    pub fn check(&self, section: &Section) -> Outcome {
        let namespace = self.namespace(section)?;
        let fio = section.fio(namespace.blocks << namespace.block_shift);
        let checked = fio.map_or(Ok(()), |fio| fio.check([self.driver()]));
        checked.map_err(|what| Failure(section.origin.fail(what).to_string()))
    }

    /// Shuts the drive down in order and says Goodbye. The trace is closed in any case.
    pub fn close(mut self, args: &Args) -> Outcome {
        let down = match self.driver.take() {
            // A drive that is gone cannot be shut down.
            None => Ok(Ok(())),
            Some(mut driver) => self.rig.run(async move { driver.shutdown().await }),
        };
        let closed = self.rig.machine.close();
        args.trace.close(&self.tracer)?;
        down?.map_err(|error| Failure(format!("the drive did not shut down: {error}")))?;
        Ok(closed?)
    }
}

/// Queues for all sections.
fn queues(request: &Request) -> initiator::Settings {
    let all = request.sections.iter().filter_map(|section| section.workload.fio());
    let most = |count: fn(&workload::Fio) -> usize| all.clone().map(|fio| count(&fio)).max();
    let entries = most(|fio| fio.commands(SMALLEST_TRANSFER)).unwrap_or(1) + 1;
    initiator::Settings {
        io_queues: most(|fio| fio.numjobs).unwrap_or(1) as u16,
        entries: entries.clamp(2, MOST_ENTRIES) as u16,
        ..initiator::Settings::default()
    }
}

/// Bytes of host memory for the buffers and queues of all sections. The error says what is too
/// large.
fn memory(request: &Request, settings: initiator::Settings) -> Result<usize, Failure> {
    let mut buffers = 0u64;
    for section in &request.sections {
        let Some(fio) = section.workload.fio() else { continue };
        let page = (fio.bs as u64).next_multiple_of(4096);
        buffers += page * fio.iodepth as u64 * fio.numjobs as u64;
        if buffers > MOST_MEMORY {
            let what = format!(
                "the buffers of all sections, iodepth × bs × numjobs each, need {}: at most {}",
                size(buffers),
                size(MOST_MEMORY)
            );
            return Err(Failure(section.origin.fail(what).to_string()));
        }
    }
    let queue = u64::from(settings.entries) * ENTRY_MEMORY + 16_384;
    let queues = queue * u64::from(settings.io_queues);
    let least = BASE_MEMORY + buffers + queues;
    let wanted = least + queues * (ATTACHMENTS - 1);
    Ok(wanted.min(least + MOST_MEMORY) as usize)
}

/// The function of the drive.
fn choose(rig: &Rig<Switch>, args: &Args) -> Result<Node, Failure> {
    let mut drives: Vec<Node> =
        nvme_functions(&rig.hierarchy).into_iter().map(|(node, _)| node).collect();
    let count = drives.len();
    match args.drive {
        None if count == 1 => Ok(drives.remove(0)),
        Some(number) if number < count => Ok(drives.swap_remove(number)),
        _ if count == 0 => Err(Failure(format!("no drive found behind {}", args.connect))),
        chosen => {
            let name = |(number, node): (usize, &Node)| format!("{number} ({})", node.bdf);
            let list: Vec<_> = drives.iter().enumerate().map(name).collect();
            let what = chosen.map_or("--drive is missing".to_owned(), |n| format!("--drive {n}"));
            let behind = &args.connect;
            Err(Failure(format!("{what}: the drives behind {behind} are {}", list.join(", "))))
        }
    }
}

/// The downstream port of our own switch above a function.
fn port_above(rig: &Rig<Switch>, node: &Node) -> Option<Node> {
    let above = |port: &&&Node| match &port.kind {
        Kind::Bridge(bridge) => {
            let buses = bridge.secondary..=bridge.subordinate;
            bridge.port_type == DOWNSTREAM && buses.contains(&node.bdf.bus())
        }
        Kind::Endpoint(_) => false,
    };
    rig.hierarchy.nodes().iter().find(above).map(|port| (*port).clone())
}
