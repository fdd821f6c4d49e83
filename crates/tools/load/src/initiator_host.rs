//! A host node with the built-in initiator, for `demo`, `bench` and `io`: enumerates, brings drives
//! up and transfers blocks.

use ::node::push;
use analysis::commands::{self, Analyser, Direction, Event};
use live::host::RamMemory;
use live::{Attached, Clock, HostIo, Poller};
use nvme::initiator::{self, CompletedCommand, Driver, Io};
use pcie::enumerate::{self, Hierarchy, Node};
use pcie::{Bus, Ram, root};
use report::{Failure, Outcome};
use std::cell::RefCell;
use std::fmt::Display;
use std::rc::Rc;
use wire::nvme::StatusCode;
use workload::{BringUp, nvme_functions};

/// Bus address of host memory: above 4 GiB, so that TLPs with both header sizes are used.
pub const RAM_BASE: u64 = 0x1_0000_0000;
const RAM_SIZE: usize = 64 << 20;
/// Number of packets that the recorder can hold.
const PACKETS: usize = 1 << 18;

/// A drive that was brought up.
pub struct Drive {
    /// Function of the drive.
    pub node: Node,
    /// Driver of the drive.
    pub driver: Driver,
}

/// Settings of a machine at power-on.
#[derive(Clone, Debug)]
pub struct Hardware {
    /// The root complex.
    pub root: root::Settings,
    /// Settings of the enumeration.
    pub enumeration: enumerate::Settings,
    /// Bytes of host memory.
    pub ram: usize,
    /// Number of packets that the recorder at the root port can hold; 0 records nothing.
    pub packets: usize,
    /// Settings of push.
    pub push: push::Settings,
}

impl Default for Hardware {
    /// Returns 64 MiB of memory, with a recorder.
    fn default() -> Self {
        Self {
            root: root::Settings::default(),
            enumeration: enumerate::Settings::default(),
            ram: RAM_SIZE,
            packets: PACKETS,
            push: push::Settings::default(),
        }
    }
}

/// A host node with enumerated, running drives.
pub struct InitiatorHost<A> {
    /// The root complex, and what is attached below its root port.
    pub machine: HostIo<A>,
    /// Host memory, and pending interrupts.
    pub memory: RamMemory,
    /// The bus of the host software.
    pub bus: Bus,
    /// Analyser of the packets at the root port.
    pub analyser: Analyser,
    /// The enumerated hierarchy.
    pub hierarchy: Hierarchy,
    /// Settings of the enumeration.
    enumeration: enumerate::Settings,
    /// Every drive that was brought up, in the order of their functions.
    pub drives: Vec<Drive>,
}

impl<A: Attached> InitiatorHost<A> {
    /// Powers a machine on, waits until `ready` reports that all devices are attached, enumerates
    /// the hierarchy and brings up every drive.
    ///
    /// # Errors
    /// As [`power_on`](Self::power_on), or if a drive does not come up.
    pub fn start(
        clock: Clock,
        poller: Poller,
        hardware: Hardware,
        driver: initiator::Settings,
        attached: A,
        ready: impl FnMut(&mut A) -> Result<bool, Failure>,
    ) -> Result<Self, Failure> {
        let mut host = Self::power_on(clock, poller, hardware, attached, ready)?;
        for (node, _) in nvme_functions(&host.hierarchy) {
            let driver = host.bring_up(&node, driver)?;
            host.drives.push(Drive { node, driver });
        }
        Ok(host)
    }

    /// Powers a machine on as [`start`](Self::start), but brings no drives up.
    ///
    /// # Errors
    /// As `ready`, if the machine fails, or if the hierarchy cannot be enumerated.
    pub fn power_on(
        clock: Clock,
        poller: Poller,
        hardware: Hardware,
        attached: A,
        mut ready: impl FnMut(&mut A) -> Result<bool, Failure>,
    ) -> Result<Self, Failure> {
        let Hardware { root, enumeration, ram, packets, push } = hardware;
        let mut machine = HostIo::new(clock, poller, root, attached)?.with_push(push);
        let bus = machine.new_bus();
        let ram = Rc::new(RefCell::new(Ram::new(RAM_BASE, ram)));
        let mut memory = RamMemory::new(ram);
        while !ready(machine.attached_mut())? {
            let (moved, timer) = machine.pump(&mut memory)?;
            machine.wait(moved, timer)?;
        }
        if packets > 0 {
            machine.probe_mut().arm(packets);
        }
        let look = enumerate::enumerate(bus.clone(), enumeration.clone());
        let hierarchy = machine
            .run(&mut memory, &bus, look)?
            .map_err(|error| Failure(format!("enumeration failed: {error}")))?;
        Ok(Self {
            machine,
            memory,
            bus,
            analyser: Analyser::new(commands::AnalyserSettings::default()),
            hierarchy,
            enumeration,
            drives: Vec::new(),
        })
    }

    /// Returns the parameters for bringing up drives of this machine.
    pub fn bring_up_with(&self, driver: initiator::Settings) -> BringUp {
        let (bus, ram) = (self.bus.clone(), self.memory.ram.clone());
        BringUp { bus, ram, enumeration: self.enumeration.clone(), driver }
    }

    /// Brings a drive up.
    ///
    /// # Errors
    /// One line that names the drive's function.
    pub fn bring_up(
        &mut self,
        node: &Node,
        settings: initiator::Settings,
    ) -> Result<Driver, Failure> {
        let (bring_up, function) = (self.bring_up_with(settings), node.clone());
        let attached = self.run(async move { bring_up.attach(&function).await })?;
        let (_, driver) = attached.map_err(|error| Failure(format!("{}: {error}", node.bdf)))?;
        Ok(driver)
    }

    /// Runs a piece of host software to its end.
    ///
    /// # Errors
    /// As [`HostIo::run`].
    pub fn run<T>(&mut self, software: impl Future<Output = T> + 'static) -> Result<T, Failure> {
        Ok(self.machine.run(&mut self.memory, &self.bus, software)?)
    }

    /// Polls the machine once, and waits if there was no work.
    ///
    /// # Errors
    /// As [`HostIo::pump`].
    pub fn turn(&mut self) -> Outcome {
        let (moved, timer) = self.machine.pump(&mut self.memory)?;
        self.machine.wait(moved, timer)?;
        Ok(())
    }

    /// Returns the completed commands of the first queue of `drive`; none without an interrupt.
    pub fn reap(&mut self, drive: usize) -> Vec<CompletedCommand> {
        let target = &mut self.drives[drive];
        let before = self.memory.interrupts.len();
        self.memory.interrupts.retain(|(from, _)| *from != target.node.bdf);
        if self.memory.interrupts.len() == before {
            return Vec::new();
        }
        target.driver.reap(0)
    }

    /// Executes the commands of `batch` at the same time on the first queue of `drive`, until the
    /// head doorbells.
    ///
    /// # Errors
    /// If a command fails or takes too long.
    pub fn carry_out(&mut self, drive: usize, batch: &[Io]) -> Outcome {
        let name = self.drives[drive].node.bdf;
        let failed = |why: &dyn Display| Failure(format!("{name}: {why}"));
        let now = self.machine.clock().now();
        let driver = &mut self.drives[drive].driver;
        for io in batch {
            driver.prepare(now, 0, *io).map_err(|_| failed(&"the queue is full"))?;
        }
        driver.ring(0);
        let mut left = batch.len();
        loop {
            self.turn()?;
            for CompletedCommand { status, .. } in self.reap(drive) {
                if status.code != StatusCode::SUCCESS {
                    return Err(failed(&format_args!("command failed: {}", status.code)));
                }
                left -= 1;
            }
            if left == 0 {
                // The head doorbells are part of the commands.
                self.machine.pump(&mut self.memory)?;
                return Ok(());
            }
            let timeouts = self.drives[drive].driver.check_timeouts(self.machine.clock().now());
            timeouts.map_err(|error| failed(&error))?;
        }
    }

    /// Allocates a buffer of `length` bytes in host memory; returns its address.
    ///
    /// # Errors
    /// If too little host memory is left.
    pub fn buffer(&mut self, length: usize) -> Result<u64, Failure> {
        let address = self.memory.ram.borrow_mut().allocate(length, 4096);
        address.ok_or_else(|| Failure("out of host memory".into()))
    }

    /// Runs `work` and returns the commands that ended meanwhile, as seen at the root port. The
    /// analyser needs all packets, so the recorder runs from power-on to
    /// [`stop_observing`](Self::stop_observing).
    ///
    /// # Errors
    /// As `work`, or if more packets passed than the recorder can hold.
    pub fn observe(
        &mut self,
        work: impl FnOnce(&mut Self) -> Outcome,
    ) -> Result<Vec<Event>, Failure> {
        self.analyse()?;
        work(self)?;
        self.analyse()
    }

    /// Passes the recorded packets to the analyser.
    fn analyse(&mut self) -> Result<Vec<Event>, Failure> {
        let probe = self.machine.probe_mut();
        let full = probe.is_full();
        let records = probe.take();
        probe.arm(PACKETS);
        if full {
            return Err(Failure("more packets passed than the recorder holds".into()));
        }
        for record in &records {
            let direction = if record.up { Direction::Up } else { Direction::Down };
            self.analyser.push(record.at, direction, &record.tlp);
        }
        Ok(std::iter::from_fn(|| self.analyser.next_event()).collect())
    }

    /// Ends the recording.
    pub fn stop_observing(&mut self) {
        self.machine.probe_mut().take();
    }
}
