//! The DMA test function served over real TCP: nothing in this crate, in the
//! switch or in the PCIe layer knows what an NVMe drive is.

use live::attached::{Activity, Attached, Switch};
use live::host::RamMemory;
use live::links::Links;
use live::net::Listener;
use live::{Clock, DeviceNode, Machine, Poller, Report, Waiting, Wanted};
use pcie::dma_test::{self, DmaTest, driver};
use pcie::enumerate::{self, Node};
use pcie::{Bus, Function, Input, Output, Ram, Ready, root};
use std::cell::RefCell;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::thread::JoinHandle;
use switch::Upstream;
use switch::tunnel::Settings;
use wire::Instant;
use wire::frame::Role;
use wire::tlp::Packet;

/// Where host memory begins, and its size.
const RAM: u64 = 0x1_0000_0000;
const RAM_SIZE: usize = 2 << 20;

/// A function without any I/O of its own.
struct Plain(DmaTest);

impl Function for Plain {
    fn handle(&mut self, now: Instant, input: Input) {
        self.0.handle(now, input);
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        self.0.poll(now, ready)
    }

    fn ready(&self) -> Ready {
        self.0.ready()
    }
}

impl Attached for Plain {
    fn service(&mut self, _: Instant, _: &Poller) -> io::Result<Activity> {
        Ok(Activity::default())
    }

    fn watch(&self, _: &Poller) -> io::Result<()> {
        Ok(())
    }

    fn report(&self) -> Report {
        vec![("endpoint".into(), self.0.endpoint().errors().to_string())]
    }

    fn close(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A device node in a thread, until it is dropped or stopped.
struct Far {
    address: SocketAddr,
    stopped: Arc<AtomicBool>,
    waker: UnixStream,
    thread: Option<JoinHandle<Report>>,
}

impl Far {
    fn start(max_payload: u16) -> Self {
        let stopped = Arc::new(AtomicBool::new(false));
        let (wake, waker) = UnixStream::pair().unwrap();
        let (announce, announced) = channel();
        let flag = stopped.clone();
        let thread = std::thread::spawn(move || {
            let listener = Listener::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).unwrap();
            let settings = Settings { max_payload, ..Settings::new(Role::Device, 7) };
            let function = DmaTest::new(dma_test::Settings {
                max_payload: max_payload.into(),
                ..Default::default()
            });
            let poller = Poller::new(Waiting::Block).unwrap();
            let mut node =
                DeviceNode::new(Clock::start(), poller, listener, settings, Plain(function))
                    .unwrap();
            announce.send(node.address().unwrap()).unwrap();
            let wanted = || match flag.load(Ordering::SeqCst) {
                true => Wanted::Stop,
                false => Wanted::Serve,
            };
            node.run(wake.as_fd(), wanted, |_| {}).unwrap();
            node.report()
        });
        Self { address: announced.recv().unwrap(), stopped, waker, thread: Some(thread) }
    }

    fn stop(&mut self) -> Option<Report> {
        self.stopped.store(true, Ordering::SeqCst);
        let _ = self.waker.write(&[1]);
        self.thread.take().map(|thread| thread.join().unwrap())
    }
}

impl Drop for Far {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            self.stop();
        }
    }
}

/// A host with a switch and a link to every far node.
struct Near {
    machine: Machine<Switch>,
    memory: RamMemory,
    bus: Bus,
    nodes: Vec<Node>,
}

impl Near {
    fn start(max_payload: u16, far: &[&Far]) -> Self {
        Self::start_with(max_payload, far, false)
    }

    fn start_with(max_payload: u16, far: &[&Far], ecrc: bool) -> Self {
        let peers: Vec<SocketAddr> = far.iter().map(|far| far.address).collect();
        let upstream = Upstream::new(switch::upstream::Settings {
            ports: peers.len() as u8,
            max_payload: max_payload.into(),
            p2p: false,
            tunnel: Settings { max_payload, ..Settings::new(Role::Host, 8) },
        });
        let settings =
            root::Settings { max_payload: max_payload.into(), ecrc, ..root::Settings::default() };
        let poller = Poller::new(Waiting::Block).unwrap();
        let switch = Switch::new(upstream, Links::new(&peers));
        let mut machine = Machine::new(Clock::start(), poller, settings, switch).unwrap();
        let mut memory = RamMemory::new(Rc::new(RefCell::new(Ram::new(RAM, RAM_SIZE))));
        let bus = machine.new_bus();
        while !(0..peers.len()).all(|link| machine.attached().upstream().tunnel(link).is_up()) {
            let (moved, timer) = machine.pump(&mut memory).unwrap();
            machine.wait(moved, timer).unwrap();
        }
        let settings = enumerate::Settings { ecrc, ..enumerate::Settings::default() };
        let found = enumerate::enumerate(bus.clone(), settings);
        let hierarchy = machine.run(&mut memory, &bus, found).unwrap().unwrap();
        let nodes = hierarchy.endpoints().into_iter().cloned().collect();
        Self { machine, memory, bus, nodes }
    }

    fn run<T>(&mut self, software: impl Future<Output = T> + 'static) -> T {
        self.machine.run(&mut self.memory, &self.bus, software).unwrap()
    }

    /// Lets a function master the bus and signal `data`.
    fn enable(&mut self, number: usize, data: u32) {
        let (bus, node) = (self.bus.clone(), self.nodes[number].clone());
        self.run(async move {
            enumerate::enable_bus_master(&bus, node.bdf, true).await;
            enumerate::write_msix_entry(&bus, &node, 0, data, false);
            enumerate::set_msix(&bus, &node, true).await;
        });
    }

    fn bar(&self, number: usize) -> u64 {
        self.nodes[number].bar(0).unwrap().address
    }

    fn copy(&mut self, number: usize, from: u64, to: u64, length: u32) -> Result<(), Option<u8>> {
        let (bus, bar) = (self.bus.clone(), self.bar(number));
        self.run(async move { driver::copy(&bus, bar, from, to, length).await })
            .map_err(|failed| failed.0)
    }

    fn memory(&self, offset: usize, length: usize) -> Vec<u8> {
        self.memory.ram.borrow().get(RAM + offset as u64, length).unwrap().to_vec()
    }

    fn fill(&mut self, offset: usize, data: &[u8]) {
        let mut ram = self.memory.ram.borrow_mut();
        ram.get_mut(RAM + offset as u64, data.len()).unwrap().copy_from_slice(data);
    }
}

fn pattern(length: usize, seed: usize) -> Vec<u8> {
    (0..length).map(|i| ((i * 31 + i / 251 + seed) % 255) as u8).collect()
}

#[test]
fn two_functions_that_are_no_drives_copy_and_interrupt() {
    let mut far = [Far::start(4096), Far::start(4096)];
    let mut near = Near::start(4096, &far.iter().collect::<Vec<_>>());
    assert_eq!(near.nodes.len(), 2);
    for number in 0..2 {
        near.enable(number, 40 + number as u32);
        let (bus, bar) = (near.bus.clone(), near.bar(number));
        assert!(near.run(async move { driver::is_there(&bus, bar).await }));
        for (from, to, length) in [(0, 0x10_0000, 1), (3, 0x10_0001, 70_001), (64, 0x18_0000, 4096)]
        {
            let data = pattern(length, number + length);
            near.fill(from, &data);
            let (source, target) = (RAM + from as u64, RAM + to as u64);
            assert_eq!(near.copy(number, source, target, length as u32), Ok(()));
            assert!(near.memory(to, length) == data, "function {number}, {length} bytes");
        }
    }
    let signalled: Vec<(usize, u32)> = near
        .memory
        .interrupts
        .iter()
        .map(|(from, data)| (near.nodes.iter().position(|n| n.bdf == *from).unwrap(), *data))
        .collect();
    assert_eq!(signalled, [(0, 40), (0, 40), (0, 40), (1, 41), (1, 41), (1, 41)]);
    assert_eq!(near.copy(0, RAM - 4096, RAM, 64), Err(Some(1)), "memory that is not the host's");
    assert_eq!(near.machine.root().errors().unsupported_request, 1);
    // A far side that ends says so: all ones from then on, the other goes on.
    far[0].stop().expect("it ran");
    assert_eq!(near.copy(0, RAM, RAM + 4096, 64), Err(None));
    assert_eq!(near.copy(1, RAM, RAM + 4096, 64), Ok(()));
    let report = far[1].stop().expect("it ran");
    assert!(report[0].0 == "link" && report[0].1.contains("errors: none"), "{report:?}");
    assert_eq!(report[1], ("endpoint".to_owned(), "none".to_owned()));
}

#[test]
fn payloads_are_what_both_sides_take_and_no_more() {
    for (host, device) in [(128, 4096), (4096, 128), (4096, 4096), (256, 1024), (2048, 512)] {
        let far = Far::start(device);
        let mut near = Near::start(host, &[&far]);
        let agreed = usize::from(host.min(device));
        assert_eq!(near.nodes[0].max_payload, agreed, "host {host}, device {device}");
        near.enable(0, 1);
        near.machine.probe_mut().arm(1 << 16);
        let data = pattern(64 << 10, agreed);
        near.fill(0, &data);
        assert_eq!(near.copy(0, RAM, RAM + 0x10_0000, 64 << 10), Ok(()));
        assert!(near.memory(0x10_0000, 64 << 10) == data);
        let records = near.machine.probe_mut().take();
        let longest = |up: bool| {
            let payloads = records.iter().filter(|record| record.up == up);
            payloads.map(|record| record.tlp.data.len()).max()
        };
        // Aligned as the copy is, nothing keeps payloads below the maximum.
        assert_eq!(longest(true), Some(agreed), "writes: host {host}, device {device}");
        assert_eq!(longest(false), Some(agreed), "completions: host {host}, device {device}");
        let requests = records.iter().filter_map(|record| match record.tlp.packet {
            Packet::MemoryRead(read) if record.up => Some(read.byte_count()),
            _ => None,
        });
        assert_eq!(requests.max(), Some(4096), "read requests have a limit of their own");
    }
}

#[test]
fn every_packet_is_guarded_where_the_host_wants_it() {
    for ecrc in [false, true] {
        let mut far = Far::start(512);
        let mut near = Near::start_with(512, &[&far], ecrc);
        near.enable(0, 1);
        near.machine.probe_mut().arm(1 << 16);
        let data = pattern(10_001, 3);
        near.fill(1, &data);
        assert_eq!(near.copy(0, RAM + 1, RAM + 0x10_0001, 10_001), Ok(()));
        assert!(near.memory(0x10_0001, 10_001) == data);
        let records = near.machine.probe_mut().take();
        assert!(records.iter().any(|record| record.up) && records.iter().any(|record| !record.up));
        assert!(records.iter().all(|record| record.tlp.digest == ecrc));
        drop(near);
        let report = far.stop().expect("it ran");
        assert!(report.iter().all(|(_, counters)| counters.contains("none")), "{report:?}");
    }
}
