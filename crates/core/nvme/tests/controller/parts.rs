//! A controller with parts, each on a connection of its own.

use super::*;
use wire::nvme::register::{CC, ControllerStatus, ShutdownNotice, ShutdownStatus};
use wire::nvme::{ErrorLogEntry, log_page};

/// Bit 0 of dword 0 of Abort: the command is not aborted.
const NOT_ABORTED: u32 = 1;

/// A host with three connections: the controller has queue pair 1, part `n` has queue pair `n` + 1.
struct Divided {
    main: Host,
    parts: Vec<Host>,
}

impl Divided {
    /// A link of three connections after power-on, or of one connection.
    fn new(several: bool) -> Self {
        let config = configured(|settings| settings.io_queues = 3);
        let mut testbed = Testbed::new(config.clone());
        let drive = nvme::Subsystem::new(testbed.now, &config).with_parts(2, 1);
        let part = |_| {
            let mut testbed = Testbed::new(config.clone());
            testbed.subsystem = drive.part(testbed.now);
            testbed.enumerate(true);
            Host::over(testbed)
        };
        let parts = (0..2).map(part).collect();
        testbed.subsystem = drive;
        testbed.enumerate(true);
        testbed.port().bind_link(several);
        Self { main: Host::over(testbed), parts }
    }

    /// As [`new`](Self::new), enabled, with all queue pairs of 16 entries.
    fn started() -> Self {
        let mut world = Self::new(true);
        world.main.enable(32);
        world.settle();
        assert!(world.main.status().ready);
        world.main.create(1, 16);
        for id in [2, 3] {
            let pair = Pair::new(id, 16);
            pair.clear(&mut world.part(id).testbed);
            for command in create_commands(&pair) {
                world.admin(command).expect_success();
            }
            world.part(id).pairs[usize::from(id)] = Some(pair);
        }
        world
    }

    /// The host of the part that has this queue.
    fn part(&mut self, queue: u16) -> &mut Host {
        &mut self.parts[usize::from(queue) - 2]
    }

    /// Carries the requests of the controller to the parts.
    fn requests(&mut self) -> bool {
        let mut any = false;
        while let Some((part, request)) = self.main.testbed.subsystem.poll_part() {
            let testbed = &mut self.part(part + 1).testbed;
            testbed.subsystem.handle_part_request(testbed.now, request);
            any = true;
        }
        any
    }

    /// Carries the messages of the part with this queue to the controller.
    fn messages(&mut self, queue: u16) -> bool {
        let testbed = &mut self.part(queue).testbed;
        testbed.take_tlps(pcie::Ready::ALL);
        let Some(message) = testbed.subsystem.poll_part_message() else { return false };
        let testbed = &mut self.main.testbed;
        testbed.subsystem.handle_part_message(testbed.now, message);
        testbed.settle();
        true
    }

    fn settle(&mut self) {
        self.main.testbed.settle();
        while self.requests() | self.messages(2) | self.messages(3) {}
    }

    /// Sends an admin command, which has no completion before both parts have answered, if it
    /// concerns both.
    fn admin(&mut self, command: Command) -> Completion {
        self.submit(command);
        self.settle();
        self.completion().expect("a completion")
    }

    fn submit(&mut self, command: Command) {
        self.main.put(0, command);
        self.main.carry_out(0);
    }

    fn completion(&mut self) -> Option<Completion> {
        self.main.reap(0).pop()
    }

    /// Sends a command to a queue of a part, whose media request stays under way.
    fn begin(&mut self, queue: u16, command: Command) -> u16 {
        let host = self.part(queue);
        let cid = host.put(queue, command);
        host.fetch(queue, false);
        assert_eq!(host.testbed.blocks.len(), 1);
        cid
    }

    /// Checks that `done` becomes true with the answer of the last part only.
    fn waits_for_both(&mut self, mut done: impl FnMut(&mut Self) -> bool) {
        self.requests();
        assert!(!done(self), "before any answer");
        assert!(self.messages(2));
        assert!(!done(self), "before the answer of the second part");
        assert!(self.messages(3));
        assert!(done(self));
    }

    fn status(&mut self) -> ControllerStatus {
        self.main.status()
    }
}

#[test]
fn ready_waits_for_all_parts() {
    let mut world = Divided::new(true);
    world.main.enable(32);
    world.waits_for_both(|world| world.status().ready);
    assert!(world.part(2).status().ready, "a part shows its own CSTS");
    world.part(2).testbed.write(CC, 4, 0);
    assert!(world.part(2).status().ready, "CC of a part has no effect");
}

#[test]
fn part_executes_commands_of_its_queue() {
    let mut world = Divided::started();
    let data = vec![7; 512];
    world.part(2).testbed.put(DATA, &data);
    world.part(2).execute(2, write(5, 1, DATA, 0)).expect_success();
    world.part(2).execute(2, read(5, 1, DATA + 4096, 0)).expect_success();
    let testbed = &world.part(2).testbed;
    assert_eq!(testbed.load(DATA + 4096, 512), Some(data));
    assert_eq!(testbed.interrupts, [2, 2]);
    assert_eq!(testbed.stray_writes, 0);
    world.main.io(read(5, 1, DATA, 0)).expect_success();
    assert!(!world.requests(), "I/O needs no request between controller and parts");
}

#[test]
fn doorbell_on_another_connection_is_an_error() {
    let mut world = Divided::started();
    world.main.request_event();
    world.part(2).testbed.write(0x1000 + 3 * 8, 4, 1);
    world.settle();
    assert!(world.part(3).testbed.reads.is_empty());
    let event = world.completion().expect("an event");
    assert_eq!(event.result >> 8 & 0xff, 0, "write to an invalid doorbell register");
    // Further events need no messages until the host has read the log.
    (0..3).for_each(|_| world.part(2).testbed.write(0x1000 + 3 * 8, 4, 1));
    assert!(!world.messages(2));
    world.admin(get_log(log_page::ERROR, 4096, DATA)).expect_success();
    let log = world.main.testbed.load(DATA, 4096).expect("memory");
    let entries = log.as_chunks::<{ ErrorLogEntry::LENGTH }>().0.iter().map(ErrorLogEntry::decode);
    assert_eq!(entries.filter(|entry| entry.sq_id == 3).count(), 4);
}

#[test]
fn each_reset_waits_for_all_parts() {
    for name in ["controller", "function level", "hot"] {
        let mut world = Divided::started();
        world.begin(3, read(0, 1, DATA, 0));
        match name {
            "controller" => world.main.configure(entry_sizes()),
            "hot" => world.main.testbed.hot_reset(),
            _ => world.main.testbed.function_level_reset(),
        }
        if name == "controller" {
            assert!(world.status().ready, "RDY stays set");
        } else {
            world.main.testbed.enumerate(true);
            world.main.enable(32);
        }
        world.settle();
        assert_eq!(world.status().ready, name == "controller", "{name}: a media request is left");
        assert!(!world.part(2).status().ready, "{name}");
        world.part(3).testbed.serve_block();
        world.settle();
        assert_eq!(world.status().ready, name != "controller", "{name}");
        let part = &world.part(3).testbed;
        assert!(part.interrupts.is_empty() && part.stray_writes == 0, "{name}: dropped");
        if name == "controller" {
            world.main.enable(32);
            world.waits_for_both(|world| world.status().ready);
        }
    }
}

#[test]
fn queue_commands_go_to_the_part_of_the_queue() {
    let mut world = Divided::started();
    let [cq, sq] = create_commands(&Pair::new(2, 16));
    world.admin(cq).expect_failure(StatusCode::INVALID_QUEUE_ID);
    world.admin(sq).expect_failure(StatusCode::INVALID_QUEUE_ID);
    world.admin(delete(opcode::admin::DELETE_SQ, 3)).expect_success();
    // Queue 3 with completion queue 2, which is on another connection.
    let [_, sq] = create_commands(&Pair::new(3, 16));
    let other = Command { cdw11: sq.cdw11 & 0xffff | 2 << 16, ..sq };
    world.admin(other).expect_failure(StatusCode::COMPLETION_QUEUE_INVALID);
    let queues = set_feature(feature::NUMBER_OF_QUEUES, 0);
    world.admin(queues).expect_failure(StatusCode::COMMAND_SEQUENCE_ERROR);
    let deletions = [
        (opcode::admin::DELETE_CQ, 3),
        (opcode::admin::DELETE_SQ, 2),
        (opcode::admin::DELETE_CQ, 2),
        (opcode::admin::DELETE_SQ, 1),
        (opcode::admin::DELETE_CQ, 1),
    ];
    for (opcode, id) in deletions {
        world.admin(delete(opcode, id)).expect_success();
    }
    world.admin(queues).expect_success();
}

#[test]
fn queue_deletion_waits_for_commands_of_the_part() {
    let mut world = Divided::started();
    world.begin(2, read(0, 1, DATA, 0));
    world.submit(delete(opcode::admin::DELETE_SQ, 2));
    world.settle();
    assert_eq!(world.completion(), None);
    world.part(2).testbed.settle();
    assert_eq!(world.part(2).reap(2).len(), 1, "the command completes before");
    world.settle();
    world.completion().expect("a completion").expect_success();
}

#[test]
fn abort_reaches_the_part() {
    let mut world = Divided::started();
    let cid = world.begin(2, read(0, 1, DATA, 0));
    let done = world.admin(abort(2, cid));
    assert_eq!(done.expect_success(), NOT_ABORTED, "it ends after its media request");
    world.part(2).testbed.settle();
    let aborted = world.part(2).reap(2).pop().expect("the command ends");
    assert_eq!(aborted.status.code, StatusCode::ABORT_REQUESTED);
}

#[test]
fn features_are_set_when_all_parts_have_them() {
    let mut world = Divided::started();
    world.submit(set_feature(feature::VOLATILE_WRITE_CACHE, 0));
    world.waits_for_both(|world| world.completion().is_some());
    world.begin(3, write_zeroes());
    world.part(3).testbed.serve_block();
    world.part(3).testbed.take_tlps(pcie::Ready::ALL);
    let flush = world.part(3).testbed.blocks.front().map(|block| block.operation.clone());
    assert_eq!(flush, Some(block::Operation::Flush), "no data stay in the cache");
}

fn write_zeroes() -> Command {
    Command { opcode: opcode::nvm::WRITE_ZEROES, nsid: 1, ..Command::default() }
}

#[test]
fn shutdown_waits_for_commands_of_all_parts() {
    let mut world = Divided::started();
    world.begin(3, read(0, 1, DATA, 0));
    let shutdown = ShutdownNotice::Normal;
    let notice = wire::nvme::register::Configuration { enable: true, shutdown, ..entry_sizes() };
    world.main.configure(notice);
    world.settle();
    assert_eq!(world.status().shutdown, ShutdownStatus::Occurring);
    world.part(3).testbed.settle();
    assert_eq!(world.part(3).reap(3).len(), 1);
    world.settle();
    assert_eq!(world.status().shutdown, ShutdownStatus::Complete);
    let late = world.part(2);
    late.put(2, read(0, 1, DATA, 0));
    late.carry_out(2);
    assert_eq!(late.reap(2), [], "no further command is fetched");
}

#[test]
fn log_pages_wait_for_all_parts_and_count_their_commands() {
    let mut world = Divided::started();
    world.part(2).execute(2, read(0, 1, DATA, 0)).expect_success();
    let beyond = world.part(3).execute(3, read(1 << 20, 1, DATA, 0));
    beyond.expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    world.submit(get_log(log_page::ERROR, ErrorLogEntry::LENGTH, DATA));
    world.waits_for_both(|world| world.completion().is_some());
    let entry = world.main.testbed.load(DATA, ErrorLogEntry::LENGTH).expect("memory");
    let entry = ErrorLogEntry::decode(entry[..].try_into().expect("an entry"));
    assert_eq!((entry.sq_id, entry.cid, entry.count), (3, beyond.cid, 1));
    world.admin(get_log(log_page::SMART, 512, DATA)).expect_success();
    let smart = world.main.testbed.load(DATA, 512).expect("memory");
    let smart = wire::nvme::SmartLog::decode(smart[..].try_into().expect("a page"));
    assert_eq!((smart.host_reads, smart.error_log_entries), (2, 1));
}

#[test]
fn fatal_part_makes_the_controller_fatal() {
    let mut world = Divided::started();
    let part = world.part(2);
    part.put(2, read(0, 1, DATA, 0));
    part.fetch(2, true);
    assert!(!world.status().fatal);
    world.settle();
    assert!(world.status().fatal);
    let other = world.part(3);
    other.put(3, read(0, 1, DATA, 0));
    other.ring(3);
    assert!(other.testbed.reads.is_empty(), "no part fetches until a reset");
    world.main.configure(entry_sizes());
    world.settle();
    world.main.enable(32);
    world.settle();
    let status = world.status();
    assert!(status.ready && !status.fatal, "a reset clears it");
}

#[test]
fn reset_of_a_part_concerns_only_its_connection() {
    let mut world = Divided::started();
    world.admin(set_feature(feature::VOLATILE_WRITE_CACHE, 0)).expect_success();
    world.begin(2, read(0, 1, DATA, 0));
    world.submit(delete(opcode::admin::DELETE_SQ, 2));
    world.settle();
    assert_eq!(world.completion(), None);
    world.part(2).testbed.hot_reset();
    world.part(2).testbed.enumerate(true);
    world.settle();
    world.completion().expect("the queue is gone").expect_success();
    assert!(world.status().ready && !world.part(2).status().ready, "a media request is left");
    world.part(2).testbed.serve_block();
    assert!(world.part(2).status().ready);
    world.part(3).execute(3, read(0, 1, DATA, 0)).expect_success();
    let pair = Pair::new(2, 16);
    pair.clear(&mut world.part(2).testbed);
    for command in create_commands(&pair) {
        world.admin(command).expect_success();
    }
    world.part(2).pairs[2] = Some(pair);
    world.begin(2, write_zeroes());
    world.part(2).testbed.serve_block();
    world.part(2).testbed.take_tlps(pcie::Ready::ALL);
    assert_eq!(world.part(2).testbed.blocks.len(), 1, "a flush: features stay");
}

#[test]
fn controller_serves_all_queues_of_a_link_with_one_connection() {
    let mut world = Divided::new(false);
    world.main.enable(32);
    assert!(world.main.status().ready);
    for id in 1..=3 {
        world.main.create(id, 16);
        world.main.execute(id, read(0, 1, DATA, 0)).expect_success();
    }
    assert!(!world.requests());
    assert_eq!(world.main.controller_data().fused, 0, "no part sees blocks that others hold");
}
