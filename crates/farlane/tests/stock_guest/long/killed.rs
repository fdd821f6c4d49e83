//! A hundred kills.

use crate::stock_guest::killed::survives;

#[test]
fn a_guest_notices_no_error_through_a_hundred_kills() {
    survives("hundred-kills", (0..100).map(|kill| kill * 37 % 100 * 23));
}
