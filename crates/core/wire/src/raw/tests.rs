use super::*;
use proptest::prelude::*;

fn bytes(frame: Frame<'_>) -> Vec<u8> {
    crate::encoded(|out| frame.encode(out))
}

fn frame(body: Body<'_>) -> Frame<'_> {
    Frame { connection: 0xabcdef, acknowledged: Sequence::new(0x01_0203), body }
}

#[test]
fn golden_vectors() {
    let mut bitmap = Bitmap::default();
    [0, 2, 9].into_iter().for_each(|bit| bitmap.set(bit));
    let newest = Sequence::new(0x01_020d);
    let cases: [(Body<'_>, &[u8]); 6] = [
        (
            Body::Open(Offer { segment: 1488, window: 256 }),
            &[0x11, 0, 4, 0xab, 0xcd, 0xef, 0, 0, 0, 1, 2, 3, 0x05, 0xd0, 1, 0],
        ),
        (
            Body::Accept(Offer { segment: 8988, window: 1 }),
            &[0x12, 0, 4, 0xab, 0xcd, 0xef, 0, 0, 0, 1, 2, 3, 0x23, 0x1c, 0, 1],
        ),
        (
            Body::Data { sequence: Sequence::new(0xff_fffe), segment: b"TLP" },
            &[0x13, 0, 3, 0xab, 0xcd, 0xef, 0xff, 0xff, 0xfe, 1, 2, 3, b'T', b'L', b'P'],
        ),
        (
            Body::Ack { newest, waited: 0x1234, bitmap },
            &[0x14, 0, 4, 0xab, 0xcd, 0xef, 1, 2, 0x0d, 1, 2, 3, 0x12, 0x34, 0b101, 0b10],
        ),
        (
            Body::Ack { newest, waited: 0, bitmap: Bitmap::default() },
            &[0x14, 0, 2, 0xab, 0xcd, 0xef, 1, 2, 0x0d, 1, 2, 3, 0, 0],
        ),
        (Body::Close(Reason::Violation), &[0x15, 0, 1, 0xab, 0xcd, 0xef, 0, 0, 0, 1, 2, 3, 3]),
    ];
    for (body, golden) in cases {
        assert_eq!(bytes(frame(body)), golden, "{body:?}");
        let padded = [golden, &[0; 40]].concat();
        assert_eq!(Frame::decode(&padded), Ok(frame(body)));
    }
}

#[test]
fn malformed_frames_are_refused_with_cause() {
    let good = bytes(frame(Body::Close(Reason::Done)));
    let changed = |at: usize, value: u8| {
        let mut bytes = good.clone();
        bytes[at] = value;
        Frame::decode(&bytes).map(|_| ()).expect_err("changed")
    };
    assert_eq!(Frame::decode(&good[..11]), Err(Malformed::Cut(11)));
    assert_eq!(changed(0, 0x25), Malformed::Version(2));
    assert_eq!(changed(0, 0x10), Malformed::Kind(0));
    assert_eq!(changed(0, 0x16), Malformed::Kind(6));
    assert_eq!(changed(2, 2), Malformed::Cut(13));
    assert_eq!(changed(2, 0), Malformed::Length { kind: Kind::Close, length: 0 });
    assert_eq!(changed(12, 4), Malformed::Field { field: "reason", value: 4 });
    assert_eq!(changed(8, 1), Malformed::Field { field: "sequence", value: 1 });
    let mut data = bytes(frame(Body::Data { sequence: Sequence::new(1), segment: &[7] }));
    data[2] = 0;
    assert_eq!(Frame::decode(&data), Err(Malformed::Length { kind: Kind::Data, length: 0 }));
    let mut offer = bytes(frame(Body::Open(Offer { segment: 1, window: 1 })));
    offer[15] = 0;
    assert_eq!(Frame::decode(&offer), Err(Malformed::Field { field: "window", value: 0 }));
}

#[test]
fn a_full_acknowledgement_fits_the_smallest_frame() {
    let mut bitmap = Bitmap::default();
    bitmap.set(Bitmap::BITS - 1);
    bitmap.set(Bitmap::BITS);
    let ack = Body::Ack { newest: Sequence::new(0), waited: 0, bitmap };
    assert_eq!(bytes(frame(ack)).len(), MIN_PAYLOAD);
    assert!(bitmap.get(Bitmap::BITS - 1) && !bitmap.get(Bitmap::BITS) && !bitmap.is_empty());
}

#[test]
fn sequence_numbers_wrap() {
    let last = Sequence::new((1 << 24) - 1);
    assert_eq!(last.plus(1), Sequence::new(0));
    assert_eq!(last.plus(3).ahead_of(last), Some(3));
    assert_eq!(last.ahead_of(last.plus(1)), None);
    assert_eq!(Sequence::new(1 << 24), Sequence::new(0));
}

proptest! {
    #[test]
    fn any_bytes_decode_or_are_refused(data in proptest::collection::vec(any::<u8>(), 0..80)) {
        if let Ok(frame) = Frame::decode(&data) {
            let again = bytes(frame);
            prop_assert_eq!(&again[..], &data[..again.len()]);
        }
    }

    #[test]
    fn frame_like_bytes_decode_or_are_refused(kind in 1u8..6, length in 0u8..40, rest in any::<[u8; 60]>()) {
        let data = [&[0x10 | kind, 0, length][..], &rest].concat();
        if let Ok(frame) = Frame::decode(&data) {
            let again = bytes(frame);
            prop_assert_eq!(&again[..], &data[..again.len()]);
        }
    }

    #[test]
    fn data_survives(
        connection in 0..=CONNECTION_MASK,
        sequence in any::<u32>(),
        acknowledged in any::<u32>(),
        segment in proptest::collection::vec(any::<u8>(), 1..1500),
        padding in 0usize..50,
    ) {
        let body = Body::Data { sequence: Sequence::new(sequence), segment: &segment };
        let frame = Frame { connection, acknowledged: Sequence::new(acknowledged), body };
        let mut encoded = bytes(frame);
        prop_assert_eq!(encoded.len(), HEADER + segment.len());
        encoded.resize(encoded.len() + padding, 0xaa);
        prop_assert_eq!(Frame::decode(&encoded), Ok(frame));
    }
}
