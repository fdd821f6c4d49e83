//! Golden bytes and properties of the codec.

use super::*;
use crate::id::{Bdf, Tag};
use crate::{encoded, hex};
use proptest::prelude::*;

#[track_caller]
fn golden(tlp: &Tlp, bytes: &str) {
    let out = encoded(|out| tlp.encode(out));
    assert_eq!(out, hex(bytes), "encoded {}", tlp.mnemonic());
    assert_eq!(out.len(), tlp.wire_length());
    let mut input = Bytes::from(out);
    assert_eq!(&Tlp::decode(&mut input).unwrap(), tlp);
    assert!(input.is_empty());
}

fn request(address: u64, length: usize) -> MemoryRequest {
    MemoryRequest::for_bytes(Bdf::new(3, 0, 0), Tag::new(0x2a5).unwrap(), address, length).unwrap()
}

#[test]
fn memory_requests() {
    // T9=1 T8=0 in byte 1; 16 DW; BE ff.
    golden(&Tlp::memory_read(request(0x1234_5000, 64)), "00800010 0300a5ff 12345000");
    golden(&Tlp::memory_read(request(0x1_1234_5000, 64)), "20800010 0300a5ff 00000001 12345000");
    golden(
        &Tlp::memory_write(request(0xfebf_1008, 4), Bytes::from_static(&[1, 2, 3, 4])),
        "40800001 0300a50f febf1008 01020304",
    );
    golden(
        &Tlp::memory_write(
            request(0x8_0000_0002, 4),
            Bytes::from_static(&[0, 0, 3, 4, 5, 6, 0, 0]),
        ),
        "60800002 0300a53c 00000008 00000000 00000304 05060000",
    );
}

#[test]
fn a_read_of_4096_bytes_has_length_zero() {
    golden(&Tlp::memory_read(request(0x1000, 4096)), "00800000 0300a5ff 00001000");
}

#[test]
fn config_requests() {
    let config = ConfigRequest {
        kind: ConfigKind::Type1,
        requester: Bdf::new(0, 0, 0),
        tag: Tag::new(7).unwrap(),
        target: Bdf::new(2, 1, 0),
        register: 0x104,
        first_be: 0xf,
    };
    golden(&Tlp::new(Packet::ConfigRead(config), Bytes::new()), "05000001 0000070f 02080104");
    let config = ConfigRequest { kind: ConfigKind::Type0, register: 4, first_be: 3, ..config };
    golden(
        &Tlp::new(Packet::ConfigWrite(config), Bytes::from_static(&[6, 4, 0, 0])),
        "44000001 00000703 02080004 06040000",
    );
}

#[test]
fn completions_with_every_status() {
    let completion = |status, byte_count| Completion {
        completer: Bdf::new(3, 0, 0),
        requester: Bdf::new(0, 0, 0),
        tag: Tag::new(0x105).unwrap(),
        status,
        byte_count,
        lower_address: 0x44,
        byte_count_modified: false,
    };
    let mut data = Tlp::completion(completion(Status::Success, 8));
    data.data = Bytes::from_static(&[9; 8]);
    golden(&data, "4a080002 03000008 00000544 0909090909090909");
    golden(
        &Tlp::completion(completion(Status::UnsupportedRequest, 4)),
        "0a080000 03002004 00000544",
    );
    golden(&Tlp::completion(completion(Status::ConfigRetry, 4)), "0a080000 03004004 00000544");
    golden(
        &Tlp::completion(completion(Status::CompleterAbort, 4096)),
        "0a080000 03008000 00000544",
    );
}

#[test]
fn messages() {
    let requester = Bdf::new(3, 0, 0);
    golden(&Tlp::intx(requester, message_code::ASSERT_INTA), "34000000 03000020 00000000 00000000");
    let vendor = Message {
        requester,
        tag: Tag::default(),
        routing: Routing::ById,
        code: message_code::VENDOR_TYPE_1,
        body: [1, 0, 0x1a, 0xf4, 0, 0, 0, 1],
    };
    golden(
        &Tlp::new(Packet::Message(vendor), Bytes::from_static(&[0xaa; 4])),
        "72000001 0300007f 01001af4 00000001 aaaaaaaa",
    );
}

#[test]
fn attributes_poison_and_traffic_class() {
    let mut tlp = Tlp::memory_read(request(0x1000, 4));
    tlp.tc = 5;
    tlp.attributes = Attributes { no_snoop: true, relaxed: true, id_based: true };
    tlp.poisoned = true;
    golden(&tlp, "00d47001 0300a50f 00001000");
}

#[test]
fn ecrc_guards_everything_but_the_variant_bits() {
    let mut tlp = Tlp::memory_write(request(0x1000, 4), Bytes::from_static(&[1, 2, 3, 4]));
    tlp.digest = true;
    let bytes = encoded(|out| tlp.encode(out));
    // CRC-32 of the packet with Type[0] and EP set, from an independent
    // implementation (zlib.crc32 of 41 80 c0 01 03 00 a5 0f 00 00 10 00 01 02 03 04).
    assert_eq!(bytes[16..], ECRC_BY_ZLIB);
    let mut poisoned = bytes.clone();
    poisoned[2] |= 0x40;
    assert!(Tlp::decode(&mut Bytes::from(poisoned)).unwrap().poisoned);
    for bit in (0..bytes.len() * 8).filter(|bit| ![2 * 8 + 6, 0, 2 * 8 + 7].contains(bit)) {
        let mut bad = bytes.clone();
        bad[bit / 8] ^= 1 << (bit % 8);
        assert!(Tlp::decode(&mut Bytes::from(bad)).is_err(), "bit {bit} unnoticed");
    }
}

const ECRC_BY_ZLIB: [u8; 4] = [0xed, 0xe7, 0x8e, 0x4e];

#[test]
fn malformed_packets_are_named() {
    let decode = |text| Tlp::decode(&mut Bytes::from(hex(text))).unwrap_err();
    assert_eq!(decode("0000"), Malformed::Short { need: 4, have: 2 });
    assert_eq!(decode("00000010 0300a5ff"), Malformed::Short { need: 12, have: 8 });
    assert_eq!(decode("02000001 0300a50f 00001000"), Malformed::FmtType(0x02));
    assert_eq!(decode("04000002 0000070f 02080104"), Malformed::ConfigLength(2));
    assert_eq!(decode("04100001 0000070f 02080104"), Malformed::TrafficClass(1));
    assert_eq!(decode("00000401 0300a50f 00001000"), Malformed::Reserved);
    assert_eq!(
        decode("00000001 0300a5ff 00001000"),
        Malformed::ByteEnables { first: 15, last: 15, length_dw: 1 }
    );
    assert_eq!(
        decode("00000002 0300a5ff 00001ffc"),
        Malformed::Crosses4K { address: 0x1ffc, length_dw: 2 }
    );
    assert_eq!(decode("20000001 0300a50f 00000000 00001000"), Malformed::WideLowAddress(0x1000));
}

#[test]
fn byte_counts_follow_the_enables() {
    for (address, length) in
        [(0x1000u64, 1usize), (0x1003, 1), (0x1001, 2), (0x1002, 6), (0x1003, 4093), (0x1000, 4096)]
    {
        let r = request(address, length);
        assert_eq!(r.byte_count(), length, "{address:#x}+{length}");
        assert_eq!(r.first_byte(), address);
    }
    let flush = MemoryRequest { first_be: 0, ..request(0x1000, 4) };
    assert_eq!(flush.byte_count(), 1, "zero-length read");
    assert_eq!(MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1fff, 2), None);
    assert_eq!(MemoryRequest::for_bytes(Bdf::default(), Tag::default(), u64::MAX, 2), None);
}

prop_compose! {
    fn tag()(bits in 0..=Tag::MAX) -> Tag {
        Tag::truncate(bits)
    }
}

prop_compose! {
    fn bdf()(bits: u16) -> Bdf {
        Bdf::from_bits(bits)
    }
}

prop_compose! {
    fn memory()(
        requester in bdf(), tag in tag(), page: u64, offset in 0u64..4096,
        length in 1usize..=4096, write: bool, fill: u8,
    ) -> Tlp {
        let (address, length) = (page & !0xfff | offset, length.min(4096 - offset as usize));
        let r = MemoryRequest::for_bytes(requester, tag, address, length).expect("one page");
        let data = vec![fill; r.length()].into();
        if write { Tlp::memory_write(r, data) } else { Tlp::memory_read(r) }
    }
}

prop_compose! {
    fn config()(
        requester in bdf(), target in bdf(), tag in tag(), dword in 0u16..1024,
        first_be in 0u8..16, type0: bool, write: bool,
    ) -> Tlp {
        let kind = if type0 { ConfigKind::Type0 } else { ConfigKind::Type1 };
        let c = ConfigRequest { kind, requester, tag, target, register: dword * 4, first_be };
        let data = Bytes::from_static(&[1, 2, 3, 4]);
        if write {
            Tlp::new(Packet::ConfigWrite(c), data)
        } else {
            Tlp::new(Packet::ConfigRead(c), Bytes::new())
        }
    }
}

prop_compose! {
    fn completion()(
        completer in bdf(), requester in bdf(), tag in tag(), status in 0u8..8,
        byte_count in 1u16..=4096, lower_address in 0u8..128, byte_count_modified: bool,
        dwords in 0usize..=1024,
    ) -> Tlp {
        let status = Status::from_bits(status);
        let c = Completion {
            completer, requester, tag, status, byte_count, lower_address, byte_count_modified,
        };
        Tlp::new(Packet::Completion(c), vec![7; dwords * 4].into())
    }
}

prop_compose! {
    fn message()(
        requester in bdf(), tag in tag(), routing in 0u8..8, code: u8, body: [u8; 8],
        dwords in 0usize..4,
    ) -> Tlp {
        let m = Message { requester, tag, routing: Routing::from_bits(routing), code, body };
        Tlp::new(Packet::Message(m), vec![9; dwords * 4].into())
    }
}

prop_compose! {
    fn any_tlp()(
        mut tlp in prop_oneof![memory(), config(), completion(), message()], tc in 0u8..8,
        attributes in 0u8..8, poisoned: bool, digest: bool,
    ) -> Tlp {
        if !matches!(tlp.packet, Packet::ConfigRead(_) | Packet::ConfigWrite(_)) {
            tlp.tc = tc;
        }
        tlp.attributes = Attributes::from_bits(attributes);
        Tlp { poisoned, digest, ..tlp }
    }
}

#[test]
fn mark_is_not_encoded_or_compared() {
    let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1000, 4).unwrap();
    let plain = Tlp::memory_read(request);
    let marked = Tlp { trace_id: TraceId::new(7), ..plain.clone() };
    assert_eq!(marked, plain);
    assert_eq!(format!("{marked:?}"), format!("{plain:?}"));
    let bytes = encoded(|out| marked.encode(out));
    assert_eq!(bytes, encoded(|out| plain.encode(out)));
    let back = Tlp::decode(&mut Bytes::from(bytes)).unwrap();
    assert_eq!((back.trace_id, marked.clone().trace_id), (TraceId::NONE, TraceId::new(7)));
}

proptest! {
    #[test]
    fn every_packet_survives_the_round_trip(tlp in any_tlp(), rest in prop::collection::vec(any::<u8>(), 0..8)) {
        let mut out = encoded(|out| tlp.encode(out));
        prop_assert_eq!(total_length(&out), Some(out.len()));
        out.extend(&rest);
        let mut input = Bytes::from(out);
        prop_assert_eq!(Tlp::decode(&mut input).unwrap(), tlp);
        prop_assert_eq!(&input[..], &rest[..]);
    }

    #[test]
    fn hostile_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
        let mut input = Bytes::from(bytes.clone());
        if let Ok(tlp) = Tlp::decode(&mut input) {
            let again = encoded(|out| tlp.encode(out));
            prop_assert_eq!(again.len() + input.len(), bytes.len());
        } else {
            prop_assert_eq!(input.len(), bytes.len());
        }
    }
}
