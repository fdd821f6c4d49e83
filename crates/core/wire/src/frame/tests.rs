//! Golden bytes of `docs/protocol.md`, and properties.

use super::*;
use crate::{encoded, hex};
use proptest::prelude::*;

#[track_caller]
fn golden(control: Control, bytes: &str) {
    let out = encoded(|out| control.encode(out));
    assert_eq!(out, hex(bytes));
    assert_eq!(Control::decode(control.kind(), &out), Ok(control));
}

#[test]
fn header() {
    let header = Header {
        length: 0x1234,
        kind: Kind::Tlps,
        sequence: 0x0102_0304,
        acknowledged: 0xa0b0_c0d0,
    };
    assert_eq!(header.encode().to_vec(), hex("1234 00 00 01020304 a0b0c0d0"));
    assert_eq!(Header::decode(header.encode()), Ok(header));
    let mut bad = header.encode();
    bad[3] = 1;
    assert_eq!(Header::decode(bad), Err(Malformed::Flags(1)));
    bad[2..4].copy_from_slice(&[12, 0]);
    assert_eq!(Header::decode(bad), Err(Malformed::Kind(12)));
}

const GRANTS: &str = "00000400 00010000 00000400 00000400 00000001 ffffffff";

fn hello(group: u16) -> Hello {
    let credits = [
        Grant { headers: 1024, data: 65_536 },
        Grant { headers: 1024, data: 1024 },
        Grant { headers: 1, data: 0xffff_ffff },
    ];
    let instance = 0x1122_3344_5566_7788;
    let (max_payload, push, session, paths, connection) = (4096, 0, None, None, None);
    let lease_ms = 0;
    let role = Role::Host;
    Hello {
        version: 2,
        role,
        max_payload,
        group,
        instance,
        push,
        session,
        paths,
        connection,
        lease_ms,
        credits,
    }
}

/// The fixed part of [`hello`], and entries.
fn hello_bytes(entries: &str) -> Vec<u8> {
    hex(&format!("4641524c414e4500 0002 01 00 1000 0000 1122334455667788 {GRANTS} {entries}"))
}

#[test]
fn control_frames() {
    golden(Control::Credits(hello(0).credits), GRANTS);
    golden(Control::Acknowledge, "");
    golden(Control::Echo(7), "0000000000000007");
    golden(Control::EchoReply(7), "0000000000000007");
    golden(Control::Reset(0x0102_0304), "01020304");
    golden(Control::ResetDone(0xffff_ffff), "ffffffff");
    golden(Control::Goodbye, "");
    golden(Control::Move(0x0102), "0102");
    let moved = |status, host, awaited| {
        Control::Moved(Moved { status, host, awaited, from: 1, to: 0x0203 })
    };
    golden(moved(MoveStatus::Done, HostAfter::Disconnected, true), "00 02 01 00 0001 0203");
    golden(moved(MoveStatus::Fixed, HostAfter::Stays, false), "01 01 00 00 0001 0203");
    golden(moved(MoveStatus::Switch, HostAfter::Stays, false), "02 01 00 00 0001 0203");
    golden(moved(MoveStatus::Other(9), HostAfter::None, false), "09 00 00 00 0001 0203");
    let undefined = hex("00 03 00 00 0001 0203");
    assert!(matches!(Control::decode(Kind::Moved, &undefined), Err(Malformed::Field { .. })));
}

#[test]
fn greetings() {
    let bytes = |hello| {
        let out = encoded(|out| Control::Hello(hello).encode(out));
        assert_eq!(Control::decode(Kind::Hello, &out), Ok(Control::Hello(hello)));
        out
    };
    assert_eq!(bytes(hello(0)), hello_bytes(""));
    assert_eq!(bytes(hello(5)), hello_bytes("0001 0002 0005"));
    let id = 0x0011_2233_4455_6677_8899_aabb_ccdd_eeff;
    let session = |expected| Some(Survival { id, survive_ms: 10_000, expected });
    let named = "00112233445566778899aabbccddeeff 00002710";
    let begins = Hello { session: session(None), ..hello(0) };
    assert_eq!(bytes(begins), hello_bytes(&format!("0003 0014 {named}")));
    let goes_on = Hello { session: session(Some(7)), ..hello(0) };
    assert_eq!(bytes(goes_on), hello_bytes(&format!("0003 0018 {named} 00000007")));
    let of_device = |expected| {
        let session = Some(Survival { id: 0, survive_ms: 10_000, expected });
        bytes(Hello { role: Role::Device, session, ..hello(0) })[FIXED_HELLO..].to_vec()
    };
    let both = Hello { paths: Some(Paths::Both), ..hello(0) };
    assert_eq!(bytes(both), hello_bytes("0004 0001 02"));
    let connection = |link| Some(LinkConnection { link, number: 3, queue_pairs: 16 });
    let further = bytes(Hello { connection: connection(id), ..hello(0) });
    assert_eq!(further, hello_bytes("0005 0014 00112233445566778899aabbccddeeff 0003 0010"));
    let device = Hello { role: Role::Device, connection: connection(0), ..hello(0) };
    assert_eq!(bytes(device)[FIXED_HELLO..], hex("0005 0004 0003 0010"));
    let leased = Hello { lease_ms: 1000, ..hello(0) };
    assert_eq!(bytes(leased), hello_bytes("0006 0004 000003e8"));
    assert_eq!(of_device(None), hex("0003 0004 00002710"));
    assert_eq!(of_device(Some(7)), hex("0003 0008 00002710 00000007"));
}

#[test]
fn rejects() {
    let reject = |reason, version, bytes: &str| {
        let bytes = format!("4641524c414e4500 {bytes}");
        golden(Control::Reject { reason, version }, &bytes);
    };
    reject(Reject::Version, 2, "0002 01 00");
    reject(Reject::Busy, 2, "0002 02 00");
    reject(Reject::Role, 2, "0002 03 00");
    reject(Reject::Group(None), 2, "0002 04 00");
    reject(Reject::Group(Some((7, 1))), 2, "0002 04 00 0007 0001");
    reject(Reject::UnknownEntry(0x1234), 2, "0002 05 00 1234");
    reject(Reject::MissingEntry(7), 2, "0002 06 00 0007");
    reject(Reject::NoSession, 2, "0002 08 00");
    reject(Reject::Interrupted, 2, "0002 09 00");
    reject(Reject::NoLink, 2, "0002 0a 00");
    reject(Reject::Other(200), 9, "0009 c8 00");
    let decoded = |bytes: &str| Control::decode(Kind::Reject, &hex(bytes));
    assert_eq!(
        decoded("4641524c414e4500 0009 c8 00 aabbcc"),
        Ok(Control::Reject { reason: Reject::Other(200), version: 9 }),
        "what a later version adds is ignored"
    );
    for (reason, bytes) in [(5, "0003 05 00"), (6, "0003 06 00 1234")] {
        let other = Control::Reject { reason: Reject::Other(reason), version: 3 };
        let bytes = format!("4641524c414e4500 {bytes}");
        assert_eq!(decoded(&bytes), Ok(other), "only 12 bytes are the same in every version");
    }
    let short = |length| Err(Malformed::Length { kind: Kind::Reject, length });
    assert_eq!(decoded("4641524c414e4500 0002 05 00 12"), short(13));
    assert_eq!(decoded("4641524c414e4500 0002 01"), short(11));
}

/// The bytes that nodes of version 1 sent.
#[test]
fn version_1_is_read_as_it_was() {
    let first = format!("4641524c414e4500 0001 01 00 1000 0005 1122334455667788 {GRANTS}");
    let first = Control::decode(Kind::Hello, &hex(&first));
    assert_eq!(first, Ok(Control::Hello(Hello { version: 1, ..hello(5) })));
    let busy = Control::decode(Kind::Reject, &hex("4641524c414e4500 0001 02 00"));
    assert_eq!(busy, Ok(Control::Reject { reason: Reject::Busy, version: 1 }));
    let reject = Control::Reject { reason: Reject::Version, version: VERSION };
    assert_eq!(
        encoded(|out| reject.encode(out)),
        hex("4641524c414e4500 0002 01 00"),
        "12 bytes: version 1 reads no others"
    );
}

fn entries(entries: &str) -> Result<Control, Malformed> {
    Control::decode(Kind::Hello, &hello_bytes(entries))
}

#[test]
fn unknown_entries_are_ignored_or_named() {
    let known = |group| Ok(Control::Hello(hello(group)));
    assert_eq!(entries("0001 0002 0005  0007 0003 aabbcc  7fff 0000"), known(5));
    assert_eq!(entries("8001 0002 0005"), known(5), "a known one may be required");
    let pushing = Ok(Control::Hello(Hello { push: 0x0010_0000, ..hello(5) }));
    assert_eq!(entries("0001 0002 0005  0002 0004 00100000"), pushing);
    assert_eq!(entries("8007 0000"), Err(Malformed::Required(7)));
    assert_eq!(entries("0007 0000 8008 0001 ff 8009 0000"), Err(Malformed::Required(8)));
}

#[test]
fn malformed_entries_are_refused() {
    let wrong = |text: &str, number, says: &str| match entries(text) {
        Err(Malformed::Entry { number: n, fault }) => {
            assert!(n == number && fault.contains(says), "{text}: entry {n}: {fault}");
        }
        other => panic!("{text}: {other:?}"),
    };
    wrong("00", 0, "ends after");
    wrong("0001 00", 0, "ends after");
    wrong("0007 0001", 7, "ends after");
    wrong("0007 ffff 00", 7, "ends after");
    wrong("0001 0001 05", 1, "length");
    wrong("0001 0003 000500", 1, "length");
    wrong("0002 0003 001000", 2, "length is not 4");
    for length in [0, 4, 16, 19, 21, 25] {
        wrong(&format!("0003 {length:04x} {}", "00".repeat(length)), 3, "not that of a session");
    }
    wrong("0004 0002 0102", 4, "not 1 byte");
    for length in [0, 4, 19, 21] {
        wrong(&format!("0005 {length:04x} {}", "00".repeat(length)), 5, "not that of a connection");
    }
    wrong(&format!("0005 0014 {}", "00".repeat(20)), 5, "at least one queue pair");
    assert!(matches!(entries("0004 0001 03"), Err(Malformed::Field { .. })));
    wrong("0006 0002 0258", 6, "not 4 bytes");
    wrong("0007 0000 0007 0000", 7, "above");
    wrong("0007 0000 8007 0000", 7, "above");
    wrong("0007 0000 0001 0002 0005", 1, "above");
    // A required entry does not hide a malformed one behind it.
    wrong("8007 0000 0009 0001", 9, "ends after");
    let many = |count: u16| (1..=count).map(|n| format!("{:04x} 0000 ", n + 6)).collect::<String>();
    assert!(entries(&many(64)).is_ok());
    wrong(&many(65), 71, "more entries");
    let long = |length: usize| format!("0009 {length:04x} {}", "00".repeat(length));
    assert!(entries(&long(MAX_HELLO - 48 - 4)).is_ok());
    let length = MAX_HELLO + 1;
    let refused = Err(Malformed::Length { kind: Kind::Hello, length });
    assert_eq!(entries(&long(length - 48 - 4)), refused);
    let short = Control::decode(Kind::Hello, &hello_bytes("")[..47]);
    assert_eq!(short, Err(Malformed::Length { kind: Kind::Hello, length: 47 }));
}

#[test]
fn greeting_is_recognised_by_first_bytes() {
    let mut greeting = hex("0030 01 00 00000000 00000000");
    greeting.extend(hello_bytes(""));
    (0..greeting.len()).for_each(|end| assert!(may_be_greeting(&greeting[..end]), "{end} bytes"));
    let reject = hex("000c 02 00 00000000 00000000 4641524c414e4500 0001 02 00");
    assert!(may_be_greeting(&reject));
    for other in
        [&b"GET /"[..], b"SSH-2.0-x", b"\x16\x03\x01\x00", b"\0\0\x04\0", b"\0\x30\x01\x01"]
    {
        assert!(!may_be_greeting(other), "{other:?}");
    }
    greeting[HEADER] = b'f';
    assert!(!may_be_greeting(&greeting[..=HEADER]));
}

#[test]
fn strangers_and_other_versions() {
    assert_eq!(
        Control::decode(Kind::Hello, b"GET / HTTP/1.1\r\n"),
        Err(Malformed::Magic(*b"GET / HT"))
    );
    let newer = hex("4641524c414e4500 0009 ffffff");
    match Control::decode(Kind::Hello, &newer) {
        Ok(Control::Hello(hello)) => assert_eq!(hello.version, 9),
        other => panic!("{other:?}"),
    }
    assert_eq!(
        Control::decode(Kind::Credits, &[0; 23]),
        Err(Malformed::Length { kind: Kind::Credits, length: 23 })
    );
}

proptest! {
    #[test]
    fn hostile_payloads_never_panic(kind in 0u8..13, payload in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(kind) = Kind::from_byte(kind)
            && let Ok(control) = Control::decode(kind, &payload)
        {
            prop_assert_eq!(control.kind(), kind);
        }
    }

    #[test]
    fn hostile_entries_never_panic(tail in prop::collection::vec(prop_oneof![0u8..4, any::<u8>()], 0..64)) {
        let mut payload = hello_bytes("");
        payload.extend(tail);
        if let Ok(Control::Hello(found)) = Control::decode(Kind::Hello, &payload) {
            // The fixed part decodes to the same values with any entries.
            let fixed = Hello { group: 0, push: 0, session: None, paths: None, connection: None, lease_ms: 0, ..found };
            prop_assert_eq!(fixed, hello(0));
        }
    }

    #[test]
    fn headers_round_trip(bytes in any::<[u8; HEADER]>()) {
        if let Ok(header) = Header::decode(bytes) {
            prop_assert_eq!(header.encode(), bytes);
        }
    }
}
