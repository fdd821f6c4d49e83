//! The initiator with the controller.

use super::*;
use nvme::initiator::{self, CompletedCommand, Driver, Error, Io, Op, Settings, attach};
use pcie::software::Task;
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::rc::Rc;
use wire::Duration;

const BAR: u64 = 0xe000_0000;
const MEMORY: u64 = 0x2_0000_0000;

struct InitiatorSetup {
    testbed: Testbed,
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
}

impl InitiatorSetup {
    fn new(config: Config) -> Self {
        Self::over(Testbed::enumerated(config, true))
    }

    fn over(mut testbed: Testbed) -> Self {
        let ram = Rc::new(RefCell::new(Ram::new(MEMORY, 8 << 20)));
        testbed.memory.push(ram.clone());
        Self { testbed, bus: Bus::new(), ram }
    }

    fn attach(&mut self, settings: Settings) -> Result<Driver, Error> {
        let software = attach(self.bus.clone(), self.ram.clone(), BAR, settings);
        let task = Task::new(&self.bus, software);
        self.testbed.run(&self.bus, task)
    }

    fn shutdown(&mut self, mut driver: Driver) -> Result<(), Error> {
        let task = Task::new(&self.bus, async move { driver.shutdown().await });
        self.testbed.run(&self.bus, task)
    }

    fn buffer(&mut self, length: usize, offset: u64) -> u64 {
        self.ram.borrow_mut().allocate(length + 4096, 4096).unwrap() + offset
    }

    /// Submits a command and waits for the completion.
    fn io(&mut self, driver: &mut Driver, queue: usize, io: Io) -> CompletedCommand {
        let id = driver.submit(self.testbed.now, queue, io).unwrap();
        self.testbed.carry(&self.bus);
        let done = driver.reap(queue);
        self.testbed.carry(&self.bus);
        assert_eq!((done.len(), done[0].id), (1, id));
        done[0]
    }
}

fn settings() -> Settings {
    Settings { io_queues: 4, entries: 16, ..Settings::default() }
}

#[test]
fn namespaces_with_metadata_are_left_out() {
    let mut state = config().state();
    let first = state.namespaces.get_mut(&1).unwrap();
    (first.blocks, first.metadata) = (8064, 8);
    let mut testbed = Testbed::from_records(&config(), state.encode());
    testbed.enumerate(true);
    let driver = InitiatorSetup::over(testbed).attach(settings()).unwrap();
    let found: Vec<u32> = driver.namespaces().iter().map(|one| one.nsid).collect();
    assert_eq!(found, [2]);
}

/// The entries are at the addresses that `queue_memory` returns.
#[test]
fn queue_memory_is_where_the_entries_are() {
    let mut initiator = InitiatorSetup::new(config());
    let mut driver = initiator.attach(settings()).unwrap();
    let places = driver.queue_memory(1);
    assert_eq!(places.entries, 16);
    assert_ne!(places, driver.queue_memory(0));
    let io = Io { op: Op::Flush, nsid: 1, slba: 0, blocks: 0, buffer: 0 };
    let id = initiator.io(&mut driver, 1, io).id;
    let entry: [u8; 64] =
        initiator.testbed.load(places.submission, 64).unwrap().try_into().unwrap();
    let command = wire::nvme::Command::decode(&entry);
    assert_eq!((command.opcode, command.cid), (wire::nvme::opcode::nvm::FLUSH, id.get()));
    let entry: [u8; 16] =
        initiator.testbed.load(places.completion, 16).unwrap().try_into().unwrap();
    assert_eq!(wire::nvme::Completion::decode(&entry).cid, id.get());
}

#[test]
fn brings_a_drive_up_moves_blocks_and_shuts_down() {
    let mut initiator = InitiatorSetup::new(config());
    let mut driver = initiator.attach(settings()).unwrap();
    assert_eq!(driver.queues(), 4);
    assert_eq!(driver.max_transfer(), 128 << 10);
    assert_eq!((driver.namespaces()[0].blocks, driver.namespaces()[1].block_shift), (8192, 12));
    initiator.testbed.interrupts.clear();
    for (queue, (length, offset)) in
        [(512, 0), (4096, 0x80), (8192, 0), (128 << 10, 0x200)].into_iter().enumerate()
    {
        let buffer = initiator.buffer(length, offset);
        let data = pattern(length, queue as u8);
        initiator.testbed.put(buffer, &data);
        let blocks = (length / 512) as u32;
        let io = Io { op: Op::Write, nsid: 1, slba: 1000, blocks, buffer };
        assert!(initiator.io(&mut driver, queue, io).status.is_success());
        initiator.testbed.put(buffer, &vec![0; length]);
        let io = Io { op: Op::Read, ..io };
        assert!(initiator.io(&mut driver, queue, io).status.is_success());
        assert!(initiator.testbed.load(buffer, length).unwrap() == data);
    }
    assert_eq!(initiator.testbed.interrupts, [1, 1, 2, 2, 3, 3, 4, 4]);
    for (op, operation) in
        [(Op::Flush, "flush"), (Op::WriteZeroes, "write zeroes"), (Op::Discard, "discard")]
    {
        let io = Io { op, nsid: 2, slba: 3, blocks: 2, buffer: 0 };
        assert!(initiator.io(&mut driver, 0, io).status.is_success());
        assert_eq!(initiator.testbed.media.log.last(), Some(&(2, operation)));
    }
    let beyond = Io { op: Op::Read, nsid: 1, slba: 8192, blocks: 1, buffer: MEMORY };
    let status = initiator.io(&mut driver, 0, beyond).status;
    assert_eq!(status.code, StatusCode::LBA_OUT_OF_RANGE);
    assert_eq!(driver.spurious_completions(), 0);
    initiator.shutdown(driver).unwrap();
    assert_eq!(initiator.testbed.media.log.last(), Some(&(2, "flush")));
    // Attach again, to a controller that is already enabled.
    initiator.attach(settings()).unwrap();
    initiator.attach(settings()).unwrap();
}

/// While the reset waits for the media, CFS still tells of the time before.
#[test]
fn attaches_after_a_fatal_error_while_the_media_are_busy() {
    let mut initiator = InitiatorSetup::new(config());
    let mut driver = initiator.attach(settings()).unwrap();
    let buffer = initiator.buffer(512, 0);
    for refuse in [false, true] {
        let io = Io { op: Op::Read, nsid: 1, slba: 0, blocks: 1, buffer };
        driver.submit(initiator.testbed.now, 0, io).unwrap();
        initiator.testbed.carry_requests(&initiator.bus);
        let fetch = initiator.testbed.reads.pop_front().unwrap();
        initiator.testbed.answer_read(fetch, refuse);
        initiator.testbed.take_tlps(pcie::Ready::ALL);
    }
    assert_eq!(initiator.testbed.blocks.len(), 1);
    assert!(initiator.testbed.controller().is_fatal());
    let (bus, ram) = (initiator.bus.clone(), initiator.ram.clone());
    let mut task = Task::new(&bus, attach(bus.clone(), ram, BAR, settings()));
    let attached = loop {
        match task.poll(initiator.testbed.now) {
            Some(attached) => break attached,
            None => initiator.testbed.carry_requests(&bus),
        }
    };
    attached.unwrap();
    assert!(!initiator.testbed.controller().is_fatal());
}

#[test]
fn one_doorbell_and_one_interrupt_for_a_batch() {
    let mut initiator = InitiatorSetup::new(config());
    let mut driver = initiator.attach(settings()).unwrap();
    initiator.testbed.interrupts.clear();
    let io = Io { op: Op::Flush, nsid: 1, slba: 0, blocks: 1, buffer: 0 };
    for _ in 0..15 {
        driver.prepare(initiator.testbed.now, 0, io).unwrap();
    }
    assert_eq!(driver.prepare(initiator.testbed.now, 0, io), Err(initiator::QueueFull));
    initiator.testbed.carry(&initiator.bus);
    assert_eq!(driver.outstanding(0), 15);
    assert!(driver.reap(0).is_empty(), "nobody has rung");
    driver.ring(0);
    let requests = std::iter::from_fn(|| initiator.bus.next_request()).count();
    assert_eq!(requests, 1);
    driver.ring(0);
    assert!(initiator.bus.next_request().is_none(), "nothing new");
}

#[test]
fn rings_and_phases_wrap() {
    let mut initiator = InitiatorSetup::new(config());
    let mut driver = initiator.attach(Settings { entries: 4, ..settings() }).unwrap();
    let io = Io { op: Op::Flush, nsid: 1, slba: 0, blocks: 1, buffer: 0 };
    for round in 0..50 {
        let count = round % 3 + 1;
        for _ in 0..count {
            driver.prepare(initiator.testbed.now, 0, io).unwrap();
        }
        driver.ring(0);
        initiator.testbed.carry(&initiator.bus);
        assert_eq!(driver.reap(0).len(), count);
        initiator.testbed.carry(&initiator.bus);
    }
    assert_eq!(driver.spurious_completions(), 0);
}

#[test]
fn timeouts_are_errors() {
    let mut initiator = InitiatorSetup::new(config());
    let timeout = Duration::from_ms(7);
    let mut driver = initiator.attach(Settings { timeout, ..settings() }).unwrap();
    let io = Io { op: Op::Flush, nsid: 1, slba: 0, blocks: 1, buffer: 0 };
    let now = initiator.testbed.now;
    driver.submit(now, 2, io).unwrap();
    assert_eq!(driver.check_timeouts(now + timeout), Ok(()));
    let late = now + timeout + Duration::from_ps(1);
    assert_eq!(driver.check_timeouts(late), Err(Error::Timeout("an I/O command")));
}

#[test]
fn drives_that_cannot_be_used() {
    let mut initiator = InitiatorSetup::new(config());
    initiator.testbed.config_write(0x04, 0);
    assert_eq!(initiator.attach(settings()).unwrap_err(), Error::Gone);
    let mut initiator = InitiatorSetup::new(config());
    initiator.testbed.config_write(0x04, 2);
    let error =
        initiator.attach(Settings { timeout: Duration::from_ms(1), ..settings() }).unwrap_err();
    assert_eq!(error, Error::Timeout("Identify"));
    let mut initiator = InitiatorSetup::new(config());
    initiator.ram = Rc::new(RefCell::new(Ram::new(MEMORY, 8192)));
    assert_eq!(initiator.attach(settings()).unwrap_err(), Error::OutOfMemory);
    let mut initiator = InitiatorSetup::new(config());
    let capability = initiator.testbed.capability(0x11);
    initiator.testbed.config_write(capability, 0);
    assert!(initiator.attach(settings()).is_ok(), "vectors are there with MSI-X disabled too");
    assert!(initiator.attach(Settings { interrupts: false, ..settings() }).is_ok());
}
