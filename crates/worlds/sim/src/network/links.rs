//! Whether Ethernet links are up. A link is down at both ends while a direction of its cable is cut
//! or a station at one end has no power. Only ports with preemption react: they verify their
//! neighbour again.

use super::CableDirection;
use wire::Instant;
use wire::earliest;

/// Whether the link of a port is up, and when this may change. `None` if the port does not react.
/// `from` and `to` are the cable directions from and to the link.
pub(super) fn state(
    directions: &[CableDirection],
    (from, to): (usize, usize),
    now: Instant,
) -> Option<(bool, Option<Instant>)> {
    if !directions[to].preempts {
        return None;
    }
    let [(from_cut, from_change), (to_cut, to_change)] =
        [from, to].map(|way| directions[way].cable.cut(now));
    let is_up = !from_cut && !to_cut && !directions[from].is_dark && !directions[to].is_dark;
    Some((is_up, earliest([from_change, to_change])))
}
