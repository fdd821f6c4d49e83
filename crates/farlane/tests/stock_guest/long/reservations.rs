//! Reservations of every type.

use crate::stock_guest::subsystem::{TYPES, share};

#[test]
fn two_guests_share_a_namespace_by_reservations_of_every_type() {
    share("every-type", &TYPES);
}
