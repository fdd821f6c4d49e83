//! Allocations of a warm device node per command, and polls of its drive.

extern crate farlane_load as load;

use live::attached::{Attached, QUEUES, drive_settings};
use live::net::CarrierListener;
use live::poller::Activity;
use live::{Clock, DeviceNode, NvmeDrive, Poller, Waiting};
use load::local::{LocalLink, host, loopback};
use node::push;
use nvme::initiator::{self, Io, Op};
use pcie::{Function, Input, Output, Ports, Ready};
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering::SeqCst};
use std::sync::mpsc::channel;
use switch::aggregate::Policy;
use switch::tunnel::Settings;
use wire::Instant;
use wire::frame::Role;

const SIZE: u64 = 4 << 20;
/// Number of commands per figure, and before the first figure.
const COMMANDS: usize = 2048;

#[derive(Default)]
struct Counts {
    /// Phase of the measurement. 1: count. 2: end.
    phase: AtomicU8,
    allocations: AtomicU64,
    /// Number of polls of the drive that returned a TLP, or followed an input.
    events: AtomicU64,
    polls: AtomicU64,
}

struct Counted {
    drive: NvmeDrive,
    counts: Arc<Counts>,
    input: bool,
}

impl Function for Counted {
    fn handle(&mut self, now: Instant, input: Input) {
        self.input = true;
        self.drive.handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        let output = self.drive.poll(now, ready);
        if self.counts.phase.load(SeqCst) == 1 {
            self.counts.polls.fetch_add(1, SeqCst);
            let event = std::mem::take(&mut self.input) || matches!(output, Output::Tlp(_));
            self.counts.events.fetch_add(event.into(), SeqCst);
        }
        output
    }

    fn ready(&self) -> Ready {
        self.drive.ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        self.drive.ports()
    }
}

impl Attached for Counted {
    fn service(&mut self, now: Instant, poller: &Poller) -> io::Result<Activity> {
        self.drive.service(now, poller)
    }

    fn watch(&self, poller: &Poller) -> io::Result<()> {
        self.drive.watch(poller)
    }

    fn begin(&mut self) {
        self.drive.begin();
    }
}

/// Returns allocations and polls per command, and the share of polls with an event.
fn measure(mps: u16, depth: usize, op: Op) -> (f64, f64, f64) {
    let clock = Clock::start();
    let push = push::Settings::default();
    let link = LocalLink {
        clock,
        waiting: Waiting::Block,
        max_payload: mps,
        aggregation: Policy::Adaptive,
        push,
        cipher: None,
    };
    let (announce, announced) = channel();
    let counts = Arc::new(Counts::default());
    let counted = counts.clone();
    let device = std::thread::spawn(move || {
        let drive = NvmeDrive::of_ram("STEADY", SIZE, drive_settings(mps.into(), QUEUES)).unwrap();
        let attached = Counted { drive, counts: counted.clone(), input: false };
        let settings = Settings {
            max_payload: mps,
            push: switch::push_store::CAPACITY,
            ..Settings::new(Role::Device, 1)
        };
        let listener = CarrierListener::bind(&loopback(), live::net::RawSettings::default());
        let poller = Poller::new(Waiting::Block).unwrap();
        let mut node =
            DeviceNode::new(clock, poller, listener.unwrap(), settings, attached).unwrap();
        announce.send(node.address().unwrap()).unwrap();
        while counted.phase.load(SeqCst) < 2 {
            let count = counted.phase.load(SeqCst) == 1;
            let used = allocation_counter::measure(|| {
                node.turn(&mut |_| ()).unwrap();
            });
            counted.allocations.fetch_add(if count { used.count_total } else { 0 }, SeqCst);
        }
    });
    let address = announced.recv().unwrap();
    let (driver, tracer) = (initiator::Settings::default(), live::Tracer::off());
    let mut host = host(link, driver, &[address], tracer).unwrap();
    host.stop_observing();
    let buffers: Vec<u64> = (0..depth).map(|_| host.buffer(4096).unwrap()).collect();
    let mut carry_out = |op: Op| {
        for first in (0..COMMANDS).step_by(depth) {
            let io = |(at, buffer): (usize, &u64)| {
                let slba = ((first + at) as u64 * 8) % (SIZE / 512);
                Io { op, nsid: 1, slba, blocks: 8, buffer: *buffer }
            };
            let batch: Vec<Io> = buffers.iter().enumerate().map(io).collect();
            host.carry_out(0, &batch).unwrap();
        }
    };
    carry_out(Op::Write);
    carry_out(op);
    counts.phase.store(1, SeqCst);
    carry_out(op);
    counts.phase.store(2, SeqCst);
    device.join().unwrap();
    let each = |count: &AtomicU64| count.load(SeqCst) as f64 / COMMANDS as f64;
    let polls = each(&counts.polls);
    (each(&counts.allocations), polls, each(&counts.events) / polls)
}

/// Some allocations remain: blocks of memory, and tables that grow.
#[test]
fn a_warm_device_node_allocates_nothing_and_polls_its_drive_for_events() {
    for (mps, depth, op) in [
        (4096, 1, Op::Read),
        (4096, 1, Op::Write),
        (4096, 32, Op::Read),
        (4096, 32, Op::Write),
        (256, 1, Op::Read),
        (256, 1, Op::Write),
        (256, 32, Op::Read),
        (256, 32, Op::Write),
    ] {
        let (allocations, polls, events) = measure(mps, depth, op);
        let case = format!("MPS {mps}, depth {depth}, {op:?}");
        assert!(allocations < 0.3, "{case}: {allocations} allocations for each command");
        assert!(events > 0.5, "{case}: {polls} polls, of which {events} had something to do");
    }
}
