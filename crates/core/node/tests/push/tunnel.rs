//! Push over a link as it is: switch node, tunnel, device node.

mod reset_event;

use bytes::{Bytes, BytesMut};
use node::host::{Input, Output};
use node::push::{HostMemory, Mode, Settings};
use node::{DeviceNode, HostNode, PathId, SwitchNode, device, path, switch as switch_node};
use pcie::root::{HostOutput, ROOT_PORT};
use pcie::software::Request;
use pcie::{Function, Ports, Ready, Wait};
use stats::random::Random;
use switch::{tunnel, upstream};
use testkit::controller::{Controller, Manners};
use wire::frame::Role;
use wire::tlp::{Class, Tlp};
use wire::{Bdf, Instant};

const NOW: Instant = Instant::ZERO;
const DRIVE: Bdf = Bdf::new(3, 0, 0);
const BAR: u64 = 0xe000_0000;
const RAM: u64 = 0x10_0000;

/// The controller as a function that does everything at once, and takes some classes.
struct Drive(Controller, Random, Ready);

impl Function for Drive {
    fn handle(&mut self, _: Instant, input: pcie::Input) {
        match input {
            pcie::Input::Tlp(tlp) => self.0.handle(tlp),
            pcie::Input::HotReset => self.0.hot_reset(),
        }
    }

    fn poll(&mut self, _: Instant, ready: Ready) -> pcie::Output {
        for _ in 0..200 {
            let out = &mut self.0.out;
            if out.front().is_some_and(|tlp| ready.has(tlp.class())) {
                return pcie::Output::Tlp(out.pop_front().expect("looked at above"));
            }
            self.0.act(&mut self.1);
        }
        pcie::Output::Wait(Wait::default())
    }

    fn ready(&self) -> Ready {
        self.2
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}

#[derive(Default)]
struct Memory {
    bytes: Vec<u8>,
    /// Reads of the drive that reached the host.
    reads: usize,
    /// Addresses that the drive wrote; 0 is an interrupt.
    written: Vec<u64>,
    /// Whether the memory is not available at once when a doorbell is written.
    by_message: bool,
}

impl HostMemory for Memory {
    fn peek(&mut self, _: Bdf, address: u64, length: usize, out: &mut BytesMut) -> bool {
        let found = self.get(address, length).filter(|_| !self.by_message);
        found.inspect(|bytes| out.extend_from_slice(bytes)).is_some()
    }
}

impl Memory {
    fn get(&self, address: u64, length: usize) -> Option<Bytes> {
        let start = (address - RAM) as usize;
        self.bytes.get(start..start + length).map(Bytes::copy_from_slice)
    }
}

struct TunnelSetup {
    host: HostNode<SwitchNode>,
    device: DeviceNode<Drive>,
    memory: Memory,
    /// Everything that the host sent.
    sent: Vec<u8>,
    answer: Option<Option<u64>>,
    requests: u64,
}

impl TunnelSetup {
    /// A drive behind a link whose device keeps `push` bytes, enumerated.
    fn new(mode: Mode, push: u32) -> Self {
        Self::with(mode, push, 1024)
    }

    /// As [`new`](Self::new), with a device that has room for `headers` posted TLPs.
    fn with(mode: Mode, push: u32, headers: u32) -> Self {
        let settings = |role| {
            let mut settings = tunnel::Settings { push, ..tunnel::Settings::new(role, 1) };
            settings.window[0].headers = headers;
            settings
        };
        let host = settings(Role::Host);
        let upstream = upstream::Settings { ports: 1, max_payload: 512, p2p: false, tunnel: host };
        let drive = Drive(Controller::new(Manners::default()), Random::new(1), Ready::ALL);
        let mut initiator = Self {
            host: HostNode::new(Default::default(), SwitchNode::new(upstream, None))
                .with_push(Settings { mode, ..Settings::default() }),
            device: DeviceNode::new(settings(Role::Device), drive),
            memory: Memory { bytes: vec![0; 1 << 17], ..Memory::default() },
            sent: Vec::new(),
            answer: None,
            requests: 0,
        };
        initiator.run();
        initiator.enumerate();
        initiator
    }

    fn run(&mut self) {
        let path = PathId(1);
        loop {
            let mut moved = false;
            loop {
                match self.host.poll_with(NOW, &mut self.memory) {
                    Output::Wait(_) => break,
                    Output::Host(output) => self.host_output(output),
                }
                moved = true;
            }
            self.host.below_mut().handle_link(NOW, 0, path::Input::Room(1 << 20));
            loop {
                match self.host.below_mut().poll_links(NOW) {
                    switch_node::Output::Timeout(_) => break,
                    switch_node::Output::Connect { link, .. } => {
                        self.device.handle(
                            NOW,
                            path,
                            path::Input::Accepted {
                                signals_close: true,
                                peer: None,
                                rights: node::Rights::ALL,
                            },
                        );
                        self.host.below_mut().handle_link(NOW, link, path::Input::Connected);
                        self.host.below_mut().handle_link(NOW, 0, path::Input::Room(1 << 20));
                    }
                    switch_node::Output::Transmit { bytes, .. } => {
                        self.sent.extend_from_slice(&bytes);
                        self.device.handle(NOW, path, path::Input::Received(bytes));
                    }
                    switch_node::Output::Event(_) => {}
                    output => panic!("{output:?}"),
                }
                moved = true;
            }
            self.device.handle(NOW, path, path::Input::Room(1 << 20));
            loop {
                match self.device.poll(NOW) {
                    device::Output::Timeout(_) => break,
                    device::Output::Transmit { bytes, .. } => {
                        self.host.below_mut().handle_link(NOW, 0, path::Input::Received(bytes));
                    }
                    device::Output::Linked { .. } | device::Output::Event(_) => {}
                    output => panic!("{output:?}"),
                }
                moved = true;
            }
            if !moved {
                return;
            }
        }
    }

    fn host_output(&mut self, output: HostOutput) {
        match output {
            HostOutput::HostRead { token, address, length, .. } => {
                self.memory.reads += 1;
                let data = self.memory.get(address, length);
                self.host.handle(NOW, Input::HostData(token, data));
            }
            HostOutput::HostWrite { address, data, .. } => {
                let start = (address - RAM) as usize;
                self.memory.written.push(address);
                self.memory.bytes[start..start + data.len()].copy_from_slice(&data);
            }
            HostOutput::Answer(_, value) => self.answer = Some(value),
            HostOutput::Interrupt { .. } => self.memory.written.push(0),
            output => panic!("{output:?}"),
        }
    }

    fn request(&mut self, request: Request) -> Option<u64> {
        self.requests += 1;
        self.answer = None;
        self.host.handle(NOW, Input::Request(self.requests, request));
        self.run();
        self.answer.flatten()
    }

    fn config(&mut self, target: Bdf, offset: u16, value: u32) {
        self.request(Request::ConfigWrite { target, offset, size: 4, value });
    }

    fn read_config(&mut self, offset: u16) -> Option<u64> {
        self.request(Request::ConfigRead { target: DRIVE, offset, size: 4 })
    }

    fn write(&mut self, offset: u64, size: u8, value: u64) {
        self.request(Request::MemoryWrite { address: BAR + offset, size, value });
    }

    fn enumerate(&mut self) {
        let bridges = [
            (ROOT_PORT, 0x03_01_00),
            (Bdf::new(1, 0, 0), 0x03_02_01),
            (Bdf::new(2, 0, 0), 0x03_03_02),
        ];
        for (bridge, buses) in bridges {
            self.config(bridge, 0x18, buses);
            self.config(bridge, 0x20, 0xe000_e000);
            self.config(bridge, 0x04, 6);
            // MPS 512 in Device Control: PCIe capability at 48h behind power management.
            self.config(bridge, 0x50, 2 << 5);
        }
        assert_eq!(self.read_config(0x08), Some(0x0108_0200));
        self.read_config(0x0c);
        self.read_config(0x10);
        for offset in [0x10, 0x14] {
            self.config(DRIVE, offset, !0);
            self.read_config(offset);
        }
        self.config(DRIVE, 0x10, BAR as u32);
        self.config(DRIVE, 0x14, 0);
        self.config(DRIVE, 0x04, 6);
        self.request(Request::MemoryRead { address: BAR, size: 8 });
        // Admin queues of 8 entries.
        self.write(0x24, 4, 7 << 16 | 7);
        self.write(0x28, 8, RAM);
        self.write(0x30, 8, RAM + 0x1000);
        self.write(0x14, 4, 4 << 20 | 6 << 16 | 1);
    }

    /// Puts an entry into a slot of queue `queue` and rings; everything ends.
    fn submit(&mut self, queue: u16, slot: u16, mut entry: [u8; 64]) {
        entry[2] = slot as u8;
        let at = usize::from(queue) * 0x2000 + usize::from(slot) * 64;
        self.memory.bytes[at..at + 64].copy_from_slice(&entry);
        self.write(0x1000 + u64::from(queue) * 8, 4, u64::from(slot + 1) % 8);
    }

    fn command(&mut self, queue: u16, slot: u16, opcode: u8, prp1: u64, dwords: [u32; 3]) {
        self.submit(queue, slot, entry(opcode, prp1, dwords));
    }

    /// Identify, and queue 1 of 8 entries with interrupts.
    fn start(&mut self) {
        self.command(0, 0, 0x06, RAM + 0x1_0000, [0; 3]);
        self.command(0, 1, 0x05, RAM + 0x3000, [7 << 16 | 1, 3, 0]);
        self.command(0, 2, 0x01, RAM + 0x2000, [7 << 16 | 1, 1 << 16 | 1, 0]);
    }

    /// Reads that reached the host for a write of 4 KiB.
    fn reads_of_a_write(&mut self) -> usize {
        self.start();
        self.memory.bytes[0x1_1000..0x1_2000].fill(0x5a);
        self.memory.reads = 0;
        self.device.function_mut().0.used.clear();
        self.command(1, 0, 0x01, RAM + 0x1_1000, [0, 0, 7]);
        let used = &self.device.function().0.used;
        let data = |used: &testkit::controller::Used| match used {
            testkit::controller::Used::Data { data, .. } => *data == [0x5a; 4096],
            testkit::controller::Used::Entry { .. } => false,
        };
        assert_eq!(used.iter().filter(|used| data(used)).count(), 1, "the write was executed");
        self.memory.reads
    }
}

fn entry(opcode: u8, prp1: u64, dwords: [u32; 3]) -> [u8; 64] {
    let mut entry = [0; 64];
    (entry[0], entry[4]) = (opcode, 1);
    entry[24..32].copy_from_slice(&prp1.to_le_bytes());
    for (at, dword) in [40, 44, 48].into_iter().zip(dwords) {
        entry[at..at + 4].copy_from_slice(&dword.to_le_bytes());
    }
    entry
}

#[test]
fn a_write_takes_no_read_of_the_host() {
    let mut initiator = TunnelSetup::new(Mode::All, 1 << 20);
    assert_eq!(initiator.reads_of_a_write(), 0);
    let counters = initiator.device.store().counters();
    // Three admin commands; an entry, and eight reads of 512 bytes.
    assert_eq!((counters.hits, counters.misses), (3 + 1 + 8, 0));
    assert_eq!(counters.unused_bytes, 0);
}

#[test]
fn with_entries_only_the_data_are_read() {
    let mut initiator = TunnelSetup::new(Mode::Entries, 1 << 20);
    assert_eq!(initiator.reads_of_a_write(), 8);
}

#[test]
fn a_device_that_does_not_announce_push_gets_none() {
    let sent = [(Mode::All, 0), (Mode::Off, 1 << 20)].map(|(mode, push)| {
        let mut initiator = TunnelSetup::new(mode, push);
        assert_eq!(initiator.reads_of_a_write(), 9);
        assert_eq!(initiator.device.store().counters().pushed_bytes, 0);
        assert_eq!(initiator.host.push_counters().messages, 0);
        initiator.sent
    });
    assert_eq!(sent[0], sent[1], "byte by byte");
}

#[test]
fn an_sgl_of_one_range_is_followed() {
    let mut initiator = TunnelSetup::new(Mode::All, 1 << 20);
    initiator.start();
    let before = initiator.device.store().counters().pushed_bytes;
    // PSDT 01b; a data block of 4096 bytes, whose address stands where PRP entry 1 does.
    let mut write = entry(0x01, RAM + 0x1_1000, [0, 0, 7]);
    write[1] = 1 << 6;
    write[32..36].copy_from_slice(&4096u32.to_le_bytes());
    initiator.submit(1, 0, write);
    // Double words are the unit of our SGLs: 4098 bytes are in doubt, the entry goes alone.
    write[32..36].copy_from_slice(&4098u32.to_le_bytes());
    initiator.submit(1, 1, write);
    let pushed = initiator.device.store().counters().pushed_bytes - before;
    assert_eq!(pushed, 64 + 4096 + 64);
}

#[test]
fn long_data_are_not_pushed() {
    let mut initiator = TunnelSetup::new(Mode::All, 1 << 20);
    initiator.start();
    // A PRP list; all entries name one page.
    let page = RAM + 0x1_1000;
    for at in (0x1_c000..0x1_c040).step_by(8) {
        initiator.memory.bytes[at..at + 8].copy_from_slice(&page.to_le_bytes());
    }
    for (slot, blocks, expected) in [(0, 64, 64 + 7 * 8 + (32 << 10)), (1, 72, 64 + 8 * 8)] {
        let before = initiator.device.store().counters().pushed_bytes;
        let mut write = entry(0x01, page, [0, 0, blocks - 1]);
        write[32..40].copy_from_slice(&(RAM + 0x1_c000).to_le_bytes());
        initiator.submit(1, slot, write);
        assert_eq!(initiator.device.store().counters().pushed_bytes - before, expected, "{blocks}");
    }
}

#[test]
fn only_entry_is_pushed_without_identified_format() {
    let mut initiator = TunnelSetup::new(Mode::All, 1 << 20);
    initiator.start();
    let pushed = |initiator: &mut TunnelSetup, slot| {
        let before = initiator.device.store().counters().pushed_bytes;
        initiator.command(1, slot, 0x01, RAM + 0x1_1000, [0, 0, 7]);
        initiator.device.store().counters().pushed_bytes - before
    };
    assert_eq!(pushed(&mut initiator, 0), 64 + 4096);
    // Format NVM; then Identify.
    initiator.command(0, 3, 0x80, 0, [0; 3]);
    assert_eq!(pushed(&mut initiator, 1), 64);
    initiator.command(0, 4, 0x06, RAM + 0x1_0000, [0; 3]);
    assert_eq!(pushed(&mut initiator, 2), 64 + 4096);
}

#[test]
fn a_doorbell_does_not_wait_for_credits_of_its_push() {
    // Posted TLPs: one for the doorbell, two for invalidations, none for a push.
    let mut scarce = TunnelSetup::with(Mode::All, 1 << 20, 3);
    assert_eq!(scarce.reads_of_a_write(), 9);
    // One more takes the entry and a part of a page, which is not worth a push.
    let mut more = TunnelSetup::with(Mode::All, 1 << 20, 4);
    assert_eq!(more.reads_of_a_write(), 8);
}

#[test]
fn data_completion_entry_and_interrupt_keep_their_order() {
    for mode in [Mode::Off, Mode::All] {
        let mut initiator = TunnelSetup::new(mode, 1 << 20);
        initiator.start();
        initiator.device.function_mut().0.interrupts = true;
        initiator.memory.written.clear();
        // A read of two blocks of 512 bytes, across a page.
        let mut read = entry(0x02, RAM + 0x1_1e00, [0, 0, 1]);
        read[32..40].copy_from_slice(&(RAM + 0x1_4000).to_le_bytes());
        initiator.submit(1, 0, read);
        let data = [RAM + 0x1_1e00, RAM + 0x1_4000];
        assert_eq!(initiator.memory.written, [data[0], data[1], RAM + 0x3000, 0], "{mode}");
    }
}

#[test]
fn answers_stand_behind_posted_requests_before_their_bytes() {
    let mut initiator = TunnelSetup::new(Mode::All, 1 << 20);
    initiator.start();
    // A write of INTMS waits in front of the drive, and behind it what is pushed.
    initiator.device.function_mut().2 = Ready::ALL.with(Class::Posted, false);
    initiator.write(0x0c, 4, 0);
    let hits = initiator.device.store().counters().hits;
    initiator.command(1, 0, 0x00, 0, [0; 3]);
    assert_eq!(initiator.device.store().bytes(), 0, "the message is behind what waits");
    initiator.device.function_mut().0.speculate_at(RAM + 0x2000);
    initiator.run();
    assert_eq!(initiator.device.store().counters().hits, hits, "the host answered");
    initiator.device.function_mut().2 = Ready::ALL;
    initiator.run();
    assert_eq!(
        initiator.device.store().counters().hits,
        hits + 1,
        "the entry, once it may be there"
    );
}

/// Number of occurrences of the address of a doorbell in the bytes.
fn rings(bytes: &[u8], doorbell: u64) -> usize {
    let address = ((BAR + 0x1000 + doorbell * 4) as u32).to_be_bytes();
    bytes.windows(4).filter(|window| *window == address).count()
}

#[test]
fn a_head_doorbell_leaves_at_once() {
    for mode in Mode::ALL {
        let mut initiator = TunnelSetup::new(mode, 1 << 20);
        initiator.start();
        initiator.device.function_mut().0.interrupts = true;
        initiator.command(1, 0, 0x01, RAM + 0x1_1000, [0, 0, 7]);
        let before = initiator.sent.len();
        // Queue 1's head is doorbell 3.
        initiator.write(0x100c, 4, 1);
        assert_eq!(rings(&initiator.sent[before..], 3), 1, "{mode}");
    }
}
