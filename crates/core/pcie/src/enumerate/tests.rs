//! Windows and buses of trees that the tests of endpoints do not have.

use super::*;
use crate::config::register;
use crate::software::{Request, Task};
use proptest::prelude::*;
use stats::random::Random;
use std::collections::BTreeMap;
use wire::Instant;

/// Enumerates an upstream port with `ports` downstream ports and empty slots. Returns the result
/// and the windows.
fn empty_switch(ports: u8) -> (Result<Hierarchy, Error>, BTreeMap<Bdf, u32>) {
    let bus = Bus::new();
    let mut task = Task::new(&bus, enumerate(bus.clone(), Settings::default()));
    let mut windows: BTreeMap<Bdf, u32> = BTreeMap::new();
    loop {
        if let Some(result) = task.poll(Instant::ZERO) {
            return (result, windows);
        }
        while let Some((id, request)) = bus.next_request() {
            match request {
                Request::ConfigRead { target, offset, .. } => {
                    let exists = target == ROOT_PORT
                        || target == Bdf::new(1, 0, 0)
                        || (target.bus() == 2 && target.device() < ports && target.function() == 0);
                    let value = match offset {
                        _ if !exists => !0u32,
                        register::VENDOR => 0x000c_1b36,
                        register::HEADER_TYPE => 1,
                        register::CAPABILITIES => 0x40,
                        0x40 => 0x0010,
                        0x42 => match target.bus() {
                            0 => 4 << 4,
                            1 => 5 << 4,
                            _ => 6 << 4 | 1 << 8,
                        },
                        _ => 0,
                    };
                    bus.answer(id, u64::from(value));
                }
                Request::ConfigWrite { target, offset, value, .. } => {
                    if offset == register::MEMORY_BASE {
                        windows.insert(target, value);
                    }
                    bus.answer(id, 0);
                }
                _ => {}
            }
        }
    }
}

#[test]
fn empty_slots_keep_buses_and_windows() {
    let (hierarchy, windows) = empty_switch(2);
    let hierarchy = hierarchy.unwrap();
    let upstream = hierarchy.root.children()[0].port().unwrap();
    assert_eq!((upstream.secondary, upstream.subordinate), (2, 12));
    let ports: Vec<_> = upstream
        .children
        .iter()
        .map(|node| {
            let port = node.port().unwrap();
            (port.secondary, port.subordinate, port.window.clone())
        })
        .collect();
    assert_eq!(ports[0], (3, 7, 0xe000_0000..0xe040_0000));
    assert_eq!(ports[1], (8, 12, 0xe040_0000..0xe080_0000));
    assert_eq!(windows[&Bdf::new(2, 1, 0)], 0xe070_e040);
    assert_eq!(windows[&Bdf::new(1, 0, 0)], 0xe070_e000);
}

#[test]
fn too_many_buses_are_an_error() {
    assert_eq!(empty_switch(32).0.map(|_| ()), Ok(()));
    let (result, _) = empty_switch(0);
    assert_eq!(result.unwrap().endpoints().len(), 0);
}

/// Enumerates a machine whose answers below the root port are random numbers from `seed`, with
/// enough valid answers that the enumeration continues.
fn liar(seed: u64) -> usize {
    let bus = Bus::new();
    let settings = Settings { contents: true, ..Settings::default() };
    let mut task = Task::new(&bus, enumerate(bus.clone(), settings));
    let (mut random, mut requests) = (Random::new(seed), 0);
    while task.poll(Instant::ZERO).is_none() {
        while let Some((id, request)) = bus.next_request() {
            requests += 1;
            let value = match request {
                Request::ConfigRead { target, offset, .. } => match offset {
                    register::VENDOR if target == ROOT_PORT => 0x000c_1b36,
                    register::VENDOR if random.bits() % 4 == 0 => u64::MAX,
                    register::HEADER_TYPE if target == ROOT_PORT => 1,
                    register::HEADER_TYPE => u64::from(random.bits() % 8 != 0),
                    register::CAPABILITIES => 0x40,
                    _ if random.bits() % 8 == 0 => 1 << (random.bits() % 33),
                    _ => random.bits(),
                },
                _ => 0,
            };
            bus.answer(id, value);
        }
    }
    requests
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn devices_that_lie_end_the_search_and_nothing_else(seed in any::<u64>()) {
        prop_assert!(liar(seed) < 1_000_000);
    }
}

#[test]
fn bars_of_2_to_the_63_do_not_fit() {
    let bar = |index| Bar { index, size: 1 << 63, is_64bit: true, prefetchable: false, address: 0 };
    let device =
        Device { bars: vec![bar(0), bar(2), bar(4)], msix: None, serial: None, contents: None };
    let mut node = Node {
        bdf: Bdf::new(1, 0, 0),
        id: (1, 1),
        class: [0; 3],
        capabilities: Vec::new(),
        pcie: None,
        max_payload_supported: 128,
        max_payload: 128,
        kind: Kind::Endpoint(device),
    };
    let bus = Bus::new();
    let mut task = Task::new(&bus.clone(), async move {
        assign::tree(&bus, &mut node, &Settings::default()).await
    });
    let Some(Err(Error::Window { need, .. })) = task.poll(Instant::ZERO) else {
        panic!("assigned");
    };
    assert_eq!(need, u64::MAX);
}
