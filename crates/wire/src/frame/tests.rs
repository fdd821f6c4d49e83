//! Golden bytes of `docs/protocol.md`, and properties.

use super::*;
use proptest::prelude::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    (0..digits.len())
        .step_by(2)
        .map(|i| u8::from_str_radix(&digits[i..i + 2], 16).unwrap())
        .collect()
}

#[track_caller]
fn golden(control: Control, bytes: &str) {
    let mut out = Vec::new();
    control.encode(&mut out);
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
    bad[2..4].copy_from_slice(&[11, 0]);
    assert_eq!(Header::decode(bad), Err(Malformed::Kind(11)));
}

#[test]
fn control_frames() {
    let credits = [
        Grant { headers: 1024, data: 65_536 },
        Grant { headers: 1024, data: 1024 },
        Grant { headers: 1, data: 0xffff_ffff },
    ];
    let grants = "00000400 00010000 00000400 00000400 00000001 ffffffff";
    let hello = Hello {
        version: 1,
        role: Role::Host,
        max_payload: 4096,
        group: 5,
        instance: 0x1122_3344_5566_7788,
        credits,
    };
    golden(
        Control::Hello(hello),
        &format!("4641524c414e4500 0001 01 00 1000 0005 1122334455667788 {grants}"),
    );
    golden(Control::Reject { reason: Reject::Busy, version: 1 }, "4641524c414e4500 0001 02 00");
    golden(Control::Credits(credits), grants);
    golden(Control::Acknowledge, "");
    golden(Control::Echo(7), "0000000000000007");
    golden(Control::EchoReply(7), "0000000000000007");
    golden(Control::Reset, "");
    golden(Control::ResetDone, "");
    golden(Control::Goodbye, "");
    golden(Control::Move(0x0102), "0102");
    golden(Control::Reject { reason: Reject::Group, version: 1 }, "4641524c414e4500 0001 04 00");
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
    fn hostile_payloads_never_panic(kind in 0u8..12, payload in prop::collection::vec(any::<u8>(), 0..64)) {
        if let Ok(kind) = Kind::from_byte(kind)
            && let Ok(control) = Control::decode(kind, &payload)
        {
            prop_assert_eq!(control.kind(), kind);
        }
    }

    #[test]
    fn headers_round_trip(bytes in any::<[u8; HEADER]>()) {
        if let Ok(header) = Header::decode(bytes) {
            prop_assert_eq!(header.encode(), bytes);
        }
    }
}
