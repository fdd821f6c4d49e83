//! Get and Set Features.

use super::*;
use wire::Duration;
use wire::nvme::feature::Timestamp;

const SUPPORTED: [(u8, u32); 11] = [
    (feature::ARBITRATION, 4),
    (feature::POWER_MANAGEMENT, 0),
    (feature::TEMPERATURE_THRESHOLD, 343),
    (feature::ERROR_RECOVERY, 0),
    (feature::VOLATILE_WRITE_CACHE, 1),
    (feature::NUMBER_OF_QUEUES, 63 << 16 | 63),
    (feature::INTERRUPT_COALESCING, 0),
    (feature::INTERRUPT_VECTOR, 0),
    (feature::WRITE_ATOMICITY, 0),
    (feature::ASYNC_EVENT_CONFIG, 0),
    (feature::KEEP_ALIVE_TIMER, 0),
];

fn with_select(id: u8, select: u32) -> Command {
    Command { nsid: 1, cdw10: u32::from(id) | select << 8, ..get_feature(id, 0) }
}

#[test]
fn every_feature_has_a_default_and_capabilities() {
    let mut host = Host::new(config());
    for (id, default) in SUPPORTED {
        for select in 0..3 {
            assert_eq!(host.admin(with_select(id, select)).expect_success(), default);
        }
        let capabilities = host.admin(with_select(id, 3)).expect_success();
        assert_eq!(capabilities, if id == feature::ERROR_RECOVERY { 0b110 } else { 0b100 });
        host.admin(with_select(id, 4)).expect_failure(StatusCode::INVALID_FIELD);
    }
    // Unsupported features: LBA ranges, power state transition, host memory buffer, thermal
    // management, non-operational power states, read recovery, latency, LBA status, sanitize,
    // endurance groups.
    let absent = [3, 0x0c, 0x0d, 0x10, 0x11, 0x12, 0x13, 0x14, 0x15, 0x17, 0x18];
    for id in absent.into_iter().chain([0, 0x81, 0xff]) {
        host.admin(get_feature(id, 0)).expect_failure(StatusCode::INVALID_FIELD);
        host.admin(set_feature(id, 0)).expect_failure(StatusCode::INVALID_FIELD);
    }
}

#[test]
fn set_features_are_read_back_until_reset() {
    let mut host = Host::new(config());
    for (id, value, seen) in [
        (feature::ARBITRATION, 0x0302_01ff, 0x0302_0107),
        (feature::POWER_MANAGEMENT, 0x22, 0x22),
        (feature::TEMPERATURE_THRESHOLD, 350, 350),
        (feature::VOLATILE_WRITE_CACHE, 0, 0),
        (feature::NUMBER_OF_QUEUES, 3 << 16 | 1, 3 << 16 | 1),
        (feature::INTERRUPT_COALESCING, 0x0a05, 0x0a05),
        (feature::INTERRUPT_VECTOR, 0x1_0000, 0x1_0000),
        (feature::WRITE_ATOMICITY, 1, 1),
        (feature::ASYNC_EVENT_CONFIG, 0x1f, 0x1f),
        (feature::KEEP_ALIVE_TIMER, 1001, 2000),
    ] {
        host.admin(set_feature(id, value)).expect_success();
        assert_eq!(host.admin(get_feature(id, 0)).expect_success(), seen, "feature {id:#x}");
    }
    host.configure(entry_sizes());
    host.enable(32);
    for (id, default) in SUPPORTED {
        let command = Command { nsid: 1, ..get_feature(id, 0) };
        assert_eq!(host.admin(command).expect_success(), default);
    }
}

#[test]
fn values_that_are_not_supported() {
    let mut host = Host::new(config());
    for (id, value) in [
        (feature::POWER_MANAGEMENT, 3),
        (feature::TEMPERATURE_THRESHOLD, 1 << 16),
        (feature::TEMPERATURE_THRESHOLD, 2 << 20),
        (feature::NUMBER_OF_QUEUES, 0xffff),
        (feature::NUMBER_OF_QUEUES, 0xffff_0000),
        (feature::INTERRUPT_VECTOR, 65),
        (feature::ASYNC_EVENT_CONFIG, 1 << 11),
    ] {
        host.admin(set_feature(id, value)).expect_failure(StatusCode::INVALID_FIELD);
    }
    host.admin(get_feature(feature::INTERRUPT_VECTOR, 65))
        .expect_failure(StatusCode::INVALID_FIELD);
    let save = Command { cdw10: 1 << 31 | 1, ..set_feature(1, 0) };
    host.admin(save).expect_failure(StatusCode::FEATURE_NOT_SAVEABLE);
    let own = Command { nsid: 1, ..set_feature(feature::ARBITRATION, 0) };
    host.admin(own).expect_failure(StatusCode::FEATURE_NOT_NAMESPACE_SPECIFIC);
}

#[test]
fn error_recovery_belongs_to_a_namespace() {
    let mut host = Host::new(config());
    let set = |nsid, value| Command { nsid, ..set_feature(feature::ERROR_RECOVERY, value) };
    let get = |nsid| Command { nsid, ..get_feature(feature::ERROR_RECOVERY, 0) };
    host.admin(set(2, 7)).expect_success();
    assert_eq!(host.admin(get(1)).expect_success(), 0);
    assert_eq!(host.admin(get(2)).expect_success(), 7);
    host.admin(set(u32::MAX, 9)).expect_success();
    assert_eq!(host.admin(get(1)).expect_success(), 9);
    assert_eq!(host.admin(get(0)).expect_success(), 9, "the first namespace answers for all");
    host.admin(set(0, 7)).expect_failure(StatusCode::INVALID_NAMESPACE);
    host.admin(set(3, 7)).expect_failure(StatusCode::INVALID_NAMESPACE);
    host.admin(set(1, 1 << 16)).expect_failure(StatusCode::INVALID_FIELD);
}

#[test]
fn every_feature_of_the_controller_is_read_without_a_namespace() {
    let mut host = Host::new(config());
    for (id, default) in SUPPORTED {
        for nsid in [0, u32::MAX] {
            let done = host.admin(Command { nsid, ..get_feature(id, 0) });
            // Get Features of a namespace's feature fails for the broadcast NSID.
            if (id, nsid) == (feature::ERROR_RECOVERY, u32::MAX) {
                done.expect_failure(StatusCode::INVALID_NAMESPACE);
            } else {
                assert_eq!(done.expect_success(), default, "feature {id:#x}");
            }
            let capabilities = Command { nsid, ..with_select(id, 3) };
            assert_eq!(host.admin(capabilities).expect_success() & 0b100, 0b100);
        }
    }
}

#[test]
fn the_number_of_queues_binds() {
    let mut host = Host::new(config());
    host.admin(set_feature(feature::NUMBER_OF_QUEUES, 1 << 16 | 1)).expect_success();
    let [cq, _] = create_commands(&Pair::new(3, 8));
    host.admin(cq).expect_failure(StatusCode::INVALID_QUEUE_ID);
    host.create(2, 8);
    host.admin(set_feature(feature::NUMBER_OF_QUEUES, 0))
        .expect_failure(StatusCode::COMMAND_SEQUENCE_ERROR);
}

#[test]
fn a_drive_without_a_cache_has_no_such_feature() {
    let mut host = Host::new(configured(|settings| settings.volatile_write_cache = false));
    host.admin(get_feature(feature::VOLATILE_WRITE_CACHE, 0))
        .expect_failure(StatusCode::INVALID_FIELD);
}

/// Set Features with data at `DATA`.
fn data(id: u8) -> Command {
    Command { prp1: DATA, ..set_feature(id, 0) }
}

fn timestamp(host: &mut Host, select: u32) -> Timestamp {
    let cdw10 = u32::from(feature::TIMESTAMP) | select << 8;
    let command = Command { cdw10, prp1: DATA, ..get_feature(0, 0) };
    host.admin(command).expect_success();
    let bytes = host.testbed.load(DATA, 8).unwrap();
    Timestamp::from_bits(u64::from_le_bytes(bytes.try_into().unwrap()))
}

#[test]
fn the_timestamp_counts_milliseconds_from_what_a_host_sets() {
    let mut host = Host::new(config());
    host.testbed.pass(Duration::from_ms(70));
    let at = |milliseconds, origin| Timestamp { milliseconds, stopped: false, origin };
    assert_eq!(timestamp(&mut host, 0), at(70, 0), "since power came");
    // 2026-11-23; bits 63:48 are reserved and have no effect.
    host.testbed.put(DATA, &(0xffff << 48 | 1_795_392_000_000u64).to_le_bytes());
    host.admin(data(feature::TIMESTAMP)).expect_success();
    host.testbed.pass(Duration::from_ms(1_500));
    assert_eq!(timestamp(&mut host, 0), at(1_795_392_001_500, 1));
    assert_eq!(timestamp(&mut host, 1), at(0, 0), "default");
    host.configure(entry_sizes());
    host.enable(32);
    assert_eq!(timestamp(&mut host, 0), at(1_795_392_001_500, 1), "resets keep it");
    let capabilities =
        Command { cdw10: 3 << 8 | u32::from(feature::TIMESTAMP), ..get_feature(0, 0) };
    assert_eq!(host.admin(capabilities).expect_success(), 0b100, "not saveable");
    // The timestamp wraps after 48 bits.
    host.testbed.put(DATA, &0xffff_ffff_ffffu64.to_le_bytes());
    host.admin(data(feature::TIMESTAMP)).expect_success();
    host.testbed.pass(Duration::from_ms(1));
    assert_eq!(timestamp(&mut host, 0), at(0, 1));
}

#[test]
fn host_behavior_has_one_bit() {
    let mut host = Host::new(config());
    let get = Command { prp1: DATA, ..get_feature(feature::HOST_BEHAVIOR, 0) };
    host.testbed.put(DATA, &[0; 512]);
    host.testbed.put(DATA, &[1]);
    host.admin(data(feature::HOST_BEHAVIOR)).expect_success();
    host.testbed.put(DATA, &[0xff; 512]);
    host.admin(get).expect_success();
    let seen = host.testbed.load(DATA, 512).unwrap();
    assert_eq!((seen[0], seen[1..].iter().max()), (1, Some(&0)));
    for (at, value) in [(0, 2), (1, 1), (2, 1), (511, 0x80)] {
        host.testbed.put(DATA, &[0; 512]);
        host.testbed.put(DATA + at, &[value]);
        host.admin(data(feature::HOST_BEHAVIOR)).expect_failure(StatusCode::INVALID_FIELD);
    }
    host.configure(entry_sizes());
    host.enable(32);
    host.admin(get).expect_success();
    assert_eq!(host.testbed.load(DATA, 1).unwrap(), [0], "a reset clears it");
}

#[test]
fn a_keep_alive_timer_expires_only_where_the_drive_is_run_so() {
    let keep_alive = Command { opcode: opcode::admin::KEEP_ALIVE, ..Command::default() };
    for (expiry, fatal) in [(false, false), (true, true)] {
        let mut host = Host::new(configured(|settings| settings.keep_alive_expiry = expiry));
        host.testbed.pass(Duration::from_ms(3_600_000));
        assert!(!host.status().fatal, "there is no timer until it is set");
        host.admin(set_feature(feature::KEEP_ALIVE_TIMER, 1_500)).expect_success();
        for _ in 0..3 {
            host.testbed.pass(Duration::from_ms(1_999));
            host.admin(keep_alive).expect_success();
        }
        host.testbed.pass(Duration::from_ms(2_000));
        assert_eq!(host.status().fatal, fatal);
        host.configure(entry_sizes());
        host.enable(32);
        host.testbed.pass(Duration::from_ms(3_600_000));
        assert!(!host.status().fatal, "a reset ends it");
    }
}
