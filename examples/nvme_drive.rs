//! An NVMe drive without a network: a host driver writes and reads blocks of a drive in memory.
//!
//! Host and drive are state machines without I/O. This program owns the host's memory and the
//! drive's contents, carries out what both ask for, and decides what time it is.

use node::drive::{DriveNode, DriveOutput};
use node::host::{Buses, HostNode, Input, Output};
use nvme::block::Operation;
use nvme::initiator::{self, Io, Op};
use nvme::{Config, NamespaceConfig, Subsystem};
use pcie::root::{HostOutput, Settings};
use pcie::software::Task;
use pcie::{Ram, enumerate};
use std::{cell::RefCell, rc::Rc};
use wire::Instant;

struct Machine {
    now: Instant,
    buses: Buses,              // requests of host software
    ram: Rc<RefCell<Ram>>,     // host memory
    host: HostNode<DriveNode>, // a root complex, the drive below its root port
    contents: Vec<u8>,         // of namespace 1
}

impl Machine {
    /// Carries out requests of software, host and drive until all of them wait.
    fn turn(&mut self) {
        while let Some((id, request)) = self.buses.next_request(self.now, |_| true) {
            self.host.handle(self.now, Input::Request(id, request));
        }
        loop {
            let output = self.host.poll(self.now);
            let mut ram = self.ram.borrow_mut();
            match output {
                Output::Host(HostOutput::Answer(id, value)) => self.buses.answer(id, value),
                Output::Host(HostOutput::HostRead { token, address, length, .. }) => {
                    let data = ram.get(address, length).map(|data| data.to_vec().into());
                    self.host.handle(self.now, Input::HostData(token, data));
                }
                Output::Host(HostOutput::HostWrite { address, data, .. }) => {
                    ram.write(address, &data).expect("the driver's memory");
                }
                Output::Host(_) => {} // an interrupt; `run` looks for completions
                Output::Wait(_) => match self.host.below_mut().poll_drive() {
                    Some(DriveOutput::Block(contents, request)) => {
                        let (offset, length) = request.operation.range();
                        let blocks = &mut self.contents[offset as usize..][..length as usize];
                        let mut read = Vec::new();
                        match request.operation {
                            Operation::Read { .. } => read.extend_from_slice(blocks),
                            Operation::Write { data, .. } => blocks.copy_from_slice(&data),
                            other => unreachable!("{other:?} of a driver that reads and writes"),
                        }
                        let drive = self.host.below_mut();
                        drive.complete_block(self.now, contents, request.id, Ok(read.into()));
                    }
                    _ => break,
                },
            }
        }
        // The driver sleeps between two looks at the completion queue.
        self.now = self.buses.timer().unwrap_or(self.now);
        self.buses.wake(self.now);
    }
}

fn run() -> String {
    let (now, mut buses, contents) = (Instant::ZERO, Buses::default(), vec![0; 2048 * 512]);
    let config = Config::new("EXAMPLE-1", vec![NamespaceConfig::new(2048)]);
    let ram = Rc::new(RefCell::new(Ram::new(0x10_0000, 4 << 20)));
    let (bus, memory) = (buses.new_bus(), ram.clone());
    let host = HostNode::new(Settings::default(), DriveNode::new(Subsystem::new(now, &config)));
    let mut machine = Machine { now, buses, ram: ram.clone(), host, contents };
    // Host software is an async function over the bus: it finds the drive and starts it.
    let mut software = Task::new(&bus.clone(), async move {
        let found = enumerate::enumerate(bus.clone(), enumerate::Settings::default()).await;
        let drive = found.expect("a hierarchy").endpoints()[0].clone();
        enumerate::enable(&bus, &drive, [(1, 1)]).await;
        let bar0 = drive.bar(0).expect("registers").address;
        initiator::attach(bus, memory, bar0, initiator::Settings::default()).await
    });
    let mut driver = loop {
        if let Some(driver) = software.poll(machine.now) {
            break driver.expect("a drive that starts");
        }
        machine.turn();
    };
    let buffer = ram.borrow_mut().allocate(4096, 4096).expect("memory");
    let mut lines = format!("{}: {} blocks", driver.serial(), driver.namespaces()[0].blocks);
    for (op, text) in [(Op::Write, b"hello, drive"), (Op::Read, b"............")] {
        ram.borrow_mut().write(buffer, text).expect("memory");
        let io = Io { op, nsid: 1, slba: 8, blocks: 8, buffer };
        driver.submit(machine.now, 0, io).expect("an empty queue");
        machine.turn();
        let status = driver.reap(0)[0].status;
        let mut ram = ram.borrow_mut();
        let text = String::from_utf8_lossy(ram.get(buffer, text.len()).expect("memory"));
        lines += &format!("\n{op:?}: {}, {text:?}", status.is_success());
    }
    lines
}

fn main() {
    println!("{}", run());
}

#[test]
fn read_returns_written_blocks() {
    assert!(run().ends_with("Read: true, \"hello, drive\""), "{}", run());
}
