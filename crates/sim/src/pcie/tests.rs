use super::*;
use bytes::Bytes;
use wire::tlp::{Class, MemoryRequest, Tlp};
use wire::{Bdf, Tag};

const GEN2_X4: LinkConfig = LinkConfig {
    generation: Generation::Gen2,
    width: 4,
    propagation: Duration::from_ns(1),
    downstream_port: PortLatency {
        transmit: Duration::from_ns(10),
        receive: Duration::from_ns(20),
    },
    upstream_port: PortLatency { transmit: Duration::from_ns(30), receive: Duration::from_ns(40) },
    buffer: Buffer { headers: [2; 3], data: [32; 3] },
};

fn write(bytes: usize) -> Tlp {
    let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1000, bytes).unwrap();
    Tlp::memory_write(request, Bytes::from(vec![0; bytes]))
}

#[test]
fn rates_are_those_of_the_specification() {
    // Gb/s per lane after encoding: 2, 4, 7.877, 15.754, 31.508.
    let kilobyte = |generation| Rate::new(generation, 1).duration(1024).as_ps();
    assert_eq!(kilobyte(Generation::Gen1), 4_096_000);
    assert_eq!(kilobyte(Generation::Gen2), 2_048_000);
    assert_eq!(kilobyte(Generation::Gen3), 1_040_000);
    assert_eq!(kilobyte(Generation::Gen4), 520_000);
    assert_eq!(kilobyte(Generation::Gen5), 260_000);
    assert_eq!(Rate::new(Generation::Gen3, 16).duration(1).as_ps(), 64, "rounded up");
}

#[test]
fn framing_is_that_of_pcie_bench() {
    // MWr with a 3 DW header: 20 bytes; 4 DW: 24.
    assert_eq!(Direction::wire_bytes(&write(4)), 20 + 4);
    let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 1 << 40, 4).unwrap();
    assert_eq!(Direction::wire_bytes(&Tlp::memory_read(request)), 24);
}

#[test]
fn a_tlp_takes_pipeline_wire_and_pipeline() {
    let mut link = Link::new(&GEN2_X4);
    let now = Instant::from_ns(100);
    let start = link.down.send(now, write(100));
    assert_eq!(start, Instant::from_ns(110));
    // 120 bytes of 0.5 ns.
    assert_eq!(link.down.next_ready(now), Some(Instant::from_ns(160)));
    let arrives = Instant::from_ns(100 + 10 + 1 + 60 + 40);
    assert_eq!(link.down.next_arrival(), Some(arrives));
    link.down.arrive(arrives, &mut link.up);
    // The ACK takes 8 bytes of the way back.
    assert_eq!(link.up.load(Instant::from_ps(u64::MAX)).bytes, 8);
    let got = link.down.take(arrives, ::pcie::Ready::ALL, &mut link.up).unwrap();
    assert_eq!(got.started, Instant::from_ns(111));
    assert_eq!(
        link.up.load(Instant::from_ps(u64::MAX)).busy,
        Duration::from_ns(8),
        "and the UpdateFC as many"
    );
}

#[test]
fn credits_hold_back_and_return() {
    let long = LinkConfig { propagation: Duration::from_ns(1000), ..GEN2_X4 };
    let mut link = Link::new(&long);
    let mut now = Instant::ZERO;
    for _ in 0..2 {
        assert!(link.down.ready(now, 256).has(Class::Posted));
        link.down.send(now, write(256));
        now = link.down.next_ready(now).unwrap();
    }
    assert!(!link.down.ready(now, 256).has(Class::Posted), "no header credits");
    assert!(link.down.ready(now, 256).has(Class::NonPosted), "of this class alone");
    let arrives = link.down.next_arrival().unwrap();
    link.down.arrive(arrives, &mut link.up);
    assert!(link.down.take(arrives, ::pcie::Ready::ALL, &mut link.up).is_some());
    let back = link.down.next_ready(arrives).unwrap();
    // ACK and UpdateFC of 4 ns each, then the way up: 30 + 1000 + 20.
    assert_eq!(back, arrives + Duration::from_ns(8 + 1050));
    assert!(!link.down.ready(arrives, 256).has(Class::Posted));
    assert!(link.down.ready(back, 256).has(Class::Posted));
}
