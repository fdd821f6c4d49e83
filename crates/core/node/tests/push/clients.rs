//! Push with the orders in which host software initialises a controller: registers and admin commands
//! as SPDK, Linux, Windows, UEFI and QEMU send them.

use super::initiator::Rig;
use node::push::{Mode, NotPushed, Reason};
use wire::nvme::register::{
    ACQ, AQA, ASQ, AdminQueueAttributes, CAP, CC, CSTS, Configuration, Doorbell, VS,
};
use wire::nvme::{COMPLETION_ENTRY, Command, Completion, SUBMISSION_ENTRY, cns, feature, opcode};

/// A queue pair in host memory.
struct Queues {
    sq: u64,
    cq: u64,
    entries: u16,
    tail: u16,
    head: u16,
    phase: bool,
}

/// Host software whose every register access and command a test writes.
struct Client {
    rig: Rig,
    bar: u64,
    queues: Vec<Queues>,
    page: u64,
    cid: u16,
}

impl Client {
    fn new() -> Self {
        let mut rig = Rig::new(Mode::All, 4096);
        let bar = rig.enumerate();
        let page = rig.memory.0.borrow_mut().allocate(4096, 4096).expect("room");
        Self { rig, bar, queues: Vec::new(), page, cid: 0 }
    }

    fn write(&mut self, register: u64, size: u8, value: u64) {
        self.rig.bus.write(self.bar + register, size, value);
        self.rig.settle();
    }

    /// A register of 8 bytes in two halves.
    fn write_halves(&mut self, register: u64, value: u64) {
        self.write(register, 4, value & 0xffff_ffff);
        self.write(register + 4, 4, value >> 32);
    }

    fn read(&mut self, register: u64, size: u8) -> u64 {
        let (bus, address) = (self.rig.bus.clone(), self.bar + register);
        self.rig.run(async move { bus.read(address, size).await })
    }

    fn read_halves(&mut self, register: u64) {
        self.read(register, 4);
        self.read(register + 4, 4);
    }

    /// New queues of `entries` entries.
    fn allocate(&mut self, entries: u16) -> (u64, u64) {
        let mut ram = self.rig.memory.0.borrow_mut();
        let mut place =
            |entry: usize| ram.allocate(usize::from(entries) * entry, 4096).expect("room");
        let (sq, cq) = (place(SUBMISSION_ENTRY), place(COMPLETION_ENTRY));
        self.queues.push(Queues { sq, cq, entries, tail: 0, head: 0, phase: true });
        (sq, cq)
    }

    /// Sets CC.EN, with other bits first if so.
    fn enable(&mut self, at_once: bool) {
        let configuration = Configuration {
            enable: true,
            sq_entry_size: 6,
            cq_entry_size: 4,
            ..Configuration::default()
        };
        if !at_once {
            self.write(CC, 4, Configuration { enable: false, ..configuration }.bits().into());
        }
        self.write(CC, 4, configuration.bits().into());
        while self.read(CSTS, 4) & 1 == 0 {}
    }

    fn disable(&mut self) {
        self.write(CC, 4, 0);
        while self.read(CSTS, 4) & 1 != 0 {}
        self.queues.clear();
    }

    fn admin_queues(&mut self, entries: u16, halves: bool) {
        let (sq, cq) = self.allocate(entries);
        let sizes = AdminQueueAttributes { sq_size: entries - 1, cq_size: entries - 1 };
        self.write(AQA, 4, sizes.bits().into());
        for (register, base) in [(ASQ, sq), (ACQ, cq)] {
            if halves {
                self.write_halves(register, base);
            } else {
                self.write(register, 8, base);
            }
        }
    }

    /// Runs a command to its end.
    fn command(&mut self, queue: usize, command: Command) {
        self.cid = self.cid.wrapping_add(1);
        let (cid, id) = (self.cid, queue as u16);
        let queue = &mut self.queues[queue];
        let mut ram = self.rig.memory.0.borrow_mut();
        let slot = queue.sq + u64::from(queue.tail) * SUBMISSION_ENTRY as u64;
        let entry = Command { cid, ..command }.encode();
        ram.get_mut(slot, entry.len()).expect("in RAM").copy_from_slice(&entry);
        drop(ram);
        queue.tail = (queue.tail + 1) % queue.entries;
        let tail = queue.tail;
        self.write(Doorbell::SubmissionTail(id).offset(0), 4, tail.into());
        let queue = &mut self.queues[usize::from(id)];
        let slot = queue.cq + u64::from(queue.head) * COMPLETION_ENTRY as u64;
        let mut entry = [0; COMPLETION_ENTRY];
        self.rig.memory.0.borrow_mut().read(slot, &mut entry).expect("in RAM");
        let done = Completion::decode(&entry);
        assert_eq!((done.cid, done.phase), (cid, queue.phase), "opcode {:#x}", command.opcode);
        assert!(done.status.is_success(), "opcode {:#x}: {:?}", command.opcode, done.status);
        queue.head = (queue.head + 1) % queue.entries;
        queue.phase ^= queue.head == 0;
        let head = queue.head;
        self.write(Doorbell::CompletionHead(id).offset(0), 4, head.into());
    }

    fn identify(&mut self, cns: u8, nsid: u32) {
        let command = Command {
            opcode: opcode::admin::IDENTIFY,
            nsid,
            prp1: self.page,
            cdw10: cns.into(),
            ..Command::default()
        };
        self.command(0, command);
    }

    fn number_of_queues(&mut self) {
        let cdw10 = feature::NUMBER_OF_QUEUES.into();
        self.command(
            0,
            Command { opcode: opcode::admin::SET_FEATURES, cdw10, ..Command::default() },
        );
    }

    fn create_queues(&mut self, entries: u16) {
        let (sq, cq) = self.allocate(entries);
        let command = Command {
            opcode: opcode::admin::CREATE_CQ,
            prp1: cq,
            cdw10: 1 | u32::from(entries - 1) << 16,
            cdw11: 1,
            ..Command::default()
        };
        self.command(0, command);
        let opcode = opcode::admin::CREATE_SQ;
        self.command(0, Command { opcode, prp1: sq, cdw11: 1 | 1 << 16, ..command });
    }

    /// Writes 4 KiB. Yields how many reads of the drive reached the host.
    fn writes(&mut self) -> usize {
        self.rig.reads = 0;
        let (opcode, prp1) = (opcode::nvm::WRITE, self.page);
        self.command(1, Command { opcode, nsid: 1, prp1, cdw12: 7, ..Command::default() });
        self.rig.reads
    }

    fn not_pushed(&self) -> NotPushed {
        self.rig.host.push_counters().not_pushed
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
