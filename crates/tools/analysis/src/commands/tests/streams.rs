//! Captured streams that are cut or broken at any byte.

use super::machine::{self, Machine, ranges};
use crate::commands::stream::{
    DecodeError, Decoder, Fault, Item, LinkAnalyser, Payload, StreamRange,
};
use crate::commands::{AnalyserSettings, Direction};
use proptest::prelude::*;
use wire::Instant;
use wire::frame::{Control, HEADER, Header, Kind};

/// Decodes pieces in the order of `ranges`.
fn decode(down: &[u8], up: &[u8], ranges: &[StreamRange]) -> (Vec<Item>, Result<(), DecodeError>) {
    let mut decoder = Decoder::new();
    let mut items = Vec::new();
    for StreamRange { at, direction, bytes } in ranges {
        let stream = if *direction == Direction::Down { down } else { up };
        let piece = &stream[bytes.start.min(stream.len())..bytes.end.min(stream.len())];
        if let Err(error) = decoder.push(*at, *direction, piece, |item| items.push(item)) {
            return (items, Err(error));
        }
    }
    let end = decoder.finish();
    (items, end)
}

fn machine() -> Machine {
    let mut machine = machine::machine(256, 64);
    machine.bring_up(1);
    machine
}

#[test]
fn a_connection_begins_with_greetings_and_keeps_order() {
    let machine = machine();
    let (items, end) = decode(&machine.down, &machine.up, &ranges(&machine));
    end.unwrap();
    assert!(matches!(items[0].payload, Payload::Control(Control::Hello(_))));
    assert_eq!((items[0].direction, items[0].offset), (Direction::Down, 0));
    assert_eq!(items[1].direction, Direction::Up);
    assert!(items.is_sorted_by_key(|item| item.at));
    let tlps = items.iter().filter(|item| matches!(item.payload, Payload::Tlp(_))).count();
    assert!(tlps > 200, "{tlps}");
}

#[test]
fn faults_name_their_place() {
    let machine = machine();
    let (items, _) = decode(&machine.down, &machine.up, &ranges(&machine));
    let tlp =
        |item: &&Item| item.direction == Direction::Down && matches!(item.payload, Payload::Tlp(_));
    let at = items.iter().filter(tlp).nth(5).unwrap().offset as usize;
    let broken = |index: usize, value: u8| {
        let mut down = machine.down.clone();
        down[at + index] = value;
        decode(&down, &machine.up, &ranges(&machine)).1.unwrap_err()
    };
    let kind = broken(2, 77);
    assert_eq!((kind.direction, kind.offset), (Direction::Down, at as u64));
    assert_eq!(kind.to_string(), format!("host to device, byte {at}: unknown frame kind 77"));
    assert!(matches!(broken(7, 0xee).fault, Fault::Sequence(..)));
    assert!(matches!(broken(8, 0x7f).fault, Fault::Acknowledged(..)));
    assert!(matches!(broken(HEADER, 0xff).fault, Fault::Tlp(0, _)));
    let cut = &machine.down[..machine.down.len() - 1];
    let (_, end) = decode(cut, &machine.up, &ranges(&machine));
    assert!(matches!(end.unwrap_err().fault, Fault::Truncated(_)));
}

#[test]
fn tlps_need_a_greeting() {
    let header = Header { length: 0, kind: Kind::Tlps, sequence: 0, acknowledged: 0 };
    let mut decoder = Decoder::new();
    let error = decoder.push(Instant::ZERO, Direction::Up, &header.encode(), |_| {}).unwrap_err();
    assert_eq!(error.fault, Fault::NoGreeting);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    /// The decoded items do not depend on how the stream is cut.
    #[test]
    fn stream_parsing_is_independent_of_segment_boundaries(cut in 1usize..40) {
        let machine = machine();
        let ranges = ranges(&machine);
        let fine = ranges.iter().flat_map(|range| {
            let starts = range.bytes.clone().step_by(cut);
            starts.map(|start| StreamRange { bytes: start..(start + cut).min(range.bytes.end), ..range.clone() })
        });
        let whole = decode(&machine.down, &machine.up, &ranges);
        prop_assert_eq!(whole, decode(&machine.down, &machine.up, &fine.collect::<Vec<_>>()));
    }

    /// Broken streams may end with an error, but never with a panic.
    #[test]
    fn broken_streams_do_not_panic(
        changes in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), any::<u8>()), 1..20)
    ) {
        let mut machine = machine();
        for (down, index, value) in changes {
            let stream = if down { &mut machine.down } else { &mut machine.up };
            let at = index.index(stream.len());
            stream[at] = value;
        }
        let mut link = LinkAnalyser::new(AnalyserSettings { collect_data: true, ..AnalyserSettings::default() });
        let _ = link.run(&machine.down, &machine.up, ranges(&machine), |_| {});
        let _ = link.finish();
        while link.analyser.next_event().is_some() {}
    }
}
