//! The bytes of mPackets, and the frames that a receiver makes from them.

use proptest::prelude::*;
use tsn::preemption::mpacket::{DecodeError, Fragmenter, Kind, Mpacket, fcs};
use tsn::preemption::reassembler::{Error, Reassembler, Received};
use tsn::preemption::{FragmentSize, MIN_REST, split};

fn bytes(packet: Mpacket<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(&mut out);
    out
}

/// A frame of `length` bytes, FCS included, whose data are 0, 1, 2 and so on.
fn frame(length: usize) -> Vec<u8> {
    let data: Vec<u8> = (0..length - 4).map(|at| at as u8).collect();
    [&data[..], &fcs(&data)].concat()
}

fn receiver() -> Reassembler {
    Reassembler::new(2000)
}

fn whole(frame: &[u8]) -> Result<Received, Error> {
    Ok(Received::Frame { bytes: frame[..frame.len() - 4].to_vec(), is_express: false })
}

/// The mPackets of a frame: fragments of 60 bytes, and one with the remaining bytes.
fn fragments(number: u8, frame: &[u8]) -> Vec<Vec<u8>> {
    let mut cutter = Fragmenter::new(number, frame);
    let mut left = frame.len();
    let mut out = Vec::new();
    while let Some(packet) =
        cutter.next(split(FragmentSize::default(), left, 0, 0).unwrap_or(usize::MAX))
    {
        left -= packet.data.len();
        out.push(bytes(packet));
    }
    out
}

#[test]
fn verify_and_respond() {
    // The receiver of the Cadence GEM compares the mCRC with f7761204 (mmsl_rx).
    let head = [0x55; 7];
    let tail = [vec![0; 60], vec![0xf7, 0x76, 0x12, 0x04]].concat();
    assert_eq!(bytes(Mpacket::verify()), [&head[..], &[0x07], &tail].concat());
    assert_eq!(bytes(Mpacket::respond()), [&head[..], &[0x19], &tail].concat());
    let mut receiver = receiver();
    assert_eq!(receiver.receive(&bytes(Mpacket::verify())), Ok(Received::Verify));
    assert_eq!(receiver.receive(&bytes(Mpacket::respond())), Ok(Received::Respond));
}

#[test]
fn a_frame_of_three_fragments() {
    // An independent implementation calculated the CRCs: bit by bit, x^31 first, xor FFFFFFFF for
    // the FCS and 0000FFFF for the mCRC. The data are 00, 01, ... b7.
    let frame = frame(188);
    assert_eq!(frame[184..], [0xb6, 0x22, 0xfd, 0x32]);
    let packets = fragments(1, &frame);
    let expected = [
        [&[0x55; 7][..], &[0x4c], &frame[..60], &[0x11, 0x80, 0xec, 0xb0]].concat(),
        [&[0x55; 6][..], &[0x52, 0xe6], &frame[60..120], &[0x91, 0xa1, 0x45, 0x23]].concat(),
        [&[0x55; 6][..], &[0x52, 0x4c], &frame[120..]].concat(),
    ];
    assert_eq!(packets, expected);
    let mut receiver = receiver();
    assert_eq!(receiver.receive(&packets[0]), Ok(Received::Fragment));
    assert_eq!(receiver.receive(&packets[1]), Ok(Received::Fragment));
    assert_eq!(receiver.receive(&packets[2]), whole(&frame));
}

#[test]
fn frame_and_fragment_counts_wrap() {
    let frame = frame(60 * 5 + 64);
    let heads = |number| -> Vec<[u8; 2]> {
        fragments(number, &frame).iter().map(|packet| [packet[6], packet[7]]).collect()
    };
    let continuations = [0xe6, 0x4c, 0x7f, 0xb3, 0xe6];
    let codes = [(0xe6, 0x61), (0x4c, 0x52), (0x7f, 0x9e), (0xb3, 0x2a), (0xe6, 0x61)];
    for (number, (start, continuation)) in (0..).zip(codes) {
        let mut expected = vec![[0x55, start]];
        expected.extend(continuations.map(|count| [continuation, count]));
        assert_eq!(heads(number), expected, "frame {number}");
    }
}

#[test]
fn an_express_frame_goes_between_fragments() {
    let (long, express) = (frame(124), frame(64));
    let packets = fragments(3, &long);
    assert_eq!(packets.len(), 2);
    let express_packet = bytes(Mpacket::express(&express));
    assert_eq!(express_packet, [&[0x55; 7][..], &[0xd5], &express].concat());
    let mut receiver = receiver();
    assert_eq!(receiver.receive(&packets[0]), Ok(Received::Fragment));
    let expected = Received::Frame { bytes: express[..60].to_vec(), is_express: true };
    assert_eq!(receiver.receive(&express_packet), Ok(expected));
    assert_eq!(receiver.receive(&bytes(Mpacket::verify())), Ok(Received::Verify));
    assert!(receiver.is_pending());
    assert_eq!(receiver.receive(&packets[1]), whole(&long));
    assert!(!receiver.is_pending());
}

/// A receiver that has received the first of `packets`.
fn begun(packets: &[Vec<u8>]) -> Reassembler {
    let mut receiver = receiver();
    assert_eq!(receiver.receive(&packets[0]), Ok(Received::Fragment));
    receiver
}

/// `packet` with the byte at index `at` replaced by `byte`.
fn with(packet: &[u8], at: usize, byte: u8) -> Vec<u8> {
    let mut packet = packet.to_vec();
    packet[at] = byte;
    packet
}

#[test]
fn errors_drop_the_frame() {
    let frame = frame(188);
    let packets = fragments(0, &frame);
    let failures = [
        (with(&packets[1], 6, 0x52), Error::FrameCount { expected: 0, found: 1 }),
        (packets[2].clone(), Error::FragmentCount { expected: 0, found: 1 }),
        (with(&packets[1], 7, 0x00), Error::Decode(DecodeError::FragmentCount(0))),
        (with(&packets[1], 20, 0xff), Error::Crc),
        (packets[0].clone(), Error::Incomplete),
    ];
    for (packet, error) in failures {
        let mut receiver = begun(&packets);
        assert_eq!(receiver.receive(&packet), Err(error));
        assert_eq!(receiver.receive(&packets[1]), Err(Error::NoStart), "after {error}");
        assert_eq!(begun(&packets).receive(&packets[1]), Ok(Received::Fragment));
    }
    let mut receiver = begun(&packets);
    let wrong = Error::Decode(DecodeError::Smd(0x07 ^ 1));
    assert_eq!(receiver.receive(&with(&packets[0], 7, 0x06)), Err(wrong));
    assert_eq!(receiver.receive(&packets[1]), Ok(Received::Fragment), "an unknown SMD is skipped");
}

#[test]
fn errors_of_whole_packets() {
    let mut receiver = Reassembler::new(100);
    let express = bytes(Mpacket::express(&frame(64)));
    assert_eq!(receiver.receive(&with(&express, 8, 0xff)), Err(Error::Crc));
    let verify = bytes(Mpacket::verify());
    assert_eq!(receiver.receive(&with(&verify, 8, 0xff)), Err(Error::Crc));
    assert_eq!(receiver.receive(&bytes(Mpacket::express(&frame(105)))), Err(Error::TooLong(100)));
    let packets = fragments(0, &frame(124));
    assert_eq!(receiver.receive(&packets[0]), Ok(Received::Fragment));
    assert_eq!(receiver.receive(&packets[1]), Err(Error::TooLong(100)));
    assert!(!receiver.is_pending());
    let truncated = Err(Error::Decode(DecodeError::Truncated));
    for short in [&[][..], &[0x55; 7], &[0x55, 0xd5, 1, 2, 3], &[0x61]] {
        assert_eq!(receiver.receive(short), truncated);
    }
}

proptest! {
    #[test]
    fn a_frame_cut_anywhere_comes_whole(
        number: u8,
        add in 0u8..4,
        data in proptest::collection::vec(any::<u8>(), 60..1600),
        waits in proptest::collection::vec(0usize..400, 0..8),
        lost in 0usize..6,
    ) {
        let frame = [&data[..], &fcs(&data)].concat();
        let fragment = FragmentSize::new(add).unwrap();
        let (mut cutter, mut receiver) = (Fragmenter::new(number, &frame), receiver());
        let mut before = 0;
        for wait in waits {
            let Some(cut) = split(fragment, frame.len(), before, wait) else { continue };
            let packet = bytes(cutter.next(cut).unwrap());
            prop_assert!(packet.len() >= 8 + 64 * (1 + usize::from(add)));
            prop_assert_eq!(receiver.receive(&packet[lost..]), Ok(Received::Fragment));
            before += cut;
        }
        let last = bytes(cutter.next(usize::MAX).unwrap());
        prop_assert!(last.len() >= 8 + MIN_REST);
        prop_assert_eq!(receiver.receive(&last), whole(&frame));
        prop_assert_eq!(cutter.next(usize::MAX), None);
    }

    #[test]
    fn packets_survive_the_codec(
        kind in prop_oneof![
            Just(Kind::Express),
            (0u8..4).prop_map(|frame| Kind::Start { frame }),
            (0u8..4, 0u8..4).prop_map(|(frame, fragment)| Kind::Continuation { frame, fragment }),
            Just(Kind::Verify),
            Just(Kind::Respond),
        ],
        data in proptest::collection::vec(any::<u8>(), 0..100),
        crc: [u8; 4],
    ) {
        let packet = Mpacket { kind, data: &data, crc };
        let bytes = bytes(packet);
        prop_assert_eq!(bytes.len(), 8 + data.len() + 4);
        prop_assert_eq!(Mpacket::decode(&bytes), Ok(packet));
    }

    #[test]
    fn no_bytes_make_the_receiver_panic(
        packets in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..8),
    ) {
        let mut receiver = Reassembler::new(100);
        for packet in packets {
            if let Ok(Received::Frame { bytes, .. }) = receiver.receive(&packet) {
                prop_assert!(bytes.len() <= 100);
            }
        }
    }
}
