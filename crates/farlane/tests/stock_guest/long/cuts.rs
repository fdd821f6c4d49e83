//! A hundred cuts.

use crate::stock_guest::cuts::survives;
use crate::support::cutter::Path;

/// 100 cuts of 0.1 to 8 s, of both kinds; 4 s on average.
#[test]
fn a_guest_notices_no_error_through_a_hundred_cuts_of_up_to_eight_seconds() {
    let cuts = (0..100u64).map(|cut| {
        // Every length once, in an order that jumps.
        let path = if cut % 2 == 0 { Path::Silent } else { Path::Reset };
        (path, 100 + cut * 37 % 100 * 7_900 / 99)
    });
    survives("hundred-cuts", cuts);
}
