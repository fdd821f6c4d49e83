//! Copies through the whole fabric, byte by byte.

use crate::fabric::world::{Fabric, Happened, Plan, RAM, Shape, bar, dma_with};
use pcie::dma_test;
use pcie::dma_test::driver;
use pcie::enumerate;
use stats::random::Random;
use wire::Duration;

const SURVIVE: Duration = Duration::from_ms(10_000);

/// Copies random ranges of host memory and compares all of it.
fn copies(fabric: &mut Fabric, bar: u64, seed: u64, rounds: usize) {
    const HALF: usize = 256 << 10;
    let mut rng = Random::new(seed);
    let noise = rng.bytes(2 * HALF);
    fabric.memory(0, 2 * HALF).copy_from_slice(&noise);
    let mut model = noise;
    for _ in 0..rounds {
        let most = [80, 40_000][rng.below(2) as usize];
        let length = 1 + rng.below(most) as usize;
        let from = rng.below((HALF - length) as u64) as usize;
        let to = HALF + rng.below((HALF - length) as u64) as usize;
        assert_eq!(fabric.copy(bar, RAM + from as u64, RAM + to as u64, length as u32), Ok(()));
        model.copy_within(from..from + length, to);
    }
    assert!(fabric.memory(0, 2 * HALF) == model, "memory differs from the model");
}

#[test]
fn data_survives_every_payload_and_request_size() {
    for (supported, wanted, request, completion) in [
        (4096, 4096, 4096, 4096),
        (4096, 128, 4096, 64),
        (128, 4096, 128, 64),
        (256, 4096, 512, 128),
        (512, 512, 256, 256),
        (1024, 1024, 2048, 64),
        (2048, 4096, 4096, 2048),
    ] {
        let mut plan = Plan { shape: Shape::ROUGH, ..Plan::default() };
        plan.root.completion_size = completion;
        let device = dma_test::Settings { max_payload: supported, ..Default::default() };
        let mut fabric = plan.with([dma_with(device)]);
        let hierarchy = fabric.enumerate_with(enumerate::Settings {
            max_payload: wanted,
            max_read_request: request,
            ..Default::default()
        });
        let node = hierarchy.endpoints()[0].clone();
        assert_eq!(node.max_payload, supported.min(wanted));
        fabric.enable(&node, 7);
        let found = fabric.root().errors().total();
        fabric.links[0].up.tapped = Some(Vec::new());
        fabric.links[0].down.tapped = Some(Vec::new());
        copies(&mut fabric, bar(&node), 5, 20);
        for pipe in [&fabric.links[0].up, &fabric.links[0].down] {
            for tlp in crate::fabric::tap::tlps(pipe.tapped.as_ref().unwrap()) {
                assert!(tlp.data.len() <= node.max_payload, "{tlp:?}");
                if let wire::tlp::Packet::MemoryRead(read) = tlp.packet {
                    assert!(read.byte_count() <= request);
                }
            }
        }
        assert_eq!(fabric.count(|h| *h == Happened::Interrupt(node.bdf, 7)), 20);
        assert_eq!(fabric.root().errors().total(), found);
    }
}

#[test]
fn completions_of_slow_memory_come_in_any_order() {
    let mut fabric = Plan { shape: Shape::ROUGH, seed: 3, ..Plan::default() }.with_devices(1);
    let node = fabric.ready().remove(0);
    fabric.slow_memory = true;
    copies(&mut fabric, bar(&node), 6, 40);
    assert_eq!(fabric.dma(0).endpoint().errors().total(), 0);
}

#[test]
fn four_devices_copy_at_once() {
    let mut fabric = Plan { shape: Shape::ROUGH, ..Plan::default() }.with_devices(4);
    let nodes = fabric.endpoints();
    let noise = Random::new(11).bytes(100_000);
    fabric.memory(1, noise.len()).copy_from_slice(&noise);
    for (i, node) in (0u64..).zip(&nodes) {
        fabric.enable(node, i as u32);
        let to = RAM + 0x10_0000 + i * 0x4_0000 + i;
        let bar = bar(node);
        dma_test::driver::start_copy(&fabric.bus, bar, RAM + 1, to, 100_000);
    }
    fabric.pass(wire::Duration::from_ms(100));
    for i in 0..4 {
        assert!(fabric.memory(0x10_0000 + i * 0x4_0001, noise.len()) == noise, "device {i}");
    }
    assert_eq!(fabric.count(|h| matches!(h, Happened::Interrupt(..))), 4);
}

#[test]
fn the_cascade_carries_dma() {
    let mut fabric = Plan { shape: Shape::ROUGH, ..Plan::default() }.cascade();
    let hierarchy = fabric.enumerate();
    let found = fabric.root().errors().total();
    for node in hierarchy.endpoints() {
        fabric.enable(node, 1);
        copies(&mut fabric, bar(node), node.bdf.bits().into(), 10);
    }
    assert_eq!(fabric.root().errors().total(), found);
}

#[test]
fn small_windows_of_credits_carry_everything() {
    let plan = Plan {
        shape: Shape::ROUGH,
        tunnel: |settings| {
            for grant in &mut settings.window {
                *grant = wire::frame::Grant { headers: 2, data: 300 };
            }
        },
        ..Plan::default()
    };
    let mut fabric = plan.with_devices(1);
    let node = fabric.ready().remove(0);
    copies(&mut fabric, bar(&node), 8, 20);
}

#[test]
fn different_read_sizes_of_the_device_itself() {
    for (read_request, reads_in_flight) in [(128, 1), (256, 2), (4096, 1024)] {
        let settings = dma_test::Settings { read_request, reads_in_flight, ..Default::default() };
        let mut fabric = Plan::default().with([dma_with(settings)]);
        let node = fabric.ready().remove(0);
        copies(&mut fabric, bar(&node), 9, 10);
    }
}

/// A copy of 200 kB, whose link loses its connection after every few steps: at random places of
/// reads, writes, completions and credits, in both directions.
#[test]
fn copies_survive_the_loss_of_connections() {
    let mut resumed = 0;
    for (seed, shape) in (1..=12).flat_map(|seed| [(seed, Shape::ROUGH), (seed, Shape::PLAIN)]) {
        let plan = Plan { shape, seed, tunnel: |it| it.survive = SURVIVE, ..Plan::default() };
        let mut fabric = plan.with_devices(2);
        let settings = enumerate::Settings { outage: SURVIVE, ..Default::default() };
        let hierarchy = fabric.enumerate_with(settings);
        let nodes: Vec<_> = hierarchy.endpoints().into_iter().cloned().collect();
        nodes.iter().for_each(|node| fabric.enable(node, 1));
        let mut rng = Random::new(seed);
        const LENGTH: usize = 200_000;
        let data = rng.bytes(LENGTH);
        fabric.memory(0, LENGTH).copy_from_slice(&data);
        for (number, node) in nodes.iter().enumerate() {
            let to = RAM + (1 + number as u64) * 400_000;
            driver::start_copy(&fabric.bus, bar(node), RAM, to, LENGTH as u32);
        }
        let interrupts =
            |fabric: &Fabric| fabric.count(|happened| matches!(happened, Happened::Interrupt(..)));
        let (mut breaks, end) = (0, fabric.now + Duration::from_ms(60_000));
        while interrupts(&fabric) < 2 {
            for _ in 0..rng.below(8) {
                assert!(fabric.step(end), "the copies end");
            }
            if breaks < 40 {
                fabric.breaks(rng.below(2) as usize);
                breaks += 1;
            }
        }
        for number in 0..2 {
            assert!(fabric.memory((1 + number) * 400_000, LENGTH) == data, "seed {seed}");
        }
        assert_eq!(fabric.count(|happened| matches!(happened, Happened::Down(..))), 0);
        let counters = (0..2).map(|link| fabric.top().tunnel(link).counters());
        resumed += counters.map(|counters| counters.resumed).sum::<u64>();
    }
    assert!(resumed > 150, "{resumed}");
}
