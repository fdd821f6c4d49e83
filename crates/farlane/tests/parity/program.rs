//! The host software that runs in both worlds.

use super::script;
use node::slot::{OwnSlot, Settings};
use nvme::initiator::{self, Driver, Io, Op};
use pcie::enumerate::{self, Node};
use pcie::root::ROOT_PORT;
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::Poll;
use wire::nvme::StatusCode;
use wire::nvme::register::CC;
use wire::{Bdf, Duration, Instant};

/// Register Bridge Control of a bridge, and its bit Secondary Bus Reset (PCI-to-PCI Bridge
/// Architecture 1.2, section 3.2.5.18).
const BRIDGE_CONTROL: (u16, u32) = (0x3e, 1 << 6);
/// Class code of NVMe I/O controllers.
const NVME: [u8; 3] = [0x01, 0x08, 0x02];
/// Bytes of data of a command. All commands together have more data than a trace keeps whole.
const DATA: usize = 8 << 10;
/// Offset of the data of writes in a page. With this offset the data end in the third page, which
/// needs a PRP list. Reads have no lists: two lists could arrive in one frame, and the reads would
/// end in the same turn.
const OFFSET: usize = 512;
/// Number of commands in each round of I/O.
const COMMANDS: usize = 12;

/// A host with a running drive.
pub struct Host {
    bus: Bus,
    ram: Rc<RefCell<Ram>>,
    drive: Bdf,
    /// Address of the drive's registers.
    registers: u64,
    /// The port above the drive.
    port: Bdf,
    slot: OwnSlot,
    driver: Driver,
    buffers: Vec<u64>,
}

impl Host {
    /// Enumerates the hierarchy and brings the drive up.
    pub async fn boot(bus: Bus, ram: Rc<RefCell<Ram>>, poll: Duration) -> Self {
        let enumeration = enumerate::Settings { max_payload: 256, ..Default::default() };
        let found = enumerate::enumerate(bus.clone(), enumeration.clone()).await;
        let hierarchy = found.expect("buses enough");
        let nodes = hierarchy.nodes();
        let drive = *nodes.iter().find(|node| node.class == NVME).expect("a drive is there");
        let above = |node: &&&Node| node.children().iter().any(|child| child.bdf == drive.bdf);
        let port = *nodes.iter().find(above).expect("below a port");
        // Only a live drive has a label capability. The software does not read capabilities.
        let settings = Settings { enumeration, owner: 0 };
        let slot = OwnSlot::new(port.clone(), drive.clone(), bus.clone(), settings);
        let driver = attach(&bus, &ram, drive, poll).await;
        let registers = drive.bar(0).expect("its registers").address;
        let buffer = || ram.borrow_mut().allocate(OFFSET + DATA, 4096).expect("memory enough");
        let buffers = (0..COMMANDS).map(|_| buffer()).collect();
        let (port, drive) = (port.bdf, drive.bdf);
        Self { bus, ram, drive, registers, port, slot, driver, buffers }
    }

    /// Waits until the link is up again after a loss. The drive must be the same.
    async fn returns(&mut self, poll: Duration) {
        self.slot.link_down();
        self.slot.link_up();
        assert_eq!(ready(&self.bus, &mut self.slot).await, Ok(false), "its contents are the same");
        self.driver = attach(&self.bus, &self.ram, self.slot.node(), poll).await;
    }

    /// Returns the address of a command's data.
    fn buffer(&self, op: Op, number: usize) -> u64 {
        self.buffers[number] + if op == Op::Write { OFFSET as u64 } else { 0 }
    }

    fn submit(&mut self, op: Op, number: usize) {
        let (slba, blocks) = ((number * DATA / 512) as u64, (DATA / 512) as u32);
        let io = Io { op, nsid: 1, slba, blocks, buffer: self.buffer(op, number) };
        self.driver.submit(self.bus.now(), 0, io).expect("the queue has room");
    }

    /// Runs commands to their ends, `depth` at a time.
    async fn run(&mut self, op: Op, commands: usize, depth: usize) {
        let (mut begun, mut ended) = (0, 0);
        while ended < commands {
            while begun < commands && begun - ended < depth {
                self.submit(op, begun);
                begun += 1;
            }
            pause(&self.bus).await;
            for done in self.driver.reap(0) {
                assert_eq!(done.status.code, StatusCode::SUCCESS);
                ended += 1;
            }
        }
    }

    /// Writes data that depend on `seed`, flushes, and reads the data back.
    pub async fn check(&mut self, seed: u8, depth: usize) {
        for number in 0..COMMANDS {
            let at = self.buffer(Op::Write, number);
            let mut ram = self.ram.borrow_mut();
            ram.get_mut(at, DATA).expect("allocated").copy_from_slice(&data(seed, number));
        }
        self.run(Op::Write, COMMANDS, depth).await;
        self.run(Op::Flush, 1, 1).await;
        self.read_back(seed, 0, depth).await;
    }

    /// Reads back the data written with `seed`, from command `first` on.
    async fn read_back(&mut self, seed: u8, first: usize, depth: usize) {
        for at in &self.buffers {
            self.ram.borrow_mut().get_mut(*at, OFFSET + DATA).expect("allocated").fill(0);
        }
        self.run(Op::Read, COMMANDS, depth).await;
        for (number, at) in self.buffers.iter().enumerate().skip(first) {
            assert!(self.ram.borrow_mut().get(*at, DATA).expect("allocated") == data(seed, number));
        }
    }

    /// Runs one command. Returns its status, whether it took 3 ms, and of a read how many bytes
    /// arrived.
    async fn outcome(&mut self, op: Op, number: usize) -> String {
        let (at, content) = (self.buffer(op, number), data(9, number));
        let before = if op == Op::Write { content.clone() } else { vec![0xee; DATA] };
        self.ram.borrow_mut().get_mut(at, DATA).expect("allocated").copy_from_slice(&before);
        let begin = self.bus.now();
        self.submit(op, number);
        let code = loop {
            pause(&self.bus).await;
            if let Some(done) = self.driver.reap(0).first() {
                break done.status.code;
            }
            if self.bus.now() > begin + Duration::from_ms(20) {
                let late = self.bus.now() + Duration::from_ms(5_000);
                let error = self.driver.check_timeouts(late).expect_err("it is late");
                return format!("{op:?} {number}: {error}");
            }
        };
        let late = self.bus.now() >= begin + Duration::from_ms(3);
        let mut outcome = format!("{op:?} {number}: {code}{}", if late { ", late" } else { "" });
        if op == Op::Read {
            let ram = self.ram.borrow_mut().get(at, DATA).expect("allocated").to_vec();
            let new = ram.chunks(256).filter(|piece| piece[0] != 0xee || piece[1] != 0xee);
            outcome += &format!(", {} bytes new", new.flatten().count());
        }
        outcome
    }

    /// Resets the controller while `commands` commands are in flight.
    async fn reset_controller(&mut self, commands: usize) {
        (0..commands).for_each(|number| self.submit(Op::Write, number));
        self.bus.sleep(Duration::from_us(200)).await;
        self.bus.write(self.registers + CC, 4, 0);
        self.bus.sleep(Duration::from_ms(2)).await;
    }

    async fn reset_below(&self, bridge: Bdf) {
        let (register, reset) = BRIDGE_CONTROL;
        // This write invalidates pushed bytes before the reset. A simulated port has a PCIe link
        // and would drop the TLPs on the link.
        self.bus.config_write(bridge, register, 2, 0).await;
        pause(&self.bus).await;
        self.bus.config_write(bridge, register, 2, reset).await;
        self.bus.sleep(Duration::from_ms(2)).await;
        self.bus.config_write(bridge, register, 2, 0).await;
        self.bus.sleep(Duration::from_ms(10)).await;
    }
}

/// Returns the data of a command, which differ for each `seed`.
fn data(seed: u8, number: usize) -> Vec<u8> {
    (0..DATA).map(|at| (at / 7 + number * 31) as u8 ^ seed).collect()
}

/// Waits until the function of a slot is ready.
async fn ready(bus: &Bus, slot: &mut OwnSlot) -> Result<bool, String> {
    poll_fn(|_| slot.poll(bus.now()).map_or(Poll::Pending, Poll::Ready)).await
}

/// Brings up the drive of a function.
async fn attach(bus: &Bus, ram: &Rc<RefCell<Ram>>, drive: &Node, poll: Duration) -> Driver {
    enumerate::enable_bus_master(bus, drive.bdf, true).await;
    for vector in 0..=1 {
        enumerate::write_msix_entry(bus, drive, vector, u32::from(vector), false);
    }
    enumerate::set_msix(bus, drive, true).await;
    let bar0 = drive.bar(0).expect("its registers").address;
    let settings = initiator::Settings { poll, ..Default::default() };
    let driver = initiator::attach(bus.clone(), ram.clone(), bar0, settings).await;
    driver.expect("the drive comes up")
}

/// Sleeps for at most 10 us, until 7 us after a multiple of 10 us. The script has no events at such
/// times.
async fn pause(bus: &Bus) {
    let from = bus.now() + Duration::from_us(3) + Duration::from_ps(1);
    let end = from.next_multiple_of(Duration::from_us(10));
    bus.sleep(end - from + Duration::from_ps(1)).await;
}

/// Sleeps until `at`, which must be in the future.
pub async fn sleep_until(bus: &Bus, at: Instant) {
    assert!(bus.now() < at, "{} is over", at);
    bus.sleep(at - bus.now()).await;
}

/// Runs one command at a time, so that the TLPs of each class do not depend on times.
pub async fn one_by_one(bus: Bus, ram: Rc<RefCell<Ram>>) {
    let mut host = Host::boot(bus, ram, script::POLL).await;
    host.check(6, 1).await;
    // This read follows the last doorbell.
    host.bus.config_read(host.drive, 0, 4).await;
}

/// Runs bring-up, I/O with both queue depths, a controller reset with commands in flight, hot
/// resets of the drive's port and of the root port, and a link loss with commands in flight. After
/// the loss the slot has the same drive, and the drive has its data. Times of the script count from
/// `start`.
pub async fn whole(bus: Bus, ram: Rc<RefCell<Ram>>, start: Instant) {
    let poll = script::POLL;
    let after = |at: Instant| start + (at - Instant::ZERO);
    let boot = || Host::boot(bus.clone(), ram.clone(), poll);
    sleep_until(&bus, after(script::BOOT)).await;
    let mut host = boot().await;
    host.check(1, 1).await;
    host.check(2, 4).await;
    host.reset_controller(4).await;
    let host = boot().await;
    host.reset_below(host.port).await;
    let mut host = boot().await;
    host.check(3, 4).await;
    host.reset_below(ROOT_PORT).await;
    let mut host = boot().await;
    host.check(4, 4).await;
    sleep_until(&bus, after(script::LAST_COMMANDS)).await;
    (0..4).for_each(|number| host.submit(Op::Write, number));
    sleep_until(&bus, after(script::REBOOT)).await;
    host.returns(poll).await;
    // A lost command may or may not have written its blocks.
    host.read_back(4, 4, 4).await;
    host.check(5, 4).await;
}

/// Runs single commands on a drive with the faults of [`script::FAULTS`]. After a lost completion
/// the host resets the controller.
pub async fn faulty(bus: Bus, ram: Rc<RefCell<Ram>>, outcomes: Rc<RefCell<Vec<String>>>) {
    use Op::{Read, Write};
    sleep_until(&bus, script::BOOT).await;
    let mut host = Host::boot(bus.clone(), ram.clone(), script::POLL).await;
    let by_block =
        [(Write, 0), (Read, 0), (Write, 1), (Read, 1), (Write, 2), (Write, 2), (Read, 2)];
    for (begin, commands) in [
        (None, &by_block[..]),
        (Some(script::POISON), &[(Read, 2), (Read, 2)]),
        (Some(script::LOSE), &[(Write, 2)]),
    ] {
        if let Some(begin) = begin {
            sleep_until(&bus, begin).await;
        }
        for (op, number) in commands {
            let outcome = host.outcome(*op, *number).await;
            outcomes.borrow_mut().push(outcome);
        }
    }
    host.reset_controller(0).await;
    let mut host = Host::boot(bus.clone(), ram.clone(), script::POLL).await;
    let outcome = host.outcome(Read, 2).await;
    outcomes.borrow_mut().push(outcome);
}
