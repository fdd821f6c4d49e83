//! Separated flow analysis (SFA) and pay multiplexing only once (PMOO).
//!
//! Sources: Bouillard, Boyer and Le Corronc, section 10.3; Schmitt, Zdarsky and Fidler, "Delay
//! Bounds under Arbitrary Multiplexing: When Network Calculus Leaves You in the Lurch...", INFOCOM
//! 2008, and the PMOO analysis of the NetCal DNC.

use crate::cross::{Aggregates, CrossTraffic, FlowTable};
use crate::curve::{ArrivalCurve, Bound, RateLatency, Rational, ServiceCurve, TokenBucket};
use crate::method::{Bounds, Outputs, PathBounds};
use crate::network::{Multiplexing, Network, Origin};
use num_traits::{Signed, Zero};
use std::collections::BTreeMap;

/// Combinations of token buckets and rate-latency functions that PMOO tries.
const COMBINATIONS: usize = 4096;

/// Bounds by SFA.
pub(crate) fn sfa(network: &Network, outputs: Outputs) -> Bounds {
    analyse(network, network.multiplexing, outputs, |_, _, service| service)
}

/// Bounds by PMOO. Bounds of hops are those of SFA.
pub(crate) fn pmoo(network: &Network, outputs: Outputs) -> Bounds {
    analyse(network, Multiplexing::Arbitrary, outputs, |traffic, stream, _| {
        pmoo_service(traffic, &traffic.network().streams[stream].servers, &[stream], Some(stream))
    })
}

/// Bounds of all streams, end to end by the service that `whole` makes of a stream's left-over
/// service.
fn analyse(
    network: &Network,
    multiplexing: Multiplexing,
    outputs: Outputs,
    whole: impl Fn(&dyn CrossTraffic, usize, ServiceCurve) -> ServiceCurve,
) -> Bounds {
    let traffic: Box<dyn CrossTraffic + '_> = match outputs {
        Outputs::Aggregate => Box::new(Aggregates::new(network, multiplexing)),
        Outputs::Flow => Box::new(FlowTable::new(network, multiplexing)),
    };
    let path = |(index, stream): (usize, &crate::network::Stream)| {
        let mut path: Option<ServiceCurve> = None;
        let mut hops: Vec<Bound> = Vec::new();
        let mut arrival = Some(stream.arrival.clone());
        for &server in &stream.servers {
            let cross = traffic.interference(server, &[index], Some(index));
            let left = cross.map_or_else(
                || ServiceCurve::new([]),
                |cross| traffic.left_over(multiplexing, server, &cross),
            );
            hops.push(arrival.as_ref().and_then(|arrival| arrival.delay_fifo(&left)));
            let joined = path.map_or(left.clone(), |before| before.then(&left));
            arrival = stream.arrival.output(&joined);
            path = Some(joined);
        }
        let service = whole(&*traffic, index, path.unwrap_or_else(|| ServiceCurve::new([])));
        PathBounds { delay: stream.arrival.delay_fifo(&service), hops }
    };
    Bounds::of_paths(network, network.streams.iter().enumerate().map(path).collect())
}

/// Cross traffic of a path: from and to positions in it, and what arrives.
struct Crossing {
    first: usize,
    last: usize,
    arrival: ArrivalCurve,
}

/// The service that `path` leaves to `streams` under arbitrary multiplexing, if each burst of cross
/// traffic is paid once. Empty if nothing is left.
pub(crate) fn pmoo_service<T: CrossTraffic + ?Sized>(
    traffic: &T,
    path: &[usize],
    streams: &[usize],
    without: Option<usize>,
) -> ServiceCurve {
    let Some(crossings) = crossings(traffic, path, streams, without) else {
        return ServiceCurve::new([]);
    };
    let services: Vec<_> =
        path.iter().map(|&server| traffic.network().servers[server].service.functions()).collect();
    if services.iter().any(|service| service.is_empty()) {
        return ServiceCurve::new([]);
    }
    let buckets = crossings.iter().map(|it| it.arrival.buckets().len());
    let sizes: Vec<_> = buckets.chain(services.iter().map(|service| service.len())).collect();
    let count = sizes.iter().try_fold(1_usize, |count, &size| count.checked_mul(size));
    // One combination alone is a valid service too.
    let last = || vec![sizes.iter().map(|size| size - 1).collect()];
    let choices = count.filter(|&count| count <= COMBINATIONS).map_or_else(last, |count| {
        (0..count).map(|number| digits(number, &sizes)).collect::<Vec<_>>()
    });
    ServiceCurve::new(choices.iter().filter_map(|choice| {
        let (buckets, functions) = choice.split_at(crossings.len());
        let buckets =
            crossings.iter().zip(buckets).map(|(it, &at)| (it, &it.arrival.buckets()[at]));
        let functions = services.iter().zip(functions).map(|(service, &at)| &service[at]);
        partial(&buckets.collect::<Vec<_>>(), &functions.collect::<Vec<_>>())
    }))
}

/// A number in a mixed base.
fn digits(mut number: usize, sizes: &[usize]) -> Vec<usize> {
    let digit = |size: &usize| {
        let digit = number % size;
        number /= size;
        digit
    };
    sizes.iter().map(digit).collect()
}

/// PMOO with one token bucket for each crossing and one rate-latency function for each server:
/// rate `min(R - sum of r)`, latency `sum of T + (sum of b + sum over servers of T * sum of r) /
/// rate`.
fn partial(
    crossings: &[(&Crossing, &TokenBucket)],
    functions: &[&RateLatency],
) -> Option<RateLatency> {
    let mut rate: Option<Rational> = None;
    let mut latency = Rational::zero();
    let mut bits: Rational = crossings.iter().map(|(_, bucket)| &bucket.burst).sum();
    for (hop, function) in functions.iter().enumerate() {
        let present = crossings.iter().filter(|(it, _)| (it.first..=it.last).contains(&hop));
        let arrivals: Rational = present.map(|(_, bucket)| &bucket.rate).sum();
        let left = &function.rate - &arrivals;
        latency += &function.latency;
        bits += &function.latency * arrivals;
        rate = Some(rate.map_or(left.clone(), |rate| rate.min(left)));
    }
    let rate = rate.filter(Rational::is_positive)?;
    Some(RateLatency { latency: latency + bits / &rate, rate })
}

/// Cross traffic of `path`, by the parts of the path that it shares; `None` without a bound.
fn crossings<T: CrossTraffic + ?Sized>(
    traffic: &T,
    path: &[usize],
    streams: &[usize],
    without: Option<usize>,
) -> Option<Vec<Crossing>> {
    let network = traffic.network();
    let mut parts: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (first, &server) in path.iter().enumerate() {
        let before = first.checked_sub(1).map(|before| Origin::Server(path[before]));
        let others = traffic.others(server, streams, without);
        for stream in others {
            let hop = network.hop(stream, server)?;
            if Some(network.origin(stream, hop)) == before {
                continue;
            }
            // Of a flow with several paths, the one that stays longest.
            let flow = network.streams[stream].flow;
            let copies =
                network.members(server).filter(|&(it, _)| network.streams[it].flow == flow);
            let shared = |(it, hop): (usize, usize)| {
                let same = network.streams[it].servers[hop..].iter().zip(&path[first..]);
                (same.take_while(|(a, b)| a == b).count(), it)
            };
            let (length, stream) = copies.map(shared).max()?;
            parts.entry((first, first + length - 1)).or_default().push(stream);
        }
    }
    let crossing = |((first, last), streams): (_, Vec<usize>)| {
        Some(Crossing { first, last, arrival: traffic.at(path[first], &streams, None)? })
    };
    parts.into_iter().map(crossing).collect()
}
