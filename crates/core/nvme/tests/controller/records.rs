//! The persistent state of a drive.

use super::*;
use nvme::state::{History, Namespace, State};
use nvme::{NamespaceError, Subsystem};
use pcie::{Function, Output, Ready};
use wire::nvme::IdentifyNamespace;
use wire::nvme::register::{Configuration, ShutdownNotice, ShutdownStatus};
use wire::{Duration, Instant};

const SAVE: u32 = 1 << 31;

/// A drive with records whose controller is ready.
fn host() -> Host {
    let mut host = found(Testbed::with_records(&config()));
    start(&mut host);
    host
}

/// The host of a drive after power-on.
pub fn found(mut testbed: Testbed) -> Host {
    testbed.enumerate(true);
    Host::over(testbed)
}

pub fn start(host: &mut Host) {
    host.enable(32);
    host.testbed.settle();
    assert!(host.status().ready);
}

fn shut_down(host: &mut Host, shutdown: ShutdownNotice) {
    host.configure(Configuration { enable: true, shutdown, ..entry_sizes() });
    host.testbed.settle();
    assert_eq!(host.status().shutdown, ShutdownStatus::Complete);
}

/// Switches the power of the drive off and on.
pub fn power_cycle(mut host: Host) -> Host {
    host.testbed.power_cycle(&config().settings);
    found(host.testbed)
}

/// The stored counters.
fn stored(host: &Host) -> History {
    State::decode(&host.testbed.store.records).unwrap().health
}

#[test]
fn a_drive_is_ready_once_its_records_say_that_it_is_in_use() {
    let mut host = found(Testbed::with_records(&config()));
    assert_eq!(stored(&host).power_cycles, 0);
    host.enable(32);
    assert!(!host.status().ready, "nothing is stored yet");
    // One record has the power-on and the enabling of the controller, because the controller was
    // enabled before the first store.
    host.testbed.settle();
    assert!(host.status().ready);
    let health = stored(&host);
    assert_eq!((health.power_cycles, health.unsafe_shutdowns, health.running), (1, 0, true));
}

#[test]
fn a_drive_that_cannot_store_that_it_is_in_use_is_read_only_until_it_can() {
    let mut host = found(Testbed::with_records(&config()));
    host.testbed.settle();
    host.testbed.store.failure = Some(block::Error::NoSpace);
    start(&mut host);
    host.create(1, 16);
    let is_read_only = |host: &mut Host| {
        host.namespace_data(1).attributes & IdentifyNamespace::WRITE_PROTECTED != 0
    };
    host.io(read(0, 1, DATA, 0)).expect_success();
    host.io(write(0, 1, DATA, 0)).expect_failure(StatusCode::WRITE_TO_READ_ONLY_RANGE);
    assert!(is_read_only(&mut host) && !stored(&host).running);
    // The drive stores the record again later, without a reset by the host.
    host.testbed.pass(Duration::from_ms(11_000));
    host.testbed.settle();
    assert!(is_read_only(&mut host));
    host.testbed.store.failure = None;
    host.testbed.pass(Duration::from_ms(11_000));
    host.testbed.settle();
    assert!(!is_read_only(&mut host) && stored(&host).running);
    host.io(write(0, 1, DATA, 0)).expect_success();
}

#[test]
fn only_a_loss_of_power_without_shutdown_is_unsafe() {
    let counters = |host: &Host| (stored(host).power_cycles, stored(host).unsafe_shutdowns);
    let mut host = power_cycle(host());
    host.testbed.settle();
    assert_eq!(counters(&host), (2, 1), "in use");
    let mut host = power_cycle(host);
    host.testbed.settle();
    assert_eq!(counters(&host), (3, 1), "nobody had enabled it");
    for (cycle, notice) in [(4, ShutdownNotice::Normal), (5, ShutdownNotice::Abrupt)] {
        start(&mut host);
        shut_down(&mut host, notice);
        host = power_cycle(host);
        host.testbed.settle();
        assert_eq!(counters(&host), (cycle, 1), "{notice:?}");
    }
    // A shutdown counts until the controller is enabled again. A reset is not a shutdown.
    start(&mut host);
    shut_down(&mut host, ShutdownNotice::Normal);
    host.configure(entry_sizes());
    start(&mut host);
    host.configure(entry_sizes());
    host = power_cycle(host);
    host.testbed.settle();
    assert_eq!(counters(&host), (6, 2));
}

#[test]
fn a_shutdown_is_complete_when_it_is_stored_or_cannot_be() {
    let mut host = host();
    host.configure(Configuration {
        enable: true,
        shutdown: ShutdownNotice::Normal,
        ..entry_sizes()
    });
    while host.testbed.serve_block() {
        host.testbed.take_tlps(Ready::ALL);
    }
    assert_eq!(host.status().shutdown, ShutdownStatus::Occurring);
    assert!(stored(&host).running);
    host.testbed.store.failure = Some(block::Error::Media);
    host.testbed.settle();
    assert_eq!(host.status().shutdown, ShutdownStatus::Complete, "the data are safe");
    let mut host = power_cycle(host);
    host.testbed.store.failure = None;
    host.testbed.settle();
    assert_eq!(stored(&host).unsafe_shutdowns, 1, "the record says otherwise");
}

#[test]
fn the_shutdown_of_one_of_two_controllers_is_not_one_of_the_drive() {
    for (both, expected) in [(false, 1), (true, 0)] {
        let mut testbed = Testbed::with_records(&config());
        let second = testbed.beside();
        let (mut one, mut other) = (found(testbed), Host::over(second));
        start(&mut one);
        one.testbed.swap_drive(&mut other.testbed);
        other.testbed.enumerate(true);
        start(&mut other);
        shut_down(&mut other, ShutdownNotice::Normal);
        assert!(stored(&other).running, "the first is in use");
        one.testbed.swap_drive(&mut other.testbed);
        if both {
            shut_down(&mut one, ShutdownNotice::Normal);
        }
        let mut one = power_cycle(one);
        one.testbed.settle();
        assert_eq!(stored(&one).unsafe_shutdowns, expected);
    }
}

#[test]
fn counters_are_stored_ten_seconds_after_they_change() {
    let mut host = host();
    host.create(1, 16);
    host.testbed.settle();
    let idle = host.testbed.store.log.len();
    host.testbed.pass(Duration::from_ms(60_000));
    host.testbed.settle();
    assert_eq!(host.testbed.store.log.len(), idle, "nothing but time has passed");
    let changed = host.testbed.now;
    host.io(write(0, 8, DATA, 0)).expect_success();
    host.testbed.pass(Duration::from_ms(4_000));
    host.io(write(0, 8, DATA, 0)).expect_success();
    let now = host.testbed.now;
    let Output::Wait(wait) = host.testbed.port().poll(now, Ready::ALL) else { panic!("a TLP") };
    assert_eq!(wait.until, Some(changed + Duration::from_ms(10_000)));
    assert_eq!(stored(&host).writes, 0);
    host.testbed.pass(Duration::from_ms(6_000));
    host.testbed.settle();
    assert_eq!(stored(&host).writes, 2);
    assert_eq!(host.testbed.store.log.len(), idle + 1);
    // A failed store of the counters is repeated. No command waits for it.
    host.io(write(0, 8, DATA, 0)).expect_success();
    host.testbed.store.failure = Some(block::Error::Media);
    host.testbed.pass(Duration::from_ms(10_000));
    host.testbed.settle();
    host.testbed.store.failure = None;
    host.testbed.pass(Duration::from_ms(10_000));
    host.testbed.settle();
    assert_eq!((stored(&host).writes, stored(&host).running), (3, true));
    // Hours of power without a change.
    host.testbed.pass(Duration::from_ms(3_600_000));
    host.testbed.settle();
    assert_eq!(stored(&host).power_on_ps, (3_600_000 + 90_000) * 1_000_000_000);
}

#[test]
fn counters_go_on_after_a_power_cycle() {
    let mut host = host();
    host.create(1, 16);
    host.io(write(0, 8, DATA, 0)).expect_success();
    host.io(read(8192, 1, DATA, 0)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    // An orderly shutdown of the node stores the counters.
    host.testbed.subsystem.stop_fetching();
    assert!(!host.testbed.subsystem.is_drained());
    host.testbed.settle();
    assert!(host.testbed.subsystem.is_drained());
    let mut host = power_cycle(host);
    start(&mut host);
    host.create(1, 16);
    host.io(write(0, 8, DATA, 0)).expect_success();
    host.io(read(8192, 1, DATA, 0)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    let health = host.testbed.subsystem.state().health;
    assert_eq!((health.writes, health.reads, health.units_written), (2, 2, 16));
    assert_eq!((health.errors, health.power_cycles), (2, 2));
}

fn save(id: u8, value: u32) -> Command {
    Command { cdw10: SAVE | u32::from(id), ..set_feature(id, value) }
}

/// Values of a feature: current, default and saved.
fn values(host: &mut Host, id: u8, value: u32) -> [u32; 3] {
    [0, 1, 2].map(|select| {
        let command = Command { nsid: 1, ..get_feature(id, value) };
        let command = Command { cdw10: u32::from(id) | select << 8, ..command };
        host.admin(command).expect_success()
    })
}

#[test]
fn saved_features_outlive_resets_and_power() {
    let saveable = [
        (feature::ARBITRATION, 3, 4),
        (feature::POWER_MANAGEMENT, 0x20, 0),
        (feature::TEMPERATURE_THRESHOLD, 350, 343),
        (feature::VOLATILE_WRITE_CACHE, 0, 1),
        (feature::INTERRUPT_COALESCING, 0x0a05, 0),
        (feature::WRITE_ATOMICITY, 1, 0),
        (feature::ASYNC_EVENT_CONFIG, 0x1f, 0),
    ];
    let mut host = host();
    for (id, value, default) in saveable {
        host.admin(save(id, value)).expect_success();
        assert_eq!(values(&mut host, id, 0), [value, default, value], "feature {id:#x}");
        let capabilities = Command { cdw10: u32::from(id) | 3 << 8, ..get_feature(id, 0) };
        assert_eq!(host.admin(capabilities).expect_success(), 0b101);
    }
    let under = 1 << 20;
    host.admin(save(feature::TEMPERATURE_THRESHOLD, under | 280)).expect_success();
    let recovery = |nsid| Command { nsid, ..save(feature::ERROR_RECOVERY, 7) };
    host.admin(recovery(2)).expect_success();
    host.admin(recovery(u32::MAX)).expect_success();
    // Not saved: a reset restores the previous value.
    host.admin(set_feature(feature::ARBITRATION, 5)).expect_success();
    assert_eq!(values(&mut host, feature::ARBITRATION, 0), [5, 4, 3]);
    let check = |host: &mut Host| {
        for (id, value, default) in saveable {
            assert_eq!(values(host, id, 0), [value, default, value], "feature {id:#x}");
        }
        assert_eq!(values(host, feature::TEMPERATURE_THRESHOLD, under), [280, 0, 280]);
        assert_eq!(values(host, feature::ERROR_RECOVERY, 0), [7, 0, 7]);
    };
    host.configure(entry_sizes());
    start(&mut host);
    check(&mut host);
    host.testbed.hot_reset();
    host.testbed.enumerate(true);
    start(&mut host);
    check(&mut host);
    let mut host = power_cycle(host);
    start(&mut host);
    check(&mut host);
    let state = host.testbed.subsystem.state();
    assert_eq!(state.features.len(), saveable.len() + 1 + 2, "each value once");
    for id in [feature::NUMBER_OF_QUEUES, feature::INTERRUPT_VECTOR] {
        host.admin(save(id, 0)).expect_failure(StatusCode::FEATURE_NOT_SAVEABLE);
    }
}

#[test]
fn a_feature_is_saved_before_its_command_completes_or_nothing_changes() {
    let mut host = host();
    host.put(0, save(feature::ARBITRATION, 2));
    host.fetch(0, false);
    assert_eq!(host.testbed.store.commits.len(), 1);
    assert!(host.reap(0).is_empty());
    host.testbed.settle();
    let done = host.reap(0);
    done[0].expect_success();
    host.testbed.store.failure = Some(block::Error::NoSpace);
    let failed = host.admin(save(feature::ARBITRATION, 6));
    assert_eq!(failed.status.code, StatusCode::INTERNAL_ERROR);
    assert!(!failed.status.do_not_retry, "it may succeed later");
    assert_eq!(values(&mut host, feature::ARBITRATION, 0), [2, 4, 2]);
    // A reset during the store ends the command, but not the change.
    host.testbed.store.failure = None;
    host.put(0, save(feature::ARBITRATION, 1));
    host.fetch(0, false);
    host.configure(entry_sizes());
    host.testbed.settle();
    start(&mut host);
    host.configure(entry_sizes());
    start(&mut host);
    assert_eq!(values(&mut host, feature::ARBITRATION, 0), [1, 4, 1]);
}

/// A namespace whose names derive from `number`.
fn namespace(number: u8, blocks: u64) -> Namespace {
    Namespace {
        blocks,
        block_shift: 12,
        nguid: [number; 16],
        uuid: [number; 16],
        eui64: [number; 8],
        contents: format!("contents-{number}"),
        write_protected: false,
        private: false,
        ..Namespace::default()
    }
}

/// A drive of 1 MiB for up to 4 namespaces, without namespaces.
fn empty() -> Testbed {
    let mut state = config().state();
    state.namespaces.clear();
    state.attachments.clear();
    state.drive.capacity = 1 << 20;
    state.drive.max_namespaces = 4;
    Testbed::from_records(&config(), state.encode())
}

#[test]
fn namespaces_come_and_go_with_their_records() {
    use NamespaceError::{Capacity, Full, NoController, NoNamespace, NotAttached};
    let mut testbed = empty();
    let mut change = |change: &dyn Fn(&mut Subsystem)| {
        change(&mut testbed.subsystem);
        testbed.settle();
        let state = testbed.subsystem.state();
        assert_eq!(State::decode(&testbed.store.records).unwrap().namespaces, state.namespaces);
        assert_eq!(State::decode(&testbed.store.records).unwrap().attachments, state.attachments);
        state
    };
    let state = change(&|drive| assert_eq!(drive.create_namespace(namespace(1, 64)), Ok(1)));
    assert!(state.attachments.is_empty());
    change(&|drive| assert_eq!(drive.create_namespace(namespace(2, 64)), Ok(2)));
    let state = change(&|drive| assert_eq!(drive.attach(2, 1), Ok(())));
    assert_eq!(state.attachments[&2].len(), 1);
    change(&|drive| {
        assert_eq!(drive.detach(1, 1), Err(NotAttached(1, 1)));
        assert_eq!(drive.attach(2, 1), Err(NamespaceError::Attached(2, 1)));
        assert_eq!(drive.attach(2, 2), Err(NoController(2)));
        assert_eq!(drive.attach(3, 1), Err(NoNamespace(3)));
        assert_eq!(drive.delete_namespace(3), Err(NoNamespace(3)));
        let (needed, left) = (129 << 12, 128 << 12);
        assert_eq!(drive.create_namespace(namespace(3, 129)), Err(Capacity { needed, left }));
        let same = drive.create_namespace(namespace(1, 1)).unwrap_err().to_string();
        assert_eq!(same, "record namespace/3: nguid: another namespace has the same value");
        let bad = drive.create_namespace(Namespace { block_shift: 8, ..namespace(3, 1) });
        let bad = bad.unwrap_err().to_string();
        assert_eq!(bad, "record namespace/3: block_shift: '8' is outside 9 to 16");
    });
    // A deleted namespace is detached. A new namespace gets the lowest free NSID.
    let state = change(&|drive| assert_eq!(drive.delete_namespace(2), Ok(())));
    assert!(state.attachments.is_empty());
    for (number, nsid) in [(3, 2), (4, 3), (5, 4)] {
        change(&|drive| assert_eq!(drive.create_namespace(namespace(number, 1)), Ok(nsid)));
    }
    change(&|drive| assert_eq!(drive.create_namespace(namespace(6, 1)), Err(Full(4))));
}

#[test]
fn a_change_of_namespaces_that_cannot_be_stored_does_not_happen() {
    let mut testbed = empty();
    testbed.settle();
    let before = testbed.store.records.clone();
    testbed.store.failure = Some(block::Error::NoSpace);
    testbed.subsystem.create_namespace(namespace(1, 1)).unwrap();
    testbed.settle();
    assert!(testbed.subsystem.state().namespaces.is_empty());
    assert_eq!(testbed.store.records, before);
    testbed.store.failure = None;
    assert_eq!(testbed.subsystem.create_namespace(namespace(1, 1)), Ok(1));
}

#[test]
fn a_drive_without_records_has_nothing_to_store() {
    let mut subsystem = Subsystem::new(Instant::ZERO, &config());
    assert_eq!(subsystem.poll_store(), None);
    assert_eq!(subsystem.create_namespace(namespace(1, 1)), Err(NamespaceError::NoRecords));
    assert_eq!(subsystem.detach(1, 1), Err(NamespaceError::NoRecords));
    assert!(subsystem.is_drained());
}

#[test]
fn a_drive_that_serves_no_namespace_can_be_shut_down() {
    let mut testbed = empty();
    testbed.enumerate(true);
    let mut host = Host::over(testbed);
    start(&mut host);
    shut_down(&mut host, ShutdownNotice::Normal);
}
