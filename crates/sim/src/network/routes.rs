//! Which port of a bridge leads to which station.

use super::config::{CableEnd, NetworkConfig, mac};
use crate::ethernet::Mac;

/// The filtering database of a bridge, set up as a manager would.
pub(super) fn addresses(config: &NetworkConfig, bridge: usize) -> Vec<(Mac, usize)> {
    let mut found = Vec::new();
    for port in 0..config.bridges[bridge].ports.len() {
        let mut seen = vec![false; config.bridges.len()];
        seen[bridge] = true;
        let mut stations = Vec::new();
        follow(config, CableEnd::Bridge(bridge, port), &mut seen, &mut stations);
        found.extend(stations.into_iter().map(|station| (mac(station), port)));
    }
    found
}

/// The stations beyond `from`.
fn follow(config: &NetworkConfig, from: CableEnd, seen: &mut [bool], stations: &mut Vec<usize>) {
    let other = config.cables.iter().find_map(|cable| match (cable.a, cable.b) {
        (a, b) if a == from => Some(b),
        (a, b) if b == from => Some(a),
        _ => None,
    });
    match other {
        Some(CableEnd::Station(station)) => stations.push(station),
        Some(CableEnd::Bridge(bridge, entry)) if !std::mem::replace(&mut seen[bridge], true) => {
            for port in (0..config.bridges[bridge].ports.len()).filter(|port| *port != entry) {
                follow(config, CableEnd::Bridge(bridge, port), seen, stations);
            }
        }
        _ => {}
    }
}
