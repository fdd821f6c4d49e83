//! PRPs, batches of entries, limits of outstanding requests, failed DMA.

use super::*;
use pcie::Ready;

/// Writes a PRP list of `pages` to `list`. If the list does not fit, it continues at `next`.
fn scatter(host: &mut Host, pages: &[u64], list: u64, next: u64) {
    let room = ((4096 - list % 4096) / 8) as usize;
    let (first, rest) = pages.split_at(if pages.len() > room { room - 1 } else { pages.len() });
    let chain = (!rest.is_empty()).then_some(next);
    host.testbed.put_list(list, first.iter().copied().chain(chain));
    host.testbed.put_list(next, rest.iter().copied());
}

#[test]
fn lists_plain_and_chained_both_ways() {
    let mut host = Host::with_queue(config());
    let (list, next) = (DATA + 0x20_0000, DATA + 0x20_1000);
    let pages: Vec<u64> = (0..32).map(|page| DATA + 0x10_0000 + page * 0x3000).collect();
    // Lists at the start of a page, in the middle of a page, and lists with a chained list.
    for (seed, list) in [(1, list), (2, list + 0x400), (3, list + 0xf80), (4, list + 0xff8)] {
        let data = pattern(128 << 10, seed);
        let first = DATA + 0x200;
        scatter(&mut host, &pages, list, next);
        host.testbed.put(first, &data[..0xe00]);
        for (page, bytes) in pages.iter().zip(data[0xe00..].chunks(4096)) {
            host.testbed.put(*page, bytes);
        }
        host.io(write(256, 256, first, list)).expect_success();
        assert!(host.testbed.media.namespaces[&1][128 << 10..][..128 << 10] == data);
        host.testbed.put(first, &[0; 0xe00]);
        for page in &pages {
            host.testbed.put(*page, &[0; 4096]);
        }
        host.io(read(256, 256, first, list)).expect_success();
        let mut back = host.testbed.load(first, 0xe00).unwrap();
        for page in &pages {
            back.extend(host.testbed.load(*page, 4096).unwrap());
        }
        assert!(back[..128 << 10] == data);
    }
}

#[test]
fn bad_offsets_are_refused() {
    let mut host = Host::with_queue(config());
    let list = DATA + 0x20_0000;
    for command in [
        read(0, 1, DATA + 2, 0),
        read(0, 16, DATA, DATA + 0x1008),
        write(0, 24, DATA, list + 4),
        Command { opcode: opcode::nvm::DATASET_MANAGEMENT, cdw11: 4, ..write(0, 1, DATA + 1, 0) },
    ] {
        host.io(command).expect_failure(StatusCode::INVALID_PRP_OFFSET);
    }
    host.testbed.put_list(list, [page(1), page(2) + 8]);
    host.io(read(0, 24, DATA, list)).expect_failure(StatusCode::INVALID_PRP_OFFSET);
    host.io(write(0, 24, DATA, list)).expect_failure(StatusCode::INVALID_PRP_OFFSET);
    host.io(read(0, 8, DATA, 0)).expect_success();
}

/// Every command with data across a page boundary, but without PRP entry 2: queue and command.
fn without_entry_2() -> Vec<(u16, Command)> {
    let half = DATA + 0x800;
    let admin = |opcode, nsid, cdw10| {
        (0, Command { opcode, nsid, prp1: half, cdw10, ..Command::default() })
    };
    let (identify, log) = (opcode::admin::IDENTIFY, opcode::admin::GET_LOG_PAGE);
    let whole = 0x3ff << 16;
    let ranges = Command { cdw10: 255, cdw11: 4, ..write(0, 1, half, 0) };
    vec![
        (1, read(0, 9, DATA, 0)),
        (1, read(0, 24, DATA, 0)),
        (1, read(0, 8, DATA + 4, 0)),
        (1, Command { nsid: 2, ..read(0, 2, DATA, 0) }),
        (1, write(0, 9, DATA, 0)),
        (1, write(0, 256, DATA, 0)),
        (1, Command { opcode: opcode::nvm::DATASET_MANAGEMENT, ..ranges }),
        admin(identify, 1, 0x00),
        admin(identify, 0, 0x01),
        admin(identify, 0, 0x02),
        admin(identify, 1, 0x03),
        admin(identify, 0, 0x10),
        admin(identify, 1, 0x11),
        admin(identify, 1, 0x12),
        admin(identify, 0, 0x13),
        admin(log, u32::MAX, whole | 1),
        admin(log, u32::MAX, whole | 2),
        admin(log, u32::MAX, whole | 3),
        admin(log, u32::MAX, whole | 5),
    ]
}

#[test]
fn a_second_entry_that_is_needed_is_not_0() {
    let mut host = Host::with_queue(config());
    let list = DATA + 0x20_0000;
    host.testbed.put_list(list, (1..33).map(page));
    for (queue, command) in without_entry_2() {
        // Ranges of no blocks, for Dataset Management.
        host.testbed.put(DATA, &[0; 8192]);
        host.execute(queue, command).expect_failure(StatusCode::INVALID_FIELD);
        assert_eq!(host.testbed.stray_writes, 0, "nothing goes to address 0: {command:?}");
        // With PRP entry 2 (a page, or a list of pages) the command succeeds.
        host.testbed.put_list(list, (1..33).map(page));
        let prp2 = if queue == 1 && command.blocks() > 9 { list } else { DATA + 0x1000 };
        host.execute(queue, Command { prp2, ..command }).expect_success();
    }
}

#[test]
fn an_entry_of_a_list_that_is_needed_is_not_0() {
    let mut host = Host::with_queue(config());
    let list = DATA + 0x20_0000;
    host.testbed.put_list(list, [page(1), 0]);
    host.io(read(0, 24, DATA, list)).expect_failure(StatusCode::INVALID_FIELD);
    host.io(write(0, 24, DATA, list)).expect_failure(StatusCode::INVALID_FIELD);
    // The pointer to the next list.
    let end = list + 0xff8;
    host.testbed.put(end, &[0; 8]);
    host.io(read(0, 24, DATA, end)).expect_failure(StatusCode::INVALID_FIELD);
    assert_eq!(host.testbed.stray_writes, 0);
    // Unused PRP entries may have any value.
    host.io(read(0, 8, DATA, 3)).expect_success();
    host.io(read(0, 16, DATA, DATA + 0x1000)).expect_success();
}

#[test]
fn memory_that_does_not_answer_fails_the_command_only() {
    let mut host = Host::with_queue(config());
    let nowhere = 0x5000_0000;
    let failed = StatusCode::DATA_TRANSFER_ERROR;
    for command in [
        write(0, 8, nowhere, 0),
        write(0, 16, DATA, nowhere),
        write(0, 24, DATA, nowhere),
        read(0, 24, DATA, nowhere),
    ] {
        let status = host.io(command).status;
        assert_eq!((status.code, status.do_not_retry, status.more), (failed, false, true));
    }
    host.io(read(0, 8, nowhere, 0)).expect_success();
    assert!(host.testbed.stray_writes > 0, "writes are posted: nobody knows");
    assert!(!host.testbed.controller().is_fatal());
}

#[test]
fn entries_are_fetched_in_batches_that_respect_the_ring() {
    let mut host = Host::with_queue(config());
    let lengths = |host: &mut Host| -> Vec<usize> {
        host.testbed.take_tlps(Ready::ALL);
        let lengths = host.testbed.reads.iter().map(|read| read.byte_count() / 64).collect();
        host.testbed.settle();
        assert!(host.reap(1).iter().all(|done| done.status.is_success()));
        lengths
    };
    for _ in 0..10 {
        host.put(1, flush(1));
    }
    host.ring(1);
    assert_eq!(lengths(&mut host), [10]);
    for _ in 0..10 {
        host.put(1, flush(1));
    }
    host.ring(1);
    assert_eq!(lengths(&mut host), [6, 4]);
    host.admin(set_feature(feature::ARBITRATION, 1)).expect_success();
    for _ in 0..6 {
        host.put(1, flush(1));
    }
    host.ring(1);
    assert_eq!(lengths(&mut host), [2, 2, 2]);
}

#[test]
fn queues_take_turns() {
    // With a limit of one command at a time, the queues alternate.
    let mut host = Host::with_queue(configured(|settings| settings.commands = 1));
    host.create(2, 16);
    for _ in 0..3 {
        host.put(1, flush(1));
        host.put(2, flush(2));
    }
    host.ring(1);
    host.carry_out(2);
    let order: Vec<u32> = host.testbed.media.log.iter().map(|(nsid, _)| *nsid).collect();
    assert_eq!(order, [1, 2, 1, 2, 1, 2]);
}

#[test]
fn a_full_completion_queue_holds_up_its_own_commands_only() {
    let mut host = Host::with_queue(config());
    host.create(2, 16);
    let [_, sq] = create_commands(&Pair::new(3, 64));
    // Queue 3 uses the small completion queue 2.
    host.admin(Command { cdw11: 1 | 2 << 16, ..sq }).expect_success();
    host.pairs[3] = Some(Pair::new(3, 64));
    for _ in 0..40 {
        host.put(3, flush(1));
    }
    host.carry_out(3);
    host.io(flush(2)).expect_success();
    let mut taken = 0;
    loop {
        let done = host.reap(2);
        if done.is_empty() {
            break;
        }
        assert!(done.len() <= 15 && done.iter().all(|done| done.sq_id == 3));
        taken += done.len();
        host.testbed.settle();
    }
    assert_eq!(taken, 40);
}

#[test]
fn read_data_wait_for_the_link() {
    let mut host = Host::with_queue(configured(|settings| settings.posted_backlog = 8192));
    let list = DATA + 0x20_0000;
    host.testbed.put_list(list, (1..32).map(page));
    for slba in 0..8 {
        host.put(1, read(slba, 256, DATA, list));
    }
    host.ring(1);
    // The link takes everything except posted writes.
    let stuck = Ready::ALL.with(wire::tlp::Class::Posted, false);
    for _ in 0..10 {
        host.testbed.take_tlps(stuck);
        let reads = std::mem::take(&mut host.testbed.reads);
        reads.into_iter().for_each(|request| host.testbed.answer_read(request, false));
        while host.testbed.serve_block() {}
    }
    let backlog = host.testbed.controller().posted_backlog();
    assert!(backlog <= 8192 + (128 << 10) + 8 * 16, "{backlog} bytes wait for the link");
    host.testbed.settle();
    assert_eq!(host.reap(1).len(), 8);
}

#[test]
fn the_buffer_bounds_what_is_read_from_the_media() {
    let mut host = Host::with_queue(configured(|settings| settings.buffer = 256 << 10));
    for _ in 0..10 {
        host.put(1, read(0, 256, DATA, DATA + 0x20_0000));
    }
    host.fetch(1, false);
    assert_eq!(host.testbed.blocks.len(), 2);
    host.testbed.settle();
    assert_eq!(host.reap(1).len(), 10);
}
