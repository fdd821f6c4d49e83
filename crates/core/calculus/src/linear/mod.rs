//! Linear programmes for FIFO: the polynomial one (PLP) and the exponential one (ELP).
//!
//! A programme describes one tree of servers at a finite number of dates: the bits of each stream
//! that have arrived, and what arrival curves, service curves and FIFO say about them. Its maximum
//! is a bound. In other feed-forward networks, each server keeps the line to its first successor;
//! where a stream leaves this forest, a programme bounds its burst.
//!
//! Sources: Bouillard, "Trade-off between accuracy and tractability of Network Calculus in FIFO
//! networks", Performance Evaluation 153, 2022 (PLP with the delays of SFA and TFA, decomposition);
//! Bouillard and Stea, "Exact Worst-Case Delay in FIFO-Multiplexing Feed-Forward Networks",
//! IEEE/ACM Transactions on Networking 23(6), 2015 (dates of ELP).

mod float;
mod program;
mod simplex;
mod tree;

use crate::curve::{ArrivalCurve, Bound, TokenBucket};
use crate::method::{Bounds, MethodError, PathBounds};
use crate::network::{Network, Origin, Stream, sum};
use std::collections::HashMap;
use tree::Tree;

/// Which dates a programme considers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Dates {
    /// One more per server: PLP.
    Polynomial,
    /// Twice as many per server: ELP.
    Exponential,
}

/// Bounds of a feed-forward network by PLP or ELP.
pub(crate) fn bounds(network: &Network, dates: Dates) -> Result<Bounds, MethodError> {
    let forest = Forest::new(network, dates)?;
    let mut servers: Vec<Bound> = Vec::new();
    for server in 0..network.servers.len() {
        let used = forest.network.members(server).next().is_some();
        servers.push(if used {
            forest.tree(server)?.delay_of_last()?
        } else {
            Some(<_>::default())
        });
    }
    // A bound of a part depends only on its first and its last server.
    let used = servers.iter().enumerate();
    let mut known: HashMap<(usize, usize), Bound> =
        used.map(|(server, delay)| ((server, server), delay.clone())).collect();
    let mut paths = Vec::new();
    for (stream, parts) in network.streams.iter().zip(&forest.parts) {
        let mut delays = Vec::new();
        for &part in parts {
            let ends = (forest.network.streams[part].servers[0], forest.last_server(part));
            let delay = match known.get(&ends) {
                Some(delay) => delay.clone(),
                None => forest.delay(part)?,
            };
            known.insert(ends, delay.clone());
            delays.push(delay);
        }
        let hops = stream.servers.iter().map(|&server| servers[server].clone()).collect();
        paths.push(PathBounds { delay: sum(&delays), hops });
    }
    Ok(Bounds::of_paths(network, paths))
}

/// The network cut into trees.
struct Forest {
    /// Streams are the parts of streams; servers are those of the network.
    network: Network,
    /// The parts of each stream in order.
    parts: Vec<Vec<usize>>,
    dates: Dates,
}

impl Forest {
    fn new(network: &Network, dates: Dates) -> Result<Self, MethodError> {
        let order = network.order.as_deref().unwrap_or_default();
        let mut position = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &server)| position[server] = at);
        let mut successor: Vec<Option<usize>> = vec![None; order.len()];
        for pair in network.streams.iter().flat_map(|stream| stream.servers.windows(2)) {
            let other = successor[pair[0]].filter(|&other| position[other] < position[pair[1]]);
            successor[pair[0]] = other.or(Some(pair[1]));
        }
        let (mut streams, mut parts) = (Vec::new(), Vec::new());
        for stream in &network.streams {
            let kept = |a: &usize, b: &usize| successor[*a] == Some(*b);
            let first = streams.len();
            for servers in stream.servers.chunk_by(kept) {
                let before =
                    streams.last().map(|last: &Stream| last.servers[last.servers.len() - 1]);
                let inlet = match before.filter(|_| streams.len() > first) {
                    Some(line) => Some((line, None)),
                    None => stream.inlet.clone(),
                };
                streams.push(Stream { servers: servers.to_vec(), inlet, ..stream.clone() });
            }
            parts.push((first..streams.len()).collect::<Vec<_>>());
        }
        // Copies of a flow's data are counted once per server only as streams of one flow; the
        // programmes treat them as flows of their own, as panco does.
        streams.iter_mut().enumerate().for_each(|(index, stream)| stream.flow = index);
        let mut forest = Self {
            network: Network::of_streams(
                network.servers.clone(),
                streams,
                network.multiplexing,
                network.lines,
            ),
            parts,
            dates,
        };
        // Too large programmes are refused before any is solved.
        for server in 0..network.servers.len() {
            forest.tree(server)?;
        }
        forest.shape_inlets();
        forest.bound_inlets(&position)?;
        Ok(forest)
    }

    /// Parts that enter over the same cut line share its shape.
    fn shape_inlets(&mut self) {
        let mut lines: HashMap<(usize, usize), Vec<usize>> = HashMap::new();
        for (index, stream) in self.network.streams.iter().enumerate() {
            if let Some((line, None)) = stream.inlet {
                lines.entry((line, stream.servers[0])).or_default().push(index);
            }
        }
        for ((line, _), members) in lines {
            let shape = self.network.line_shape(line, &members);
            for member in members {
                self.network.streams[member].inlet = Some((line, shape.clone()));
            }
        }
    }

    /// Bounds the bursts of all parts behind a cut, upstream first.
    fn bound_inlets(&mut self, position: &[usize]) -> Result<(), MethodError> {
        let mut cut: Vec<(usize, usize)> = Vec::new();
        for parts in &self.parts {
            cut.extend(parts.windows(2).map(|pair| (pair[0], pair[1])));
        }
        cut.sort_by_key(|&(_, part)| position[self.network.streams[part].servers[0]]);
        for (before, part) in cut {
            let last = self.last_server(before);
            let mut buckets = Vec::new();
            let stream = &self.network.streams[before];
            for bucket in stream.arrival.buckets().to_vec() {
                let tree = self.tree(last)?;
                if let Some(burst) = tree.backlog(before, &bucket)? {
                    buckets.push(TokenBucket { burst, rate: bucket.rate });
                }
            }
            if !buckets.is_empty() {
                self.network.streams[part].arrival = ArrivalCurve::new(buckets);
            }
        }
        Ok(())
    }

    fn last_server(&self, part: usize) -> usize {
        let servers = &self.network.streams[part].servers;
        servers[servers.len() - 1]
    }

    fn delay(&self, part: usize) -> Result<Bound, MethodError> {
        self.tree(self.last_server(part))?.delay(part)
    }

    /// The tree of all servers from which data reach `last`.
    fn tree(&self, last: usize) -> Result<Tree, MethodError> {
        let mut servers = vec![last];
        let mut at = 0;
        while let Some(&server) = servers.get(at) {
            let before = self.network.members(server).filter_map(|(stream, hop)| {
                match self.network.origin(stream, hop) {
                    Origin::Server(before) => Some(before),
                    _ => None,
                }
            });
            let mut before: Vec<_> = before.collect();
            before.sort_unstable();
            before.dedup();
            servers.extend(before);
            at += 1;
        }
        Tree::new(&self.network, &servers, self.dates)
    }
}
