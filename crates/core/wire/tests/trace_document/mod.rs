//! `docs/trace.md` and the codec agree: the tests build every example of the document with the
//! codec.

use crate::document::{assert_same, examples};
use std::collections::BTreeMap;
use wire::frame::{Control, Kind};
use wire::nvme::Status;
use wire::tlp::Tlp;
use wire::trace::{
    CHUNK_HEADER, ChunkHeader, CommandId, ControllerState, HEAD, Header, Kept, LinkState, MAGIC,
    MAX_CHUNK, MAX_HEADS, MediaOperation, NodeRole, NvmeEvent, PayloadKey, Record, Records, SYNC,
    Tap, Timed, VERSION, encode_tlp,
};
use wire::{Bdf, Tag};

const DOCUMENT: &str = include_str!("../../../../../docs/trace.md");

fn header() -> Header {
    Header {
        role: NodeRole::Host,
        ring: false,
        instance: 0x1122_3344_5566_7788,
        start_unix_ns: 1_700_000_000_000_000_000,
        snap: 0,
        key: key().check(),
        clock: "monotonic".to_owned(),
    }
}

fn key() -> PayloadKey {
    PayloadKey::new(std::array::from_fn(|i| i as u8))
}

fn fetch() -> Tlp {
    let fetch = Tlp::read_bytes(Bdf::new(3, 0, 0), Tag::truncate(5), 0x1_2345_6000, 64);
    fetch.expect("one page")
}

fn write() -> Tlp {
    let bytes = bytes::Bytes::from_static(&[1, 2, 3, 4, 5, 6, 7, 8]);
    Tlp::write_bytes(Bdf::new(3, 0, 0), 0x1000, &bytes).expect("one page")
}

fn record(delta: u64, record: Record<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    record.encode(delta, &mut out);
    out
}

fn tlp(delta: u64, up: bool, tlp: &Tlp, bytes: usize) -> Vec<u8> {
    let hash = (bytes == 0).then(|| key().hash(&tlp.data));
    let mut out = Vec::new();
    let kept = Kept { bytes, hash, ..Kept::ALL };
    encode_tlp(Tap::ROOT_PORT, up, tlp, &kept, delta, &mut out);
    out
}

fn tlp_with_hole() -> Vec<u8> {
    let data = write().data;
    let left_out = vec![(2..6, key().hash(&data[2..6]))];
    let kept = Kept { bytes: 8, left_out, hash: Some(key().hash(&data)) };
    let mut out = Vec::new();
    encode_tlp(Tap::ROOT_PORT, true, &write(), &kept, 5, &mut out);
    out
}

fn frame() -> Vec<u8> {
    let mut heads = Vec::new();
    fetch().encode(&mut heads);
    assert_eq!(heads.len(), HEAD);
    let tap = Tap::link(0);
    record(1000, Record::Frame { tap, up: true, sequence: 1973, bytes: 28, tlps: 1, heads: &heads })
}

fn control() -> Vec<u8> {
    let mut payload = Vec::new();
    Control::Echo(7).encode(&mut payload);
    let kind = Kind::Echo as u8;
    record(0, Record::Control { tap: Tap::UPLINK, up: false, kind, payload: &payload })
}

const ID: CommandId = CommandId { queue: 1, cid: 300 };
const BEGUN: NvmeEvent = NvmeEvent::MediaBegun {
    id: Some(ID),
    operation: MediaOperation::Read,
    nsid: 1,
    offset: 4096,
    length: 512,
};

fn nvme(delta: u64, event: NvmeEvent) -> Vec<u8> {
    record(delta, Record::Nvme { tap: Tap::FUNCTION, event })
}

fn chunk() -> Vec<u8> {
    let records = tlp(0, true, &fetch(), 4096);
    let header = ChunkHeader::new(2, 9, 1_500_000_000, &records);
    [&header.encode()[..], &records].concat()
}

fn meanings() -> BTreeMap<String, Vec<u8>> {
    let mut head = Vec::new();
    header().encode(&mut head);
    let tap = Tap::link(0);
    let examples = [
        ("header", head),
        ("chunk", chunk()),
        ("tlp", tlp(300, true, &fetch(), 4096)),
        ("tlp-cut", tlp(5, true, &write(), 4)),
        ("tlp-hashed", tlp(5, true, &write(), 0)),
        ("tlp-holes", tlp_with_hole()),
        ("frame", frame()),
        ("control", control()),
        ("link-up", record(0, Record::Link { tap, state: LinkState::Connected })),
        ("link-down", record(2, Record::Link { tap, state: LinkState::Down("silent") })),
        ("nvme-fetched", nvme(40, NvmeEvent::Fetched { id: ID, opcode: 2, nsid: 1 })),
        ("nvme-media", nvme(250, BEGUN)),
        ("nvme-done", nvme(900, NvmeEvent::MediaEnded { id: Some(ID), nsid: 1, ok: true })),
        ("nvme-completed", nvme(200, NvmeEvent::Completed { id: ID, status: Status::SUCCESS })),
        ("nvme-state", nvme(0, NvmeEvent::State(ControllerState::HotReset))),
        ("not-pushed", record(0, Record::NotPushed { reason: 13, commands: 300 })),
        ("fault", record(0, Record::Fault { tap: Tap::FUNCTION, text: "late=5ms,at=2s" })),
        ("unknown", record(1, Record::Unknown { kind: 10, bytes: b"new" })),
    ];
    examples.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

#[test]
fn examples_are_what_the_codec_makes() {
    assert_same(&examples(DOCUMENT, "trace"), &meanings());
}

#[test]
fn examples_are_read_back() {
    let written = examples(DOCUMENT, "trace");
    let bytes = &written["header"];
    assert_eq!(Header::decode(bytes), Ok((header(), bytes.len())));
    let bytes = &written["chunk"];
    let head = ChunkHeader::decode(bytes).expect("a chunk");
    assert!(head.covers(&bytes[CHUNK_HEADER..]));
    for (name, bytes) in written.iter().filter(|(name, _)| *name != "header" && *name != "chunk") {
        let mut records = Records::new(0, bytes);
        let Some(Timed { at_ns, record }) = records.next() else { panic!("{name}") };
        assert!(records.next().is_none() && records.rest().is_empty(), "{name}");
        let mut again = Vec::new();
        record.encode(at_ns, &mut again);
        assert_eq!(&again, bytes, "{name}");
    }
}

#[test]
fn the_text_has_the_numbers_of_the_code() {
    let title = format!("# Trace files, version {VERSION}\n");
    assert!(DOCUMENT.starts_with(&title));
    assert_eq!((&MAGIC, &SYNC), (b"FLTRACE\0", b"FLCK"));
    for text in [
        format!("a header of {CHUNK_HEADER} bytes"),
        format!("at most {MAX_CHUNK} bytes of records"),
        format!("the first {HEAD} bytes"),
        format!("at most {MAX_HEADS} TLPs"),
        "`FLTRACE` and a zero byte".to_owned(),
        "`FLCK`".to_owned(),
    ] {
        assert!(DOCUMENT.contains(&text), "no '{text}'");
    }
    for (role, name) in [(NodeRole::Host, 1), (NodeRole::Device, 2), (NodeRole::Switch, 3)] {
        assert!(DOCUMENT.contains(&format!("| {name} | {role} node |")), "{role}");
    }
    let mut out = Vec::new();
    for (tap, number) in [
        (Tap::ROOT_PORT, 0),
        (Tap::FUNCTION, 1),
        (Tap::UPLINK, 2),
        (Tap::link(0), 3),
        (Tap::link(63), 66),
        (Tap::link(99), 66),
    ] {
        out.clear();
        Record::Link { tap, state: LinkState::Connected }.encode(0, &mut out);
        assert_eq!(out[3], number, "{tap}");
    }
}
