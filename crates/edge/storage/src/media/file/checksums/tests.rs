//! Tests of the format.

use super::layout::{INTENT, INTENTS};
use super::*;
use proptest::prelude::*;

const SIZE: u64 = 64 * UNIT;

#[test]
fn layout_has_these_places() {
    let layout = Layout { size: (1 << 30) + 8 };
    let sums = (1 << 30) + 4096;
    let places = (layout.sum(0), layout.sum(UNIT), layout.marks(), layout.words());
    assert_eq!(places, (sums, sums + 4, sums + (8 << 20) + 4096, 2));
    assert_eq!(layout.intents(), layout.marks() + 4096);
    let length = Layout::file_length(layout.size);
    assert_eq!(length, Some(layout.intents() + INTENTS * INTENT));
    assert_eq!(Layout::file_length(u64::MAX), None);
    // The CRC-32C of RFC 3720, section B.4: 32 bytes of zeroes; and holes have their checksums.
    assert_eq!((crc32c::crc32c(&[0; 32]), sums_of(&[0; 1024])), (0x8a91_36aa, vec![0; 8]));
}

proptest! {
    #[test]
    fn intents_are_whole_or_not_there(
        first in 0..60_u64, count in 1..4_u64, sum: u32, at in 0..40_usize, byte: u8, noise: Vec<u8>,
    ) {
        let layout = Layout { size: SIZE };
        let mut place = [0; INTENT as usize];
        let count_of_noise = noise.len().min(place.len());
        place[..count_of_noise].copy_from_slice(&noise[..count_of_noise]);
        prop_assert_eq!(Intent::parse(&place, layout), None);
        let sums = sum.to_le_bytes().repeat(count as usize);
        let bytes = Intent::write(first * UNIT, count * UNIT, &sums);
        place[..bytes.len()].copy_from_slice(&bytes);
        let intent = Intent::parse(&place, layout).unwrap();
        let units = first * UNIT..(first + count) * UNIT;
        prop_assert_eq!((&intent.units, intent.sums(&units)), (&units, sums));
        if at < bytes.len() && place[at] != byte {
            place[at] = byte;
            prop_assert_eq!(Intent::parse(&place, layout), None);
        }
    }
}
