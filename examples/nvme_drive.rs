//! An NVMe drive without a network: a host driver writes and reads blocks of a drive in memory.
//!
//! `cargo run -p farlane-examples --example nvme_drive`
//!
//! Drive and root complex are state machines without I/O. This program carries packets between
//! them, owns the host's memory and the drive's contents, and decides what time it is.

use nvme::block::{Operation, Request};
use nvme::initiator::{self, Driver, Io, Op};
use nvme::{Config, NamespaceConfig, Subsystem};
use pcie::root::{self, HostOutput, RootComplex};
use pcie::software::Task;
use pcie::{Bus, Function, Output, Ram, Ready, enumerate};
use std::cell::RefCell;
use std::error::Error;
use std::rc::Rc;
use wire::Instant;

struct Machine {
    now: Instant,
    /// Requests of host software.
    bus: Bus,
    /// Host memory.
    ram: Rc<RefCell<Ram>>,
    root: RootComplex,
    drive: Subsystem,
    /// The contents of namespace 1.
    contents: Vec<u8>,
}

impl Machine {
    /// Carries requests, packets and blocks until all wait, and then lets time pass.
    fn turn(&mut self) {
        let now = self.now;
        while let Some((id, request)) = self.bus.next_request() {
            self.root.handle(now, root::Input::Request(id, request), &self.drive.port(1));
        }
        let wait = loop {
            match self.root.poll(now, &self.drive.port(1)) {
                root::Output::Downstream(packet) => self.drive.port(1).handle(now, packet),
                root::Output::Host(output) => self.host(output),
                root::Output::Wait(wait) => match self.drive.port(1).poll(now, Ready::ALL) {
                    Output::Tlp(tlp) => {
                        self.root.handle(now, root::Input::Tlp(tlp), &self.drive.port(1));
                    }
                    Output::Wait(_) => match self.drive.poll_block() {
                        Some(request) => self.block(request),
                        None => break wait,
                    },
                },
            }
        };
        self.now = wait.until.unwrap_or(now);
    }

    /// The drive reads and writes host memory, and answers software.
    fn host(&mut self, output: HostOutput) {
        match output {
            HostOutput::Answer(id, value) => self.bus.answer(id, value.unwrap_or(u64::MAX)),
            HostOutput::HostRead { token, address, length, .. } => {
                let data = self.ram.borrow_mut().get(address, length).map(|data| data.to_vec());
                let input = root::Input::HostData(token, data.map(Into::into));
                self.root.handle(self.now, input, &self.drive.port(1));
            }
            HostOutput::HostWrite { address, data, .. } => {
                self.ram.borrow_mut().write(address, &data).expect("the driver's memory");
            }
            // The program looks for completions after every turn.
            HostOutput::Interrupt { .. } | HostOutput::Intx { .. } => {}
        }
    }

    /// The media: a vector.
    fn block(&mut self, request: Request) {
        let (offset, length) = request.operation.range();
        let range = offset as usize..(offset + length) as usize;
        let mut read = Vec::new();
        match request.operation {
            Operation::Read { .. } => read.extend(&self.contents[range]),
            Operation::Write { data, .. } => self.contents[range].copy_from_slice(&data),
            Operation::WriteZeroes { .. } => self.contents[range].fill(0),
            Operation::Flush | Operation::Discard { .. } => {}
        }
        self.drive.complete_block(self.now, request.id, Ok(read.into()));
    }

    /// Sends a command, and returns whether it succeeded.
    fn execute(&mut self, driver: &mut Driver, io: Io) -> Result<bool, Box<dyn Error>> {
        driver.submit(self.now, 0, io).map_err(|_| "the queue is full")?;
        loop {
            self.turn();
            if let Some(done) = driver.reap(0).first() {
                return Ok(done.status.is_success());
            }
        }
    }
}

fn run() -> Result<String, Box<dyn Error>> {
    let config = Config::new("EXAMPLE-1", vec![NamespaceConfig::new(2048)]);
    let mut machine = Machine {
        now: Instant::ZERO,
        bus: Bus::new(),
        ram: Rc::new(RefCell::new(Ram::new(0x10_0000, 4 << 20))),
        root: RootComplex::new(root::Settings::default()),
        drive: Subsystem::new(Instant::ZERO, &config),
        contents: vec![0; 2048 * 512],
    };
    // Host software is an async function over the bus.
    let (bus, ram) = (machine.bus.clone(), machine.ram.clone());
    let mut task = Task::new(&machine.bus, async move {
        let found = enumerate::enumerate(bus.clone(), enumerate::Settings::default()).await?;
        let node = found.endpoints()[0];
        enumerate::enable(&bus, node, [(1, 1)]).await;
        let bar0 = node.bar(0).ok_or("no registers")?.address;
        let settings = initiator::Settings::default();
        Ok::<_, Box<dyn Error>>(initiator::attach(bus, ram, bar0, settings).await?)
    });
    let mut driver = loop {
        if let Some(driver) = task.poll(machine.now) {
            break driver?;
        }
        machine.turn();
    };
    let (serial, blocks) = (driver.serial().to_owned(), driver.namespaces()[0].blocks);

    let buffer = machine.ram.borrow_mut().allocate(4096, 4096).ok_or("no memory")?;
    machine.ram.borrow_mut().write(buffer, b"hello, drive").ok_or("no memory")?;
    let write = Io { op: Op::Write, nsid: 1, slba: 8, blocks: 8, buffer };
    let written = machine.execute(&mut driver, write)?;
    machine.ram.borrow_mut().write(buffer, &[0; 4096]).ok_or("no memory")?;
    let read = machine.execute(&mut driver, Io { op: Op::Read, ..write })?;
    let mut text = [0; 12];
    machine.ram.borrow_mut().read(buffer, &mut text).ok_or("no memory")?;
    let text = String::from_utf8_lossy(&text);
    Ok(format!("{serial}: {blocks} blocks; written: {written}; read: {read}, \"{text}\""))
}

fn main() -> Result<(), Box<dyn Error>> {
    println!("{}", run()?);
    Ok(())
}

#[test]
fn blocks_that_were_written_are_read() {
    let line = "EXAMPLE-1: 2048 blocks; written: true; read: true, \"hello, drive\"";
    assert_eq!(run().expect("a drive"), line);
}
