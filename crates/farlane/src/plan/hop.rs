//! `aggregation = "hop"`: nodes send a frame a TLP, and bridges merge those
//! that wait.

use super::host::Built;
use super::section::Section;
use super::{PlanError, units};
use sim::Config;
use sim::transport::TransportConfig;
use sim::world::Attached;

/// Payload of a merged frame at most: that of any Ethernet frame.
const MTU: usize = 1500;

/// Lets the bridges merge, if anybody asks for it.
pub fn merge(mut config: Config, root: &Section, built: &Built) -> Result<Config, PlanError> {
    let asks = |section: &Section| -> Result<bool, PlanError> {
        Ok(section.parsed("aggregation", |text| Ok(text == units::HOP))?.unwrap_or(false))
    };
    let asked = if asks(root)? {
        Some(root)
    } else {
        let mut found = None;
        for host in &built.hosts {
            found = found.or(asks(&host.section)?.then_some(&host.section));
        }
        found
    };
    let Some(section) = asked else { return Ok(config) };
    let raw = config.hosts.iter().any(|host| match &host.attached {
        Attached::Switch(switch) => {
            switch.ports.iter().any(|port| matches!(port.transport, TransportConfig::Raw(_)))
        }
        Attached::Direct(_) => false,
    });
    if !raw || config.network.bridges.is_empty() {
        let what = "aggregation: hop is what bridges do with raw frames: it needs a bridge and \
                    transport = \"raw\"";
        return Err(section.place("aggregation").fail(what));
    }
    let ports = config.network.bridges.iter_mut().flat_map(|bridge| &mut bridge.ports);
    ports.for_each(|port| port.merge = MTU);
    Ok(config)
}
