//! Tests of interrupts: descriptors, masks, levels.

use super::*;
use crate::irq::Interrupts;
use crate::signals::Signals;
use rustix::pipe::PipeFlags;

const INTX: u32 = irq_index::INTX;
const REQ: u32 = irq_index::REQ;
const MASK: (IrqData, IrqAction) = (IrqData::None, IrqAction::Mask);
const UNMASK: (IrqData, IrqAction) = (IrqData::None, IrqAction::Unmask);
const UNMASK_BY_FD: (IrqData, IrqAction) = (IrqData::Eventfd, IrqAction::Unmask);

fn vectors(testbed: &mut Testbed, count: u32) -> Vec<OwnedFd> {
    let events: Vec<_> = (0..count).map(|_| eventfd()).collect();
    let fds: Vec<_> = events.iter().map(AsFd::as_fd).collect();
    assert_eq!(testbed.set_irqs(TRIGGER, (MSIX, 0, count), &fds), None);
    events
}

#[test]
fn vectors_are_signalled_each_on_its_own() {
    let mut testbed = Testbed::new();
    let events = vectors(&mut testbed, 4);
    testbed.server.session.signal(2);
    testbed.server.session.signal(2);
    testbed.server.session.signal(9);
    assert_eq!(events.iter().map(rung).collect::<Vec<_>>(), [0, 0, 2, 0]);
}

#[test]
fn a_masked_vector_is_pending() {
    let mut testbed = Testbed::new();
    let events = vectors(&mut testbed, 2);
    assert_eq!(testbed.set_irqs(MASK, (MSIX, 0, 2), &[]), None);
    testbed.server.session.signal(1);
    testbed.server.session.signal(1);
    assert_eq!(rung(&events[1]), 0);
    assert_eq!(testbed.read(0, 0x3000, 8), [2, 0, 0, 0, 0, 0, 0, 0]);
    assert_eq!(testbed.set_irqs(UNMASK, (MSIX, 0, 2), &[]), None);
    assert_eq!((rung(&events[0]), rung(&events[1])), (0, 1));
    assert_eq!(testbed.read(0, 0x3000, 1), [0]);
    // Only the second of two bytes selects its vector.
    let some = (IrqData::Bool(vec![0, 1].into()), IrqAction::Mask);
    assert_eq!(testbed.set_irqs(some, (MSIX, 0, 2), &[]), None);
    testbed.server.session.signal(0);
    testbed.server.session.signal(1);
    assert_eq!((rung(&events[0]), rung(&events[1])), (1, 0));
}

#[test]
fn the_table_and_the_function_mask_hold_back_too() {
    let mut testbed = Testbed::new();
    let events = vectors(&mut testbed, 1);
    testbed.write(0, 0x200c, &[1, 0, 0, 0]);
    testbed.server.session.signal(0);
    assert_eq!(rung(&events[0]), 0);
    testbed.write(0, 0x200c, &[0, 0, 0, 0]);
    assert_eq!(rung(&events[0]), 1);
    testbed.write(7, 0x52, &[0x03, 0xc0]);
    testbed.server.session.signal(0);
    assert_eq!(rung(&events[0]), 0);
    testbed.write(7, 0x52, &[0x03, 0x80]);
    assert_eq!(rung(&events[0]), 1);
}

#[test]
fn a_vector_between_two_descriptors_is_not_lost() {
    let mut testbed = Testbed::new();
    testbed.write(7, 0x52, &[0x03, 0x80]);
    testbed.server.session.signal(0);
    let events = vectors(&mut testbed, 1);
    assert_eq!(rung(&events[0]), 1);
    // The descriptors are removed, first one of them, then all.
    assert_eq!(testbed.set_irqs(TRIGGER, (MSIX, 0, 1), &[]), None);
    testbed.server.session.signal(0);
    assert_eq!(rung(&events[0]), 0);
    assert_eq!(testbed.set_irqs(FIRE, (MSIX, 0, 0), &[]), None);
    let events = vectors(&mut testbed, 1);
    assert_eq!(rung(&events[0]), 0);
}

#[test]
fn nothing_is_signalled_while_msix_is_off() {
    let mut testbed = Testbed::new();
    testbed.server.session.signal(0);
    assert_eq!(testbed.server.session.counters.lost_interrupts, 1);
    let events = vectors(&mut testbed, 1);
    assert_eq!(rung(&events[0]), 0);
}

#[test]
fn the_client_may_trigger_itself() {
    let mut testbed = Testbed::new();
    let events = vectors(&mut testbed, 3);
    assert_eq!(testbed.set_irqs(FIRE, (MSIX, 1, 1), &[]), None);
    let some = (IrqData::Bool(vec![1, 0, 1].into()), IrqAction::Trigger);
    assert_eq!(testbed.set_irqs(some, (MSIX, 0, 3), &[]), None);
    assert_eq!(events.iter().map(rung).collect::<Vec<_>>(), [1, 1, 1]);
}

#[test]
fn intx_masks_itself_and_follows_its_level() {
    let mut testbed = Testbed::new();
    let event = eventfd();
    testbed.server.session.set_intx(true);
    assert_eq!(testbed.set_irqs(TRIGGER, (INTX, 0, 1), &[event.as_fd()]), None);
    assert_eq!(rung(&event), 1);
    testbed.server.session.set_intx(true);
    assert_eq!(rung(&event), 0);
    // If the level is high at the unmask, INTx is signalled again; if the level is low, it is not.
    assert_eq!(testbed.set_irqs(UNMASK, (INTX, 0, 1), &[]), None);
    assert_eq!(rung(&event), 1);
    testbed.server.session.set_intx(false);
    assert_eq!(testbed.set_irqs(UNMASK, (INTX, 0, 1), &[]), None);
    assert_eq!(rung(&event), 0);
    assert_eq!(testbed.set_irqs(MASK, (INTX, 0, 1), &[]), None);
    testbed.server.session.set_intx(true);
    assert_eq!(rung(&event), 0);
    // KVM unmasks INTx with an eventfd.
    let unmask = eventfd();
    assert_eq!(testbed.set_irqs(UNMASK_BY_FD, (INTX, 0, 1), &[unmask.as_fd()]), None);
    testbed.pump();
    assert_eq!(rung(&event), 0);
    rustix::io::write(&unmask, &1_u64.to_ne_bytes()).unwrap();
    testbed.pump();
    assert_eq!(rung(&event), 1);
    assert_eq!(testbed.set_irqs(FIRE, (INTX, 0, 0), &[]), None);
    rustix::io::write(&unmask, &1_u64.to_ne_bytes()).unwrap();
    testbed.pump();
    assert_eq!(rung(&event), 0);
}

#[test]
fn invalid_set_irqs_requests_are_refused() {
    let mut testbed = Testbed::new();
    let event = eventfd();
    let fd = event.as_fd();
    let mask_by_fd = (IrqData::Eventfd, IrqAction::Mask);
    for (flags, which, fds) in [
        (TRIGGER, (MSIX, 4, 1), &[fd][..]),
        (TRIGGER, (MSIX, 0, 5), &[]),
        (TRIGGER, (MSIX, u32::MAX, 2), &[]),
        (TRIGGER, (MSIX, 0, 2), &[fd]),
        (TRIGGER, (MSIX, 0, 0), &[]),
        (TRIGGER, (1, 0, 1), &[fd]),
        (TRIGGER, (3, 0, 1), &[fd]),
        (TRIGGER, (99, 0, 1), &[fd]),
        (FIRE, (MSIX, 1, 0), &[]),
        (FIRE, (MSIX, 0, 1), &[fd]),
        (MASK, (INTX, 0, 0), &[]),
        (MASK, (REQ, 0, 1), &[]),
        (mask_by_fd, (MSIX, 0, 1), &[fd]),
    ] {
        assert!(testbed.set_irqs(flags.clone(), which, fds).is_some(), "{flags:?} {which:?}");
    }
}

#[test]
fn a_descriptor_that_is_no_event_counter_is_refused() {
    let mut testbed = Testbed::new();
    // A full pipe in blocking mode: a write would block.
    let (_read, write) = rustix::pipe::pipe_with(PipeFlags::NONBLOCK).unwrap();
    while rustix::io::write(&write, &[0; 4096]).is_ok() {}
    let flags = rustix::fs::fcntl_getfl(&write).unwrap();
    rustix::fs::fcntl_setfl(&write, flags - rustix::fs::OFlags::NONBLOCK).unwrap();
    assert_eq!(testbed.set_irqs(TRIGGER, (MSIX, 0, 1), &[write.as_fd()]), Some(EINVAL));
    testbed.server.session.signal(0);
    // A descriptor that is always reported as readable, but has no data.
    let (read, write) = rustix::pipe::pipe().unwrap();
    drop(write);
    assert_eq!(testbed.set_irqs(UNMASK_BY_FD, (INTX, 0, 1), &[read.as_fd()]), Some(EINVAL));
    // All descriptors are refused if one of them is not an eventfd.
    let event = eventfd();
    let both = [event.as_fd(), read.as_fd()];
    assert_eq!(testbed.set_irqs(TRIGGER, (MSIX, 0, 2), &both), Some(EINVAL));
    testbed.server.session.signal(0);
    assert_eq!(rung(&event), 0);
    testbed.pump();
    assert_eq!(testbed.read(0, 4, 4), [4, 5, 6, 7]);
}

/// Sets a descriptor to blocking mode. A client can do this at any time, because all copies of a
/// descriptor share the flag.
fn make_blocking(fd: &OwnedFd) {
    let flags = rustix::fs::fcntl_getfl(fd).unwrap();
    rustix::fs::fcntl_setfl(fd, flags - rustix::fs::OFlags::NONBLOCK).unwrap();
}

/// Runs `work` in a thread and fails if `work` does not end within 20 s.
fn ends<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    let (done, result) = std::sync::mpsc::channel();
    std::thread::spawn(move || done.send(work()));
    result.recv_timeout(std::time::Duration::from_secs(20)).expect("it waits for the client")
}

#[test]
fn full_blocking_eventfd_does_not_block_the_server() {
    let full = || {
        let event = eventfd();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        event
    };
    let (msix, intx, request) = (full(), full(), full());
    let own = [&msix, &intx, &request].map(|fd| fd.try_clone().unwrap());
    let served = ends(move || {
        let mut testbed = Testbed::new();
        assert_eq!(testbed.set_irqs(TRIGGER, (MSIX, 0, 1), &[msix.as_fd()]), None);
        assert_eq!(testbed.set_irqs(TRIGGER, (INTX, 0, 1), &[intx.as_fd()]), None);
        assert_eq!(testbed.set_irqs(TRIGGER, (REQ, 0, 1), &[request.as_fd()]), None);
        // The eventfds are set to blocking mode, as the client can do at any time.
        own.iter().for_each(make_blocking);
        testbed.server.session.signal(0);
        testbed.server.session.set_intx(true);
        // A trigger by the client also signals the eventfds.
        for which in [(MSIX, 0, 1), (INTX, 0, 1), (REQ, 0, 1)] {
            assert_eq!(testbed.set_irqs(FIRE, which, &[]), None);
        }
        testbed.read(0, 4, 4)
    });
    assert_eq!(served, [4, 5, 6, 7]);
}

#[test]
fn an_unmask_counter_that_never_empties_does_not_keep_the_node_awake() {
    use rustix::event::EventfdFlags;
    let mut testbed = Testbed::new();
    let flags = EventfdFlags::SEMAPHORE | EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
    let unmask = rustix::event::eventfd(u32::MAX, flags).unwrap();
    assert_eq!(testbed.set_irqs(UNMASK_BY_FD, (INTX, 0, 1), &[unmask.as_fd()]), None);
    testbed.pump();
    assert!(!is_readable(&testbed.server, 0), "ready for ever");
}

#[test]
fn unmask_eventfd_read_by_another_process_does_not_block() {
    ends(|| {
        let (event, unmask) = (eventfd(), eventfd());
        let own = unmask.try_clone().unwrap();
        let worker = Workers::new().unwrap().for_client();
        let mut interrupts = Interrupts::new(1, Signals::new(&worker));
        let mut assign = |action, fd: OwnedFd| {
            let (data, index, start, count) = (IrqData::Eventfd, INTX, 0, 1);
            let set = IrqSet { data, action, index, start, count };
            interrupts.set(&set, vec![ClientFile::new(fd, worker.disposal())]).unwrap();
        };
        assign(IrqAction::Trigger, event.try_clone().unwrap());
        assign(IrqAction::Unmask, unmask);
        make_blocking(&own);
        interrupts.set_intx(true);
        assert_eq!(rung(&event), 1);
        // The eventfd was reported as readable, but another process has already read it.
        interrupts.unmask_ready();
        assert_eq!(rung(&event), 0);
        rustix::io::write(&own, &1_u64.to_ne_bytes()).unwrap();
        interrupts.unmask_ready();
        assert_eq!(rung(&event), 1);
    });
}
