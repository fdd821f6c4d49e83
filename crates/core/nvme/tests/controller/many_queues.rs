//! Tests with many queues and with large queues.

use super::*;
use pcie::Ram;
use std::cell::RefCell;
use std::rc::Rc;
use testkit::nvme::QUEUES;
use wire::nvme::register::Doorbell;

/// A host whose drive has `queues` I/O queue pairs, with memory for the pairs `used`.
fn host(queues: u16, used: &[u16]) -> Host {
    let mut host = Host::new(configured(|settings| {
        settings.io_queues = queues;
        settings.queue_entries = nvme::MAX_ENTRIES;
    }));
    host.pairs.resize(usize::from(queues) + 1, None);
    for id in used.iter().filter(|id| **id > 64) {
        let memory = Ram::new(QUEUES + u64::from(*id) * 0x1_0000, 0x1_0000);
        host.testbed.memory.push(Rc::new(RefCell::new(memory)));
    }
    host
}

#[test]
fn queues_far_apart_work_and_take_turns() {
    let used = [1, 63, 64, 65, 127, 128, 511, 512, 1023, 2047];
    let mut host = host(2048, &used);
    assert_eq!(host.admin(get_feature(feature::NUMBER_OF_QUEUES, 0)).expect_success(), 0x7ff_07ff);
    for id in used {
        host.create(id, 16);
    }
    for id in used {
        host.execute(id, flush(1)).expect_success();
    }
    assert_eq!(host.testbed.interrupts.last(), Some(&2047), "a vector each");
    // Commands in all queues at the same time: each queue has its turn.
    host.testbed.media.log.clear();
    for id in used {
        host.put(id, flush(1));
        host.put(id, flush(2));
        host.ring(id);
    }
    host.testbed.settle();
    for id in used {
        assert_eq!(host.reap(id).len(), 2, "queue {id}");
    }
    host.admin(delete(opcode::admin::DELETE_SQ, 511)).expect_success();
    host.execute(512, flush(1)).expect_success();
}

#[test]
fn queue_2048_shares_a_vector() {
    let mut host = host(2048, &[2048]);
    host.create(2048, 16);
    host.execute(2048, flush(1)).expect_success();
    assert_eq!(host.testbed.interrupts.last(), Some(&2047));
    let [cq, _] = create_commands(&Pair::new(1, 16));
    let vector = |vector: u32| Command { cdw11: 3 | vector << 16, ..cq };
    host.admin(vector(2048)).expect_failure(StatusCode::INVALID_INTERRUPT_VECTOR);
    let beyond = Command { cdw10: 2049 | 15 << 16, ..cq };
    host.admin(beyond).expect_failure(StatusCode::INVALID_QUEUE_ID);
}

#[test]
fn a_queue_of_65536_entries_is_created() {
    let mut host = host(64, &[]);
    let whole = |command: Command| Command { cdw10: 1 | 0xffff << 16, ..command };
    for command in create_commands(&Pair::new(1, 16)).map(whole) {
        host.admin(command).expect_success();
    }
    let end = Doorbell::SubmissionTail(1);
    host.pairs[1] = Some(Pair::new(1, 512));
    host.put(1, flush(1));
    host.doorbell(end, 1);
    host.testbed.settle();
    assert!(host.reap(1)[0].status.is_success());
}
