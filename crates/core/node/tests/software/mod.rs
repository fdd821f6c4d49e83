//! What several groups of tests share: a host's driver with queues in its memory, media and records.

use bytes::Bytes;
use node::HostNode;
use node::host::{Buses, Input, Output};
use nvme::block::Operation;
use nvme::state::Records;
use pcie::root::HostOutput;
use pcie::software::Task;
use pcie::{Bus, Function, Ram, enumerate};
use testkit::nvme::{Pair, QUEUES, admin_sizes, entry_sizes};
use wire::Instant;
use wire::nvme::register::{ACQ, AQA, ASQ, CC, Configuration, Doorbell};
use wire::nvme::{Command, Completion};

/// Host memory in bytes: queues, and then pages for data.
const MEMORY: usize = 0x8_0000;

/// A page for data.
pub fn page(number: u64) -> u64 {
    QUEUES + 0x4_0000 + number * 4096
}

/// The software of a host, with an admin queue pair (0) and an I/O queue pair (1).
pub struct Software {
    pub buses: Buses,
    pub bus: Bus,
    pub ram: Ram,
    /// Address of the drive's BAR 0, once it is known.
    pub bar: u64,
    pub pairs: [Pair; 2],
    /// Number of commands so far, which is the identifier of the last one.
    pub commands: u16,
}

impl Software {
    /// Software whose queues have this number of entries.
    pub fn new(entries: u16) -> Self {
        let mut buses = Buses::default();
        Self {
            bus: buses.new_bus(),
            buses,
            ram: Ram::new(QUEUES, MEMORY),
            bar: 0,
            pairs: [0, 1].map(|id| Pair::new(id, entries)),
            commands: 0,
        }
    }

    /// Enumerates, and enables bus mastering; returns the address of BAR 0.
    pub fn enumeration(&self) -> Task<u64> {
        let bus = self.bus.clone();
        Task::new(&self.bus.clone(), async move {
            let hierarchy = enumerate::enumerate(bus.clone(), enumerate::Settings::default());
            let hierarchy = hierarchy.await.expect("enumerated");
            let node = hierarchy.endpoints()[0].clone();
            enumerate::enable_bus_master(&bus, node.bdf, true).await;
            node.bar(0).expect("BAR 0").address
        })
    }

    /// Enables the controller, with the admin queue pair.
    pub fn enable(&self) {
        let admin = &self.pairs[0];
        self.bus.write(self.bar + AQA, 4, admin_sizes(admin.entries));
        self.bus.write(self.bar + ASQ, 8, admin.sq());
        self.bus.write(self.bar + ACQ, 8, admin.cq());
        let on = Configuration { enable: true, ..entry_sizes() };
        self.bus.write(self.bar + CC, 4, on.bits().into());
    }

    /// Moves requests, answers and data between software and host; returns whether there were any.
    pub fn exchange<B: Function>(&mut self, now: Instant, host: &mut HostNode<B>) -> bool {
        let mut moved = self.buses.wake(now);
        while let Some((id, request)) = self.buses.next_request(now, |_| true) {
            host.handle(now, Input::Request(id, request));
            moved = true;
        }
        while let Output::Host(output) = host.poll(now) {
            match output {
                HostOutput::Answer(id, value) => self.buses.answer(id, value),
                HostOutput::HostRead { token, address, length, .. } => {
                    let data = self.ram.get(address, length).map(Bytes::copy_from_slice);
                    host.handle(now, Input::HostData(token, data));
                }
                HostOutput::HostWrite { address, data, .. } => self.put(address, &data),
                _ => {}
            }
            moved = true;
        }
        moved
    }

    /// Writes host memory.
    pub fn put(&mut self, address: u64, bytes: &[u8]) {
        self.ram.write(address, bytes).expect("host memory");
    }

    /// Sends commands to a queue. Returns the identifier of the last one.
    pub fn submit(&mut self, queue: usize, commands: &[Command]) -> u16 {
        let pair = &mut self.pairs[queue];
        for command in commands {
            self.commands += 1;
            pair.put(&mut self.ram, Command { cid: self.commands, ..*command });
        }
        let (tail, doorbell) = (pair.tail, Doorbell::SubmissionTail(pair.id));
        self.bus.write(self.bar + doorbell.offset(0), 4, tail.into());
        self.commands
    }

    /// The next completion of a queue.
    pub fn reap(&mut self, queue: usize) -> Option<Completion> {
        let pair = &mut self.pairs[queue];
        let completion = pair.take(&mut self.ram)?;
        let (head, doorbell) = (pair.head, Doorbell::CompletionHead(pair.id));
        self.bus.write(self.bar + doorbell.offset(0), 4, head.into());
        Some(completion)
    }
}

/// Carries out a request as media with these contents.
pub fn carry_out(contents: &mut [u8], operation: Operation) -> Bytes {
    let range = |offset: u64, length: u64| offset as usize..(offset + length) as usize;
    match operation {
        Operation::Read { offset, length } => {
            return Bytes::copy_from_slice(&contents[range(offset, length as u64)]);
        }
        Operation::Write { offset, data } => {
            contents[range(offset, data.len() as u64)].copy_from_slice(&data);
        }
        Operation::WriteZeroes { offset, length } | Operation::Discard { offset, length } => {
            contents[range(offset, length)].fill(0);
        }
        Operation::Flush => {}
    }
    Bytes::new()
}

/// Stores the changes of a commit.
pub fn apply(records: &mut Records, changes: Vec<(String, Option<Vec<u8>>)>) {
    for (key, bytes) in changes {
        match bytes {
            Some(bytes) => records.insert(key, bytes),
            None => records.remove(&key),
        };
    }
}
