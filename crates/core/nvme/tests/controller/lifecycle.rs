//! Enabling, resets, shutdown, fatal errors.

use super::*;
use wire::nvme::register::{
    ACQ, AQA, ASQ, CAP, CC, CSTS, Capabilities, Configuration, NSSR, ShutdownNotice,
    ShutdownStatus, VS,
};

#[test]
fn registers_after_power_on() {
    let mut testbed = Testbed::enumerated(config(), false);
    let cap = Capabilities::from_bits(testbed.read(CAP, 8));
    assert_eq!((cap.max_queue_entries, cap.contiguous_queues), (4095, true));
    assert_eq!((cap.command_sets, cap.doorbell_stride), (1, 0));
    assert_eq!((cap.min_page, cap.max_page, cap.subsystem_reset), (0, 4, false));
    assert_eq!(testbed.read(VS, 4), 0x0001_0400);
    assert_eq!(testbed.read(CAP + 2, 2), cap.bits() >> 16 & 0xffff);
    for register in [CC, CSTS, AQA, NSSR, ASQ, ACQ, 0x1000, 0x38] {
        assert_eq!(testbed.read(register, 4), 0);
    }
    testbed.write(CC, 2, 1);
    assert_eq!((testbed.read(CC, 4), testbed.controller().partial_accesses()), (0, 1));
}

#[test]
fn enable_with_settings_outside_cap_is_fatal() {
    let good = Configuration { enable: true, ..entry_sizes() };
    for bad in [
        Configuration { command_set: 1, ..good },
        Configuration { arbitration: 2, ..good },
        Configuration { page: 5, ..good },
        Configuration { page: 4, ..good }, // the queues are not aligned to it
    ] {
        let mut host = Host::over(Testbed::enumerated(config(), true));
        for (register, value) in [(ASQ, 0x1000u64), (ACQ, 0x2000), (AQA, 0x001f_001f)] {
            host.testbed.write(register, if register == AQA { 4 } else { 8 }, value);
        }
        host.configure(bad);
        let status = host.status();
        assert!(status.fatal && !status.ready, "{bad:?}");
        host.configure(entry_sizes());
        assert!(!host.status().fatal);
        host.enable(32);
        assert!(host.status().ready);
    }
    let mut host = Host::over(Testbed::enumerated(config(), true));
    host.enable(1);
    assert!(host.status().fatal, "a queue of one entry");
}

#[test]
fn a_controller_reset_keeps_the_admin_queue_registers() {
    let mut host = Host::with_queue(config());
    let (aqa, asq) = (host.testbed.read(AQA, 4), host.testbed.read(ASQ, 8));
    host.testbed.write(AQA, 4, 0);
    assert_eq!(host.testbed.read(AQA, 4), aqa, "may not change while enabled");
    host.configure(entry_sizes());
    assert!(!host.status().ready);
    assert_eq!((host.testbed.read(AQA, 4), host.testbed.read(ASQ, 8)), (aqa, asq));
    host.enable(32);
    let delete = delete(opcode::admin::DELETE_SQ, 1);
    host.admin(delete).expect_failure(StatusCode::INVALID_QUEUE_ID);
}

#[test]
fn a_reset_waits_for_the_media_and_forgets_the_commands() {
    let mut host = Host::with_queue(config());
    host.put(1, flush(1));
    host.fetch(1, false);
    assert_eq!(host.testbed.blocks.len(), 1);
    host.configure(entry_sizes());
    assert!(host.status().ready, "an old write must not overtake a new one");
    // The host does not wait and enables again.
    host.configure(Configuration { enable: true, ..entry_sizes() });
    host.testbed.settle();
    assert!(host.status().ready);
    assert_eq!(host.reap(1), []);
}

#[test]
fn a_reset_waits_for_dma() {
    let mut host = Host::with_queue(config());
    host.put(1, flush(1));
    host.ring(1);
    host.testbed.take_tlps(pcie::Ready::ALL);
    host.configure(entry_sizes());
    assert!(host.status().ready);
    host.testbed.settle();
    assert!(!host.status().ready);
    assert_eq!(host.testbed.media.log, []);
}

#[test]
fn function_level_and_hot_resets_forget_everything() {
    for hot in [false, true] {
        let mut host = Host::with_queue(config());
        host.put(1, flush(1));
        host.fetch(1, false);
        if hot {
            host.testbed.hot_reset();
        } else {
            host.testbed.function_level_reset();
        }
        host.testbed.enumerate(true);
        assert!(!host.status().ready);
        assert_eq!(host.testbed.read(ASQ, 8), 0);
        host.enable(32);
        assert!(!host.status().ready, "the media still work on something");
        assert!(host.testbed.serve_block());
        assert!(host.status().ready);
        host.create(1, 8);
        host.io(flush(1)).expect_success();
    }
}

#[test]
fn requests_the_media_have_not_seen_are_dropped_in_a_reset() {
    let mut host = Host::with_queue(config());
    host.put(1, write(0, 1, DATA, 0));
    host.carry_out(1);
    host.testbed.media.log.clear();
    host.put(1, write(0, 1, DATA, 0));
    host.ring(1);
    host.testbed.hot_reset();
    host.testbed.enumerate(true);
    host.enable(32);
    assert!(host.status().ready);
    assert_eq!(host.testbed.media.log, []);
}

fn shut_down(host: &mut Host, shutdown: ShutdownNotice) {
    host.configure(Configuration { enable: true, shutdown, ..entry_sizes() });
}

#[test]
fn a_shutdown_finishes_commands_and_flushes() {
    for notice in [ShutdownNotice::Normal, ShutdownNotice::Abrupt] {
        let mut host = Host::with_queue(config());
        let cid = host.put(1, write(0, 1, DATA, 0));
        host.ring(1);
        host.testbed.take_tlps(pcie::Ready::ALL);
        shut_down(&mut host, notice);
        assert_eq!(host.status().shutdown, ShutdownStatus::Occurring);
        host.testbed.settle();
        assert_eq!(host.status().shutdown, ShutdownStatus::Complete);
        assert_eq!(host.testbed.media.log, [(1, "write"), (1, "flush"), (2, "flush")]);
        assert_eq!(host.reap(1)[0].cid, cid);
        host.configure(entry_sizes());
        assert_eq!(host.status().shutdown, ShutdownStatus::Normal);
        host.enable(32);
        assert!(host.status().ready);
    }
}

#[test]
fn a_reset_ends_a_shutdown() {
    let mut host = Host::with_queue(config());
    shut_down(&mut host, ShutdownNotice::Normal);
    assert_eq!(host.testbed.blocks.len(), 2);
    host.configure(entry_sizes());
    host.testbed.settle();
    let status = host.status();
    assert_eq!((status.ready, status.shutdown), (false, ShutdownStatus::Normal));
    host.enable(32);
    host.admin(get_feature(feature::ARBITRATION, 0)).expect_success();
}

#[test]
fn queues_that_cannot_be_read_are_fatal() {
    let mut host = Host::with_queue(config());
    host.put(1, flush(1));
    host.fetch(1, true);
    assert!(host.status().fatal);
    host.put(0, get_feature(feature::ARBITRATION, 0));
    host.carry_out(0);
    assert_eq!(host.reap(0), [], "nothing is fetched any more");
    host.configure(entry_sizes());
    assert_eq!(host.status(), Default::default());
    host.enable(32);
    host.create(1, 8);
    host.io(flush(1)).expect_success();
}

#[test]
fn a_controller_that_has_failed_can_still_be_shut_down() {
    let mut host = Host::with_queue(config());
    host.put(1, flush(1));
    host.fetch(1, true);
    shut_down(&mut host, ShutdownNotice::Reserved);
    assert_eq!(host.status().shutdown, ShutdownStatus::Normal);
    shut_down(&mut host, ShutdownNotice::None);
    shut_down(&mut host, ShutdownNotice::Abrupt);
    host.testbed.settle();
    assert_eq!(host.status().shutdown, ShutdownStatus::Complete);
    assert_eq!(host.testbed.media.log, [(1, "flush"), (2, "flush")]);
}

#[test]
fn a_node_that_ends_finishes_what_it_has_begun_and_begins_nothing() {
    let mut host = Host::with_queue(config());
    let begun = host.put(1, write(0, 8, DATA, 0));
    host.ring(1);
    host.testbed.take_tlps(pcie::Ready::ALL);
    assert!(!host.testbed.subsystem.is_drained(), "the entry is being fetched");
    host.testbed.subsystem.stop_fetching();
    host.put(1, write(8, 8, DATA, 0));
    host.carry_out(1);
    assert!(host.testbed.subsystem.is_drained());
    let done = host.reap(1);
    assert_eq!(done.iter().map(|done| done.cid).collect::<Vec<_>>(), [begun]);
    assert_eq!(host.testbed.media.log, [(1, "write")]);
}

#[test]
fn without_bus_master_nothing_is_fetched() {
    let mut host = Host::new(config());
    host.testbed.config_write(0x04, 0x0002);
    host.put(0, get_feature(feature::ARBITRATION, 0));
    host.carry_out(0);
    assert!(host.status().fatal);
    assert!(host.testbed.controller().errors().bus_master_off > 0);
}

#[test]
fn large_memory_pages() {
    let mut host = Host::over(Testbed::enumerated(config(), true));
    host.enable(32);
    host.configure(entry_sizes());
    host.configure(Configuration { enable: true, page: 3, ..entry_sizes() });
    assert!(host.status().ready);
    host.pairs[0] = Some(Pair::new(0, 32));
    host.testbed.put(Pair::new(0, 32).cq(), &[0; 512]);
    host.create(1, 8);
    let data = pattern(64 << 10, 5);
    host.testbed.put(DATA, &data);
    host.io(write(0, 128, DATA, DATA + 0x8000)).expect_success();
    assert!(host.testbed.media.namespaces[&1][..64 << 10] == data);
}
