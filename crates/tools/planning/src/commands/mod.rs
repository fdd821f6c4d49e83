//! The NVMe commands of a host as a problem of latency: their legs through the network, the times of
//! the nodes between them, and how often.
//!
//! - [`probe`]: one command at a time through a quiet network, in simulation: legs, and frames;
//! - [`media`]: the longest time of a drive's media.
//!
//! A command without push crosses the network as doorbell, fetch, data and completion, with push in
//! one round trip. The simulation itself says which, with all sizes after framing, so that nothing
//! is described twice.

pub mod media;
pub mod probe;

use node::push::{MOST_DATA, Mode};
use plan::Planned;
use probe::{Probe, Wire};
use sim::Config;
use sim::workload::{Fio, Rw, Workload};
use sim::world::{Attached, HostConfig};
use wire::Duration;

/// A kind of command.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Reads.
    Read,
    /// Writes.
    Write,
}

impl Kind {
    /// Both kinds.
    pub const ALL: [Self; 2] = [Self::Read, Self::Write];

    /// `read` or `write`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
        }
    }
}

/// The workload of a host: transfers of one size.
#[derive(Clone, Debug)]
pub struct HostWork {
    /// Number of the host.
    pub host: usize,
    /// Kinds of its transfers.
    pub kinds: Vec<Kind>,
    /// Bytes per transfer.
    pub bytes: usize,
    /// Transfers in flight per job, and jobs.
    pub depth: [u64; 2],
    /// Bytes that all jobs together move; `None`: without limit.
    pub total: Option<u64>,
    /// The shortest time between the starts of two transfers of a job, if its rate is limited.
    pub interval: Option<Duration>,
}

/// All that is known of the commands of a host.
#[derive(Clone, Debug)]
pub struct HostCommands {
    /// The workload.
    pub work: HostWork,
    /// For each kind, one command at a time.
    pub probes: Vec<(Kind, Probe)>,
    /// The frames of a command on the wire, host to device node and back: the most of all kinds,
    /// each TLP in a frame of its own.
    pub wire: [Wire; 2],
    /// As many commands send at least as much as the host while it boots.
    pub at_boot: u64,
    /// The shortest time between two commands of a slot.
    pub least: Duration,
}

impl HostWork {
    /// The workload of a host.
    ///
    /// # Errors
    /// Why its commands have no bound.
    pub fn new(host: usize, config: &HostConfig) -> Result<Self, String> {
        let fio = match &config.workload {
            Workload::Fio(fio) => fio.clone(),
            Workload::Dd { write, bs, count } => Fio::dd(*write, *bs, *count),
            Workload::ConfigReads { .. } => {
                return Err("the host reads configuration space and sends no commands".into());
            }
            Workload::Replay(_) => return Err("a recording has commands of any size".into()),
            Workload::Idle => return Err("the host has no workload".into()),
        };
        if fio.stripe > 0 && fio.stripe < fio.bs {
            return Err("a transfer is striped over several drives".into());
        }
        let (reads, writes) = match fio.rw {
            Rw::Read | Rw::RandRead => (true, false),
            Rw::Write | Rw::RandWrite => (false, true),
            Rw::Rw | Rw::RandRw => (fio.rwmixread > 0, fio.rwmixread < 100),
        };
        let kinds = Kind::ALL.into_iter().zip([reads, writes]);
        let kinds = kinds.filter_map(|(kind, used)| used.then_some(kind)).collect();
        let jobs = fio.numjobs as u64;
        let each = fio.transfers().map(|transfers| transfers.saturating_mul(fio.bs as u64));
        let depth = [fio.iodepth as u64, jobs];
        let total = each.map(|each| each.saturating_mul(jobs));
        Ok(Self { host, kinds, bytes: fio.bs, depth, total, interval: fio.interval() })
    }

    /// Transfers of the host in flight.
    pub fn in_flight(&self) -> u64 {
        self.depth[0] * self.depth[1]
    }
}

impl HostCommands {
    /// The commands of a host, found by simulations of one command at a time.
    ///
    /// # Errors
    /// Why the commands of the host have no bound.
    pub fn new(planned: &Planned, host: usize) -> Result<Self, String> {
        let config = &planned.config;
        let work = HostWork::new(host, &config.hosts[host])?;
        covered(config, host)?;
        let mut probes = Vec::new();
        let mut wire = [Wire::default(); 2];
        for kind in &work.kinds {
            let mut probe = probe::run(config, host, (*kind, work.bytes))?;
            let mode = config.hosts[host].root.push;
            let waiting = work.in_flight().saturating_mul(work.bytes as u64);
            if *kind == Kind::Write && mode == Mode::All && waiting > MOST_DATA as u64 {
                // Only the data of some commands are pushed.
                let mut entries = config.clone();
                entries.hosts[host].root.push = Mode::Entries;
                probe = probe.or(probe::run(&entries, host, (*kind, work.bytes))?);
            }
            for (most, own) in wire.iter_mut().zip(probe.wire) {
                most.raise(own);
            }
            probes.push((*kind, probe));
        }
        // While the host boots, it reads 4 KiB at a time.
        let boot = probe::run(config, host, (Kind::Read, 4096))?;
        let as_many = |(own, boot): (&Wire, &Wire)| boot.bytes.div_ceil(own.bytes.max(1));
        let at_boot = wire.iter().zip(&boot.wire).map(as_many).max().unwrap_or(1);
        let shortest = probes.iter().map(|(_, probe)| probe.least);
        let least = shortest.min().unwrap_or(Duration::from_us(1)).min(boot.least);
        Ok(Self { work, probes, wire, at_boot, least })
    }
}

/// Checks that the model covers the nodes of a host.
fn covered(config: &Config, host: usize) -> Result<(), String> {
    let links = config.hosts[host].links();
    if let Attached::Switch(switch) = &config.hosts[host].attached {
        if !switch.switches.is_empty() {
            return Err("its drives are behind a switch node".into());
        }
        if switch.rate_limit.is_some() {
            return Err("a rate limit delays its tunnels".into());
        }
    }
    if !config.moves.is_empty() {
        return Err("a drive moves to another host".into());
    }
    let mut controllers = config.shared.iter().flat_map(|drive| &drive.controllers);
    if controllers.any(|controller| controller.port[0] == host) {
        return Err("other hosts use its drive".into());
    }
    if !config.outages.is_empty() {
        return Err("a device node loses power".into());
    }
    for link in links {
        if link.second.is_some() {
            return Err("its drives have two paths".into());
        }
        let Some((stations, _)) = link.transport.stations() else { continue };
        let busy = stations.iter().find(|at| config.network.stations[**at].processor.is_some());
        if busy.is_some() {
            return Err("a processor does the work of a node in turn".into());
        }
    }
    Ok(())
}
