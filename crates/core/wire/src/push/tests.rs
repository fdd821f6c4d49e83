use super::*;
use crate::tlp;
use crate::{encoded, hex};
use bytes::BytesMut;
use proptest::prelude::*;

const COMPLETER: Bdf = Bdf::new(0, 1, 0);
const TARGET: Bdf = Bdf::new(3, 0, 0);

fn records(records: &[Record]) -> Bytes {
    encoded(|out| records.iter().for_each(|record| record.encode(out))).into()
}

fn queue() -> Queue {
    let (base, completion_base) = (0x1_2345_6000, 0x7000);
    Queue { id: 2, last: 1023, head: 5, completion_last: 511, base, completion_base }
}

fn all() -> [Record; 6] {
    [
        Record::Queue(queue()),
        Record::Bytes {
            queue: 2,
            command: 0x1234,
            address: 0x1_2345_6140,
            bytes: Bytes::from_static(&[0xde, 0xad, 0xbe, 0xef]),
        },
        Record::EndCommand { queue: 2, command: 0x1234 },
        Record::EndQueue(2),
        Record::EndRange { address: 0x8000_0000, length: 0x10_0000 },
        Record::EndAll,
    ]
}

/// Every record on the wire, from the tables of docs/push.md.
const GOLDEN: &str = "
    0100 0002  03ff 0005 01ff 0000  0000000123456000 0000000000007000
    0200 0002  1234 0001  0000000123456140  deadbeef
    0300 0002  1234 0000
    0400 0002
    0500 0000  0000000080000000 0000000000100000
    0600 0000";

#[test]
fn records_are_as_documented() {
    assert_eq!(records(&all()), hex(GOLDEN));
    let (decoded, valid) =
        Records::check(&message(COMPLETER, TARGET, 64, false, hex(GOLDEN).into()));
    assert_eq!((decoded.collect::<Vec<_>>(), valid), (all().into(), Ok(())));
}

#[test]
fn a_message_has_the_header_of_vendor_defined_type_1() {
    let tlp = message(COMPLETER, TARGET, 256, false, records(&[Record::EndQueue(2)]));
    let mut bytes = BytesMut::new();
    tlp.encode(&mut bytes);
    // MsgD routed by ID (72h), 1 DW; requester, tag, code; target, vendor; subtype 1, 2^8 bytes.
    let golden = hex("72000001 0008007f 0300fa12 01080000 04000002");
    assert_eq!(bytes, golden);
    let decoded = Tlp::decode(&mut golden.into()).unwrap();
    assert_eq!(decoded, tlp);
    let push = Push {
        completer: COMPLETER,
        target: TARGET,
        completion_size: 256,
        digest: false,
        records: Records::check(&tlp).0,
    };
    assert_eq!(Push::decode(&decoded), Some(Ok(push)));
}

/// The message with another body or payload.
fn altered(change: impl FnOnce(&mut Message), payload: &str) -> Option<Result<Push, Malformed>> {
    let mut tlp = message(COMPLETER, TARGET, 4096, true, hex(payload).into());
    let Packet::Message(message) = &mut tlp.packet else { unreachable!("it is one") };
    change(message);
    Push::decode(&tlp)
}

#[test]
fn messages_of_other_vendors_and_types_are_ignored() {
    assert_eq!(altered(|message| message.body[3] ^= 1, ""), None, "another vendor");
    assert_eq!(altered(|message| message.code = 0x7e, ""), None, "type 0");
    assert_eq!(altered(|message| message.routing = Routing::Local, ""), None);
    assert_eq!(Push::decode(&Tlp::intx(COMPLETER, 0x20)), None);
}

#[test]
fn errors_name_the_field_and_what_is_allowed() {
    let error = |payload: &str| altered(|_| (), payload).unwrap().unwrap_err().to_string();
    let header = |at: usize, value| altered(|m| m.body[at] = value, "").unwrap().unwrap_err();
    assert_eq!(header(4, 9), Malformed::Subtype(9));
    for shift in [5, 13] {
        let text = header(5, shift).to_string();
        assert_eq!(
            text,
            format!("the completion size's logarithm is {shift:#x}: expected 6 to 12")
        );
    }
    assert_eq!(header(7, 1).to_string(), "bytes 14 and 15 is 0x1: expected 0");
    assert_eq!(error("07000000"), "unknown record kind '7': expected 1 to 6");
    assert_eq!(error("00000000"), "unknown record kind '0': expected 1 to 6");
    assert_eq!(error("04010002"), "byte 1 of a record is 0x1: expected 0");
    assert_eq!(error("06000002"), "the queue of a record without one is 0x2: expected 0");
    assert_eq!(error("03000002"), "truncated record: 0 bytes are left, it needs 4");
    let bytes = |rest: &str| error(&format!("02000002 1234{rest}"));
    assert_eq!(
        bytes("0000 0000000000001000"),
        "the length of Bytes is 0x0: expected 1 double word or more"
    );
    let address = "expected double words below 2^64";
    assert_eq!(
        bytes("0001 0000000000001002 00000000"),
        format!("the address of Bytes is 0x1002: {address}")
    );
    assert_eq!(
        bytes("0002 fffffffffffffffc 00000000"),
        format!("the address of Bytes is 0xfffffffffffffffc: {address}")
    );
    assert_eq!(
        bytes("0002 0000000000001000 00000000"),
        "truncated record: 4 bytes are left, it needs 8"
    );
    let queue = |rest: &str| error(&format!("01000002 {rest}"));
    let bases = "0000000000006000 0000000000007000";
    assert_eq!(
        queue(&format!("0000 0000 01ff 0000 {bases}")),
        "the last slot is 0x0: expected 1 to 65535"
    );
    assert_eq!(
        queue(&format!("03ff 0400 01ff 0000 {bases}")),
        "the head is 0x400: expected a slot of the queue"
    );
    assert!(
        queue("03ff 0000 01ff 0000 0000000000006040 0000000000007000")
            .starts_with("the base is 0x6040: expected a multiple of 4096")
    );
    assert!(
        queue("03ff 0000 01ff 0000 0000000000006000 ffffffffffffe000")
            .starts_with("the completion base is")
    );
}

fn any_record() -> impl Strategy<Value = Record> {
    let pair = any::<(u16, u16)>();
    let bases = (0..1u64 << 51, 0..1u64 << 51);
    let page = |number: u64| number << 12;
    prop_oneof![
        (any::<u16>(), 1..=u16::MAX, any::<u16>(), 1..=u16::MAX, bases).prop_map(
            move |(id, last, head, completion_last, (base, completion_base))| {
                let (head, base, completion_base) =
                    (head % last, page(base), page(completion_base));
                Record::Queue(Queue { id, last, head, completion_last, base, completion_base })
            }
        ),
        (pair, 0..1u64 << 60, prop::collection::vec(any::<[u8; 4]>(), 1..40)).prop_map(
            |((queue, command), address, words)| {
                let (address, bytes) = (address * 4, Bytes::from(words.concat()));
                Record::Bytes { queue, command, address, bytes }
            }
        ),
        any::<(u16, u16)>().prop_map(|(queue, command)| Record::EndCommand { queue, command }),
        any::<u16>().prop_map(Record::EndQueue),
        any::<(u64, u64)>().prop_map(|(address, length)| Record::EndRange { address, length }),
        Just(Record::EndAll),
    ]
}

proptest! {
    #[test]
    fn records_come_back(all in prop::collection::vec(any_record(), 0..8)) {
        let payload = records(&all);
        prop_assert_eq!(payload.len(), all.iter().map(Record::length).sum::<usize>());
        prop_assert_eq!(payload.len() % 4, 0);
        let (decoded, valid) = Records::check(&message(COMPLETER, TARGET, 64, false, payload));
        prop_assert_eq!(valid, Ok(()));
        prop_assert_eq!(decoded.collect::<Vec<_>>(), all);
    }

    #[test]
    fn a_run_of_messages_has_all_their_records(
        all in prop::collection::vec((any_record(), 0..3u8), 0..12),
        bad in 0..20usize,
    ) {
        let (mut messages, mut payloads) = (Vec::new(), vec![Vec::new()]);
        for (record, with_last) in all {
            if with_last == 0 {
                payloads.push(Vec::new());
            }
            payloads.last_mut().unwrap().push(record);
        }
        for (at, payload) in payloads.into_iter().enumerate() {
            let mut payload = Vec::from(records(&payload));
            payload.extend_from_slice(if at == bad { &[7, 0, 0, 0] } else { &[] });
            messages.push(message(COMPLETER, TARGET, 64, false, payload.into()));
        }
        let whole: Bytes = encoded(|out| messages.iter().for_each(|tlp| tlp.encode(out))).into();
        let mut rest = whole.clone();
        let mut of_runs = Vec::new();
        while !rest.is_empty() {
            let mut tlp = Tlp::decode(&mut rest).unwrap();
            tlp.extend_run(&whole, &mut rest, tlp::MAX_PAYLOAD);
            of_runs.push(Push::decode(&tlp).unwrap().map(|push| push.records.collect::<Vec<_>>()));
        }
        let singly = messages.iter().map(|tlp| Push::decode(tlp).unwrap());
        let singly: Result<Vec<_>, _> = singly.map(|push| push.map(|push| push.records)).collect();
        let of_runs: Result<Vec<_>, _> = of_runs.into_iter().collect();
        prop_assert_eq!(
            of_runs.map(|all| all.concat()),
            singly.map(|all| all.into_iter().flatten().collect::<Vec<_>>())
        );
    }

    #[test]
    fn any_bytes_do_not_panic(body in any::<[u8; 4]>(), payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut tlp = message(COMPLETER, TARGET, 64, false, payload.clone().into());
        let Packet::Message(message) = &mut tlp.packet else { unreachable!("it is one") };
        if body[0] & 1 != 0 {
            message.body[4..].copy_from_slice(&body);
        }
        // An accepted message is the only encoding of its records.
        if let Some(Ok(push)) = Push::decode(&tlp) {
            prop_assert_eq!(&records(&push.records.collect::<Vec<_>>())[..], &payload[..]);
        }
    }
}
