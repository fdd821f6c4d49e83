//! What cross traffic may bring to a server.
//!
//! Sources: Bondorf and Schmitt, "Boosting Sensor Network Calculus by Thoroughly Bounding
//! Cross-Traffic", INFOCOM 2015 (aggregates; the flow of interest has the lowest priority on its
//! path); the arrival bounds AGGR_PBOO_CONCATENATION and AGGR_PMOO of the NetCal DNC.

use crate::curve::{ArrivalCurve, ServiceCurve};
use crate::network::{Multiplexing, Network, Origin};
use crate::separated::pmoo_service;
use std::cell::RefCell;
use std::collections::HashMap;

/// Bounds of the arrivals of streams at servers on their paths.
pub(crate) trait CrossTraffic {
    /// The network.
    fn network(&self) -> &Network;

    /// Arrivals of `streams`, which are streams of different flows, at `server`. Interference of
    /// `without` may be left out. `None`: no bound.
    fn at(&self, server: usize, streams: &[usize], without: Option<usize>) -> Option<ArrivalCurve>;

    /// The streams in a server that are not of the flows of `streams` and `without`.
    fn others(&self, server: usize, streams: &[usize], without: Option<usize>) -> Vec<usize> {
        let network = self.network();
        let flow = |stream: usize| network.streams[stream].flow;
        let ours =
            |stream: usize| streams.iter().chain(&without).any(|&it| flow(it) == flow(stream));
        network.inputs(server).map(|(stream, _)| stream).filter(|&it| !ours(it)).collect()
    }

    /// Arrivals at `server` of all flows but those of `streams` and `without`. What comes over the
    /// path of `without` is not delayed by it; other traffic is.
    fn interference(
        &self,
        server: usize,
        streams: &[usize],
        without: Option<usize>,
    ) -> Option<ArrivalCurve> {
        let others = self.others(server, streams, without);
        let (along, aside): (Vec<_>, Vec<_>) = others.into_iter().partition(|&it| {
            let network = self.network();
            without.is_some_and(|without| match network.hop(without, server) {
                Some(hop) if hop > 0 => {
                    let same = network.hop(it, server).map(|it_hop| network.origin(it, it_hop));
                    same == Some(network.origin(without, hop))
                }
                _ => false,
            })
        });
        Some(self.at(server, &along, without)?.plus(&self.at(server, &aside, None)?))
    }

    /// What `server` leaves if `cross` interferes.
    fn left_over(
        &self,
        multiplexing: Multiplexing,
        server: usize,
        cross: &ArrivalCurve,
    ) -> ServiceCurve {
        let service = &self.network().servers[server].service;
        match multiplexing {
            Multiplexing::Fifo => service.left_over_fifo(cross),
            Multiplexing::Arbitrary => service.left_over_arbitrary(cross),
        }
    }
}

type Key = (usize, Option<usize>, Vec<usize>, Option<usize>);

/// Arrivals of aggregates: streams that come by the same line are bounded together from where their
/// paths join.
pub(crate) struct Aggregates<'a> {
    network: &'a Network,
    multiplexing: Multiplexing,
    known: RefCell<HashMap<Key, Option<ArrivalCurve>>>,
}

impl<'a> Aggregates<'a> {
    pub(crate) fn new(network: &'a Network, multiplexing: Multiplexing) -> Self {
        Self { network, multiplexing, known: RefCell::default() }
    }

    /// Arrivals of `streams` that all come from `from` to `server`.
    fn over_line(
        &self,
        from: usize,
        server: usize,
        streams: &[usize],
        without: Option<usize>,
    ) -> Option<ArrivalCurve> {
        let path = self.common(server, streams);
        debug_assert_eq!(path.last(), Some(&from), "streams of one line");
        let inputs = self.at(path[0], streams, without)?;
        let mut service: Option<ServiceCurve> = None;
        for &server in &path {
            let cross = self.interference(server, streams, without)?;
            let left = self.left_over(self.multiplexing, server, &cross);
            service = Some(service.map_or(left.clone(), |before| before.then(&left)));
        }
        let by_hops = service.and_then(|service| inputs.output(&service));
        if self.multiplexing == Multiplexing::Fifo {
            return by_hops;
        }
        let once = match path[..] {
            [server] => {
                let cross = self.at(server, &self.others(server, streams, without), without)?;
                self.left_over(self.multiplexing, server, &cross)
            }
            _ => pmoo_service(self, &path, streams, without),
        };
        match (by_hops, inputs.output(&once)) {
            (Some(by_hops), Some(once)) => Some(by_hops.min(&once)),
            (by_hops, once) => by_hops.or(once),
        }
    }

    /// The servers before `server` that all `streams` visit together.
    fn common(&self, server: usize, streams: &[usize]) -> Vec<usize> {
        let before = |stream: usize| {
            let hop = self.network.hop(stream, server).unwrap_or(0);
            self.network.streams[stream].servers[..hop].iter().rev().copied().collect::<Vec<_>>()
        };
        let mut common = before(streams[0]);
        for &stream in &streams[1..] {
            let same = common.iter().zip(before(stream)).take_while(|&(&a, b)| a == b).count();
            common.truncate(same);
        }
        common.reverse();
        common
    }
}

impl CrossTraffic for Aggregates<'_> {
    fn network(&self) -> &Network {
        self.network
    }

    fn at(&self, server: usize, streams: &[usize], without: Option<usize>) -> Option<ArrivalCurve> {
        let network = self.network;
        let mut total = ArrivalCurve::zero();
        let mut lines: HashMap<usize, Vec<usize>> = HashMap::new();
        for &stream in streams {
            match network.origin(stream, network.hop(stream, server).unwrap_or(0)) {
                Origin::Server(from) => lines.entry(from).or_default().push(stream),
                _ => total = total.plus(&network.streams[stream].arrival),
            }
        }
        let mut lines: Vec<_> = lines.into_iter().collect();
        lines.sort();
        for (from, streams) in lines {
            let key = (server, Some(from), streams, without);
            let known = self.known.borrow().get(&key).cloned();
            let bound = known.unwrap_or_else(|| {
                let bound = self.over_line(from, server, &key.2, without);
                self.known.borrow_mut().insert(key, bound.clone());
                bound
            });
            total = total.plus(&bound?);
        }
        Some(total)
    }
}

/// Arrivals of single streams: each leaves every server through the service that all others leave to
/// it.
pub(crate) struct FlowTable<'a> {
    network: &'a Network,
    /// By stream and hop.
    arrivals: Vec<Vec<Option<ArrivalCurve>>>,
}

impl<'a> FlowTable<'a> {
    /// Bounds of all streams of a feed-forward network.
    pub(crate) fn new(network: &'a Network, multiplexing: Multiplexing) -> Self {
        let source = |stream: &crate::network::Stream| vec![Some(stream.arrival.clone())];
        let arrivals = network.streams.iter().map(source).collect();
        let mut table = Self { network, arrivals };
        let mut services: Vec<Option<ServiceCurve>> = vec![None; network.streams.len()];
        for &server in network.order.as_deref().unwrap_or_default() {
            let members: Vec<_> = network.members(server).map(|(stream, _)| stream).collect();
            let next: Vec<_> = members
                .iter()
                .map(|&stream| {
                    let cross = table.interference(server, &[stream], None)?;
                    let left = table.left_over(multiplexing, server, &cross);
                    let before = services[stream].take();
                    let service = before.map_or(left.clone(), |before| before.then(&left));
                    let output = network.streams[stream].arrival.output(&service);
                    services[stream] = Some(service);
                    output
                })
                .collect();
            for (&stream, next) in members.iter().zip(next) {
                table.arrivals[stream].push(next);
            }
        }
        table
    }
}

impl CrossTraffic for FlowTable<'_> {
    fn network(&self) -> &Network {
        self.network
    }

    fn at(&self, server: usize, streams: &[usize], _: Option<usize>) -> Option<ArrivalCurve> {
        let arrival = |&stream: &usize| {
            self.network.hop(stream, server).and_then(|hop| self.arrivals[stream][hop].as_ref())
        };
        let arrivals: Vec<_> = streams.iter().map(arrival).collect::<Option<_>>()?;
        Some(ArrivalCurve::sum(arrivals))
    }
}
