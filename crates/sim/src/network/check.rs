//! What contradicts itself in the configuration of a network.

use super::config::{CableEnd, MAX_STREAMS, NetworkConfig};
use crate::ensure;
use crate::ethernet::port::{Algorithm, Config};
use tsn::credit::Slopes;
use tsn::preemption::verification;
use wire::Instant;

/// Checks for contradictions.
pub(super) fn network(config: &NetworkConfig) -> Result<(), String> {
    let mut used = Vec::new();
    for (number, cable) in config.cables.iter().enumerate() {
        for place in [cable.a, cable.b] {
            let known = match place {
                CableEnd::Station(station) => station < config.stations.len(),
                CableEnd::Bridge(bridge, port) => {
                    config.bridges.get(bridge).is_some_and(|bridge| port < bridge.ports.len())
                }
            };
            ensure(known, format!("cable {number}: there is no {place:?}"))?;
            let free = !used.contains(&place);
            ensure(free, format!("cable {number}: {place:?} has a cable already"))?;
            used.push(place);
        }
        let steps = &cable.rate_steps;
        let rising = steps.windows(2).all(|pair| pair[0].at < pair[1].at)
            && steps.iter().all(|step| step.bits_per_second > 0);
        ensure(
            rising,
            format!("cable {number}: rate steps are above 0, each later than the last"),
        )?;
        let equal = config.port(cable.a).rate == config.port(cable.b).rate;
        ensure(equal, format!("cable {number}: its ends have different rates"))?;
        for (place, partner) in [(cable.a, cable.b), (cable.b, cable.a)] {
            let partner = config.port(partner).preemption.is_some();
            port(config.port(place), partner).map_err(|what| format!("{place:?}: {what}"))?;
        }
    }
    for (number, station) in config.stations.iter().enumerate() {
        ensure(station.tx_ring > 0, format!("station {number}: tx_ring is at least 1"))?;
        let few = station.traffic.len() <= MAX_STREAMS;
        ensure(few, format!("station {number}: more than {MAX_STREAMS} streams"))?;
        let known = station.traffic.iter().all(|traffic| traffic.to < config.stations.len());
        ensure(known, format!("station {number}: traffic for a station that is not there"))?;
    }
    Ok(())
}

/// Checks a port; `partner`: whether the port at the other end of its cable takes fragments.
fn port(port: &Config, partner: bool) -> Result<(), String> {
    port.ets().map_err(|error| error.to_string())?;
    let rate = port.rate.bits_per_second();
    let mut reserved = 0;
    for (number, class) in port.classes.iter().enumerate() {
        ensure(class.queue_frames > 0, format!("the queue of class {number} holds no frame"))?;
        match &class.algorithm {
            Algorithm::CreditBased(shaper) => {
                reserved += shaper.idle_slope;
                credit(port, number, shaper.idle_slope)?;
            }
            Algorithm::Ats(shaper) => {
                let streams = shaper.streams.iter().map(|(_, committed)| committed);
                let right = |of: &crate::ethernet::port::Committed| of.rate > 0 && of.burst > 0;
                let right = streams.chain([&shaper.committed]).all(right);
                ensure(right, format!("class {number}: committed rate and burst are above 0"))?;
            }
            Algorithm::StrictPriority | Algorithm::Ets { .. } => {}
        }
    }
    ensure(reserved <= rate, "the idle slopes of its classes are above its rate".to_owned())?;
    for pair in &port.cqf {
        pair.check().map_err(|error| error.to_string())?;
    }
    let mut pairs = port.cqf.iter().flat_map(|pair| pair.classes).collect::<Vec<_>>();
    let classes = pairs.len();
    pairs.sort_unstable();
    pairs.dedup();
    ensure(pairs.len() == classes, "a class belongs to two pairs of cyclic queues".to_owned())?;
    let Some(preemption) = port.preemption else { return Ok(()) };
    let time = preemption.verify.time;
    let right = verification::Config::TIMES.contains(&time) && preemption.verify.attempts > 0;
    ensure(right, format!("a verify time of {time}: 1 to 128 ms, one attempt at least"))?;
    let heard = partner || preemption.verify.enabled;
    ensure(heard, "preemption without verification, but its partner takes no fragments".to_owned())
}

/// The slopes of a class, also in the time that its gates leave it.
fn credit(port: &Config, class: usize, idle_slope: u64) -> Result<(), String> {
    let at = |error: String| format!("class {class}: {error}");
    let slopes = Slopes::new(idle_slope, port.rate.bits_per_second());
    let slopes = slopes.map_err(|error| at(error.to_string()))?;
    let Some(gates) = &port.gates else { return Ok(()) };
    let mut list = Some(Instant::ZERO);
    while let Some(from) = list {
        let (open, cycle) = gates.open_share_of(class, from);
        slopes.scaled(open, cycle).map_err(|error| at(error.to_string()))?;
        list = gates.next_list(from);
    }
    Ok(())
}
