//! `aggregation = "hop"`: nodes send one TLP per frame, and bridges merge frames that wait.

use super::owners::Owners;
use super::units::HOP;
use crate::simulate::places::links;
use keys::{KeyError, Section};
use sim::Config;
use sim::transport::TransportConfig;

/// Maximum payload of a merged frame in bytes, as of any Ethernet frame.
const MTU: usize = 1500;

/// Configures the bridges to merge frames if a host has this aggregation.
pub fn merge(mut config: Config, root: &Section, owners: &Owners) -> Result<Config, KeyError> {
    let asks = |section: &&Section| section.text("aggregation") == Some(HOP);
    let hosts = owners.hosts.iter().map(|host| &host.section);
    let Some(section) = std::iter::once(root).chain(hosts).find(asks) else { return Ok(config) };
    let raw = links(&config).any(|(_, link)| matches!(link.transport, TransportConfig::Raw(_)));
    if !raw || config.network.bridges.is_empty() {
        let message = "aggregation: hop is what bridges do with raw frames: it needs a bridge and \
                    transport = \"raw\"";
        return section.fail("aggregation", message);
    }
    let ports = config.network.bridges.iter_mut().flat_map(|bridge| &mut bridge.ports);
    ports.for_each(|port| port.merge = MTU);
    Ok(config)
}
