//! `docs/protocol.md` and the codec agree: the tests build every example of the document with the
//! codec.

use crate::document::{assert_same, examples};
use bytes::Bytes;
use std::collections::BTreeMap;
use wire::frame::{
    Control, Grant, HEADER, Header, Hello, HostAfter, Kind, LinkConnection, MAX_ENTRIES, MAX_HELLO,
    MoveStatus, Moved, Reject, Role, Survival,
};
use wire::raw::{self, Bitmap, Body, Offer, Reason, Sequence};
use wire::tlp::Tlp;
use wire::{Bdf, Tag};

const DOCUMENT: &str = include_str!("../../../../../docs/protocol.md");

fn frame(kind: Kind, sequence: u32, acknowledged: u32, payload: &[u8]) -> Vec<u8> {
    let header = Header { length: payload.len() as u16, kind, sequence, acknowledged };
    [&header.encode()[..], payload].concat()
}

fn control(control: Control, acknowledged: u32) -> Vec<u8> {
    let mut payload = Vec::new();
    control.encode(&mut payload);
    assert_eq!(Control::decode(control.kind(), &payload), Ok(control));
    frame(control.kind(), 0, acknowledged, &payload)
}

fn grants(pairs: [(u32, u32); 3]) -> [Grant; 3] {
    pairs.map(|(headers, data)| Grant { headers, data })
}

fn hello() -> Control {
    Control::Hello(Hello {
        version: 2,
        role: Role::Host,
        max_payload: 4096,
        group: 5,
        instance: 0x1122_3344_5566_7788,
        push: 0,
        session: None,
        paths: None,
        connection: None,
        lease_ms: 0,
        credits: grants([(1024, 65_536), (1024, 1024), (1, u32::MAX)]),
    })
}

/// A Hello of a session, which begins or expects this frame.
fn hello_of_session(role: Role, expected: Option<u32>) -> Control {
    let Control::Hello(hello) = hello() else { unreachable!("it is one") };
    let id = if role == Role::Host { 0xa0a1_a2a3_a4a5_a6a7_a8a9_aaab_0000_0001 } else { 0 };
    let session = Some(Survival { id, survive_ms: 10_000, expected });
    Control::Hello(Hello { role, group: 0, session, ..hello })
}

/// A Hello of connection 2 of a link.
fn hello_of_further_connection() -> Control {
    let Control::Hello(hello) = hello() else { unreachable!("it is one") };
    let link = 0xa0a1_a2a3_a4a5_a6a7_a8a9_aaab_0000_0001;
    let connection = Some(LinkConnection { link, number: 2, queue_pairs: 4 });
    Control::Hello(Hello { group: 0, connection, ..hello })
}

/// The answer of a device that stores 1 MiB of pushed bytes.
fn hello_of_device() -> Control {
    let Control::Hello(hello) = hello() else { unreachable!("it is one") };
    Control::Hello(Hello { role: Role::Device, group: 0, push: 1 << 20, ..hello })
}

/// A Hello of a later version, with one entry that a receiver may ignore and one that it may not.
fn hello_with_entries() -> Vec<u8> {
    let mut payload = Vec::new();
    hello().encode(&mut payload);
    payload.extend([0, 7, 0, 3, 0xaa, 0xbb, 0xcc]);
    assert_eq!(Control::decode(Kind::Hello, &payload), Ok(hello()));
    payload.extend([0x80, 9, 0, 0]);
    assert_eq!(Control::decode(Kind::Hello, &payload), Err(wire::frame::Malformed::Required(9)));
    frame(Kind::Hello, 0, 0, &payload)
}

fn reject(reason: Reject) -> Vec<u8> {
    control(Control::Reject { reason, version: 2 }, 0)
}

fn tlps() -> Vec<u8> {
    let value = Bytes::from_static(&[1, 0, 0, 0]);
    let doorbell = Tlp::write_bytes(Bdf::new(0, 0, 0), 0xfe80_1008, &value);
    let fetch = Tlp::read_bytes(Bdf::new(3, 0, 0), Tag::truncate(5), 0x1_2345_6000, 64);
    let mut payload = Vec::new();
    [doorbell, fetch].into_iter().for_each(|tlp| tlp.expect("one page").encode(&mut payload));
    frame(Kind::Tlps, 5, 9, &payload)
}

fn meanings() -> BTreeMap<String, Vec<u8>> {
    let credits = grants([(1280, 66_560), (1024, 1025), (1024, 65_536)]);
    let header = Header {
        length: 0x1234,
        kind: Kind::Tlps,
        sequence: 0x0102_0304,
        acknowledged: 0xa0b0_c0d0,
    };
    let (status, host) = (MoveStatus::Done, HostAfter::Disconnected);
    let moved = Moved { status, host, awaited: true, from: 5, to: 7 };
    let examples = [
        ("header-alone", header.encode().to_vec()),
        ("hello", control(hello(), 0)),
        ("hello-of-device", control(hello_of_device(), 0)),
        ("hello-with-entries", hello_with_entries()),
        ("hello-of-further-connection", control(hello_of_further_connection(), 0)),
        ("hello-that-begins", control(hello_of_session(Role::Host, None), 0)),
        ("hello-that-goes-on", control(hello_of_session(Role::Host, Some(7)), 7)),
        ("hello-of-device-that-goes-on", control(hello_of_session(Role::Device, Some(9)), 9)),
        ("reject", reject(Reject::Busy)),
        ("reject-version", reject(Reject::Version)),
        ("reject-entry", reject(Reject::UnknownEntry(9))),
        ("tlps", tlps()),
        ("credits", control(Control::Credits(credits), 6)),
        ("acknowledge", control(Control::Acknowledge, 64)),
        ("echo", control(Control::Echo(7), 0)),
        ("echo-reply", control(Control::EchoReply(7), 0)),
        ("reset", control(Control::Reset(3), 17)),
        ("reset-done", control(Control::ResetDone(3), 18)),
        ("goodbye", control(Control::Goodbye, 17)),
        ("move", control(Control::Move(7), 0)),
        ("moved", control(Control::Moved(moved), 0)),
    ];
    examples.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect()
}

#[test]
fn examples_are_what_the_codec_makes() {
    assert_same(&examples(DOCUMENT, "frame"), &meanings());
}

fn raw_frame(acknowledged: u32, body: Body<'_>) -> Vec<u8> {
    let frame = raw::Frame { connection: 0x2a, acknowledged: Sequence::new(acknowledged), body };
    let mut out = Vec::new();
    frame.encode(&mut out);
    assert_eq!(raw::Frame::decode(&out), Ok(frame));
    out
}

#[test]
fn examples_of_raw_ethernet_are_what_the_codec_makes() {
    let mut bitmap = Bitmap::default();
    [0, 2, 3, 8].into_iter().for_each(|bit| bitmap.set(bit));
    let segment = control(Control::Acknowledge, 64);
    let data = Body::Data { sequence: Sequence::new(5), segment: &segment };
    let ack = Body::Ack { newest: Sequence::new(0x10), waited: 250, bitmap };
    let meanings = [
        ("open", raw_frame(0, Body::Open(Offer { segment: 1488, window: 256 }))),
        ("accept", raw_frame(0, Body::Accept(Offer { segment: 1488, window: 128 }))),
        ("data", raw_frame(9, data)),
        ("ack", raw_frame(12, ack)),
        ("close", raw_frame(0, Body::Close(Reason::Unknown))),
    ];
    let meanings = meanings.into_iter().map(|(name, bytes)| (name.to_owned(), bytes)).collect();
    assert_same(&examples(DOCUMENT, "raw"), &meanings);
}

#[test]
fn the_table_of_raw_ethernet_names_every_kind() {
    for kind in 1..=5u8 {
        let name = format!("{:?}", raw::Kind::from_number(kind).expect("kinds 1 to 5"));
        assert!(DOCUMENT.contains(&format!("| {kind} | {name} |")), "kind {kind} {name}");
    }
    assert!(raw::Kind::from_number(6).is_none());
    assert!(DOCUMENT.contains(&format!("a header of {} bytes", raw::HEADER)));
    assert!(DOCUMENT.contains("EtherType 0x88B5") && raw::ETHERTYPE == 0x88b5);
}

#[test]
fn the_tables_name_every_kind_and_the_version() {
    for kind in 0..=11u8 {
        let name = format!("{:?}", Kind::from_byte(kind).expect("kinds 0 to 11"));
        let name = if name == "Tlps" { "TLPs".to_owned() } else { name };
        assert!(DOCUMENT.contains(&format!("| {kind} | {name} |")), "kind {kind} {name}");
    }
    assert!(Kind::from_byte(12).is_err());
    assert!(
        DOCUMENT.starts_with(&format!("# The tunnel protocol, version {}\n", wire::frame::VERSION))
    );
    assert!(DOCUMENT.contains(&format!("a header of {HEADER} bytes")));
    let bounds = format!("at most {MAX_HELLO} bytes and {MAX_ENTRIES} entries");
    assert!(DOCUMENT.contains(&bounds), "no '{bounds}'");
}
