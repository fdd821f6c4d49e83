//! Greetings of other versions and of other protocols.

use super::*;

fn hex(text: &str) -> Vec<u8> {
    let digits: String = text.split_whitespace().collect();
    let byte = |at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap();
    (0..digits.len()).step_by(2).map(byte).collect()
}

/// The greeting of a host of version 1, in group 5.
const HELLO_1: &str = "0030 01 00 00000000 00000000 4641524c414e4500 0001 01 00 1000 0005 \
    1122334455667788 00000400 00010000 00000400 00000400 00000400 00010000";
/// The answer of a device of version 1 to any other version.
const REJECT_1: &str = "000c 02 00 00000000 00000000 4641524c414e4500 0001 01 00";
/// The answer of this version to any other version.
const REJECT_2: &str = "000c 02 00 00000000 00000000 4641524c414e4500 0002 01 00";
/// The frame header with `length`, and the fixed part of this version's greeting.
fn hello_2(length: &str, role: &str) -> String {
    format!(
        "{length} 01 00 00000000 00000000 4641524c414e4500 0002 {role} 00 1000 0000 \
         1122334455667788 00000400 00010000 00000400 00000400 00000400 00010000"
    )
}

/// Passes `bytes` to an end in pieces of `cut` bytes. Returns the cause of a link down, if any, and
/// the bytes sent.
fn hears(role: Role, bytes: &[u8], cut: usize) -> (Option<Cause>, Vec<u8>) {
    let mut end = Tunnel::new(Settings { instance: 1, ..Settings::new(role, 1) });
    let (mut cause, mut sent) = (None, Vec::new());
    end.handle(Instant::ZERO, Input::Connected);
    for piece in bytes.chunks(cut) {
        end.handle(Instant::ZERO, Input::Received(Bytes::copy_from_slice(piece)));
    }
    end.handle(Instant::ZERO, Input::CanTransmit { bytes: 10_000 });
    loop {
        match end.poll(Instant::ZERO) {
            Output::Timeout(_) => return (cause, sent),
            Output::Transmit(_, bytes) => sent.extend_from_slice(&bytes),
            Output::Down(why) => cause = Some(why),
            _ => {}
        }
    }
}

#[test]
fn a_host_of_version_1_is_rejected_in_the_form_that_it_reads() {
    let (cause, sent) = hears(Role::Device, &hex(HELLO_1), 100);
    assert_eq!(cause, Some(Cause::Version { own: Role::Device, theirs: 1 }));
    assert_eq!(sent, hex(REJECT_2));
    let message = cause.unwrap().to_string();
    assert!(message.contains("the host uses version 1"), "{message}");
    assert!(message.contains("this node uses version 2; upgrade the host node"), "{message}");
}

#[test]
fn device_of_version_1_is_reported_with_its_version() {
    for role in [Role::Host, Role::Probe] {
        // The far side answers, or sends its own greeting first.
        for answer in [REJECT_1, HELLO_1] {
            let (cause, sent) = hears(role, &hex(answer), 100);
            assert_eq!(cause, Some(Cause::Version { own: role, theirs: 1 }));
            assert_eq!(sent[2], Kind::Hello as u8);
            assert_eq!(sent.len(), 60, "the greeting, and nothing behind it");
            let message = cause.unwrap().to_string();
            assert!(message.contains("the device uses version 1"), "{message}");
            assert!(message.contains("uses version 2; upgrade the device node"), "{message}");
        }
    }
}

#[test]
fn greeting_of_later_version_is_read_only_to_version_number() {
    let later = "000c 01 00 00000000 00000000 4641524c414e4500 0009 ffff";
    let (cause, sent) = hears(Role::Device, &hex(later), 1);
    assert_eq!(sent, hex(REJECT_2));
    let message = cause.unwrap().to_string();
    assert!(message.contains("version 9") && message.ends_with("upgrade this node"), "{message}");
    // A Reject of another version may have other reasons and lengths.
    for reject in [
        "000d 02 00 00000000 00000000 4641524c414e4500 0009 02 00 ff",
        "000c 02 00 00000000 00000000 4641524c414e4500 0009 05 00",
    ] {
        let (cause, _) = hears(Role::Host, &hex(reject), 1);
        assert_eq!(cause, Some(Cause::Version { own: Role::Host, theirs: 9 }));
    }
}

#[test]
fn unknown_optional_entries_are_ignored_and_required_ones_rejected() {
    let ignored = hello_2("0037", "01") + "0007 0003 aabbcc";
    assert_eq!(hears(Role::Device, &hex(&ignored), 3).0, None);
    let required = hello_2("0034", "01") + "8009 0000";
    let (cause, sent) = hears(Role::Device, &hex(&required), 100);
    assert_eq!(cause, Some(Cause::Requires(9)));
    assert_eq!(sent, hex("000e 02 00 00000000 00000000 4641524c414e4500 0002 05 00 0009"));
    // A host receives this Reject.
    let (cause, _) = hears(Role::Host, &sent, 100);
    assert_eq!(cause, Some(Cause::Rejected(Reject::UnknownEntry(9))));
    let message = cause.unwrap().to_string();
    assert!(
        message.contains("entry 9") && message.ends_with("upgrade the device node"),
        "{message}"
    );
    let (cause, sent) = hears(Role::Host, &hex(&required), 100);
    assert_eq!((cause.as_ref(), sent.len()), (Some(&Cause::Requires(9)), 60));
    let message = cause.unwrap().to_string();
    assert!(message.contains("entry 9") && message.ends_with("upgrade this node"), "{message}");
    let missing = "000e 02 00 00000000 00000000 4641524c414e4500 0002 06 00 000c";
    let message = hears(Role::Host, &hex(missing), 100).0.unwrap().to_string();
    assert!(
        message.contains("requires entry 12") && message.ends_with("upgrade this node"),
        "{message}"
    );
    let other = "000c 02 00 00000000 00000000 4641524c414e4500 0002 63 00";
    let message = hears(Role::Host, &hex(other), 100).0.unwrap().to_string();
    assert!(message.contains("reason 99"), "{message}");
}

#[test]
fn malformed_entries_close_without_an_answer() {
    for entries in ["0007 0001", "0007 0000 0007 0000", "8009 0000 0001 0001 00", "00"] {
        let mut greeting = hex(&(hello_2("0000", "01") + entries));
        greeting[1] = (greeting.len() - frame::HEADER) as u8;
        let (cause, sent) = hears(Role::Device, &greeting, 100);
        assert!(matches!(cause, Some(Cause::Frame(_))), "{entries}: {cause:?}");
        assert_eq!(sent, [0; 0], "{entries}");
    }
}

#[test]
fn unknown_protocol_error_quotes_received_bytes() {
    let says = |role, bytes: &[u8], quoted: &str| {
        for cut in [1, 5, 100] {
            let (cause, sent) = hears(role, bytes, cut);
            assert!(role != Role::Device || sent.is_empty());
            let message = cause.expect("it closes").to_string();
            assert!(
                message.starts_with("the far side does not use farlane's protocol: it sent '"),
                "{message}"
            );
            // The message quotes the bytes that arrived at once.
            let short = quoted.chars().take(cut).collect::<String>();
            assert!(message.contains(if cut > 5 { quoted } else { &short }), "{message}");
        }
    };
    says(Role::Device, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n", "'GET / HTTP/1…'");
    says(Role::Host, b"HTTP/1.1 400 Bad Request\r\n", "'HTTP/1.1 400…'");
    says(Role::Host, b"SSH-2.0-OpenSSH_9.9\r\n", "'SSH-2.0-Open…'");
    // Control characters from a peer must not reach the terminal.
    says(Role::Device, b"\x1b[2J'\r\n\r\n\r\n\r\n\r\n", "\\x1b[2J");
    says(Role::Device, b"\0\0\x04\0\0\0\0\0\0\0\0\0", "");
}

#[test]
fn tls_is_recognised() {
    for bytes in
        [&b"\x16\x03\x01\x02\0\x01\0\x01\xfc\x03\x03\x1b"[..], b"\x15\x03\x03\0\x02\x02\x28"]
    {
        let (cause, _) = hears(Role::Probe, bytes, 100);
        let message = cause.expect("it closes").to_string();
        assert!(message.contains("uses TLS") && message.contains("--key"), "{message}");
    }
}

#[test]
fn a_far_side_that_does_not_greet_is_told_from_one_that_is_lost() {
    let hello = hex(&(hello_2("0030", "02")));
    for (greets, closes, expected) in [
        (false, false, Cause::Ungreeted),
        (false, true, Cause::ClosedUngreeted),
        (true, false, Cause::Lost),
        (true, true, Cause::Disconnected),
    ] {
        let mut end = Tunnel::new(Settings::new(Role::Host, 1));
        end.handle(Instant::ZERO, Input::Connected);
        if greets {
            end.handle(Instant::ZERO, Input::Received(Bytes::copy_from_slice(&hello)));
        }
        let later = Instant::ZERO + Settings::new(Role::Host, 1).loss_limit;
        if closes {
            end.handle(later, Input::Disconnected);
        }
        let down = std::iter::repeat_with(|| end.poll(later));
        let down = down.take(4).find(|output| matches!(output, Output::Down(_)));
        assert_eq!(down, Some(Output::Down(expected)));
    }
}
