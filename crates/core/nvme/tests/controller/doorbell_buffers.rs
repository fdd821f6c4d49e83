//! Doorbells in host memory.

use super::*;
use pcie::Ready;
use wire::nvme::AsyncEvent;
use wire::nvme::opcode::admin;
use wire::nvme::register::Doorbell;

const SHADOW: u64 = DATA + 0x10_0000;
const EVENT_INDEX: u64 = SHADOW + 0x1000;
/// Byte offset of the tail of queue 1 in both buffers.
const TAIL: u64 = 8;
/// Byte offset of the head of queue 1 in both buffers.
const HEAD: u64 = 12;

fn offering() -> Config {
    configured(|settings| settings.doorbell_buffer = true)
}

/// A host with doorbell buffers and a queue pair of `entries` entries.
fn host(entries: u16) -> Host {
    let mut host = Host::new(offering());
    host.give_buffers(SHADOW, EVENT_INDEX).expect_success();
    host.create(1, entries);
    host.rung = 0;
    host
}

fn word(host: &Host, address: u64) -> u32 {
    u32::from_le_bytes(host.testbed.load(address, 4).unwrap().try_into().unwrap())
}

/// Whether the drive waits for a read of host memory that begins at `address`.
fn waits_for(host: &Host, address: u64) -> bool {
    host.testbed.reads.iter().any(|read| read.first_byte() == address)
}

/// Answers the oldest read of host memory.
fn answer(host: &mut Host) {
    let read = host.testbed.reads.pop_front().expect("a read");
    host.testbed.answer_read(read, false);
    host.testbed.take_tlps(Ready::ALL);
}

#[test]
fn doorbell_buffer_config_is_supported_if_configured() {
    let offered = |host: &mut Host| host.controller_data().admin_commands >> 8 & 1;
    let mut plain = Host::new(config());
    assert_eq!(offered(&mut plain), 0);
    plain.give_buffers(SHADOW, EVENT_INDEX).expect_failure(StatusCode::INVALID_OPCODE);
    let mut host = Host::new(offering());
    assert_eq!(offered(&mut host), 1);
    let opcode = admin::DOORBELL_BUFFER_CONFIG;
    let good = Command { opcode, prp1: SHADOW, prp2: EVENT_INDEX, ..Command::default() };
    for bad in [
        Command { prp1: SHADOW + 4, ..good },
        Command { prp2: EVENT_INDEX + 0x800, ..good },
        // 65 pairs of doorbells would end beyond the last address.
        Command { prp1: 0xffff_ffff_ffff_fe00, ..good },
    ] {
        host.admin(bad).expect_failure(StatusCode::INVALID_FIELD);
    }
    host.admin(good).expect_success();
}

#[test]
fn registers_are_written_only_to_wake_the_controller() {
    let mut host = host(16);
    for _ in 0..5 {
        host.put(1, flush(1));
        host.ring(1);
    }
    assert_eq!(host.rung, 1, "it has not said how far it has come");
    host.testbed.settle();
    assert_eq!(host.peek(1, 16).len(), 5);
    assert_eq!(word(&host, EVENT_INDEX + TAIL), 5);
    // The controller does not poll the doorbell: the next command needs a register write.
    host.put(1, flush(1));
    host.ring(1);
    assert_eq!(host.rung, 2);
    host.testbed.settle();
    assert_eq!(host.peek(1, 16).len(), 1);
    // Admin queues have no doorbells in host memory.
    host.admin(get_feature(feature::ARBITRATION, 0)).expect_success();
    assert_eq!((word(&host, SHADOW), word(&host, SHADOW + 4)), (0, 0));
}

#[test]
fn doorbell_rung_while_controller_stops_polling_is_seen() {
    // A command after the write of EventIdx, before the read: the host writes the register, and the
    // read finds the command too.
    let mut host = host(16);
    host.put(1, flush(1));
    host.ring(1);
    assert!(waits_for(&host, SHADOW + TAIL));
    answer(&mut host);
    assert_eq!(word(&host, EVENT_INDEX + TAIL), 1, "fetches, then looks once more");
    assert!(waits_for(&host, SHADOW + TAIL));
    host.put(1, flush(1));
    host.ring(1);
    assert_eq!(host.rung, 2);
    host.testbed.settle();
    assert_eq!(host.reap(1).len(), 2);
    // A command before the write of EventIdx: the host does not write the register, and the read
    // finds the command.
    host.put(1, flush(1));
    host.ring(1);
    host.put(1, flush(1));
    host.ring(1);
    let rung = host.rung;
    host.testbed.settle();
    assert_eq!((host.reap(1).len(), host.rung), (2, rung));
    // A command after the read: the host writes the register.
    host.put(1, flush(1));
    host.ring(1);
    assert_eq!(host.rung, rung + 1);
    host.testbed.settle();
    assert_eq!(host.reap(1).len(), 1);
}

#[test]
fn register_write_that_overtakes_shadow_read_is_seen() {
    let mut host = host(16);
    host.put(1, flush(1));
    host.ring(1);
    answer(&mut host);
    let is_shadow_tail = |read: &wire::tlp::MemoryRequest| read.first_byte() == SHADOW + TAIL;
    let at = host.testbed.reads.iter().position(is_shadow_tail).expect("it looks once more");
    let shadow_read = host.testbed.reads.remove(at).unwrap();
    // The controller has read memory. Then the host writes memory and the register; the register
    // write arrives before the answer.
    host.put(1, flush(1));
    host.ring(1);
    assert_eq!(host.rung, 2);
    host.testbed.put(SHADOW + TAIL, &1u32.to_le_bytes());
    host.testbed.answer_read(shadow_read, false);
    host.testbed.put(SHADOW + TAIL, &2u32.to_le_bytes());
    host.testbed.settle();
    assert_eq!(host.reap(1).len(), 2);
}

#[test]
fn late_register_value_is_ignored() {
    let mut host = host(8);
    host.admin(Command { opcode: admin::GET_FEATURES, cdw10: 1, ..Command::default() });
    let event = host.request_event();
    for _ in 0..3 {
        host.put(1, flush(1));
        host.updates_shadow(
            Doorbell::SubmissionTail(1),
            host.pairs[1].as_ref().unwrap().tail.into(),
        );
    }
    // The register has the tail after the first command, memory the tail after the third.
    let register = Doorbell::SubmissionTail(1).offset(0);
    host.testbed.write(register, 4, 1);
    host.testbed.settle();
    assert_eq!(host.reap(1).len(), 3);
    host.testbed.write(register, 4, 1);
    host.testbed.settle();
    assert_eq!(host.reap(1).len(), 0);
    assert!(host.reap(0).iter().all(|done| done.cid != event), "no error either");
}

#[test]
fn a_full_completion_queue_goes_on_when_memory_says_that_there_is_room() {
    let mut host = host(4);
    // Three completions fill the queue. The host consumes them without a register write.
    for round in 0..5u16 {
        for _ in 0..3 {
            host.put(1, flush(1));
        }
        host.ring(1);
        host.testbed.settle();
        assert_eq!(host.reap(1).len(), 3, "round {round}");
        host.testbed.settle();
    }
    assert_eq!(word(&host, SHADOW + HEAD), 15 % 4);
}

#[test]
fn a_pin_falls_when_memory_says_that_everything_is_taken() {
    let mut host = Host::over(Testbed::enumerated(offering(), false));
    host.enable(32);
    host.give_buffers(SHADOW, EVENT_INDEX).expect_success();
    let [cq, sq] = create_commands(&Pair::new(1, 16));
    host.admin(Command { cdw11: 3, ..cq }).expect_success();
    host.admin(sq).expect_success();
    host.pairs[1] = Some(Pair::new(1, 16));
    for round in 0..40 {
        host.put(1, flush(1));
        host.carry_out(1);
        assert!(host.testbed.intx, "round {round}");
        assert_eq!(host.reap(1).len(), 1);
        host.testbed.settle();
        assert!(!host.testbed.intx, "round {round}");
    }
}

/// After a reset, the host may use the memory for other purposes: the controller does not read it,
/// and registers work.
fn expect_plain(host: &mut Host) {
    host.testbed.put(SHADOW, &[0xee; 512]);
    host.testbed.put(EVENT_INDEX, &[0xee; 512]);
    host.start();
    let log = host.testbed.media.log.len();
    for _ in 0..20 {
        host.put(1, flush(1));
        host.fetch(1, false);
        assert!(!waits_for(host, SHADOW + TAIL));
        host.testbed.settle();
        assert_eq!(host.reap(1).len(), 1);
    }
    assert_eq!(host.testbed.media.log.len(), log + 20);
    assert_eq!(host.testbed.load(EVENT_INDEX, 512).unwrap(), [0xee; 512]);
    assert_eq!(host.testbed.load(SHADOW, 512).unwrap(), [0xee; 512]);
}

#[test]
fn a_reset_forgets_the_buffers_also_while_they_are_read() {
    for kind in 0..3 {
        let mut host = host(16);
        host.put(1, flush(1));
        host.ring(1);
        assert!(waits_for(&host, SHADOW + TAIL));
        match kind {
            0 => {
                host.configure(entry_sizes());
                assert!(host.status().ready, "a read is under way");
                host.testbed.put(SHADOW + TAIL, &9u32.to_le_bytes());
                host.testbed.settle();
                assert!(!host.status().ready);
            }
            1 => host.testbed.function_level_reset(),
            _ => host.testbed.hot_reset(),
        }
        if kind > 0 {
            host.testbed.enumerate(true);
        }
        expect_plain(&mut host);
    }
}

#[test]
fn a_queue_that_is_created_again_begins_with_0() {
    let mut host = host(16);
    for _ in 0..3 {
        for _ in 0..5 {
            host.put(1, flush(1));
            host.carry_out(1);
        }
        assert_eq!(host.reap(1).len(), 5);
        host.admin(delete(admin::DELETE_SQ, 1)).expect_success();
        host.admin(delete(admin::DELETE_CQ, 1)).expect_success();
        host.create(1, 8);
        assert_eq!(word(&host, EVENT_INDEX + TAIL), 0);
        host.put(1, flush(1));
        host.carry_out(1);
        assert_eq!(host.reap(1).len(), 1);
    }
}

#[test]
fn a_value_that_cannot_be_is_an_event_and_memory_that_does_not_answer_is_fatal() {
    let mut host = host(16);
    host.request_event();
    host.doorbell(Doorbell::SubmissionTail(1), 16);
    host.testbed.settle();
    let done = host.reap(0);
    assert_eq!(AsyncEvent::from_bits(done[0].result), AsyncEvent::INVALID_DOORBELL_VALUE);
    assert!(host.testbed.reads.is_empty() && !host.status().fatal);
    // A valid value works.
    host.testbed.put(SHADOW + TAIL, &0u32.to_le_bytes());
    host.put(1, flush(1));
    host.carry_out(1);
    assert_eq!(host.reap(1).len(), 1);
    host.testbed.settle();
    host.put(1, flush(1));
    host.ring(1);
    let read = host.testbed.reads.pop_front().unwrap();
    host.testbed.answer_read(read, true);
    assert!(host.status().fatal);
}
