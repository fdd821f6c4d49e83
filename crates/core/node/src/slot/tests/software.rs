//! The slot's host software alone.

use super::{INCARNATION, SERIAL, config, node};
use crate::slot::Settings;
use crate::slot::software::{Restore, identify_and_reset, restore};
use pcie::enumerate::{Comparison, ContentsChange};
use pcie::software::{Bus, Request, Task};
use wire::Instant;

const OWNER: u32 = 9;

fn settings() -> Settings {
    Settings { owner: OWNER, ..Settings::default() }
}

/// Runs `software`; returns its result and its writes: (offset in configuration space or
/// address, value). `answers` are the double words of configuration space.
fn writes<T>(
    software: impl AsyncFnOnce(Bus) -> T + 'static,
    answers: impl Fn(u16) -> u32,
) -> (T, Vec<(u64, u64)>) {
    let bus = Bus::new();
    let mut task = Task::new(&bus, {
        let bus = bus.clone();
        async move { software(bus).await }
    });
    let mut written = Vec::new();
    loop {
        if let Some(value) = task.poll(Instant::ZERO) {
            return (value, written);
        }
        while let Some((id, request)) = bus.next_request() {
            match request {
                Request::ConfigRead { offset, .. } => bus.answer(id, answers(offset).into()),
                Request::ConfigWrite { offset, value, .. } => {
                    written.push((offset.into(), value.into()));
                    bus.answer(id, 0);
                }
                Request::MemoryWrite { address, value, .. } => written.push((address, value)),
                other => panic!("{other:?}"),
            }
        }
    }
}

#[test]
fn bus_mastering_is_restored_last() {
    let restored = |restored| {
        let software = async move |bus: Bus| restore(&bus, &node(), &settings(), restored).await;
        let (there, written) = writes(software, config(SERIAL, INCARNATION));
        assert!(there);
        written
    };
    let command = [Some(0x06), Some(0x04)];
    let all = Restore { msix: true, command, ..Restore::default() };
    let written = restored(all);
    assert_eq!(written[0], (0x11c, 9), "the host's mark");
    let table = written.iter().filter(|(at, _)| (0xa000..0xa020).contains(at));
    assert_eq!(table.count(), 8, "two entries of the MSI-X table");
    assert_eq!(written[9..], [(0x4a, 0x8000), (0x05, 0x04), (0x04, 0x06)]);
    assert_eq!(restored(Restore::default()), [(0x11c, 9)], "a client that set nothing");
    let reset = restored(Restore { reset: true, ..all });
    assert_eq!(reset[0], (0x68, 1 << 15));
    assert_eq!(reset[reset.len() - written.len()..], written);
    for (serial, incarnation) in [(SERIAL + 1, INCARNATION), (SERIAL, INCARNATION + 1)] {
        let software = async move |bus: Bus| restore(&bus, &node(), &settings(), all).await;
        let (there, written) = writes(software, config(serial, incarnation));
        assert!(!there && written.is_empty(), "it was replaced meanwhile");
    }
    for (owner, expected) in [(OWNER, true), (8, false)] {
        let software = async move |bus: Bus| restore(&bus, &node(), &settings(), all).await;
        let answers = |at| if at == 0x11c { owner } else { config(SERIAL, INCARNATION)(at) };
        assert_eq!(writes(software, answers).0, expected, "another host has it");
    }
}

#[test]
fn the_device_is_identified_before_a_reset() {
    let identify = |answers: &dyn Fn(u16) -> u32| {
        let before = node().identity().unwrap();
        let software =
            async move |bus: Bus| identify_and_reset(&bus, before, &node(), &settings()).await;
        let (identified, written) = writes(software, answers);
        (identified.map(|identified| identified.1), written)
    };
    let flr = (0x68, 1 << 15);
    for (incarnation, expected) in
        [(INCARNATION, Comparison::Same), (8, Comparison::NewContents(ContentsChange::Incarnation))]
    {
        let (returned, written) = identify(&config(SERIAL, incarnation));
        assert_eq!(returned, Some(expected));
        let begin = written.iter().position(|write| *write == flr).expect("a reset");
        let written = &written[begin..];
        assert_eq!(written.last(), Some(&(0x11c, 9)));
        assert!(written.contains(&(0x10, 0x8000)), "its BAR again: {written:?}");
        let command = written.iter().filter(|(at, _)| *at == 4);
        assert!(command.clone().all(|(_, value)| value & 4 == 0), "no bus mastering");
        assert_eq!(command.count(), 1);
    }
    let (returned, written) = identify(&config(SERIAL + 1, INCARNATION));
    assert!(matches!(returned, Some(Comparison::Another(_))) && written.is_empty());
    let strange = [(0x10, 0xffff_8004), (0x4a, 3), (0x50, 0x3800)];
    for (at, value) in strange {
        let same = config(SERIAL, INCARNATION);
        let (returned, written) =
            identify(&|offset| if offset == at { value } else { same(offset) });
        let another = Comparison::Another("different BARs or interrupts".to_owned());
        assert_eq!(returned, Some(another), "{at:#x}");
        assert!(!written.iter().any(|write| *write == flr || write.0 == 0x11c), "{written:?}");
        assert!(!written.contains(&(0x10, 0x8000)), "the BAR of the one before");
    }
    let (returned, written) = identify(&|_| u32::MAX);
    assert!(returned.is_none() && written.is_empty(), "nobody");
}
