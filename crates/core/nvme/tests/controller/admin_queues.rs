//! Creation and deletion of queues, Abort, and unsupported commands.

use super::*;

#[test]
fn queues_are_created_used_and_deleted() {
    let mut host = Host::with_queue(config());
    host.io(flush(1)).expect_success();
    let delete = |opcode| delete(opcode, 1);
    host.admin(delete(opcode::admin::DELETE_CQ)).expect_failure(StatusCode::INVALID_QUEUE_DELETION);
    host.admin(delete(opcode::admin::DELETE_SQ)).expect_success();
    host.admin(delete(opcode::admin::DELETE_SQ)).expect_failure(StatusCode::INVALID_QUEUE_ID);
    host.admin(delete(opcode::admin::DELETE_CQ)).expect_success();
    host.admin(delete(opcode::admin::DELETE_CQ)).expect_failure(StatusCode::INVALID_QUEUE_ID);
    host.create(1, 8);
    host.io(flush(1)).expect_success();
}

#[test]
fn sixty_four_pairs_and_deep_ones() {
    let mut host = Host::new(config());
    for id in 1..=64 {
        host.create(id, 512);
    }
    for id in 1..=64 {
        host.execute(id, flush(1)).expect_success();
    }
    let [cq, _] = create_commands(&Pair::new(65, 8));
    host.admin(cq).expect_failure(StatusCode::INVALID_QUEUE_ID);
}

#[test]
fn bad_fields_of_the_create_commands() {
    let mut host = Host::new(config());
    let [cq, sq] = create_commands(&Pair::new(1, 8));
    for (command, code) in [
        (Command { cdw10: 7 << 16, ..cq }, StatusCode::INVALID_QUEUE_ID),
        (Command { cdw10: 1, ..cq }, StatusCode::INVALID_QUEUE_SIZE),
        (Command { cdw10: 1 | 4096 << 16, ..cq }, StatusCode::INVALID_QUEUE_SIZE),
        (Command { cdw11: 0b10, ..cq }, StatusCode::INVALID_FIELD),
        (Command { cdw11: 0b11 | 65 << 16, ..cq }, StatusCode::INVALID_INTERRUPT_VECTOR),
        (Command { prp1: cq.prp1 + 8, ..cq }, StatusCode::INVALID_PRP_OFFSET),
        (sq, StatusCode::COMPLETION_QUEUE_INVALID),
        (Command { cdw11: 1, ..sq }, StatusCode::INVALID_QUEUE_ID),
        (Command { cdw11: 1 | 65 << 16, ..sq }, StatusCode::INVALID_QUEUE_ID),
        (Command { cdw11: 1 << 16, ..sq }, StatusCode::INVALID_FIELD),
    ] {
        host.admin(command).expect_failure(code);
    }
    host.admin(Command { cdw10: 1 | 4095 << 16, ..cq }).expect_success();
    host.admin(cq).expect_failure(StatusCode::INVALID_QUEUE_ID);
    host.admin(sq).expect_success();
    host.admin(sq).expect_failure(StatusCode::INVALID_QUEUE_ID);
}

#[test]
fn queues_need_the_entry_sizes_of_cc() {
    let mut host = Host::new(config());
    let [cq, _] = create_commands(&Pair::new(1, 8));
    host.configure(wire::nvme::register::Configuration {
        enable: true,
        sq_entry_size: 6,
        ..Default::default()
    });
    host.admin(cq).expect_failure(StatusCode::INVALID_QUEUE_SIZE);
}

#[test]
fn unknown_opcodes_and_fields_of_every_command() {
    let mut host = Host::with_queue(config());
    for opcode in [0x0d, 0x1c, 0x80, 0xff] {
        let command = Command { opcode, ..Command::default() };
        host.admin(command).expect_failure(StatusCode::INVALID_OPCODE);
    }
    for opcode in [0x04, 0x0d, 0x11, 0xff] {
        let command = Command { opcode, nsid: 1, ..Command::default() };
        host.io(command).expect_failure(StatusCode::INVALID_OPCODE);
    }
    host.io(Command { fuse: 1, ..flush(1) }).expect_failure(StatusCode::INVALID_FIELD);
    // A reserved PSDT, and an SGL for an admin command.
    host.io(Command { psdt: 3, ..flush(1) }).expect_failure(StatusCode::INVALID_FIELD);
    let features = Command { psdt: 1, ..get_feature(feature::ARBITRATION, 0) };
    host.admin(features).expect_failure(StatusCode::INVALID_FIELD);
}

#[test]
fn an_identifier_in_use_is_a_conflict() {
    let mut host = Host::with_queue(config());
    host.put_as(1, Command { cid: 9, ..flush(1) });
    host.put_as(1, Command { cid: 9, ..flush(1) });
    host.carry_out(1);
    let mut codes: Vec<_> = host.reap(1).iter().map(|done| (done.cid, done.status.code)).collect();
    codes.sort();
    assert_eq!(codes, [(9, StatusCode::SUCCESS), (9, StatusCode::COMMAND_ID_CONFLICT)]);
    host.put_as(1, Command { cid: 9, ..flush(1) });
    host.carry_out(1);
    host.reap(1)[0].expect_success();
}

#[test]
fn deleted_queue_finishes_commands_at_the_media() {
    let mut host = Host::with_queue(config());
    let cid = host.put(1, flush(1));
    host.ring(1);
    take_entries(&mut host);
    assert_eq!(host.testbed.blocks.len(), 1);
    let delete = delete(opcode::admin::DELETE_SQ, 1);
    let deletion = host.put(0, delete);
    host.ring(0);
    take_entries(&mut host);
    assert!(host.reap(0).is_empty(), "the deletion waits");
    host.testbed.settle();
    let done = host.reap(1);
    assert_eq!((done.len(), done[0].cid), (1, cid));
    done[0].expect_success();
    assert_eq!(host.reap(0)[0].cid, deletion);
}

#[test]
fn deleted_queue_aborts_commands_not_begun() {
    // The buffer has room for one transfer, so the second write waits.
    let mut host = Host::with_queue(configured(|settings| settings.buffer = 128 << 10));
    for _ in 0..2 {
        host.put(1, write(0, 256, DATA, DATA + 0x10_0000));
    }
    host.testbed.put_list(DATA + 0x10_0000, (1..32).map(page));
    host.ring(1);
    take_entries(&mut host);
    let delete = delete(opcode::admin::DELETE_SQ, 1);
    host.admin(delete).expect_success();
    let codes: Vec<_> = host.reap(1).iter().map(|done| done.status.code).collect();
    assert_eq!(codes, [StatusCode::ABORTED_SQ_DELETION, StatusCode::SUCCESS]);
}

#[test]
fn a_queue_is_deleted_while_a_batch_is_on_its_way() {
    let mut host = Host::with_queue(config());
    for _ in 0..5 {
        host.put(1, flush(1));
    }
    host.ring(1);
    host.testbed.take_tlps(pcie::Ready::ALL);
    let batch = host.testbed.reads.pop_front().unwrap();
    let delete = delete(opcode::admin::DELETE_SQ, 1);
    host.put(0, delete);
    host.ring(0);
    take_entries(&mut host);
    host.testbed.answer_read(batch, false);
    host.testbed.settle();
    let codes: Vec<_> = host.reap(1).iter().map(|done| done.status.code).collect();
    assert_eq!(codes, [StatusCode::ABORTED_SQ_DELETION; 5]);
    host.reap(0)[0].expect_success();
}

#[test]
fn abort_ends_waiting_commands_at_once_and_others_later() {
    let mut host = Host::with_queue(configured(|settings| settings.buffer = 128 << 10));
    host.testbed.put_list(DATA + 0x10_0000, (1..32).map(page));
    let first = host.put(1, write(0, 256, DATA, DATA + 0x10_0000));
    let second = host.put(1, write(0, 256, DATA, DATA + 0x10_0000));
    host.ring(1);
    take_entries(&mut host);
    host.put(0, abort(1, first));
    host.put(0, abort(1, second));
    host.put(0, abort(1, 77));
    host.ring(0);
    take_entries(&mut host);
    let results: Vec<_> = host.reap(0).iter().map(|done| done.expect_success()).collect();
    assert_eq!(results, [1, 0, 1]);
    let aborted = host.reap(1);
    assert_eq!((aborted.len(), aborted[0].cid), (1, second));
    assert_eq!(aborted[0].status, Status::retry(StatusCode::ABORT_REQUESTED));
    // The data of the first write are in flight. When they arrive, the command ends without writing
    // to the media.
    host.testbed.settle();
    let deferred = host.reap(1);
    assert_eq!((deferred.len(), deferred[0].cid), (1, first));
    assert_eq!(deferred[0].status, Status::retry(StatusCode::ABORT_REQUESTED));
    assert_eq!(host.testbed.media.log, []);
}

/// Sends an Abort and returns dword 0 of the completion. Only reads of queue memory are answered.
fn abort_now(host: &mut Host, cid: u16) -> u32 {
    host.put(0, abort(1, cid));
    host.ring(0);
    take_entries(host);
    host.reap(0)[0].expect_success()
}

#[test]
fn last_media_operation_is_not_aborted() {
    let mut host = Host::with_queue(config());
    for (command, aborted) in [
        (flush(1), false),
        (write(0, 8, DATA, 0), false),
        // The flush after the write has not begun, nor the transfer to the host of the read.
        (Command { cdw12: 7 | 1 << 30, ..write(0, 8, DATA, 0) }, true),
        (read(0, 8, DATA, 0), true),
    ] {
        let cid = host.put(1, command);
        host.ring(1);
        for _ in 0..2 {
            host.testbed.take_tlps(pcie::Ready::ALL);
            let reads = std::mem::take(&mut host.testbed.reads);
            reads.into_iter().for_each(|read| host.testbed.answer_read(read, false));
        }
        host.testbed.take_tlps(pcie::Ready::ALL);
        assert_eq!(host.testbed.blocks.len(), 1);
        assert_eq!(abort_now(&mut host, cid), 1, "the media work on it");
        host.testbed.media.log.clear();
        host.testbed.settle();
        let done = host.reap(1);
        let code = if aborted { StatusCode::ABORT_REQUESTED } else { StatusCode::SUCCESS };
        assert_eq!((done.len(), done[0].cid, done[0].status.code), (1, cid, code));
        assert_eq!(host.testbed.media.log.len(), 1, "no further step");
    }
}

#[test]
fn data_that_wait_for_the_link_are_not_sent_after_an_abort() {
    let mut host = Host::with_queue(configured(|settings| settings.posted_backlog = 0));
    host.testbed.media.namespaces.get_mut(&1).unwrap()[..8192].fill(0xaa);
    let first = host.put(1, read(0, 8, DATA, 0));
    let second = host.put(1, read(8, 8, page(1), 0));
    host.put(0, abort(1, second));
    host.ring(1);
    host.ring(0);
    let stuck = pcie::Ready::ALL.with(wire::tlp::Class::Posted, false);
    // Answer the read of the I/O entries, then of the Abort.
    for _ in 0..2 {
        let entries = host.testbed.reads.pop_front().unwrap();
        host.testbed.answer_read(entries, false);
        host.testbed.take_tlps(stuck);
        while host.testbed.serve_block() {}
    }
    host.testbed.settle();
    assert_eq!(host.reap(0)[0].expect_success(), 0, "aborted at once");
    let done: Vec<_> = host.reap(1).iter().map(|done| (done.cid, done.status.code)).collect();
    assert_eq!(done, [(first, StatusCode::SUCCESS), (second, StatusCode::ABORT_REQUESTED)]);
    assert_eq!(host.testbed.load(DATA, 8192).unwrap(), [vec![0xaa; 4096], vec![0; 4096]].concat());
}

/// Answers only reads of queue memory.
fn take_entries(host: &mut Host) {
    host.testbed.take_tlps(pcie::Ready::ALL);
    let reads = std::mem::take(&mut host.testbed.reads);
    for request in reads {
        if request.address >= testkit::nvme::QUEUES {
            host.testbed.answer_read(request, false);
        } else {
            host.testbed.reads.push_back(request);
        }
    }
    host.testbed.take_tlps(pcie::Ready::ALL);
}
