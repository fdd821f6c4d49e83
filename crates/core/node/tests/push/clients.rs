//! Push with the orders in which host software initialises a controller: registers and admin
//! commands as SPDK, Linux, Windows, UEFI and QEMU send them.

use node::push::{Mode, NotPushed, Reason};
use testkit::machine::Machine;
use testkit::nvme::{
    Pair, admin_sizes, create_polled, entry_sizes, identify, io, number_of_queues,
};
use wire::nvme::register::{ACQ, AQA, ASQ, CAP, CC, CSTS, Configuration, Doorbell, VS};
use wire::nvme::{COMPLETION_ENTRY, Command, SUBMISSION_ENTRY, cns, opcode};

/// Host software with each register access and command written out.
struct Client {
    initiator: Machine,
    bar: u64,
    queues: Vec<Pair>,
    page: u64,
    cid: u16,
}

impl Client {
    fn new() -> Self {
        let mut initiator = Machine::new([(); 2], 4096, 4096, Mode::All);
        let bar = initiator.enumerate().endpoints()[0].bar(0).expect("BAR 0").address;
        let page = initiator.buffer(4096);
        Self { initiator, bar, queues: Vec::new(), page, cid: 0 }
    }

    fn write(&mut self, register: u64, size: u8, value: u64) {
        self.initiator.bus.write(self.bar + register, size, value);
        self.initiator.settle();
    }

    /// A register of 8 bytes in two halves.
    fn write_halves(&mut self, register: u64, value: u64) {
        self.write(register, 4, value & 0xffff_ffff);
        self.write(register + 4, 4, value >> 32);
    }

    fn read(&mut self, register: u64, size: u8) -> u64 {
        let (bus, address) = (self.initiator.bus.clone(), self.bar + register);
        self.initiator.run(async move { bus.read(address, size).await })
    }

    fn read_halves(&mut self, register: u64) {
        self.read(register, 4);
        self.read(register + 4, 4);
    }

    /// New queues of `entries` entries.
    fn allocate(&mut self, entries: u16) -> Pair {
        let mut ram = self.initiator.ram.borrow_mut();
        let mut place =
            |entry: usize| ram.allocate(usize::from(entries) * entry, 4096).expect("room");
        let (sq, cq) = (place(SUBMISSION_ENTRY), place(COMPLETION_ENTRY));
        drop(ram);
        self.queues.push(Pair::at(self.queues.len() as u16, entries, sq, cq));
        self.queues[self.queues.len() - 1].clone()
    }

    /// Sets CC.EN; with `at_once` together with the other bits.
    fn enable(&mut self, at_once: bool) {
        if !at_once {
            self.write(CC, 4, entry_sizes().bits().into());
        }
        self.write(CC, 4, Configuration { enable: true, ..entry_sizes() }.bits().into());
        while self.read(CSTS, 4) & 1 == 0 {}
    }

    fn disable(&mut self) {
        self.write(CC, 4, 0);
        while self.read(CSTS, 4) & 1 != 0 {}
        self.queues.clear();
    }

    fn admin_queues(&mut self, entries: u16, halves: bool) {
        let pair = self.allocate(entries);
        self.write(AQA, 4, admin_sizes(entries));
        for (register, base) in [(ASQ, pair.sq()), (ACQ, pair.cq())] {
            if halves {
                self.write_halves(register, base);
            } else {
                self.write(register, 8, base);
            }
        }
    }

    /// Runs a command until it completes.
    fn command(&mut self, queue: usize, command: Command) {
        self.cid = self.cid.wrapping_add(1);
        let (cid, id) = (self.cid, queue as u16);
        let memory = self.initiator.ram.clone();
        let pair = &mut self.queues[queue];
        pair.put(&mut *memory.borrow_mut(), Command { cid, ..command });
        let tail = pair.tail;
        self.write(Doorbell::SubmissionTail(id).offset(0), 4, tail.into());
        let pair = &mut self.queues[queue];
        let done = pair.take(&mut *memory.borrow_mut());
        let done = done.unwrap_or_else(|| panic!("opcode {:#x} does not end", command.opcode));
        assert_eq!(done.cid, cid, "opcode {:#x}", command.opcode);
        assert!(done.status.is_success(), "opcode {:#x}: {:?}", command.opcode, done.status);
        let head = pair.head;
        self.write(Doorbell::CompletionHead(id).offset(0), 4, head.into());
    }

    fn identify(&mut self, cns: u8, nsid: u32) {
        self.command(0, identify(cns, nsid, self.page));
    }

    fn number_of_queues(&mut self) {
        self.command(0, number_of_queues());
    }

    fn create_queues(&mut self, entries: u16) {
        let pair = self.allocate(entries);
        create_polled(&pair).into_iter().for_each(|command| self.command(0, command));
    }

    /// Writes 4 KiB. Returns how many reads of the drive reached the host.
    fn writes(&mut self) -> usize {
        self.initiator.reads = 0;
        self.command(1, io(opcode::nvm::WRITE, 0, 8, [self.page, 0]));
        self.initiator.reads
    }

    fn not_pushed(&self) -> NotPushed {
        self.initiator.pushed().not_pushed
    }
}

/// SPDK, `nvme_ctrlr_process_init`.
fn spdk(client: &mut Client) {
    client.read(VS, 4);
    client.read(CAP, 8);
    client.disable();
    client.admin_queues(32, false);
    client.enable(true);
    client.identify(cns::CONTROLLER, 0);
    client.number_of_queues();
    client.identify(cns::ACTIVE_NAMESPACES, 0);
    client.identify(cns::NAMESPACE, 1);
    client.identify(cns::DESCRIPTORS, 1);
    client.create_queues(128);
}

/// Linux 6.12, `nvme_reset_work` and `nvme_scan_work`, then `nvme ns-descs`.
fn linux(client: &mut Client) {
    client.read(CSTS, 4);
    client.read_halves(CAP);
    client.disable();
    client.admin_queues(32, true);
    client.enable(false);
    client.identify(cns::CONTROLLER, 0);
    client.number_of_queues();
    client.create_queues(64);
    client.identify(cns::ACTIVE_NAMESPACES, 0);
    client.identify(cns::DESCRIPTORS, 1);
    client.identify(cns::NAMESPACE, 1);
    client.identify(cns::DESCRIPTORS, 1);
}

/// Windows: the Identify data structures that StorNVMe is documented to use, in their order of CNS.
fn windows(client: &mut Client) {
    client.read(CAP, 8);
    client.disable();
    client.admin_queues(256, true);
    client.enable(true);
    client.identify(cns::CONTROLLER, 0);
    client.number_of_queues();
    client.create_queues(256);
    client.identify(cns::ACTIVE_NAMESPACES, 0);
    client.identify(cns::NAMESPACE, 1);
    client.identify(cns::DESCRIPTORS, 1);
    client.identify(cns::CONTROLLER, 0);
}

/// EDK2, `NvmeControllerInit` and `DiscoverAllNamespaces` of NvmExpressDxe: I/O queues of two
/// entries, before any namespace.
fn uefi(client: &mut Client) {
    client.read_halves(CAP);
    client.disable();
    client.admin_queues(2, true);
    client.enable(true);
    client.identify(cns::CONTROLLER, 0);
    client.create_queues(2);
    client.identify(cns::NAMESPACE, 1);
}

/// QEMU: the register reads of `tests/qtest/nvme-test.c`, then `nvme_init` of `block/nvme.c`, which
/// its I/O tests use.
fn qemu(client: &mut Client) {
    client.read_halves(CAP);
    client.read(CAP, 8);
    client.disable();
    client.admin_queues(128, false);
    client.enable(true);
    client.identify(cns::CONTROLLER, 0);
    client.identify(cns::NAMESPACE, 1);
    client.create_queues(128);
}

#[test]
fn writes_are_pushed_after_the_initialisation_of_each_known_client() {
    for (name, init) in [
        ("SPDK", spdk as fn(&mut Client)),
        ("Linux", linux),
        ("Windows", windows),
        ("UEFI", uefi),
        ("QEMU", qemu),
    ] {
        let mut client = Client::new();
        init(&mut client);
        assert_eq!(client.writes(), 0, "{name}");
        assert_eq!(client.not_pushed(), NotPushed::default(), "{name}");
    }
}

#[test]
fn client_that_reads_no_cap_and_identifies_nothing_is_learnt_from_its_first_write() {
    let mut client = Client::new();
    client.disable();
    client.admin_queues(32, false);
    client.enable(true);
    client.create_queues(32);
    assert!(client.writes() > 0, "the data of the first");
    assert_eq!(client.writes(), 0);
    let reasons: Vec<_> = client.not_pushed().iter().collect();
    assert_eq!(reasons, [(Reason::BlockSize, 1)]);
}

#[test]
fn block_sizes_outlive_controller_reset_without_another_identify() {
    let mut client = Client::new();
    spdk(&mut client);
    client.disable();
    client.admin_queues(32, false);
    client.enable(true);
    client.create_queues(32);
    assert_eq!(client.writes(), 0);
}
