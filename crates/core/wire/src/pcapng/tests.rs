//! Golden bytes, taken from the figures of the draft, and structure.

use super::*;
use crate::{encoded, hex};
use proptest::prelude::*;

#[test]
fn section_headers() {
    assert_eq!(
        encoded(|out| Section::default().encode(out)),
        hex("0a0d0d0a 1c000000 4d3c2b1a 0100 0000 ffffffffffffffff 1c000000")
    );
    let section = Section { application: "farlane", comment: "é" };
    assert_eq!(
        encoded(|out| section.encode(out)),
        hex("0a0d0d0a 34000000 4d3c2b1a 0100 0000 ffffffffffffffff
             0100 0200 c3a90000
             0400 0700 6661726c616e6500
             0000 0000 34000000")
    );
}

#[test]
fn interface_descriptions() {
    let interface = Interface { link_type: link_type::USER0, name: "up", description: "" };
    assert_eq!(
        encoded(|out| interface.encode(out)),
        hex("01000000 28000000 9300 0000 00000000
             0200 0200 75700000
             0900 0100 09000000
             0000 0000 28000000")
    );
    // 274 in little-endian order.
    let mpackets = Interface { link_type: link_type::ETHERNET_MPACKET, ..interface };
    assert_eq!(encoded(|out| mpackets.encode(out))[8..10], hex("1201"));
}

#[test]
fn packets() {
    let packet = Packet {
        interface: 1,
        at_ns: 0x0102_0304_a0b0_c0d0,
        direction: Some(Direction::Outbound),
        data: &[1, 2, 3, 4, 5],
        cut: 0,
        comment: "",
    };
    assert_eq!(
        encoded(|out| packet.encode(out)),
        hex("06000000 34000000 01000000 04030201 d0c0b0a0 05000000 05000000
             0102030405000000
             0200 0400 02000000
             0000 0000 34000000")
    );
    let bare = Packet { direction: None, data: &[7; 4], ..packet };
    assert_eq!(
        encoded(|out| bare.encode(out)),
        hex("06000000 24000000 01000000 04030201 d0c0b0a0 04000000 04000000 07070707 24000000")
    );
    let short = Packet { cut: 0x100, ..bare };
    assert_eq!(encoded(|out| short.encode(out))[20..28], hex("04000000 04010000"));
    let inbound = Packet { direction: Some(Direction::Inbound), comment: "abc", ..bare };
    assert_eq!(
        encoded(|out| inbound.encode(out))[32..],
        hex("0100 0300 61626300 0200 0400 01000000 0000 0000 38000000")
    );
}

proptest! {
    /// A block has its length at both ends, so a reader can pass the file in both directions.
    #[test]
    fn blocks_are_chained(
        data in prop::collection::vec(any::<u8>(), 0..80),
        comment in ".{0,20}",
    ) {
        let packet = Packet { interface: 0, at_ns: 1, direction: None, data: &data, cut: 0, comment: &comment };
        let out = encoded(|out| { packet.encode(out); packet.encode(out); });
        let length = out.len() / 2;
        prop_assert_eq!(length % 4, 0);
        for block in out.chunks(length) {
            prop_assert_eq!(&block[4..8], &(length as u32).to_le_bytes()[..]);
            prop_assert_eq!(&block[length - 4..], &(length as u32).to_le_bytes()[..]);
        }
    }

    /// A text that is too long for an option is truncated between two characters.
    #[test]
    fn long_texts_are_cut(lead in 0usize..4) {
        let comment = "x".repeat(lead) + &"é".repeat(40_000);
        let packet = Packet { interface: 0, at_ns: 1, direction: None, data: &[], cut: 0, comment: &comment };
        let out = encoded(|out| packet.encode(out));
        let length = usize::from(u16::from_le_bytes([out[30], out[31]]));
        prop_assert_eq!(length, 65_535 - usize::from(lead % 2 == 0));
        prop_assert!(std::str::from_utf8(&out[32..32 + length]).is_ok());
    }
}
