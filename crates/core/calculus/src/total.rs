//! Total flow analysis (TFA), feed-forward and with cycles.
//!
//! Sources: Bouillard, Boyer and Le Corronc, section 10.2; with line shaping ("TFA++") Mifdaoui and
//! Leydier, RTSS Work in Progress 2017; fixed point and packetiser Thomas, Le Boudec and Mifdaoui,
//! "On Cyclic Dependencies and Regulators in Time-Sensitive Networks", RTSS 2019.

use crate::cross::{Aggregates, CrossTraffic};
use crate::curve::{ArrivalCurve, Bound, Rational};
use crate::exact;
use crate::method::{Bounds, MethodError, Outputs, PathBounds, ServerBounds};
use crate::network::{Multiplexing, Network, Origin, sum};
use num_traits::{One, Signed, Zero};
use std::collections::BTreeMap;

/// Rounds of the fixed point.
const ROUNDS: usize = 200;

/// Bounds by TFA.
pub(crate) fn bounds(network: &Network, outputs: Outputs) -> Result<Bounds, MethodError> {
    let arrivals: Vec<_> = if outputs == Outputs::Aggregate && network.order.is_ok() {
        let traffic = Aggregates::new(network, network.multiplexing);
        let all = |server| network.inputs(server).map(|(stream, _)| stream).collect::<Vec<_>>();
        (0..network.servers.len()).map(|server| traffic.at(server, &all(server), None)).collect()
    } else {
        let delays = delays(network)?;
        (0..network.servers.len()).map(|server| arrival(network, server, &delays)).collect()
    };
    let server = |(server, arrival): (usize, &Option<ArrivalCurve>)| {
        let Some(arrival) = arrival else { return ServerBounds { delay: None, backlog: None } };
        ServerBounds {
            delay: delay(network, server, arrival),
            backlog: arrival.backlog(&network.servers[server].service),
        }
    };
    let servers: Vec<_> = arrivals.iter().enumerate().map(server).collect();
    let path = |servers_of_path: &Vec<usize>| {
        let hops: Vec<_> = servers_of_path.iter().map(|&at| servers[at].delay.clone()).collect();
        PathBounds { delay: sum(&hops), hops }
    };
    let paths = network.streams.iter().map(|stream| path(&stream.servers)).collect();
    Ok(Bounds { paths, servers })
}

/// The delay in each server, if each stream leaves alone.
pub(crate) fn delays(network: &Network) -> Result<Vec<Bound>, MethodError> {
    let Ok(order) = &network.order else { return fixed_point(network) };
    let mut delays = vec![None; network.servers.len()];
    for &server in order {
        delays[server] = next(network, server, &delays);
    }
    Ok(delays)
}

/// All that arrives at a server, if its streams come with `delays`.
fn arrival(network: &Network, server: usize, delays: &[Bound]) -> Option<ArrivalCurve> {
    let mut origins: BTreeMap<Origin, Vec<(usize, usize)>> = BTreeMap::new();
    for (stream, hop) in network.inputs(server) {
        origins.entry(network.origin(stream, hop)).or_default().push((stream, hop));
    }
    let mut total = ArrivalCurve::zero();
    for (origin, streams) in origins {
        let mut together = ArrivalCurve::zero();
        for &(stream, hop) in &streams {
            let stream = &network.streams[stream];
            let before: Vec<_> =
                stream.servers[..hop].iter().map(|&at| delays[at].clone()).collect();
            together = together.plus(&stream.arrival.delayed(&sum(&before)?));
        }
        let members: Vec<_> = streams.iter().map(|&(stream, _)| stream).collect();
        let shape = match origin {
            Origin::Source => None,
            Origin::Server(from) => network.line_shape(from, &members),
            Origin::Outside(_) => network.streams[members[0]].inlet.clone().and_then(|(_, it)| it),
        };
        total = total.plus(&shape.map_or(together.clone(), |shape| together.shaped(&shape)));
    }
    Some(total)
}

fn next(network: &Network, server: usize, delays: &[Bound]) -> Bound {
    delay(network, server, &arrival(network, server, delays)?)
}

/// The delay of all data in a server.
fn delay(network: &Network, server: usize, arrival: &ArrivalCurve) -> Bound {
    let service = &network.servers[server].service;
    // A single flow stays in order.
    if network.multiplexing == Multiplexing::Arbitrary && network.inputs(server).count() > 1 {
        return arrival.delay_arbitrary(service);
    }
    let delay = arrival.delay_fifo(service)?;
    let shortest = network.inputs(server).map(|(it, _)| &network.streams[it].min_packet).min();
    let line = network.servers[server].capacity.as_ref().filter(|_| network.lines.last_packet);
    let (Some(line), Some(shortest), [function]) = (line, shortest, service.functions()) else {
        return Some(delay);
    };
    let gain = shortest * (function.rate.recip() - line.recip());
    Some(delay - gain.max(Rational::zero()))
}

/// The least fixed point of the delays: rounds from 0 upwards, in which delays are rounded up to a
/// grid so that their fractions stay short. After each round, Newton's step finds a fixed point that
/// the present pieces of the curves have; it counts only if it is one exactly.
fn fixed_point(network: &Network) -> Result<Vec<Bound>, MethodError> {
    let servers = network.servers.len();
    let cycle = network.cycle().unwrap_or_default();
    let evaluate = |delays: &[Rational]| -> Option<Vec<Rational>> {
        let delays: Vec<_> = delays.iter().cloned().map(Some).collect();
        (0..servers).map(|server| next(network, server, &delays)).collect()
    };
    let zero = vec![Rational::zero(); servers];
    let Some(first) = evaluate(&zero) else { return Ok(vec![None; servers]) };
    let scale = first.iter().max().filter(|most| most.is_positive()).cloned();
    let grid = scale.unwrap_or_else(Rational::one) / Rational::from_integer((1u64 << 40).into());
    let mut delays = first;
    for _ in 0..ROUNDS {
        let Some(now) = evaluate(&delays) else { break };
        let fixed = newton(&delays, &now, &grid, &evaluate);
        if let Some(fixed) = fixed.filter(|fixed| evaluate(fixed).as_ref() == Some(fixed)) {
            return Ok(fixed.into_iter().map(Some).collect());
        }
        delays = now.iter().map(|delay| (delay / &grid).ceil() * &grid).collect();
    }
    Err(MethodError::Diverges { rounds: ROUNDS, cycle })
}

/// The fixed point of the linear function that equals `evaluate` near `delays`.
fn newton(
    delays: &[Rational],
    now: &[Rational],
    step: &Rational,
    evaluate: &impl Fn(&[Rational]) -> Option<Vec<Rational>>,
) -> Option<Vec<Rational>> {
    // Rows of (identity - slopes) * (fixed point - delays) = now - delays.
    let mut rows: Vec<BTreeMap<usize, Rational>> = vec![BTreeMap::new(); delays.len()];
    for column in 0..delays.len() {
        let mut moved = delays.to_vec();
        moved[column] += step;
        let moved = evaluate(&moved)?;
        for (row, (moved, now)) in moved.iter().zip(now).enumerate() {
            let unit = if row == column { Rational::one() } else { Rational::zero() };
            let entry = unit - (moved - now) / step;
            if !entry.is_zero() {
                rows[row].insert(column, entry);
            }
        }
    }
    let gaps = now.iter().zip(delays).map(|(now, before)| now - before).collect();
    let steps = exact::solve(rows, gaps)?;
    // A fixed point below an iterate from 0 is none of a growing function.
    let up = steps.iter().all(|step| !step.is_negative());
    up.then(|| delays.iter().zip(steps).map(|(delay, step)| delay + step).collect())
}
