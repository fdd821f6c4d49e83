//! Golden vectors, round trips, hostile bytes.

use super::*;
use crate::encoded;
use crate::frame::{self, FrameReport, Kind};
use crate::nvme::Status;
use crate::tlp::{MAX_TLP, Tlp, TraceId};
use crate::{Bdf, Tag};
use bytes::Bytes;
use proptest::prelude::*;
use std::ops::Range;

fn records() -> Vec<(u64, Record<'static>)> {
    let tlp: &[u8] = &[0x40, 0, 0, 1, 0, 0, 0, 0xf, 0xfe, 0x80, 0x10, 8, 1, 0, 0, 0];
    vec![
        (0, Record::Link { tap: Tap::link(0), state: LinkState::Connected }),
        (
            300,
            Record::Tlp {
                tap: Tap::ROOT_PORT,
                up: false,
                length: 16,
                bytes: tlp,
                hash: None,
                holes: Holes::NONE,
            },
        ),
        (
            5,
            Record::Frame {
                tap: Tap::link(0),
                up: false,
                sequence: 5,
                bytes: 28,
                tlps: 1,
                heads: tlp,
            },
        ),
        (1, Record::Control { tap: Tap::UPLINK, up: true, kind: 6, payload: &[0; 8] }),
        (70_000, Record::Link { tap: Tap::link(1), state: LinkState::Down("lost") }),
        (70_001, Record::Link { tap: Tap::link(1), state: LinkState::Interrupted("lost") }),
        (70_002, Record::Link { tap: Tap::link(1), state: LinkState::Returned }),
        (0, Record::Unknown { kind: 200, bytes: b"later" }),
        (9, nvme(NvmeEvent::Fetched { id: ID, opcode: 2, nsid: 1 })),
        (
            250,
            nvme(NvmeEvent::MediaBegun {
                id: Some(ID),
                operation: MediaOperation::Read,
                nsid: 1,
                offset: 4096,
                length: 512,
            }),
        ),
        (3, nvme(NvmeEvent::MediaEnded { id: Some(ID), nsid: 1, ok: true })),
        (1, nvme(NvmeEvent::MediaEnded { id: None, nsid: 2, ok: false })),
        (1, nvme(NvmeEvent::Completed { id: ID, status: Status::from_bits(0x4281) })),
        (0, nvme(NvmeEvent::State(ControllerState::Fatal))),
        (4, Record::Fault { tap: Tap::UPLINK, text: "stop" }),
    ]
}

const ID: CommandId = CommandId { queue: 1, cid: 300 };

fn nvme(event: NvmeEvent) -> Record<'static> {
    Record::Nvme { tap: Tap::FUNCTION, event }
}

fn header() -> Header {
    Header {
        role: NodeRole::Host,
        ring: true,
        instance: 0x1122_3344_5566_7788,
        start_unix_ns: 1_700_000_000_000_000_000,
        snap: 256,
        key: 0xab,
        clock: "monotonic".into(),
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[test]
fn the_bytes_of_a_header() {
    let mut out = encoded(|out| header().encode(out));
    assert_eq!(
        hex(&out),
        "464c545241434500000200310101010011223344556677881797\
         9cfe362a000000000000000000ab"
            .to_owned()
            + &hex(b"monotonic")
    );
    assert_eq!(Header::decode(&out), Ok((header(), out.len())));
    assert_eq!(Header::decode(&out[..20]), Err(Malformed::Short));
    assert_eq!(Header::decode(b"PK\x03\x04"), Err(Malformed::Magic));
    for version in [0, 3] {
        out[9] = version;
        assert_eq!(Header::decode(&out), Err(Malformed::Version(version.into())));
    }
    // Version 1 has zeroes in the place of the key.
    out[9] = 1;
    out[39] = 0;
    let old = Header { key: 0, ..header() };
    assert_eq!(Header::decode(&out), Ok((old, out.len())));
}

#[test]
fn the_bytes_of_records() {
    let mut out = Vec::new();
    records().iter().for_each(|(delta, record)| record.encode(*delta, &mut out));
    let golden = [
        "0403000301",
        "0114ac02001040000001000000 0ffe80100801000000",
        "02150503051c01 40000001000000 0ffe80100801000000",
        "030b018206 0000000000000000",
        "0409f0a204046c6f7374",
        "0409f1a20404 03 6c6f7374",
        "0405f2a20404 02",
        "c806006c61746572",
        "0508090101 02ac020201",
        "050dfa010102 02ac02 01 01 8020 8004",
        "0508030103 02ac02 01 01",
        "0507010103 0000 00 02",
        "0509010104 02ac02 818501",
        "0504000105 08",
        "09060402 73746f70",
    ];
    // The state of a link that is down is a zero byte before the reason.
    let golden = golden.concat().replace(' ', "").replace("f0a204046c", "f0a20404006c");
    assert_eq!(hex(&out), golden);
}

#[test]
fn records_round_trip() {
    let mut out = Vec::new();
    let mut expected = Vec::new();
    let mut at_ns = 1_000;
    for (delta, record) in records() {
        record.encode(delta, &mut out);
        at_ns += delta;
        expected.push(Timed { at_ns, record });
    }
    let mut reader = Records::new(1_000, &out);
    assert_eq!(reader.by_ref().collect::<Vec<_>>(), expected);
    assert_eq!((reader.bad(), reader.rest().len()), (0, 0));
    // Cut anywhere, all whole records are there.
    for end in 0..out.len() {
        let found: Vec<_> = Records::new(1_000, &out[..end]).collect();
        assert_eq!(found, expected[..found.len()], "cut at {end}");
    }
}

#[test]
fn chunk_header_covers_its_records() {
    let chunk = ChunkHeader::new(7, 2, 1 << 40, b"records");
    let bytes = chunk.encode();
    assert_eq!(ChunkHeader::decode(&bytes), Some(chunk));
    assert!(chunk.covers(b"records") && !chunk.covers(b"recorde") && !chunk.covers(b"record"));
    for bit in 0..CHUNK_HEADER * 8 {
        let mut bad = bytes;
        bad[bit / 8] ^= 1 << (bit % 8);
        assert_eq!(ChunkHeader::decode(&bad), None, "bit {bit}");
    }
    assert_eq!(ChunkHeader::decode(&bytes[..31]), None);
}

#[test]
fn taps_have_names() {
    let names = [Tap::ROOT_PORT, Tap::FUNCTION, Tap::UPLINK, Tap::link(3)].map(|t| t.to_string());
    assert_eq!(names, ["root port", "function", "link to the host", "link 3"]);
    assert_eq!((Tap::link(99).port(), Tap::UPLINK.port()), (Some(63), None));
}

#[test]
fn a_tlp_is_cut_to_what_is_kept() {
    let tlp =
        Tlp::write_bytes(Bdf::new(3, 0, 0), 0x1_0000_0000, &Bytes::from(vec![9; 64])).unwrap();
    for (keep, kept) in [(0, 16), (20, 36), (64, 80), (4096, 80)] {
        let keep = Kept { bytes: keep, hash: None, ..Kept::ALL };
        let out = encoded(|out| encode_tlp(Tap::FUNCTION, true, &tlp, &keep, 7, out));
        let found: Vec<_> = Records::new(0, &out).collect();
        let [Timed { at_ns: 7, record: Record::Tlp { tap, up, length, bytes, hash: None, .. } }] =
            found[..]
        else {
            panic!("{found:?}");
        };
        assert_eq!((tap, up, length, bytes.len()), (Tap::FUNCTION, true, 80, kept));
    }
}

#[test]
fn record_of_frame_matches_its_report() {
    let id = Bdf::new(1, 0, 0);
    let write = Tlp::write_bytes(id, 0x1000, &Bytes::from(vec![0xab; 256])).unwrap();
    let read = Tlp::read_bytes(id, Tag::default(), 0x1000, 64).unwrap();
    let [first, second] = [write, read].map(|tlp| encoded(|out| tlp.encode(out)));
    let header = frame::Header { length: 280, kind: Kind::Tlps, sequence: 9, acknowledged: 0 };
    let mut report = FrameReport::new(true, header, 1000, &[]);
    report.add_tlp(TraceId::new(5), &first);
    report.add_tlp(TraceId::NONE, &second);
    assert_eq!(report.trace_ids, [(TraceId::new(5), 1280), (TraceId::NONE, 1292)]);
    assert_eq!(report.end(), 1292);
    let heads = [&first[..12], &[0; 4], &second, &[0; 4]].concat();
    let record =
        |tap, up| Record::Frame { tap, up, sequence: 9, bytes: 292, tlps: 2, heads: &heads };
    assert_eq!(Record::of_frame(Tap::UPLINK, &report), record(Tap::UPLINK, true));
    report.sent = false;
    assert_eq!(Record::of_frame(Tap::UPLINK, &report), record(Tap::UPLINK, false));
    assert_eq!(Record::of_frame(Tap::link(1), &report), record(Tap::link(1), true));
    // The report keeps at most `MAX_HEADS` heads, but all trace IDs.
    (0..MAX_HEADS).for_each(|_| report.add_tlp(TraceId::NONE, &second));
    assert_eq!((report.heads.len(), report.trace_ids.len()), (MAX_HEADS * HEAD, MAX_HEADS + 2));
    let header = frame::Header { length: 100, kind: Kind::Hello, sequence: 0, acknowledged: 0 };
    let hello = FrameReport::new(true, header, 0, &[7; 100]);
    let control = Record::Control { tap: Tap::link(0), up: false, kind: 1, payload: &[7; 64] };
    assert_eq!(Record::of_frame(Tap::link(0), &hello), control);
}

/// A follower that returns the same number of bytes for every TLP.
#[derive(Debug)]
struct Told(usize);

impl Follower for Told {
    fn tlp(&mut self, _: bool, _: &Tlp) -> usize {
        self.0
    }

    fn link(&mut self, _: &Record<'_>) {}
}

/// Reports a front and parts of every payload as free of user data.
#[derive(Debug)]
struct InParts(usize, Vec<Range<usize>>);

impl Follower for InParts {
    fn tlp(&mut self, _: bool, _: &Tlp) -> usize {
        self.0
    }

    fn parts(&self) -> Option<&[Range<usize>]> {
        Some(&self.1)
    }

    fn link(&mut self, _: &Record<'_>) {}
}

#[test]
fn data_of_users_are_hashed_and_the_rest_is_kept() {
    let key = PayloadKey::new(std::array::from_fn(|i| i as u8));
    let payload = Bytes::from_iter(0..64);
    let write = Tlp::write_bytes(Bdf::default(), 0x1000, &payload).unwrap();
    let kept_when = |known: Option<usize>, snap| {
        let follower = known.map(|known| Box::new(Told(known)) as Box<dyn Follower>);
        Payloads::new(follower, key, snap).kept_of(false, &write)
    };
    let kept = |bytes| Kept { bytes, hash: Some(key.hash(&payload)), ..Kept::ALL };
    assert_eq!(kept_when(Some(64), None), Kept { bytes: 64, ..Kept::ALL });
    assert_eq!(kept_when(None, None), Kept::ALL);
    assert_eq!(kept_when(Some(0), None), kept(0));
    assert_eq!(kept_when(Some(16), Some(32)), kept(16));
    assert_eq!(kept_when(Some(64), Some(32)), kept(32));
    assert_eq!(kept_when(Some(64), Some(64)), Kept { bytes: 64, ..Kept::ALL });
}

/// The test vectors of HighwayHash: key 00 to 1f, messages of bytes from 00 on (`kExpected64` in
/// `highwayhash/highwayhash_test.cc` of google/highwayhash).
#[test]
fn the_hash_is_highwayhash() {
    let key = PayloadKey::new(std::array::from_fn(|i| i as u8));
    let message: [u8; 33] = std::array::from_fn(|i| i as u8);
    for (length, hash) in [
        (0, 0x907a_56de_22c2_6e53),
        (1, 0x7eab_43aa_c7cd_dd78),
        (8, 0xe120_5108_e55f_3171),
        (15, 0x4079_3f86_a449_f33b),
        (31, 0x9fc7_007c_cf03_5a68),
        (32, 0xa0c9_64d9_ecd5_80fc),
        (33, 0x2c90_f73c_a031_81fc),
    ] {
        assert_eq!(key.hash(&message[..length]), hash, "{length} bytes");
    }
    assert_ne!(key.check(), PayloadKey::PUBLIC.check());
    assert!(!format!("{key:?}").contains("1, 2, 3"), "{key:?}");
}

proptest! {
    /// Both ways to encode a TLP give the same bytes.
    #[test]
    fn a_tlp_is_recorded_as_it_is_on_the_wire(
        delta in prop_oneof![0u64..300, 16_300u64..16_500, any::<u64>()], dws in 0usize..40,
        wide: bool, up: bool, digest: bool, keep in prop_oneof![0usize..40, Just(4096)],
        hash: Option<u64>,
    ) {
        let address = if wide { 0x1_0000_0000 } else { 0x1000 };
        let length = dws.max(1) * 4;
        let id = Bdf::new(3, 0, 0);
        let tlp = match dws {
            0 => Tlp::read_bytes(id, Tag::default(), address, length),
            _ => Tlp::write_bytes(id, address, &(0..length as u8).collect()),
        };
        let tlp = Tlp { digest, ..tlp.unwrap() };
        let mut bytes = encoded(|out| tlp.encode(out));
        if keep < tlp.data.len() {
            bytes.truncate(tlp.header_length() + keep);
        }
        let hash = hash.filter(|_| keep < tlp.data.len());
        let length = tlp.wire_length() as u16;
        let (mut want, mut found) = (vec![7], vec![7]);
        let holes = Holes::NONE;
        let (tap, bytes) = (Tap::FUNCTION, &bytes[..]);
        Record::Tlp { tap, up, length, bytes, hash, holes }.encode(delta, &mut want);
        let kept = Kept { bytes: keep, hash, ..Kept::ALL };
        encode_tlp(Tap::FUNCTION, up, &tlp, &kept, delta, &mut found);
        prop_assert_eq!(found, want);
    }

    /// Kept bytes stay at their offsets, and the record contains no others.
    #[test]
    fn kept_payload_parts_round_trip(
        edges in proptest::collection::btree_set(0usize..300, 1..20), snap in 0usize..400,
        delta: u64,
    ) {
        let key = PayloadKey::PUBLIC;
        let data: Bytes = (0..300).map(|i| (i % 251) as u8).collect();
        let tlp = Tlp::write_bytes(Bdf::default(), 0x1000, &data).unwrap();
        let edges: Vec<usize> = edges.into_iter().collect();
        let (front, rest) = edges.split_first().unwrap();
        // Front, hole, part, hole, part.
        let parts: Vec<_> = rest.chunks_exact(2).map(|ends| ends[0]..ends[1]).collect();
        let follower = Box::new(InParts(*front, parts.clone()));
        let kept = Payloads::new(Some(follower), key, Some(snap as u16)).kept_of(false, &tlp);
        prop_assert_eq!(kept.hash, Some(key.hash(&data)));
        let out = encoded(|out| encode_tlp(Tap::FUNCTION, false, &tlp, &kept, delta, out));
        prop_assert!(out.len() <= kept.max_record_length(&tlp));
        let found: Vec<_> = Records::new(0, &out).map(|timed| timed.record).collect();
        let [Record::Tlp { length: 312, bytes: kept, hash: Some(_), holes, .. }] = found[..] else {
            panic!("{found:?}")
        };
        let whole = [&tlp.header()[..12], &data].concat();
        let (mut at, mut end, mut there) = (0, 0, Vec::new());
        for part in holes.parts(kept.len()) {
            prop_assert_eq!(&kept[at..at + part.len()], &whole[part.clone()]);
            at += part.len();
            there.push(part);
        }
        prop_assert_eq!(at, kept.len());
        for hole in holes.iter() {
            let from = end + hole.kept;
            end = from + hole.length;
            prop_assert_eq!(hole.hash, key.hash(&whole[from..end]));
        }
        let parts = parts.into_iter().filter(|part| part.end <= snap);
        let front = std::iter::once(0..12 + (*front).min(snap));
        let all: Vec<_> = front.chain(parts.map(|p| p.start + 12..p.end + 12)).collect();
        prop_assert_eq!(there, all);
    }

    #[test]
    fn tlps_and_frames_come_back(
        delta: u64, port in 0usize..64, up: bool, heads in 0usize..40, payload in proptest::collection::vec(any::<u8>(), 12..600),
        more in 0usize..3000, hash: Option<u64>, sequence: u32, bytes: u32, tlps in 40u32..,
    ) {
        let tap = Tap::link(port);
        let length = (payload.len() + more).min(MAX_TLP) as u16;
        let tlp = Record::Tlp { tap, up, length, bytes: &payload, hash, holes: Holes::NONE };
        let heads = vec![payload[0]; heads * HEAD];
        let frame = Record::Frame { tap, up, sequence, bytes, tlps, heads: &heads };
        let mut out = encoded(|out| tlp.encode(delta, out));
        prop_assert!(out.len() <= tlp.max_length());
        let first = out.len();
        frame.encode(0, &mut out);
        prop_assert!(out.len() - first <= frame.max_length());
        let found: Vec<_> = Records::new(0, &out).map(|timed| timed.record).collect();
        prop_assert_eq!(found, vec![tlp, frame]);
    }

    #[test]
    fn events_come_back_and_fit(
        delta: u64, queue: u16, cid: u16, offset: u64, length: u64, nsid: u32, bits in 0u16..1 << 15,
    ) {
        let id = CommandId { queue, cid };
        let (operation, status) = (MediaOperation::Discard, Status::from_bits(bits));
        for event in [
            NvmeEvent::Fetched { id, opcode: 0xff, nsid },
            NvmeEvent::MediaBegun { id: Some(id), operation, nsid, offset, length },
            NvmeEvent::MediaEnded { id: None, nsid, ok: true },
            NvmeEvent::Completed { id, status },
        ] {
            let out = encoded(|out| nvme(event).encode(delta, out));
            prop_assert!(out.len() <= nvme(event).max_length());
            let found: Vec<_> = Records::new(0, &out).collect();
            prop_assert_eq!(found, vec![Timed { at_ns: delta, record: nvme(event) }]);
        }
    }

    #[test]
    fn reading_hostile_bytes_ends(bytes in proptest::collection::vec(any::<u8>(), 0..2000)) {
        let mut reader = Records::new(u64::MAX - 5, &bytes);
        let found = reader.by_ref().count() as u64 + reader.bad();
        prop_assert!(found as usize <= bytes.len() / 2);
        let _ = Header::decode(&bytes);
        let _ = ChunkHeader::decode(&bytes);
    }
}
