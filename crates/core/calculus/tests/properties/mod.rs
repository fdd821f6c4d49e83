//! What theory says of all networks: bounds hold in a simulation, grow with bursts, and some methods
//! are never above others.

mod simulation;

use farlane_calculus::{
    ArrivalCurve, Bound, Bounds, Flow, Lines, Method, Multiplexing, Network, Outputs, RateLatency,
    Rational, Server, ServiceCurve, TokenBucket, bounds,
};
use proptest::prelude::*;

/// Latency, and rate beyond that of the flows, of a server's first function; then what a second
/// function adds to both, if any.
type Speed = (u32, u32, Option<(u32, u32)>);

/// A network in whole numbers.
#[derive(Clone, Debug)]
pub struct Model {
    pub servers: Vec<Speed>,
    pub flows: Vec<Traffic>,
}

#[derive(Clone, Debug)]
pub struct Traffic {
    pub path: Vec<usize>,
    pub burst: u32,
    pub rate: u32,
    /// Burst and rate of a second token bucket, less and more than the first.
    pub peak: Option<(u32, u32)>,
    /// When it starts, in the simulation.
    pub start: u32,
}

impl Model {
    /// Latency and rate of each function of a server.
    pub fn functions(&self, server: usize) -> Vec<(u32, u32)> {
        let (latency, spare, second) = self.servers[server];
        let crossing = self.flows.iter().filter(|flow| flow.path.contains(&server));
        let rate = spare + crossing.map(|flow| flow.rate).sum::<u32>();
        let second = second.map(|(later, faster)| (latency + later, rate + faster));
        [(latency, rate)].into_iter().chain(second).collect()
    }

    fn network(&self, multiplexing: Multiplexing) -> Network {
        let server = |index| {
            let functions = self.functions(index).into_iter();
            let functions = functions
                .map(|(latency, rate)| RateLatency { rate: whole(rate), latency: whole(latency) });
            let name = format!("s{index}");
            Server { name, service: ServiceCurve::new(functions), capacity: None }
        };
        let flow = |(index, traffic): (usize, &Traffic)| {
            let bucket = |(burst, rate)| TokenBucket { burst: whole(burst), rate: whole(rate) };
            let buckets = traffic.buckets().into_iter().map(bucket);
            Flow {
                name: format!("f{index}"),
                arrival: ArrivalCurve::new(buckets),
                max_packet: None,
                min_packet: None,
                paths: vec![traffic.path.clone()],
                inlet: None,
            }
        };
        let servers = (0..self.servers.len()).map(server).collect();
        let flows: Vec<_> = self.flows.iter().enumerate().map(flow).collect();
        Network::new(servers, &flows, multiplexing, Lines::default()).expect("no overload")
    }

    fn bounds(&self, multiplexing: Multiplexing, method: Method, outputs: Outputs) -> Bounds {
        bounds(&self.network(multiplexing), method, outputs).expect("a feed-forward network")
    }

    fn delays(&self, multiplexing: Multiplexing, method: Method, outputs: Outputs) -> Vec<Bound> {
        let bounds = self.bounds(multiplexing, method, outputs);
        bounds.paths.into_iter().map(|path| path.delay).collect()
    }
}

impl Traffic {
    /// Burst and rate of each token bucket.
    pub fn buckets(&self) -> Vec<(u32, u32)> {
        let peak = self
            .peak
            .map(|(less, more)| (self.burst.saturating_sub(less).max(1), self.rate + more));
        [(self.burst, self.rate)].into_iter().chain(peak).collect()
    }
}

fn whole(number: u32) -> Rational {
    Rational::from_integer(number.into())
}

/// Networks of up to `servers` servers; `trees`: each server has one successor; `plain`: one token
/// bucket and one function each.
fn models(servers: usize, trees: bool, plain: bool) -> impl Strategy<Value = Model> {
    let server = (0..5_u32, 1..10_u32, prop::option::weighted(0.3, (1..5_u32, 1..10_u32)));
    let flow = (
        prop::collection::vec(any::<prop::sample::Index>(), servers),
        (1..12_u32, 1..4_u32, prop::option::weighted(0.3, (1..6_u32, 1..12_u32))),
        0..8_u32,
    );
    let parts = (
        prop::collection::vec(server, 1..=servers),
        prop::collection::vec(flow, 1..5),
        prop::collection::vec(any::<prop::sample::Index>(), servers),
    );
    parts.prop_map(move |(servers, flows, successors)| {
        let count = servers.len();
        let flow = |(choices, (burst, rate, peak), start): (
            Vec<prop::sample::Index>,
            (_, _, Option<_>),
            u32,
        )| {
            let mut path = vec![choices[0].index(count)];
            for choice in &choices[1..] {
                let last = path[path.len() - 1];
                let choice = if trees { &successors[last] } else { choice };
                // One step in four ends the path; a step in a tree leads to the same place.
                let end = choices[path.len() - 1].index(4) == 0;
                if last + 1 >= count || end {
                    break;
                }
                path.push(last + 1 + choice.index(count - last - 1));
            }
            Traffic { path, burst, rate, peak: peak.filter(|_| !plain), start }
        };
        let flows = flows.into_iter().map(flow).collect();
        let server = |(latency, spare, second): (_, _, Option<_>)| {
            (latency, spare, second.filter(|_| !plain))
        };
        let servers = servers.into_iter().map(server).collect();
        Model { servers, flows }
    })
}

const EVERY: [(Method, Outputs); 8] = [
    (Method::Tfa, Outputs::Aggregate),
    (Method::Tfa, Outputs::Flow),
    (Method::Sfa, Outputs::Aggregate),
    (Method::Sfa, Outputs::Flow),
    (Method::Pmoo, Outputs::Aggregate),
    (Method::Pmoo, Outputs::Flow),
    (Method::Plp, Outputs::Flow),
    (Method::Elp, Outputs::Flow),
];

/// Whether no bound of `smaller` is above that of `larger`.
fn below(smaller: &[Bound], larger: &[Bound]) -> bool {
    let below =
        |(a, b): (&Bound, &Bound)| b.is_none() || a.as_ref().is_some_and(|a| Some(a) <= b.as_ref());
    smaller.iter().zip(larger).all(below)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]

    #[test]
    fn bounds_hold_in_a_simulation(model in models(4, false, false)) {
        let run = simulation::run(&model);
        for (method, outputs) in EVERY {
            let found = model.bounds(Multiplexing::Fifo, method, outputs);
            for (flow, seen) in run.delays.iter().enumerate() {
                let bound = found.paths[flow].delay.as_ref().map_or(f64::MAX, farlane_calculus::to_f64);
                prop_assert!(bound >= seen - 1e-9, "{method:?} {outputs:?} flow {flow}: {bound} < {seen}");
            }
            for (server, seen) in run.backlogs.iter().enumerate() {
                let bound = found.servers[server].backlog.as_ref().map_or(f64::MAX, farlane_calculus::to_f64);
                prop_assert!(bound >= seen - 1e-9, "{method:?} {outputs:?} server {server}: {bound} < {seen}");
            }
        }
    }

    #[test]
    fn larger_programmes_are_tighter_in_trees(model in models(4, true, true)) {
        let fifo = |method| model.delays(Multiplexing::Fifo, method, Outputs::Flow);
        let (elp, plp) = (fifo(Method::Elp), fifo(Method::Plp));
        prop_assert!(below(&elp, &plp), "elp {elp:?} plp {plp:?}");
        prop_assert!(below(&plp, &fifo(Method::Sfa)));
        prop_assert!(below(&plp, &fifo(Method::Tfa)));
        // So aggregates may leave out the flow of interest with FIFO too.
        let together = model.delays(Multiplexing::Fifo, Method::Sfa, Outputs::Aggregate);
        prop_assert!(below(&elp, &together), "elp {elp:?} sfa {together:?}");
    }

    #[test]
    fn fifo_is_never_worse_than_any_order(model in models(5, false, false)) {
        for method in [Method::Tfa, Method::Sfa] {
            let fifo = model.delays(Multiplexing::Fifo, method, Outputs::Flow);
            let any = model.delays(Multiplexing::Arbitrary, method, Outputs::Flow);
            prop_assert!(below(&fifo, &any), "{method:?}: {fifo:?} {any:?}");
        }
    }

    #[test]
    fn aggregates_are_never_worse_than_flows(model in models(5, false, true)) {
        for method in [Method::Tfa, Method::Sfa] {
            let together = model.delays(Multiplexing::Fifo, method, Outputs::Aggregate);
            let alone = model.delays(Multiplexing::Fifo, method, Outputs::Flow);
            prop_assert!(below(&together, &alone), "{method:?}: {together:?} {alone:?}");
        }
    }

    #[test]
    fn bounds_grow_with_bursts(model in models(4, false, true), flow: prop::sample::Index) {
        let mut larger = model.clone();
        larger.flows[flow.index(model.flows.len())].burst += 3;
        for (method, outputs) in EVERY {
            let before = model.delays(Multiplexing::Fifo, method, outputs);
            let after = larger.delays(Multiplexing::Fifo, method, outputs);
            prop_assert!(below(&before, &after), "{method:?} {outputs:?}: {before:?} {after:?}");
        }
    }
}
