//! Over TCP on loopback.

use crate::nodes::{Far, Link, Near, RAM, is_clean, pattern};
use pcie::dma_test::driver;
use wire::tlp::Packet;
use wire::{Duration, Instant};

#[test]
fn two_functions_that_are_no_drives_copy_and_interrupt() {
    let mut far = [(); 2].map(|()| Far::start(Link::new(4096)));
    let mut near = Near::start(Link::new(4096), &far.iter().collect::<Vec<_>>());
    assert_eq!(near.nodes.len(), 2);
    for number in 0..2 {
        near.enable(number, 40 + number as u32);
        let (bus, bar) = (near.bus.clone(), near.bar(number));
        assert!(near.run(async move { driver::is_present(&bus, bar).await }));
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
    // A far side that stops signals that: reads return all ones from then on, and the other link
    // continues.
    far[0].stop().expect("it ran");
    assert_eq!(near.copy(0, RAM, RAM + 4096, 64), Err(None));
    assert_eq!(near.copy(1, RAM, RAM + 4096, 64), Ok(()));
    let link = far[1].stop().expect("it ran");
    assert!(is_clean(&link), "{link:?}");
}

#[test]
fn payloads_are_what_both_sides_take_and_no_more() {
    for (host, device) in [(128, 4096), (4096, 128), (4096, 4096), (256, 1024), (2048, 512)] {
        let far = Far::start(Link::new(device));
        let mut near = Near::start(Link::new(host), &[&far]);
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
fn every_packet_has_a_digest_if_the_host_asks_for_it() {
    for ecrc in [false, true] {
        let link = Link { ecrc, ..Link::new(512) };
        let mut far = Far::start(link);
        let mut near = Near::start(link, &[&far]);
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
        let link = far.stop().expect("it ran");
        assert!(is_clean(&link) && link.rejected.values().all(|count| *count == 0), "{link:?}");
    }
}

/// A link made in time, an idle link, and transfers across the end of 64 bits of picoseconds.
#[test]
fn links_and_transfers_go_on_after_years_of_uptime() {
    let days_213 = Instant::from_ps(u64::MAX);
    let ten_years = Instant::from_ns(10 * 365 * 86_400 * 1_000_000_000);
    for uptime in [days_213 - Duration::from_ms(100), days_213, ten_years] {
        let link = Link { uptime, ..Link::new(4096) };
        let mut far = Far::start(link);
        let mut near = Near::start(link, &[&far]);
        near.enable(0, 1);
        let copy = |near: &mut Near, seed| {
            near.fill(0, &pattern(70_001, seed));
            assert_eq!(near.copy(0, RAM, RAM + 0x10_0000, 70_001), Ok(()));
            assert!(near.memory(0x10_0000, 70_001) == pattern(70_001, seed), "from {uptime}");
        };
        let mut seed = 0;
        while near.clock.now() < uptime + Duration::from_ms(200) {
            seed += 1;
            copy(&mut near, seed);
        }
        // Longer than it takes to lose a link.
        near.idle_until(near.clock.now() + Duration::from_ms(1_000));
        assert!(near.machine.attached().upstream().tunnel(0).is_up(), "from {uptime}");
        copy(&mut near, 0);
        let link = far.stop().expect("it ran");
        assert!(is_clean(&link), "from {uptime}: {link:?}");
    }
}
