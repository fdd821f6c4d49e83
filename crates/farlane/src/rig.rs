//! A host node with the built-in initiator: enumerates, brings drives up,
//! moves blocks. What `demo` and `bench` run.

use analysis::commands::{self, Analyser, Direction, Event};
use live::host::RamMemory;
use live::{Attached, Clock, Machine, Poller};
use nvme::initiator::{self, CompletedCommand, Driver, Io, Op};
use pcie::enumerate::{self, Hierarchy, Node};
use pcie::{Bus, Ram, root};
use report::Failure;
use std::cell::RefCell;
use std::rc::Rc;
use wire::nvme::StatusCode;

/// Where host memory lies on the bus: above 4 GiB, so that TLPs of both header sizes are at work.
const RAM_BASE: u64 = 0x1_0000_0000;
/// Bytes of host memory.
const RAM_SIZE: usize = 64 << 20;
/// Packets that the recorder holds.
const PACKETS: usize = 1 << 18;
/// Class code of an NVMe I/O controller.
const NVME: [u8; 3] = [0x01, 0x08, 0x02];

/// A drive that was brought up.
pub struct Drive {
    /// Its function.
    pub node: Node,
    /// Its driver.
    pub driver: Driver,
}

/// A host node with enumerated, running drives.
pub struct Rig<A> {
    machine: Machine<A>,
    memory: RamMemory,
    bus: Bus,
    analyser: Analyser,
    /// The enumerated hierarchy.
    pub hierarchy: Hierarchy,
    /// Every NVMe drive found, in the order of their functions.
    pub drives: Vec<Drive>,
}

/// Settings of a rig.
#[derive(Clone, Debug, Default)]
pub struct Settings {
    /// The root complex.
    pub root: root::Settings,
    /// Enumeration.
    pub enumerate: enumerate::Settings,
    /// The driver.
    pub driver: initiator::Settings,
}

impl<A: Attached> Rig<A> {
    /// Powers a machine on, waits until `ready` says that all devices are
    /// attached, enumerates it and brings up every drive.
    pub fn start(
        clock: Clock,
        poller: Poller,
        settings: &Settings,
        attached: A,
        mut ready: impl FnMut(&mut A) -> Result<bool, Failure>,
    ) -> Result<Self, Failure> {
        let mut machine = Machine::new(clock, poller, settings.root, attached)?;
        let bus = machine.new_bus();
        let ram = Rc::new(RefCell::new(Ram::new(RAM_BASE, RAM_SIZE)));
        let mut memory = RamMemory::new(ram);
        while !ready(machine.attached_mut())? {
            let (moved, timer) = machine.pump(&mut memory)?;
            machine.wait(moved, timer)?;
        }
        machine.probe_mut().arm(PACKETS);
        let enumeration = enumerate::enumerate(bus.clone(), settings.enumerate.clone());
        let hierarchy = machine
            .run(&mut memory, &bus, enumeration)?
            .map_err(|error| Failure(format!("enumeration failed: {error}")))?;
        let mut rig = Self {
            machine,
            memory,
            bus,
            analyser: Analyser::new(commands::Settings::default()),
            hierarchy,
            drives: Vec::new(),
        };
        for node in rig.hierarchy.endpoints().into_iter().cloned().collect::<Vec<_>>() {
            if node.class == NVME {
                rig.bring_up(node, settings.driver)?;
            }
        }
        Ok(rig)
    }

    fn bring_up(&mut self, node: Node, settings: initiator::Settings) -> Result<(), Failure> {
        let bar0 = node.bar(0).ok_or_else(|| Failure(format!("{} has no BAR 0", node.bdf)))?;
        let (bus, function) = (self.bus.clone(), node.clone());
        self.run(async move {
            enumerate::enable_bus_master(&bus, function.bdf, true).await;
            let queues = settings.io_queues;
            for vector in 0..=queues {
                enumerate::write_msix_entry(&bus, &function, vector, u32::from(vector), false);
            }
            enumerate::set_msix(&bus, &function, true).await;
        })?;
        let (bus, ram) = (self.bus.clone(), self.memory.ram.clone());
        let driver = self
            .run(initiator::attach(bus, ram, bar0.address, settings))?
            .map_err(|error| Failure(format!("{}: {error}", node.bdf)))?;
        self.drives.push(Drive { node, driver });
        Ok(())
    }

    /// Runs a piece of host software to its end.
    ///
    /// # Errors
    /// As [`Machine::run`].
    pub fn run<T>(&mut self, software: impl Future<Output = T> + 'static) -> Result<T, Failure> {
        Ok(self.machine.run(&mut self.memory, &self.bus, software)?)
    }

    /// The machine.
    pub fn machine_mut(&mut self) -> &mut Machine<A> {
        &mut self.machine
    }

    /// The bus of the host software.
    pub fn bus(&self) -> &Bus {
        &self.bus
    }

    /// The host memory.
    pub fn ram(&self) -> Rc<RefCell<Ram>> {
        self.memory.ram.clone()
    }

    /// What is attached below the root port.
    pub fn attached(&self) -> &A {
        self.machine.attached()
    }

    /// Polls the machine once, without waiting.
    ///
    /// # Errors
    /// As [`Machine::pump`].
    pub fn look(&mut self) -> Result<(), Failure> {
        self.machine.pump(&mut self.memory)?;
        Ok(())
    }

    /// Polls the machine once; waits if there was nothing to do.
    ///
    /// # Errors
    /// As [`Machine::pump`].
    pub fn turn(&mut self) -> Result<(), Failure> {
        let (moved, timer) = self.machine.pump(&mut self.memory)?;
        self.machine.wait(moved, timer)?;
        Ok(())
    }

    /// Takes what has completed on the first queue of `drive`, if it has
    /// interrupted.
    pub fn reap(&mut self, drive: usize) -> Vec<CompletedCommand> {
        let target = &mut self.drives[drive];
        let before = self.memory.interrupts.len();
        self.memory.interrupts.retain(|(from, _)| *from != target.node.bdf);
        if self.memory.interrupts.len() == before {
            return Vec::new();
        }
        target.driver.reap(0)
    }

    /// One command at a time, to its head doorbell.
    ///
    /// # Errors
    /// If it fails or takes too long.
    pub fn one(&mut self, drive: usize, io: Io) -> Result<(), Failure> {
        let now = self.machine.clock().now();
        let name = self.drives[drive].node.bdf;
        self.drives[drive]
            .driver
            .submit(now, 0, io)
            .map_err(|_| Failure(format!("{name}: the queue is full")))?;
        loop {
            self.turn()?;
            if let Some(done) = self.reap(drive).first() {
                // The head doorbell belongs to the command.
                self.machine.pump(&mut self.memory)?;
                return check(name, done);
            }
            let now = self.machine.clock().now();
            let timeouts = self.drives[drive].driver.check_timeouts(now);
            timeouts.map_err(|error| Failure(format!("{name}: {error}")))?;
        }
    }

    /// Takes `length` bytes of host memory for a buffer.
    ///
    /// # Errors
    /// If there are none left.
    pub fn buffer(&mut self, length: usize) -> Result<u64, Failure> {
        let address = self.memory.ram.borrow_mut().allocate(length, 4096);
        address.ok_or_else(|| Failure("out of host memory".into()))
    }

    /// Runs `work` and yields the commands that ended meanwhile, as seen at
    /// the root port. The recorder runs from power-on to
    /// [`stop_observing`](Self::stop_observing), as the analyser wants it.
    ///
    /// # Errors
    /// As `work`, or if more packets passed than the recorder holds.
    pub fn observe<T>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, Failure>,
    ) -> Result<(T, Vec<Event>), Failure> {
        self.analyse()?;
        let result = work(self)?;
        let events = self.analyse()?;
        Ok((result, events))
    }

    /// Feeds the analyser with what the recorder holds.
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

    /// What the analyser could not explain.
    pub fn analyser(&self) -> &Analyser {
        &self.analyser
    }
}

fn check(name: wire::Bdf, done: &CompletedCommand) -> Result<(), Failure> {
    if done.status.code == StatusCode::SUCCESS {
        return Ok(());
    }
    Err(Failure(format!("{name}: command failed: {}", done.status.code)))
}

/// A read or write of `blocks` blocks.
pub fn io(op: Op, nsid: u32, slba: u64, blocks: u32, buffer: u64) -> Io {
    Io { op, nsid, slba, blocks, buffer }
}
