//! A host of the plan: a host node with the built-in initiator, its drives and its workload.

use crate::commands::CommandRecorder;
use live::attached::Switch;
use live::{Attached, Clock, PATIENCE};
use load::initiator_host::InitiatorHost;
use node::LinkEvent;
use node::slot::{self, OwnSlot, Port};
use nvme::initiator::{self, Driver};
use plan::simulate::places::path;
use report::{Failure, Outcome};
use sim::measure::{CommandRecord, Pushed};
use sim::workload::{CompletionMode, Workload};
use sim::world::HostConfig;
use stats::Latency;
use stats::random::Random;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ops::Range;
use std::rc::Rc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use switch::tunnel::Counters;
use wire::{Duration, Instant};
use workload::{
    BringUp, Costs, Fio, Jobs, Rw, Settings, SharedDriver, Tally, Verification, Work,
    nvme_functions,
};

/// Time between two checks for a stop, timeouts and the progress.
const LOOK: Duration = Duration::from_ms(100);
/// Bytes per command and commands in flight while drives are filled.
const FILL: (usize, usize) = (128 << 10, 8);

/// The state that the hosts of a run share.
#[derive(Debug, Default)]
pub struct Shared {
    /// [`PREPARE`], [`GO`] or [`STOP`].
    phase: AtomicU8,
    /// Completed transfers of all hosts.
    pub transfers: AtomicU64,
}

/// Hosts bring their drives up.
const PREPARE: u8 = 0;
/// Hosts run their workloads.
const GO: u8 = 1;
/// Hosts end early.
const STOP: u8 = 2;

impl Shared {
    /// Starts the workloads of all hosts.
    pub fn go(&self) {
        let _ = self.phase.compare_exchange(PREPARE, GO, Ordering::SeqCst, Ordering::SeqCst);
    }

    /// Ends all hosts early.
    pub fn stop(&self) {
        self.phase.store(STOP, Ordering::SeqCst);
    }

    /// Whether hosts end early.
    pub fn is_stopped(&self) -> bool {
        self.phase.load(Ordering::SeqCst) == STOP
    }
}

/// The results of a host.
#[derive(Debug, Default)]
pub struct HostResult {
    /// Results of transfers.
    pub tally: Tally,
    /// Latencies of configuration reads, as software sees them.
    pub config_reads: Latency,
    /// Number of NVMe commands.
    pub commands: u64,
    /// The commands, if they were requested.
    pub list: Vec<CommandRecord>,
    /// Start of the workload.
    pub began: Instant,
    /// Run time of the workload.
    pub span: Duration,
    /// Counters of push during the workload.
    pub pushed: Pushed,
    /// The tunnels' counters during the workload, by port.
    pub tunnels: Vec<Counters>,
}

/// What a host does, apart from its plan.
#[derive(Clone, Copy, Debug)]
pub struct HostOptions {
    /// Number of the host.
    pub number: u16,
    /// Whether data are verified.
    pub verify: bool,
    /// Maximum number of listed commands.
    pub list: usize,
    /// Seed of data and order.
    pub seed: u64,
}

/// The drives' links, for hosts with a network.
pub trait Links {
    /// The next change of the link at a port: the port, and whether the link is up.
    fn change(&mut self) -> Option<(usize, bool)>;
    /// The counters of each link.
    fn counters(&self) -> Vec<Counters>;
}

impl Links for Switch {
    fn change(&mut self) -> Option<(usize, bool)> {
        loop {
            match self.links_mut().event()? {
                LinkEvent::Up(port, _) => return Some((port, true)),
                LinkEvent::Down { link, .. } => return Some((link, false)),
                LinkEvent::Interrupted(..)
                | LinkEvent::Resumed(_)
                | LinkEvent::PathLost(..)
                | LinkEvent::PathUp(..)
                | LinkEvent::FailedOver(..)
                | LinkEvent::Failed { .. }
                | LinkEvent::Echo(..) => {}
            }
        }
    }

    fn counters(&self) -> Vec<Counters> {
        let upstream = self.upstream();
        (0..upstream.links()).map(|link| upstream.tunnel(link).counters()).collect()
    }
}

impl Links for live::NvmeDrive {
    fn change(&mut self) -> Option<(usize, bool)> {
        None
    }

    fn counters(&self) -> Vec<Counters> {
        Vec::new()
    }
}

/// Returns the settings of the drivers of a host's drives.
fn driver_settings(host: &HostConfig) -> initiator::Settings {
    let standard = initiator::Settings::default();
    initiator::Settings {
        timeout: standard.timeout + host.outage(),
        io_queues: host.workload.queues(),
        entries: host.workload.entries().max(FILL.1 as u16 + 1),
        interrupts: matches!(host.software.completions, CompletionMode::Interrupt { .. }),
        ..standard
    }
}

/// Returns the downstream port of the host's own switch that leads to a drive.
fn port_of(config: &HostConfig, drive: usize) -> usize {
    path(config, drive).first().map_or(drive, |link| link.port)
}

/// A host with its drives.
pub struct RunningHost<A> {
    host: InitiatorHost<A>,
    driver: initiator::Settings,
    slots: Vec<OwnSlot>,
    drivers: Vec<SharedDriver>,
    /// For each drive, the downstream port of the host's own switch that leads to it.
    ports: Vec<usize>,
    /// Enumerates the functions below each of these ports.
    scans: BTreeMap<usize, Port>,
    /// Drives whose functions are not ready since their links were lost.
    lost: BTreeMap<usize, Absence>,
    clock: Clock,
}

/// Why the function of a drive is not ready.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Absence {
    /// The link is lost.
    Down,
    /// The link is up again. All functions below the port must be found until this time.
    Up(Instant),
    /// The function is found; it must be ready until this time.
    Returning(Instant),
}

impl<A: Attached + Links> RunningHost<A> {
    /// Brings up all drives of a host that is powered on.
    ///
    /// # Errors
    /// One line that names the drive's function.
    pub fn new(clock: Clock, host: InitiatorHost<A>, config: &HostConfig) -> Result<Self, Failure> {
        let (functions, driver) = (nvme_functions(&host.hierarchy), driver_settings(config));
        let ports = (0..functions.len()).map(|drive| port_of(config, drive)).collect();
        let (slots, drivers, lost, scans) =
            (Vec::new(), Vec::new(), BTreeMap::new(), BTreeMap::new());
        let mut made = Self { host, driver, slots, drivers, ports, scans, lost, clock };
        for (number, (node, port)) in functions.into_iter().enumerate() {
            let BringUp { enumeration, bus, .. } = made.host.bring_up_with(driver);
            let owner = live::random_number() as u32 | 1;
            made.scans.insert(made.ports[number], Port::new(port.clone()));
            made.slots.push(OwnSlot::new(port, node, bus, slot::Settings { enumeration, owner }));
            made.lost.insert(number, Absence::Returning(clock.now() + PATIENCE));
            while made.ready(number)?.is_none() {
                made.host.turn()?;
            }
            let driver = made.attach(number)?;
            made.drivers.push(Rc::new(RefCell::new(driver)));
        }
        Ok(made)
    }

    /// Returns whether the function of a lost drive has new contents; `None` until the function
    /// is ready.
    fn ready(&mut self, drive: usize) -> Result<Option<bool>, Failure> {
        let Some(Absence::Returning(until)) = self.lost.get(&drive) else { return Ok(None) };
        let (now, until) = (self.clock.now(), *until);
        if let Some(ready) = self.slots[drive].poll(now) {
            self.lost.remove(&drive);
            return ready.map(Some).map_err(|why| Failure(format!("drive {drive}: {why}")));
        }
        if now > until {
            let seconds = PATIENCE.as_ns() / 1_000_000_000;
            return Err(Failure(format!("drive {drive}: not ready within {seconds} s")));
        }
        Ok(None)
    }

    /// Passes the functions that were found below a port to its drives. A link behind a switch node
    /// may come up later: until all drives are found, the port is enumerated again.
    fn scanned(&mut self) {
        let now = self.clock.now();
        for (port, scan) in &mut self.scans {
            let Some(found) = scan.poll(now) else { continue };
            let found = found.unwrap_or_default();
            let mut missing = false;
            let waits = |(drive, absence): (&usize, &mut Absence)| match absence {
                Absence::Up(until) if self.ports[*drive] == *port => Some((*drive, *until)),
                _ => None,
            };
            let waiting: Vec<_> = self.lost.iter_mut().filter_map(waits).collect();
            for (drive, until) in &waiting {
                let bdf = self.slots[*drive].node().bdf;
                let is_found = found.iter().any(|node| node.find(bdf).is_some());
                missing |= !is_found && now < *until;
            }
            if missing {
                let BringUp { enumeration, bus, .. } = self.host.bring_up_with(self.driver);
                scan.link_up(&bus, &enumeration);
                continue;
            }
            for (drive, until) in waiting {
                self.slots[drive].link_up_with(&found);
                self.lost.insert(drive, Absence::Returning(until));
            }
        }
    }

    fn attach(&mut self, drive: usize) -> Result<Driver, Failure> {
        let node = self.slots[drive].node().clone();
        self.host.bring_up(&node, self.driver)
    }

    /// Creates jobs on drives from number `first` on.
    fn jobs(
        &self,
        fio: Fio,
        (first, count): (usize, usize),
        options: HostOptions,
    ) -> Result<Jobs, Failure> {
        let drives = &self.drivers[first..first + count];
        let fits = drives.iter().try_for_each(|drive| fio.check([&*drive.borrow()]));
        fits.map_err(|why| Failure(format!("workload: {why}")))?;
        // The contents of a live drive are unknown until this host has written them.
        let patterns = || (0..count as u64).map(|drive| options.seed.wrapping_add(drive)).collect();
        let verification =
            options.verify.then(|| Verification { patterns: patterns(), initial: None });
        let random = Random::new(options.seed);
        let settings = Settings { costs: Costs::NONE, batch: true, verification, random };
        let ram = self.host.memory.ram.clone();
        Jobs::beside(self.clock.now(), fio, settings, drives.to_vec(), 0, ram).ok_or_else(|| {
            Failure("host memory is too small for the buffers: iodepth × bs × numjobs".into())
        })
    }

    /// Writes the part of the drives that the workload uses, because memory that was never written
    /// has other access times.
    ///
    /// # Errors
    /// If a command fails.
    pub fn fill(&mut self, workload: &Workload, shared: &Shared) -> Outcome {
        let Some(fio) = workload.fio() else { return Ok(()) };
        let whole = fio.size * fio.numjobs as u64;
        let drives = self.drivers.len();
        let size = if fio.stripe > 0 { whole.div_ceil(drives as u64) } else { whole };
        let bs = FILL.0.min(size as usize);
        let depth = FILL.1.min(size as usize / bs);
        for drive in 0..drives {
            let part =
                Fio { size, offset: fio.offset, nsid: fio.nsid, ..Fio::new(Rw::Write, bs, depth) };
            let options = HostOptions { number: 0, verify: false, list: 0, seed: 1 };
            let mut jobs = self.jobs(part, (drive, 1), options)?;
            jobs.start(self.clock.now());
            while !jobs.is_done() && !shared.is_stopped() {
                jobs.run(self.clock.now(), &mut ());
                let now = self.clock.now();
                let timeouts = self.drivers[drive].borrow_mut().check_timeouts(now);
                timeouts.map_err(|error| Failure(format!("drive {drive}: {error}")))?;
                self.turn(&mut jobs, drive..drive + 1, Some(now + LOOK))?;
            }
            if jobs.tally().failures > 0 {
                return Err(Failure(format!("drive {drive}: the drive could not be filled")));
            }
        }
        Ok(())
    }

    /// Keeps the links up until all hosts may start. Returns whether they may.
    ///
    /// # Errors
    /// If the machine fails.
    pub fn wait_for_start(&mut self, shared: &Shared) -> Result<bool, Failure> {
        loop {
            match shared.phase.load(Ordering::SeqCst) {
                GO => return Ok(true),
                STOP => return Ok(false),
                _ => {}
            }
            let (moved, timer) = self.host.machine.pump(&mut self.host.memory)?;
            let poll = self.clock.now() + Duration::from_us(500);
            self.host.machine.wait(moved, timer.into_iter().chain([poll]).min())?;
        }
    }

    /// Passes interrupts, or a poll of all queues, to jobs on `drives`, and waits for the next
    /// event.
    fn turn(&mut self, jobs: &mut Jobs, drives: Range<usize>, look: Option<Instant>) -> Outcome {
        let machine = &mut self.host.machine;
        let (moved, timer) = machine.pump(&mut self.host.memory)?;
        let (now, mut signalled) = (self.clock.now(), false);
        if self.driver.interrupts {
            while let Some((from, vector)) = self.host.memory.interrupts.pop_front() {
                let drive = drives.clone().position(|drive| self.slots[drive].node().bdf == from);
                // Vector 0 belongs to the admin queue.
                if let (Some(drive), Some(queue)) = (drive, vector.checked_sub(1)) {
                    signalled = true;
                    jobs.signal(now, drive, queue as usize);
                }
            }
        } else {
            for drive in 0..drives.len() {
                (0..self.driver.io_queues.into()).for_each(|queue| jobs.signal(now, drive, queue));
            }
        }
        let next = [timer, jobs.next(), look].into_iter().flatten().min();
        Ok(machine.wait(moved || signalled || !self.driver.interrupts, next)?)
    }

    /// Runs the workload to its end.
    ///
    /// # Errors
    /// If the machine fails, or a drive does not come back.
    pub fn run(
        &mut self,
        config: &HostConfig,
        options: HostOptions,
        shared: &Shared,
    ) -> Result<HostResult, Failure> {
        let before = self.host.machine.attached().counters();
        let pushed = Pushed::from(self.host.machine.push_counters());
        let delay = self.clock.now() + config.software.start_delay;
        while self.clock.now() < delay && !shared.is_stopped() {
            let (moved, timer) = self.host.machine.pump(&mut self.host.memory)?;
            self.host.machine.wait(moved, timer.into_iter().chain([delay]).min())?;
        }
        let mut result = match config.workload {
            Workload::ConfigReads { count, gap } => self.config_reads(count, gap, shared)?,
            _ => self.transfer(&config.workload, options, shared)?,
        };
        let counters = self.host.machine.attached().counters();
        result.tunnels = counters.iter().zip(&before).map(|(now, then)| now.since(then)).collect();
        result.pushed = Pushed::from(self.host.machine.push_counters()) - pushed;
        Ok(result)
    }

    fn transfer(
        &mut self,
        workload: &Workload,
        options: HostOptions,
        shared: &Shared,
    ) -> Result<HostResult, Failure> {
        let fio = workload.fio().expect("other workloads are refused");
        let all = 0..self.drivers.len();
        let mut jobs = self.jobs(fio, (0, all.len()), options)?;
        let mut commands = CommandRecorder::new(options.number, options.list);
        let began = self.clock.now();
        let (mut look, mut reported) = (began + LOOK, 0);
        jobs.start(began);
        loop {
            jobs.run(self.clock.now(), &mut commands);
            if jobs.is_done() {
                break;
            }
            self.turn(&mut jobs, all.clone(), Some(look))?;
            while let Some((port, up)) = self.host.machine.attached_mut().change() {
                self.link_changed(port, up, &mut jobs, &mut commands);
            }
            self.scanned();
            for drive in all.clone() {
                if let Some(new_contents) = self.ready(drive)? {
                    let driver = self.attach(drive)?;
                    jobs.drive_restored(self.clock.now(), drive, driver, new_contents);
                }
            }
            let now = self.clock.now();
            if now >= look {
                look = now + LOOK;
                let done = jobs.tally().latency.count();
                shared.transfers.fetch_add(done - reported, Ordering::Relaxed);
                reported = done;
                if shared.is_stopped() {
                    jobs.stop();
                }
                // The commands of a lost drive have failed.
                let here = self.drivers.iter().enumerate();
                for (drive, driver) in here.filter(|(drive, _)| !self.lost.contains_key(drive)) {
                    let timeouts = driver.borrow_mut().check_timeouts(now);
                    timeouts.map_err(|error| Failure(format!("drive {drive}: {error}")))?;
                }
            }
        }
        let span = self.clock.now() - began;
        let CommandRecorder { count, list, .. } = commands;
        let tally = jobs.into_tally();
        Ok(HostResult { tally, commands: count, list, began, span, ..HostResult::default() })
    }

    /// Handles a change of the link below a port. Commands to a lost drive fail; drives that come
    /// back are prepared while other drives work.
    fn link_changed(
        &mut self,
        port: usize,
        up: bool,
        jobs: &mut Jobs,
        commands: &mut CommandRecorder,
    ) {
        let now = self.clock.now();
        for drive in (0..self.ports.len()).filter(|drive| self.ports[*drive] == port) {
            if !up {
                self.slots[drive].link_down();
                self.lost.insert(drive, Absence::Down);
                jobs.drive_lost(now, drive, commands);
            } else if self.lost.contains_key(&drive) {
                self.lost.insert(drive, Absence::Up(now + PATIENCE));
            }
        }
        let Some(scan) = self.scans.get_mut(&port) else { return };
        if up {
            let BringUp { enumeration, bus, .. } = self.host.bring_up_with(self.driver);
            scan.link_up(&bus, &enumeration);
        } else {
            scan.link_down();
        }
    }

    fn config_reads(
        &mut self,
        count: u64,
        gap: Duration,
        shared: &Shared,
    ) -> Result<HostResult, Failure> {
        let function = self.slots[0].node().bdf;
        let mut result = HostResult { began: self.clock.now(), ..HostResult::default() };
        for _ in 0..count {
            let since = self.clock.now();
            let bus = self.host.bus.clone();
            let value = self.host.run(async move { bus.config_read(function, 0, 4).await })?;
            result.tally.failures += u64::from(value == u32::MAX);
            result.config_reads.record(self.clock.now() - since);
            shared.transfers.fetch_add(1, Ordering::Relaxed);
            if shared.is_stopped() {
                break;
            }
            if gap > Duration::ZERO {
                let bus = self.host.bus.clone();
                self.host.run(async move { bus.sleep(gap).await })?;
            }
        }
        result.span = self.clock.now() - result.began;
        Ok(result)
    }

    /// Shuts the drives down and closes the links.
    ///
    /// # Errors
    /// If the machine fails.
    pub fn close(mut self) -> Outcome {
        while let Some((port, up)) = self.host.machine.attached_mut().change() {
            let lost = (0..self.ports.len()).filter(|drive| self.ports[*drive] == port && !up);
            self.lost.extend(lost.map(|drive| (drive, Absence::Down)));
        }
        // A lost drive cannot be shut down.
        let drivers = std::mem::take(&mut self.drivers).into_iter().enumerate();
        for (_, driver) in drivers.filter(|(drive, _)| !self.lost.contains_key(drive)) {
            if let Some(driver) = Rc::into_inner(driver) {
                let mut driver = driver.into_inner();
                let _ = self.host.run(async move { driver.shutdown().await })?;
            }
        }
        Ok(self.host.machine.close()?)
    }
}
