//! mPackets: a receiver with hostile packets, and frames that are cut and put together again.

use testkit::Source;
use tsn::preemption::mpacket::{Fragmenter, Mpacket, fcs};
use tsn::preemption::reassembler::{Reassembler, Received};
use tsn::preemption::{FragmentSize, split};

/// The longest frame that the receiver takes.
const LONGEST: usize = 1518;

/// A packet that decodes must encode to the same bytes behind the preamble.
fn round_trip(bytes: &[u8]) {
    if let Ok(packet) = Mpacket::decode(bytes) {
        let again = encoded(packet);
        let behind = |bytes: &[u8]| bytes.iter().position(|&byte| byte != 0x55);
        assert_eq!(again[behind(&again).unwrap()..], bytes[behind(bytes).unwrap()..]);
        assert_eq!(Mpacket::decode(&again), Ok(packet));
    }
}

fn encoded(packet: Mpacket<'_>) -> Vec<u8> {
    let mut out = Vec::new();
    packet.encode(&mut out);
    out
}

/// Cuts a frame of `data` where `source` says and it is allowed, and puts it together.
fn cut(source: &mut Source<'_>, number: u8, data: &[u8]) {
    let frame = [data, &fcs(data)].concat();
    let fragment = FragmentSize::new(number >> 6).expect("two bits");
    let (mut cutter, mut receiver) = (Fragmenter::new(number, &frame), Reassembler::new(LONGEST));
    let mut before = 0;
    while let Some(bytes) = split(fragment, frame.len(), before, source.byte().into()) {
        let packet = cutter.next(bytes).expect("it has not gone");
        assert_eq!(receiver.receive(&encoded(packet)), Ok(Received::Fragment));
        before += bytes;
    }
    let last = cutter.next(usize::MAX).expect("it has not gone");
    let whole = Received::Frame { bytes: data.to_vec(), is_express: false };
    assert_eq!(receiver.receive(&encoded(last)), Ok(whole));
    assert_eq!(cutter.next(usize::MAX), None);
}

pub fn run(data: &[u8]) {
    round_trip(data);
    let mut source = Source(data);
    let mut receiver = Reassembler::new(LONGEST);
    while !source.0.is_empty() {
        let length = 4 * usize::from(source.byte());
        let bytes = source.take(length);
        round_trip(&bytes);
        if let Ok(Received::Frame { bytes, .. }) = receiver.receive(&bytes) {
            assert!(bytes.len() <= LONGEST);
        }
        if !bytes.is_empty() {
            let number = source.byte();
            cut(&mut source, number, &bytes);
        }
    }
}
