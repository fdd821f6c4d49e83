//! The faults of a plan as faults of live nodes.

use crate::Planned;
use crate::simulate::places::{all_routes, links};
use node::faults::{Fault, FaultKind};
use sim::network::CableEnd;
use wire::Instant;

impl Planned {
    /// Returns the faults of the live device node of a link, by the link's index in
    /// [`links`](Self::links), as `farlane device --fault` accepts them:
    ///
    /// | plan | live |
    /// | --- | --- |
    /// | `faults` of the drive | the same |
    /// | `outages` of its node | `stop` |
    /// | `cuts` of a cable, `outages` of a bridge on the way to the host | `link-down` |
    ///
    /// # Panics
    /// If there is no such link.
    pub fn live_faults(&self, link: usize) -> Vec<Fault> {
        let (_, link) = links(&self.config).nth(link).expect("a link of the plan");
        let mut faults = link.drive.map_or_else(Vec::new, |(_, drive)| drive.faults.clone());
        let Some(([host, device], priority)) = link.transport.stations() else { return faults };
        let own = self.config.outages.iter().filter(|outage| outage.station == device);
        let stop = |from, until| Fault::new(FaultKind::Stop).within(from, until);
        faults.extend(own.map(|outage| stop(outage.from, outage.until)));
        let network = &self.config.network;
        let way = all_routes(&network.wiring(), host, device, priority);
        let down = |from, until| Fault::new(FaultKind::LinkDown).within(from, until);
        let passes = |end| way.iter().any(|egress| egress.place == end);
        let cables = network.cables.iter().filter(|cable| passes(cable.a) || passes(cable.b));
        let cuts = cables.flat_map(|cable| &cable.faults[0].cuts);
        let end = |until| Some(until).filter(|until| *until != Instant::MAX);
        faults.extend(cuts.map(|(from, until)| down(*from, end(*until))));
        let dark = network.bridge_outages.iter().filter(|outage| {
            let is_own =
                |end| matches!(end, CableEnd::Bridge(bridge, _) if bridge == outage.bridge);
            way.iter().any(|egress| is_own(egress.place))
        });
        faults.extend(dark.map(|outage| down(outage.from, outage.until)));
        faults
    }
}
