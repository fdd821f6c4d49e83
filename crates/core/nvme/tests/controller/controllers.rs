//! Two controllers of one subsystem.

use super::*;
use bytes::Bytes;
use nvme::state::{RecordError, Records};
use nvme::{NamespaceError, Subsystem};
use pcie::endpoint::Unsent;
use wire::Instant;
use wire::nvme::{
    ErrorLogEntry, IDENTIFY, IdentifyController, IdentifyNamespace, cns, controller_list, log_page,
    namespace_list, opcode::admin,
};

/// A way to open a drive from its records.
pub(super) type Open = fn(Instant, Settings, &Records) -> Result<Subsystem, RecordError>;

/// A host for each controller of a drive.
pub(super) struct Two {
    hosts: [Host; 2],
    /// Index of the host whose testbed has the drive.
    at: usize,
}

impl Two {
    /// A drive with two namespaces; the second is attached only to controller 1. Each host has I/O
    /// queue pair 1.
    pub(super) fn new() -> Self {
        let mut testbed = Testbed::with_records(&config());
        let second = testbed.beside();
        testbed.subsystem.attach(1, 2).unwrap();
        testbed.settle();
        let mut two = Self { hosts: [Host::over(testbed), Host::over(second)], at: 0 };
        two.start();
        two
    }

    fn start(&mut self) {
        for number in 0..2 {
            let host = self.at(number);
            host.testbed.enumerate(true);
            host.start();
        }
    }

    /// As [`new`](Self::new), with a drive that is saved.
    pub(super) fn kept() -> Self {
        let mut two = Self::new();
        two.at(0).testbed.subsystem.keep();
        two
    }

    /// Starts the drive again from its records, after a loss of power or the end of its process.
    pub(super) fn restart(&mut self, open: Open) {
        let testbed = &mut self.at(0).testbed;
        let (now, records) = (testbed.now, testbed.store.records.clone());
        testbed.power_cycle(&config().settings);
        testbed.subsystem = open(now, config().settings, &records).expect("what it has written");
        testbed.subsystem.add_controller(now);
        self.start();
    }

    /// Saves the state of a host's controller.
    pub(super) fn save(&mut self, number: usize) -> Bytes {
        let id = number as u16 + 1;
        self.at(number).testbed.subsystem.save(id, &Unsent::default())
    }

    /// Ends the drive's process. The next process restores these states, by index of the host and in
    /// this order.
    pub(super) fn kill(&mut self, states: &[(usize, &Bytes)]) {
        (0..2).for_each(|number| self.at(number).testbed.reads.clear());
        let testbed = &mut self.at(0).testbed;
        testbed.blocks.clear();
        testbed.store.commits.clear();
        let now = testbed.now;
        let next = Subsystem::reopen(now, config().settings, &testbed.store.records);
        testbed.subsystem = next.expect("what the drive has written");
        testbed.subsystem.add_controller(now);
        testbed.subsystem.keep();
        for (number, state) in states {
            let restored = testbed.subsystem.restore(now, *number as u16 + 1, state);
            restored.expect("what the drive has saved");
        }
    }

    pub(super) fn at(&mut self, number: usize) -> &mut Host {
        if number != self.at {
            let [one, other] = &mut self.hosts;
            one.testbed.swap_drive(&mut other.testbed);
            self.at = number;
        }
        &mut self.hosts[number]
    }
}

#[test]
fn each_has_its_own_number_and_they_share_the_rest() {
    let mut two = Two::new();
    let [one, other] = [0, 1].map(|number| two.at(number).controller_data());
    assert_eq!((one.controller_id, other.controller_id), (1, 2));
    // CMIC: the subsystem may have two or more controllers, and reports access (figure 247).
    assert_eq!((one.multi_path, other.multi_path), (0b1010, 0b1010));
    assert_eq!(IdentifyController { controller_id: 1, ..other }, one);
    for number in 0..2 {
        assert_eq!(two.at(number).identify(cns::CONTROLLERS, 0), controller_list([1, 2]));
        assert_eq!(two.at(number).identify(cns::ATTACHED_CONTROLLERS, 1), controller_list([1, 2]));
        assert_eq!(two.at(number).identify(cns::ATTACHED_CONTROLLERS, 2), controller_list([1]));
        assert_eq!(two.at(number).identify(cns::ALLOCATED_NAMESPACES, 0), namespace_list([1, 2]));
        let shared = two.at(number).namespace_data(1);
        assert_eq!((shared.size, shared.sharing), (8192, 1));
    }
}

#[test]
fn both_read_what_one_has_written() {
    let mut two = Two::new();
    let data = pattern(4096, 1);
    two.at(0).testbed.put(DATA, &data);
    two.at(0).io(write(8, 8, DATA, 0)).expect_success();
    two.at(1).io(read(8, 8, DATA, 0)).expect_success();
    assert_eq!(two.at(1).testbed.load(DATA, 4096).unwrap(), data);
}

#[test]
fn a_namespace_of_one_controller_does_not_exist_for_the_other() {
    let mut two = Two::new();
    assert_eq!(two.at(0).identify(cns::ACTIVE_NAMESPACES, 0), namespace_list([1, 2]));
    assert_eq!(two.at(1).identify(cns::ACTIVE_NAMESPACES, 0), namespace_list([1]));
    // An inactive NSID (section 6.1.4): Identify returns zeroes, I/O commands fail with Invalid
    // Field in Command.
    assert_eq!(two.at(1).identify(cns::NAMESPACE, 2), [0; IDENTIFY]);
    let allocated = two.at(1).identify(cns::ALLOCATED_NAMESPACE, 2);
    assert_eq!(IdentifyNamespace::decode(&allocated).size, 256);
    for command in [read(0, 1, DATA, 0), write(0, 1, DATA, 0), flush(2)] {
        let command = Command { nsid: 2, ..command };
        two.at(1).io(command).expect_failure(StatusCode::INVALID_FIELD);
        two.at(0).io(command).expect_success();
        let invalid = Command { nsid: 3, ..command };
        two.at(1).io(invalid).expect_failure(StatusCode::INVALID_NAMESPACE);
    }
    let recovery = Command { nsid: 2, ..set_feature(feature::ERROR_RECOVERY, 1) };
    two.at(1).admin(recovery).expect_failure(StatusCode::INVALID_FIELD);
    // The broadcast NSID addresses the attached namespaces.
    two.at(1).testbed.media.log.clear();
    two.at(1).io(flush(u32::MAX)).expect_success();
    assert_eq!(two.at(1).testbed.media.log, [(1, "flush")]);
    // After the attachment, the namespace is active.
    assert_eq!(two.at(0).testbed.subsystem.attach(2, 2), Ok(()));
    let busy = two.at(0).testbed.subsystem.detach(1, 1);
    assert_eq!(busy, Err(NamespaceError::Busy), "the first change is not stored yet");
    two.at(0).testbed.settle();
    two.at(1).io(Command { nsid: 2, ..read(0, 1, DATA, 0) }).expect_success();
}

#[test]
fn a_reset_of_one_does_not_disturb_the_other() {
    let mut two = Two::new();
    for number in 0..2 {
        let host = two.at(number);
        host.put(1, read(0, 8, DATA, 0));
        host.fetch(1, false);
        assert_eq!(host.testbed.blocks.len(), number + 1, "it is read from the media");
    }
    let ids: Vec<u64> = two.at(0).testbed.blocks.iter().map(|request| request.id).collect();
    assert_eq!([ids[0] >> 16 & 0xffff, ids[1] >> 16 & 0xffff], [1, 2], "whose request it is");
    // The reset comes before the answers of the media.
    two.at(0).configure(entry_sizes());
    two.at(0).testbed.settle();
    assert!(!two.at(0).status().ready);
    two.at(1).testbed.settle();
    let done = two.at(1).reap(1);
    assert_eq!(done.len(), 1);
    done[0].expect_success();
    two.at(1).testbed.hot_reset();
    let host = two.at(0);
    host.enable(32);
    host.testbed.settle();
    assert!(host.status().ready);
    host.create(1, 16);
    host.io(read(0, 8, DATA, 0)).expect_success();
    host.testbed.subsystem.check_invariants();
}

#[test]
fn counters_are_of_both_and_error_logs_of_each() {
    let mut two = Two::new();
    for number in 0..2 {
        two.at(number).io(read(0, 8, DATA, 0)).expect_success();
        two.at(number).io(write(0, 8, DATA, 0)).expect_success();
        two.at(number).io(read(8192, 1, DATA, 0)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    }
    for number in 0..2 {
        let smart = two.at(number).smart();
        assert_eq!((smart.host_reads, smart.host_writes), (4, 2));
        assert_eq!(smart.error_log_entries, 2);
        // Each controller has its own entry; the error count is common to the drive.
        let log: [u8; 128] = two.at(number).log(log_page::ERROR);
        let count = |at: usize| ErrorLogEntry::decode(log[at..at + 64].try_into().unwrap()).count;
        assert_eq!((count(0), count(64)), (number as u64 + 1, 0));
    }
}

#[test]
fn both_learn_that_the_media_cannot_be_written() {
    let mut two = Two::new();
    for number in 0..2 {
        let host = two.at(number);
        host.admin(set_feature(feature::ASYNC_EVENT_CONFIG, 0x08)).expect_success();
        host.request_event();
    }
    let subsystem = &mut two.at(0).testbed.subsystem;
    for nsid in 1..=2 {
        subsystem.set_read_only(Instant::ZERO, nsid, true);
    }
    for number in 0..2 {
        two.at(number).testbed.settle();
        assert_eq!(two.at(number).reap(0).len(), 1, "an event for host {number}");
    }
}

#[test]
fn blocks_with_metadata_are_whole_for_both() {
    let mut two = Two::new();
    let format = Command { opcode: admin::FORMAT, nsid: 1, cdw10: 2, ..Command::default() };
    two.at(0).admin(format).expect_success();
    let metadata = DATA + 0x10_0000;
    for number in 0..2 {
        let host = two.at(number);
        host.testbed.put(DATA, &[1 + number as u8; 512]);
        host.testbed.put(metadata, &[1 + number as u8; 8]);
        host.put(1, Command { mptr: metadata, ..write(5, 1, DATA, 0) });
        host.ring(1);
        host.testbed.take_tlps(pcie::Ready::ALL);
        while let Some(request) = host.testbed.reads.pop_front() {
            host.testbed.answer_read(request, false);
            host.testbed.take_tlps(pcie::Ready::ALL);
        }
        // The command of the other controller waits for both requests of the first.
        assert_eq!(host.testbed.blocks.len(), 2);
    }
    let testbed = &mut two.at(1).testbed;
    for left in [1, 2] {
        testbed.serve_block();
        testbed.take_tlps(pcie::Ready::ALL);
        assert_eq!(testbed.blocks.len(), left);
    }
    for number in [1, 0] {
        two.at(number).testbed.settle();
        assert!(two.at(number).reap(1)[0].status.is_success());
    }
    assert_eq!(two.at(0).testbed.media.namespaces[&1][5 * 512], 2);
}
