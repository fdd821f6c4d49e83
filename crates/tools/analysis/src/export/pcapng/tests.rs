//! Tests that read the written files back with a reader of their own.

use super::*;
use crate::commands::Direction;
use crate::commands::stream::StreamRange;
use proptest::prelude::*;
use wire::tlp::{MemoryRequest, Tlp};
use wire::{Bdf, Instant, Tag};

/// One enhanced packet block.
#[derive(Debug)]
pub(crate) struct Read {
    pub at_ns: u64,
    pub interface: u32,
    /// Direction: 1 inbound, 2 outbound.
    pub flags: u32,
    /// Bytes on the wire.
    pub original: usize,
    /// The bytes that were kept.
    pub data: Vec<u8>,
    pub comment: String,
}

/// Reads a pcapng file; supports only the blocks that the writer writes.
pub(crate) fn packets(file: &[u8]) -> Vec<Read> {
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap());
    let (mut found, mut at) = (Vec::new(), 0);
    while at < file.len() {
        let length = word(at + 4) as usize;
        assert_eq!(word(at + length - 4) as usize, length);
        if word(at) == 6 {
            let captured = word(at + 20) as usize;
            let options = at + 28 + captured.next_multiple_of(4);
            let comment = if file[options] == 1 { word(options) >> 16 } else { 0 } as usize;
            // Options end with the flags: code 2, 4 bytes, value, end.
            assert_eq!(word(at + length - 16), 4 << 16 | 2);
            found.push(Read {
                at_ns: u64::from(word(at + 12)) << 32 | u64::from(word(at + 16)),
                interface: word(at + 8),
                flags: word(at + length - 12),
                original: word(at + 24) as usize,
                data: file[at + 28..at + 28 + captured].to_vec(),
                comment: String::from_utf8_lossy(&file[options + 4..][..comment]).into_owned(),
            });
        }
        at += length;
    }
    found
}

#[test]
fn tlps_stand_behind_a_pseudo_header() {
    let request =
        MemoryRequest::for_bytes(Bdf::new(3, 0, 0), Tag::new(5).unwrap(), 0x1_2345_6000, 64);
    let tlp = Tlp::memory_read(request.unwrap());
    let mut file = TlpFile::begin(Vec::new(), 1_000_000).unwrap();
    file.tlp(Instant::from_ns(7), Tap::RootPort, Direction::Up, &tlp, "").unwrap();
    file.tlp(Instant::from_ns(8), Tap::DeviceTunnel, Direction::Up, &tlp, "twice").unwrap();
    let found = packets(&file.finish().unwrap());
    let [first, second] = &found[..] else { panic!("{found:?}") };
    // The packet enters at the root port and leaves the device's node.
    assert_eq!((first.at_ns, first.interface, first.flags), (1_000_007, 0, 1));
    assert_eq!((second.at_ns, second.interface, second.flags), (1_000_008, 2, 2));
    assert_eq!([&first.comment, &second.comment], ["", "twice"]);
    assert_eq!(first.data[..PSEUDO_HEADER], [1, 1, 1, 0]);
    assert_eq!(second.data[..PSEUDO_HEADER], [1, 3, 1, 0]);
    assert!(found.iter().all(|packet| packet.original == packet.data.len()), "whole");
    let mut bytes = first.data[PSEUDO_HEADER..].to_vec().into();
    assert_eq!(Tlp::decode(&mut bytes), Ok(tlp));
}

const ENDS: fn() -> Connection = || Connection {
    host: "192.0.2.1:50000".parse().unwrap(),
    device: "192.0.2.2:4420".parse().unwrap(),
};

/// Reassembles the streams as a receiver does, and checks every sequence number.
fn streams(file: &[u8]) -> (Vec<u8>, Vec<u8>) {
    let mut next = [None::<u32>; 2];
    let mut streams = [Vec::new(), Vec::new()];
    for Read { flags, original, data: frame, .. } in packets(file) {
        assert_eq!(original, frame.len(), "whole");
        let side = usize::from(flags == 1);
        assert_eq!(frame[34..36] == 50000u16.to_be_bytes(), side == 0);
        let word = |at: usize| u32::from_be_bytes(frame[at..at + 4].try_into().unwrap());
        let (sequence, acknowledged, control) = (word(38), word(42), frame[47]);
        let payload = &frame[34 + usize::from(frame[46] >> 4) * 4..];
        assert!(payload.len() <= 1460 && frame.len() <= 1514);
        assert_eq!(usize::from(frame[16]) << 8 | usize::from(frame[17]), frame.len() - 14);
        match next[side] {
            None => assert_eq!(control & 2, 2, "SYN first"),
            Some(expected) => assert_eq!(sequence, expected),
        }
        if control & 0x10 != 0 {
            assert_eq!(Some(acknowledged), next[1 - side]);
        }
        let marks = u32::from(control & 3 != 0);
        next[side] = Some(sequence.wrapping_add(payload.len() as u32 + marks));
        streams[side].extend_from_slice(payload);
    }
    let [down, up] = streams;
    (down, up)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn exported_tcp_streams_equal_the_input(
        pieces in prop::collection::vec((any::<bool>(), 0usize..9000), 0..40)
    ) {
        let mut whole = [Vec::new(), Vec::new()];
        let mut ranges = Vec::new();
        for (index, (down, length)) in pieces.into_iter().enumerate() {
            let stream = &mut whole[usize::from(!down)];
            let start = stream.len();
            stream.extend((0..length).map(|byte| (byte * 7 + index) as u8));
            ranges.push(StreamRange {
                at: Instant::from_ns(index as u64 * 1000),
                direction: if down { Direction::Down } else { Direction::Up },
                bytes: start..stream.len(),
            });
        }
        let mut file = TcpFile::begin(Vec::new(), 0).unwrap();
        file.connection(ENDS(), &whole[0], &whole[1], &ranges).unwrap();
        let file = file.finish().unwrap();
        prop_assert!(packets(&file).is_sorted_by_key(|packet| packet.at_ns));
        let (down, up) = streams(&file);
        prop_assert!(down == whole[0] && up == whole[1]);
    }
}
