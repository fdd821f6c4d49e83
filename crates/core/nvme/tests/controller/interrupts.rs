//! MSI-X, coalescing, INTx and its masks.

use super::*;
use wire::Duration;
use wire::nvme::register::{INTMC, INTMS};

#[test]
fn each_queue_has_its_vector() {
    let mut host = Host::with_queue(config());
    host.create(5, 8);
    host.testbed.interrupts.clear();
    host.io(flush(1)).expect_success();
    host.execute(5, flush(1)).expect_success();
    host.admin(get_feature(feature::ARBITRATION, 0)).expect_success();
    assert_eq!(host.testbed.interrupts, [1, 5, 0]);
}

#[test]
fn completions_posted_together_share_an_interrupt() {
    let mut host = Host::with_queue(config());
    host.testbed.interrupts.clear();
    for _ in 0..4 {
        host.put(1, Command { opcode: 0xff, ..Command::default() });
    }
    host.carry_out(1);
    assert_eq!((host.reap(1).len(), host.testbed.interrupts.len()), (4, 1));
}

#[test]
fn completions_of_one_turn_share_an_interrupt_behind_the_last() {
    let mut host = Host::with_queue(config());
    host.create(2, 16);
    host.testbed.interrupts.clear();
    for queue in [1, 2, 1, 1] {
        host.put(queue, flush(1));
    }
    host.ring(1);
    host.ring(2);
    while host.testbed.blocks.len() < 4 {
        host.testbed.take_tlps(pcie::Ready::ALL);
        if let Some(request) = host.testbed.reads.pop_front() {
            host.testbed.answer_read(request, false);
        }
    }
    while host.testbed.serve_block() {}
    assert!(host.testbed.interrupts.is_empty(), "the turn is not over");
    host.testbed.settle();
    assert_eq!((host.reap(1).len(), host.reap(2).len()), (3, 1));
    assert_eq!(host.testbed.interrupts, [1, 2]);
    assert!(host.testbed.unsignalled.is_empty(), "no entry comes behind its interrupt");
}

/// Creates queue pair 1. The Create I/O Completion Queue command has this dword 11.
fn create_1(host: &mut Host, cdw11: u32) {
    let pair = Pair::new(1, 8);
    let [cq, sq] = create_commands(&pair);
    host.admin(Command { cdw11, ..cq }).expect_success();
    host.admin(sq).expect_success();
    host.pairs[1] = Some(pair);
}

#[test]
fn queues_without_interrupts_are_silent() {
    let mut host = Host::new(config());
    create_1(&mut host, 1);
    host.testbed.interrupts.clear();
    host.io(flush(1)).expect_success();
    assert!(host.testbed.interrupts.is_empty());
}

#[test]
fn coalescing_ends_by_time_or_by_count() {
    let mut host = Host::with_queue(config());
    // Four completions, or 300 microseconds.
    host.admin(set_feature(feature::INTERRUPT_COALESCING, 0x0303)).expect_success();
    host.testbed.interrupts.clear();
    host.io(flush(1)).expect_success();
    assert!(host.testbed.interrupts.is_empty());
    host.testbed.pass(Duration::from_us(299));
    assert!(host.testbed.interrupts.is_empty());
    host.testbed.pass(Duration::from_us(1));
    assert_eq!(host.testbed.interrupts, [1]);
    for _ in 0..4 {
        host.io(flush(1)).expect_success();
    }
    assert_eq!(host.testbed.interrupts, [1, 1]);
    host.admin(set_feature(feature::INTERRUPT_VECTOR, 1 << 16 | 1)).expect_success();
    host.io(flush(1)).expect_success();
    assert_eq!(host.testbed.interrupts, [1, 1, 0, 1]);
}

#[test]
fn the_deadline_of_coalescing_is_told_to_the_world() {
    use pcie::{Function, Output, Ready, Wait};
    let mut host = Host::with_queue(config());
    host.admin(set_feature(feature::INTERRUPT_COALESCING, 0x0303)).expect_success();
    host.io(flush(1)).expect_success();
    let output = host.testbed.subsystem.port(1).poll(host.testbed.now, Ready::ALL);
    let until = Some(host.testbed.now + Duration::from_us(300));
    assert_eq!(output, Output::Wait(Wait::until(until)));
}

/// A drive without MSI-X, with queue pair 1 and vector 0.
fn with_intx() -> Host {
    let mut host = Host::over(Testbed::enumerated(config(), false));
    host.enable(32);
    create_1(&mut host, 0b11);
    host
}

#[test]
fn without_msix_every_vector_that_exists_is_taken() {
    let mut host = Host::over(Testbed::enumerated(config(), false));
    host.enable(32);
    let [cq, _] = create_commands(&Pair::new(64, 8));
    let beyond = Command { cdw11: 0b11 | 65 << 16, ..cq };
    host.admin(beyond).expect_failure(StatusCode::INVALID_INTERRUPT_VECTOR);
    // Queues with vectors 1 and 64, and a queue without interrupts.
    host.create(1, 8);
    host.create(64, 8);
    let [silent, _] = create_commands(&Pair::new(3, 8));
    host.admin(Command { cdw11: 0b01 | 64 << 16, ..silent }).expect_success();
    for id in [1, 64] {
        host.put(id, flush(1));
        host.carry_out(id);
        assert!(host.testbed.intx, "they share the pin");
        assert_eq!(host.reap(id).len(), 1);
        assert!(!host.testbed.intx);
    }
    assert!(host.testbed.interrupts.is_empty(), "no message is sent");
}

#[test]
fn the_pin_follows_the_queues_and_the_mask() {
    let mut host = with_intx();
    assert!(!host.testbed.intx);
    host.put(1, flush(1));
    host.carry_out(1);
    assert!(host.testbed.intx);
    host.testbed.write(INTMS, 4, 1);
    assert!(!host.testbed.intx);
    assert_eq!((host.testbed.read(INTMS, 4), host.testbed.read(INTMC, 4)), (1, 1));
    host.testbed.write(INTMC, 4, 1);
    assert!(host.testbed.intx);
    host.reap(1);
    assert!(!host.testbed.intx);
    assert!(host.testbed.interrupts.is_empty());
}

#[test]
fn a_reset_takes_the_pin_back() {
    let mut host = with_intx();
    host.put(1, flush(1));
    host.carry_out(1);
    assert!(host.testbed.intx);
    host.configure(entry_sizes());
    assert!(!host.testbed.intx);
}
