//! Which port of a bridge leads to which station.

use super::config::{CableEnd, NetworkConfig, mac};
use crate::ethernet::Mac;

/// The filtering database of a bridge, set up as a manager would, over the cables of the `tree`.
pub(super) fn addresses(config: &NetworkConfig, tree: &[bool], bridge: usize) -> Vec<(Mac, usize)> {
    let mut found = Vec::new();
    for port in 0..config.bridges[bridge].ports.len() {
        let mut seen = vec![false; config.bridges.len()];
        seen[bridge] = true;
        let mut stations = Vec::new();
        follow((config, tree), CableEnd::Bridge(bridge, port), &mut seen, &mut stations);
        found.extend(stations.into_iter().map(|station| (mac(station), port)));
    }
    found
}

/// The stations beyond `from`.
fn follow(
    (config, tree): (&NetworkConfig, &[bool]),
    from: CableEnd,
    seen: &mut [bool],
    stations: &mut Vec<usize>,
) {
    let other = config.across(from).filter(|(cable, _)| tree[*cable]).map(|(_, other)| other);
    match other {
        Some(CableEnd::Station(station)) => stations.push(station),
        Some(CableEnd::Bridge(bridge, entry)) if !std::mem::replace(&mut seen[bridge], true) => {
            for port in (0..config.bridges[bridge].ports.len()).filter(|port| *port != entry) {
                follow((config, tree), CableEnd::Bridge(bridge, port), seen, stations);
            }
        }
        _ => {}
    }
}

/// By port of a bridge: whether its cable is part of the `tree`.
pub(super) fn forwards(config: &NetworkConfig, tree: &[bool], bridge: usize) -> Vec<bool> {
    let mut ports = vec![false; config.bridges[bridge].ports.len()];
    for (cable, _) in config.cables.iter().zip(tree).filter(|(_, is_part)| **is_part) {
        for end in [cable.a, cable.b] {
            if let CableEnd::Bridge(at, port) = end
                && at == bridge
            {
                ports[port] = true;
            }
        }
    }
    ports
}
