//! Keys that are there and mean nothing with the plan's transports: a mistake,
//! since whoever sets one expects it to do something.

use super::host::Built;
use super::section::Section;
use super::{Defaults, PlanError};

/// Transports in which a key means something.
type With = &'static [&'static str];

const TCP: With = &["tcp", "tsn"];
const RAW: With = &["raw"];
const TUNNEL: With = &["tcp", "tsn", "raw"];

/// Of the plan.
const ROOT: [(&str, With); 3] =
    [("congestion", RAW), ("aggregation", TUNNEL), ("rate_limit", TUNNEL)];
/// Of `[link]`, all of which may stay with direct attachment but this.
const LINK: [(&str, With); 3] = [("mtu", RAW), ("burst", TCP), ("ack_delay", TCP)];
/// Of a host.
const HOST: [(&str, With); 5] = [
    ("congestion", RAW),
    ("aggregation", TUNNEL),
    ("rate_limit", TUNNEL),
    ("priority", TUNNEL),
    ("link", TUNNEL),
];

/// Every key that is there means something.
pub fn check(root: &Section, defaults: &Defaults, built: &Built) -> Result<(), PlanError> {
    let all: Vec<&str> = built.hosts.iter().map(|host| host.transport).collect();
    used(root, &ROOT, &all)?;
    // A link that nobody uses may stay where only the transport changes.
    let tunnelled = all.iter().any(|transport| TUNNEL.contains(transport));
    used(&defaults.link, if tunnelled { &LINK } else { &LINK[..1] }, &all)?;
    for host in &built.hosts {
        used(&host.section, &HOST, &[host.transport])?;
        for drive in host.drives.iter().map(|drive| &built.drives[*drive]) {
            used(&drive.section, &[("node", TUNNEL)], &[host.transport])?;
        }
    }
    Ok(())
}

/// The same of an interface.
pub fn of_station(station: &Section, built: &Built) -> Result<(), PlanError> {
    let all: Vec<&str> = built.hosts.iter().map(|host| host.transport).collect();
    used(station, &[("ack_delay", TCP)], &all)
}

/// Each key that is there is one of a transport that is there.
fn used(section: &Section, keys: &[(&str, With)], there: &[&str]) -> Result<(), PlanError> {
    for (key, with) in keys {
        if there.iter().any(|transport| with.contains(transport)) {
            continue;
        }
        if let Some(entry) = section.find(key) {
            let mut names = there.to_vec();
            names.dedup();
            let what = format!(
                "{key} means nothing with transport {}: it is of {}",
                names.join(" and "),
                with.join(", ")
            );
            return Err(entry.value.origin.fail(what));
        }
    }
    Ok(())
}
