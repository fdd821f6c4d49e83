//! Asynchronous events.

use super::*;
use wire::nvme::register::{Configuration, ShutdownNotice};
use wire::trace::{CommandId, ControllerState, MediaOperation, NvmeEvent};

fn reported(host: &mut Host) -> Vec<NvmeEvent> {
    std::iter::from_fn(|| host.testbed.subsystem.poll_event()).collect()
}

fn listening() -> Host {
    let mut host = Host::with_queue(config());
    host.testbed.subsystem.set_events(true);
    host
}

fn begun(id: CommandId, operation: MediaOperation, offset: u64, length: u64) -> NvmeEvent {
    NvmeEvent::MediaBegun { id: Some(id), operation, nsid: 1, offset, length }
}

fn states(events: &[NvmeEvent]) -> Vec<ControllerState> {
    let state = |event: &NvmeEvent| match event {
        NvmeEvent::State(state) => Some(*state),
        _ => None,
    };
    events.iter().filter_map(state).collect()
}

#[test]
fn no_events_unless_enabled() {
    let mut host = Host::with_queue(config());
    host.io(read(0, 8, DATA, 0)).expect_success();
    assert_eq!(reported(&mut host), []);
    host.testbed.subsystem.set_events(true);
    host.io(read(0, 8, DATA, 0)).expect_success();
    host.testbed.subsystem.set_events(false);
    assert_eq!(reported(&mut host), []);
}

#[test]
fn command_events_follow_each_step() {
    let mut host = listening();
    let fua = Command { cdw12: 7 | 1 << 30, ..write(100, 8, DATA, 0) };
    let write_op = (MediaOperation::Write, 51_200, 4096);
    let flush_op = (MediaOperation::Flush, 0, 0);
    for (command, steps) in [
        (read(100, 8, DATA, 0), vec![(MediaOperation::Read, 51_200, 4096)]),
        (write(100, 8, DATA, 0), vec![write_op]),
        (fua, vec![write_op, flush_op]),
        (flush(1), vec![flush_op]),
    ] {
        let cid = host.io(command).cid;
        let id = CommandId { queue: 1, cid };
        let mut expected = vec![NvmeEvent::Fetched { id, opcode: command.opcode, nsid: 1 }];
        for (operation, offset, length) in steps {
            expected.push(begun(id, operation, offset, length));
            expected.push(NvmeEvent::MediaEnded { id: Some(id), nsid: 1, ok: true });
        }
        expected.push(NvmeEvent::Completed { id, status: Status::SUCCESS });
        assert_eq!(reported(&mut host), expected);
    }
}

#[test]
fn failures_are_reported() {
    let mut host = listening();
    host.testbed.media.failure = Some(block::Error::Media);
    let failed = host.io(read(0, 1, DATA, 0));
    let events = reported(&mut host);
    let id = CommandId { queue: 1, cid: failed.cid };
    assert!(events.contains(&NvmeEvent::MediaEnded { id: Some(id), nsid: 1, ok: false }));
    assert_eq!(events.last(), Some(&NvmeEvent::Completed { id, status: failed.status }));
    assert!(!failed.status.is_success());
    // A command that fails before a media request.
    host.io(read(1 << 40, 1, DATA, 0)).expect_failure(StatusCode::LBA_OUT_OF_RANGE);
    assert_eq!(reported(&mut host).len(), 2);
}

#[test]
fn controller_state_changes_are_reported() {
    use ControllerState::{
        ControllerReset, Enabled, Fatal, FunctionReset, HotReset, Ready, ShutdownBegun,
        ShutdownComplete,
    };
    let mut host = listening();
    let shutdown =
        Configuration { enable: true, shutdown: ShutdownNotice::Normal, ..entry_sizes() };
    host.configure(shutdown);
    host.testbed.settle();
    let events = reported(&mut host);
    assert_eq!(states(&events), [ShutdownBegun, ShutdownComplete]);
    let flushes = |event: &&NvmeEvent| matches!(event, NvmeEvent::MediaBegun { id: None, .. });
    assert_eq!(events.iter().filter(flushes).count(), 2, "one a namespace");
    host.configure(entry_sizes());
    host.enable(32);
    assert_eq!(states(&reported(&mut host)), [ControllerReset, Enabled, Ready]);
    host.testbed.function_level_reset();
    host.testbed.hot_reset();
    assert_eq!(states(&reported(&mut host)), [FunctionReset, HotReset]);
    let mut host = Host::over(Testbed::enumerated(config(), true));
    host.testbed.subsystem.set_events(true);
    host.enable(1);
    assert_eq!(states(&reported(&mut host)), [Enabled, Fatal]);
}

#[test]
fn events_that_nobody_takes_are_bounded() {
    let mut host = listening();
    for _ in 0..1500 {
        host.io(flush(1)).expect_success();
    }
    assert_eq!(reported(&mut host).len(), 4096);
}
