//! Where frames may be cut, mPackets, verification.

mod mpacket;
mod verification;

use proptest::prelude::*;
use tsn::preemption::{CONTINUATION_PREAMBLE, FragmentSize, MCRC, MIN_REST, split};

fn size(add: u8) -> FragmentSize {
    FragmentSize::new(add).unwrap()
}

#[test]
fn a_fragment_is_a_multiple_of_64_bytes_with_its_mcrc() {
    // 64 * (1 + add) - 4 (802.3-2022, 99.4.4): the values of ethtool, 60, 124, 188 and 252.
    let sizes = [0, 1, 2, 3].map(|add| size(add).min_sent());
    assert_eq!(sizes, [60, 124, 188, 252]);
    // After 60 of 123 bytes, 63 remain, one byte too few for a cut. Each step of `add` adds 64.
    let longest = [0, 1, 2, 3].map(|add| size(add).longest_unsplittable());
    assert_eq!(longest, [123, 187, 251, 315]);
    assert_eq!(FragmentSize::new(4), None);
    assert_eq!(FragmentSize::default(), size(0));
    // A cut costs mCRC 4, gap 12, continuation preamble 8: the 24 bytes (1.92 us at 100 Mb/s)
    // that INET's issue 884 measured.
    assert_eq!((MCRC + 12 + CONTINUATION_PREAMBLE) * 8 * 10, 1920);
}

#[test]
fn a_frame_is_cut_where_both_parts_are_long_enough() {
    let least = size(0);
    assert_eq!(split(least, 123, 0, 0), None);
    assert_eq!(split(least, 124, 0, 0), Some(60));
    assert_eq!(split(least, 124, 0, 60), Some(60));
    assert_eq!(split(least, 124, 0, 61), None, "61 + 63");
    assert_eq!(split(least, 1522, 0, 700), Some(700));
    assert_eq!(split(least, 1522, 0, 1458), Some(1458), "64 are left");
    assert_eq!(split(least, 1522, 0, 1459), None);
    // 1522 - 1400 = 122 bytes remain: a continuation of 60 bytes would leave 62.
    assert_eq!(split(least, 1522, 1400, 10), None);
    assert_eq!(split(least, 1522, 1300, 10), Some(60));
    // The minimum also applies to continuations.
    assert_eq!(split(size(2), 1522, 1000, 10), Some(188));
    assert_eq!(split(least, 1522, 1600, 0), None);
}

proptest! {
    #[test]
    fn a_cut_is_the_first_that_is_allowed(
        add in 0u8..4,
        length in 64usize..2000,
        before in 0usize..2000,
        now in 0usize..2000,
    ) {
        let fragment = size(add);
        let is_allowed = |cut: usize| {
            cut >= now && cut >= 64 * (1 + usize::from(add)) - 4 && before + cut + 64 <= length
        };
        prop_assert_eq!(split(fragment, length, before, now), (0..2000).find(|&n| is_allowed(n)));
    }

    #[test]
    fn only_the_longest_unsplittable_and_shorter_ones_go_whole(
        add in 0u8..4,
        length in 64usize..2000,
    ) {
        let fragment = size(add);
        let is_whole = split(fragment, length, 0, 0).is_none();
        prop_assert_eq!(is_whole, length <= fragment.longest_unsplittable());
        prop_assert!(fragment.longest_unsplittable() + 1 - fragment.min_sent() == MIN_REST);
    }
}
