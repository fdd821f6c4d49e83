//! Checks of a network's configuration for contradictions.

use super::config::{CableEnd, MAX_CABLES, MAX_STATIONS, MAX_STREAMS, NetworkConfig};
use crate::ensure;
use crate::ethernet::nic::MAX_PORTS;
use crate::ethernet::port;
use std::collections::BTreeSet;

/// Checks for contradictions.
pub(super) fn network(config: &NetworkConfig) -> Result<(), String> {
    let fits = config.cables.len() <= MAX_CABLES && config.stations.len() <= MAX_STATIONS;
    ensure(fits, format!("more than {MAX_CABLES} cables or {MAX_STATIONS} stations"))?;
    let mut used = BTreeSet::new();
    for (number, cable) in config.cables.iter().enumerate() {
        for place in [cable.a, cable.b] {
            let known = match place {
                CableEnd::Station(station, port) => {
                    config.stations.get(station).is_some_and(|station| port < station.ports.len())
                }
                CableEnd::Bridge(bridge, port) => {
                    config.bridges.get(bridge).is_some_and(|bridge| port < bridge.ports.len())
                }
            };
            ensure(known, format!("cable {number}: {place:?} does not exist"))?;
            let free = used.insert(place);
            ensure(free, format!("cable {number}: {place:?} already has a cable"))?;
        }
        let steps = &cable.rate_steps;
        let rising = steps.windows(2).all(|pair| pair[0].at < pair[1].at)
            && steps.iter().all(|step| step.bits_per_second > 0);
        ensure(
            rising,
            format!("cable {number}: rate steps must be above 0 and in order of their times"),
        )?;
        let equal = config.port(cable.a).rate == config.port(cable.b).rate;
        ensure(equal, format!("cable {number}: its ends have different rates"))?;
        for (place, partner) in [(cable.a, cable.b), (cable.b, cable.a)] {
            let partner = config.port(partner).preemption.is_some();
            let port = config.port(place);
            port.check().map_err(|reason| format!("{place:?}: {reason}"))?;
            let reason = "preemption without verification, but its link partner has no preemption";
            let asks = |preemption: port::Preemption| partner || preemption.verify.enabled;
            ensure(port.preemption.is_none_or(asks), format!("{place:?}: {reason}"))?;
        }
    }
    for (number, outage) in config.bridge_outages.iter().enumerate() {
        let known = outage.bridge < config.bridges.len();
        ensure(known, format!("bridge outage {number}: bridge {} does not exist", outage.bridge))?;
        let ends = outage.until.is_none_or(|until| until > outage.from);
        ensure(ends, format!("bridge outage {number}: its end is not after its start"))?;
    }
    for (number, station) in config.stations.iter().enumerate() {
        let ports = (1..=MAX_PORTS).contains(&station.ports.len());
        ensure(ports, format!("station {number}: 1 to {MAX_PORTS} ports"))?;
        ensure(station.tx_ring > 0, format!("station {number}: tx_ring is 0; the minimum is 1"))?;
        let few = station.traffic.len() <= MAX_STREAMS;
        ensure(few, format!("station {number}: more than {MAX_STREAMS} streams"))?;
        for traffic in &station.traffic {
            let to: Vec<usize> = traffic.listeners.iter().map(|to| to.station).collect();
            let known = to.iter().all(|to| *to < config.stations.len());
            ensure(known, format!("station {number}: its traffic has an unknown destination"))?;
            let once = to.iter().collect::<BTreeSet<_>>().len() == to.len();
            let others = once && !to.is_empty() && !to.contains(&number);
            let reason = "a stream needs other stations, each once, as destinations";
            ensure(others, format!("station {number}: {reason}"))?;
        }
    }
    for (number, bulk) in config.bulk.iter().enumerate() {
        let [from, to] = bulk.stations;
        let known = from != to && bulk.stations.iter().all(|at| *at < config.stations.len());
        ensure(known, format!("flow {number}: it needs two different stations"))?;
        ensure(bulk.priority <= 7, format!("flow {number}: priority is not 0 to 7"))?;
    }
    let (stations, bridges) = (config.stations.len(), config.bridges.len());
    config.time.as_ref().map_or(Ok(()), |time| time.check(stations, bridges))
}
