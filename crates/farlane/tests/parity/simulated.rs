//! The simulator's runner.

use super::script::{self, Setup};
use super::{Run, Write};
use pcie::{Bus, Ram};
use plan::simulate::trace::TraceFiles;
use plan::simulate::{Observers, Shared};
use sim::drive::{DriveConfig, Timing};
use sim::measure::{Observer, Point};
use sim::node::RootConfig;
use sim::pcie::{Buffer, Generation, LinkConfig, PortLatency};
use sim::transport::TransportConfig;
use sim::workload::Workload;
use sim::world::{Attached, PortConfig, SwitchConfig};
use sim::{Config, World};
use std::cell::{Cell, RefCell};
use std::path::Path;
use std::rc::Rc;
use wire::{Duration, Instant};

/// A PCIe link with minimum latency.
const PCIE: LinkConfig = LinkConfig {
    generation: Generation::Gen5,
    width: 16,
    propagation: Duration::ZERO,
    downstream_port: PortLatency { transmit: Duration::ZERO, receive: Duration::ZERO },
    upstream_port: PortLatency { transmit: Duration::ZERO, receive: Duration::ZERO },
    buffer: Buffer { headers: [64; 3], data: [1024, 64, 1024] },
};

fn config(setup: Setup) -> Config {
    let push = setup.push;
    let timing = Timing {
        firmware_read: script::MEDIA[0],
        firmware_read_large: script::MEDIA[0],
        read_lsb: script::SENSE,
        read_msb: script::SENSE,
        write_base: script::MEDIA[1],
        ..Timing::NULL
    };
    let drive = DriveConfig {
        size: script::SIZE,
        // The drive keeps no records, as the live drive.
        volatile: true,
        faults: setup.faults(),
        ..DriveConfig::new(script::SERIAL, timing).as_in_nvme_tsn(script::reads_in_flight(push))
    };
    let transport = TransportConfig::Pipe(script::LINK);
    let port = PortConfig { transport, second: None, link: PCIE, drive };
    let mut config = Config::nvme_tsn_direct(Workload::Idle);
    let host = &mut config.hosts[0];
    host.attached = Attached::Switch(SwitchConfig::new(script::MAX_PAYLOAD, vec![port]));
    host.link = PCIE;
    host.root = RootConfig {
        max_payload: script::ROOT.max_payload,
        completion_size: script::ROOT.completion_size,
        completion_timeout: script::ROOT.completion_timeout,
        ecrc: script::ROOT.ecrc,
        push,
        mmio: Duration::ZERO,
        memory_read: script::memory(push),
        memory: script::RAM.1,
        memory_at: script::RAM.0,
    };
    config
}

/// Records the writes to the tunnel.
#[derive(Default)]
struct Sent(Vec<Write>);

impl Observer for Sent {
    fn stream(&mut self, at: Instant, point: Point, sent: bool, bytes: &[u8]) {
        let end = if point == Point::TunnelHost(0) { "host" } else { "device" };
        if sent {
            self.0.push((at, end, bytes.to_vec()));
        }
    }
}

/// Runs `software` with trace files in `folder`.
pub fn run<T: Future<Output = ()> + 'static>(
    folder: &Path,
    setup: Setup,
    software: impl FnOnce(Bus, Rc<RefCell<Ram>>) -> T,
) -> Run {
    let config = config(setup);
    let mut world = World::new(&config).expect("a valid world");
    let files = Shared::new(TraceFiles::create(&config, &folder.join("sim")).expect("files"));
    let sent = Shared::new(Sent::default());
    world.observe(Box::new(Observers(vec![Box::new(files.clone()), Box::new(sent.clone())])));
    let (ram, ended) = (world.memory(0), Rc::new(Cell::new(false)));
    let (memory, end) = (ram.clone(), ended.clone());
    world.run_program(0, |bus| {
        let software = software(bus, memory);
        async move {
            software.await;
            end.set(true);
        }
    });
    assert!(!world.run_until(script::END).expect("it runs"), "an idle workload has no end");
    files.0.borrow_mut().finish().expect("files");
    assert!(ended.get(), "the software has come to its end");
    let traces = files.0.borrow().paths(0);
    let sent = std::mem::take(&mut sent.0.borrow_mut().0);
    let tlps = world.report().tunnels.iter().map(|way| way.tlps).collect::<Vec<_>>();
    Run::new([&traces[0], &traces[1]], sent, &mut ram.borrow_mut(), [tlps[0], tlps[1]])
}
