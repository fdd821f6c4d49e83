//! Networks of servers: what is analysed, and what is refused before any analysis.

use crate::curve::{ArrivalCurve, Bound, Rational, ServiceCurve, TokenBucket};
use num_traits::Zero;
use std::collections::{BTreeSet, HashSet};

/// In which order a server serves the data of different flows. The data of one flow stay in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Multiplexing {
    /// In order of arrival.
    Fifo,
    /// In any order.
    Arbitrary,
}

/// A server, such as the output port of a bridge.
#[derive(Clone, Debug)]
pub struct Server {
    /// Its name in results and errors.
    pub name: String,
    /// What it serves at least.
    pub service: ServiceCurve,
    /// What its line carries at most, in bits per second.
    pub capacity: Option<Rational>,
}

/// A flow, with one path or several from the same source.
#[derive(Clone, Debug)]
pub struct Flow {
    /// Its name in results and errors.
    pub name: String,
    /// What it sends at most.
    pub arrival: ArrivalCurve,
    /// Its longest packet in bits, if known.
    pub max_packet: Option<Rational>,
    /// Its shortest packet in bits, if known.
    pub min_packet: Option<Rational>,
    /// The servers of each path, as positions in the network. Paths of a multicast flow form a tree.
    pub paths: Vec<Vec<usize>>,
    /// The line by which it comes from outside of the network: a number, and what all flows of this
    /// line to the same server bring together. TFA, PLP and ELP use it.
    pub inlet: Option<(usize, TokenBucket)>,
}

/// Properties of lines that make bounds smaller. Methods that do not know a property leave it out.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lines {
    /// A line of capacity `C` carries at most `C * t + L` bits (input shaping, "IS" of xTFA). `L` is
    /// 0, or the longest packet with `packetizer`.
    pub shaping: bool,
    /// Servers receive whole packets ("PK" of xTFA).
    pub packetizer: bool,
    /// The last packet leaves at line rate ("MOH": Mohammadpour et al., IEEE Networking Letters
    /// 2019), in TFA.
    pub last_packet: bool,
}

/// A network that no server of overloads.
#[derive(Clone, Debug)]
pub struct Network {
    pub(crate) servers: Vec<Server>,
    pub(crate) streams: Vec<Stream>,
    pub(crate) multiplexing: Multiplexing,
    pub(crate) lines: Lines,
    /// The servers in an order of all paths, or a cycle.
    pub(crate) order: Result<Vec<usize>, Vec<usize>>,
}

/// One path of a flow, or the part of it in a part of the network.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    /// Streams of the same flow are copies of the same data in shared servers.
    pub flow: usize,
    pub servers: Vec<usize>,
    pub arrival: ArrivalCurve,
    pub max_packet: Rational,
    pub min_packet: Rational,
    /// The line by which it comes from outside of this part of the network, and its shape.
    pub inlet: Option<(usize, Option<TokenBucket>)>,
}

/// Where the streams of a server come from: a source, a server of the network, or a line from
/// outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Origin {
    Source,
    Server(usize),
    Outside(usize),
}

/// Why a network is no input of an analysis.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// A path without servers.
    #[error("path {path} of flow '{flow}' has no server")]
    EmptyPath {
        /// Name of the flow.
        flow: String,
        /// Position among the paths of the flow.
        path: usize,
    },
    /// A path that visits a server twice.
    #[error("path {path} of flow '{flow}' visits server '{server}' twice")]
    RepeatedServer {
        /// Name of the flow.
        flow: String,
        /// Position among the paths of the flow.
        path: usize,
        /// Name of the server.
        server: String,
    },
    /// Two paths of a flow that reach a server from different servers.
    #[error(
        "path {path} of flow '{flow}' reaches server '{server}' from elsewhere than another path of the flow; the paths of a flow form a tree"
    )]
    NoTree {
        /// Name of the flow.
        flow: String,
        /// Position among the paths of the flow.
        path: usize,
        /// Name of the server.
        server: String,
    },
    /// Flows that send more than a server serves.
    #[error("server '{server}' serves {service} bit/s, and its flows send {arrivals} bit/s: {}", flows.join(", "))]
    Overload {
        /// Name of the server.
        server: String,
        /// Bits per second that it serves, as a fraction.
        service: String,
        /// Bits per second that its flows send, as a fraction.
        arrivals: String,
        /// Names of the flows.
        flows: Vec<String>,
    },
}

impl Network {
    /// Checks and keeps a network.
    ///
    /// # Errors
    ///
    /// Paths that visit a server twice or form no tree, and servers whose flows send more than they
    /// serve. Flows that send as much as the server serves have finite bounds only with FIFO.
    ///
    /// # Panics
    ///
    /// If a path names a position beyond `servers`.
    pub fn new(
        servers: Vec<Server>,
        flows: &[Flow],
        multiplexing: Multiplexing,
        lines: Lines,
    ) -> Result<Self, NetworkError> {
        for flow in flows {
            check_paths(flow, &servers)?;
        }
        let outside = servers.len();
        let packet = |bits: &Option<Rational>| bits.clone().unwrap_or_else(Rational::zero);
        let stream = |flow: usize, it: &Flow, servers: &Vec<usize>| Stream {
            flow,
            servers: servers.clone(),
            arrival: it.arrival.clone(),
            max_packet: packet(&it.max_packet),
            min_packet: packet(&it.min_packet),
            // Smaller numbers are those of servers, whose lines end parts of the network.
            inlet: it.inlet.clone().map(|(line, shape)| (outside + line, Some(shape))),
        };
        let streams = flows.iter().enumerate();
        let streams = streams
            .flat_map(|(index, flow)| flow.paths.iter().map(move |path| stream(index, flow, path)));
        let network = Self::of_streams(servers, streams.collect(), multiplexing, lines);
        network.check_load(flows)?;
        Ok(network)
    }

    pub(crate) fn of_streams(
        servers: Vec<Server>,
        streams: Vec<Stream>,
        multiplexing: Multiplexing,
        lines: Lines,
    ) -> Self {
        let order = order(servers.len(), &streams);
        Self { servers, streams, multiplexing, lines, order }
    }

    fn check_load(&self, flows: &[Flow]) -> Result<(), NetworkError> {
        for (index, server) in self.servers.iter().enumerate() {
            let present: Vec<_> = self.inputs(index).map(|(stream, _)| stream).collect();
            let rates = present.iter().map(|&stream| self.streams[stream].arrival.rate());
            let arrivals = rates.fold(Rational::zero(), |sum, rate| sum + rate);
            let zero = Rational::zero();
            let service = server.service.rate().unwrap_or(&zero);
            if arrivals > *service {
                let name = |&stream: &usize| flows[self.streams[stream].flow].name.clone();
                return Err(NetworkError::Overload {
                    server: server.name.clone(),
                    service: service.to_string(),
                    arrivals: arrivals.to_string(),
                    flows: present.iter().map(name).collect(),
                });
            }
        }
        Ok(())
    }

    /// The names of servers.
    pub fn server_names(&self) -> impl Iterator<Item = &str> {
        self.servers.iter().map(|server| server.name.as_str())
    }

    /// The multiplexing of its servers.
    pub fn multiplexing(&self) -> Multiplexing {
        self.multiplexing
    }

    /// The names of a cycle of servers that paths form, if any.
    pub fn cycle(&self) -> Option<Vec<String>> {
        let names = |cycle: &Vec<usize>| {
            cycle.iter().map(|&server| self.servers[server].name.clone()).collect()
        };
        self.order.as_ref().err().map(names)
    }

    /// The streams in a server, with their hop: copies of a flow's data count once.
    pub(crate) fn inputs(&self, server: usize) -> impl Iterator<Item = (usize, usize)> {
        let mut flows = HashSet::new();
        self.members(server).filter(move |&(stream, _)| flows.insert(self.streams[stream].flow))
    }

    /// The streams in a server, with their hop. Every path counts.
    pub(crate) fn members(&self, server: usize) -> impl Iterator<Item = (usize, usize)> {
        let streams = 0..self.streams.len();
        streams.filter_map(move |stream| Some((stream, self.hop(stream, server)?)))
    }

    /// The position of a server in the path of a stream.
    pub(crate) fn hop(&self, stream: usize, server: usize) -> Option<usize> {
        self.streams[stream].servers.iter().position(|&at| at == server)
    }

    /// From where a stream comes at its hop.
    pub(crate) fn origin(&self, stream: usize, hop: usize) -> Origin {
        let stream = &self.streams[stream];
        match (hop.checked_sub(1), &stream.inlet) {
            (Some(before), _) => Origin::Server(stream.servers[before]),
            (None, Some((line, _))) => Origin::Outside(*line),
            (None, None) => Origin::Source,
        }
    }

    /// The shape of what `streams` bring over the line from `server`, if the line shapes.
    pub(crate) fn line_shape(&self, server: usize, streams: &[usize]) -> Option<TokenBucket> {
        let rate = self.servers[server].capacity.clone().filter(|_| self.lines.shaping)?;
        let longest = streams.iter().map(|&stream| &self.streams[stream].max_packet).max();
        let burst = longest.filter(|_| self.lines.packetizer).cloned();
        Some(TokenBucket { burst: burst.unwrap_or_else(Rational::zero), rate })
    }

    /// What may wait in a server at most, if the streams' data come with these delays.
    pub(crate) fn backlog(&self, server: usize, hops: &[Vec<Bound>]) -> Bound {
        let arrivals = self.inputs(server).map(|(stream, hop)| {
            let delay = sum(&hops[stream][..hop])?;
            Some(self.streams[stream].arrival.delayed(&delay))
        });
        let arrivals: Vec<_> = arrivals.collect::<Option<_>>()?;
        ArrivalCurve::sum(&arrivals).backlog(&self.servers[server].service)
    }
}

/// The sum of bounds.
pub(crate) fn sum(bounds: &[Bound]) -> Bound {
    bounds.iter().try_fold(Rational::zero(), |sum, bound| Some(sum + bound.as_ref()?))
}

fn check_paths(flow: &Flow, servers: &[Server]) -> Result<(), NetworkError> {
    let mut before: Vec<Option<Option<usize>>> = vec![None; servers.len()];
    for (path, visited) in flow.paths.iter().enumerate() {
        let name = || flow.name.clone();
        if visited.is_empty() {
            return Err(NetworkError::EmptyPath { flow: name(), path });
        }
        for (hop, &server) in visited.iter().enumerate() {
            let server_name = || servers[server].name.clone();
            if visited[..hop].contains(&server) {
                return Err(NetworkError::RepeatedServer {
                    flow: name(),
                    path,
                    server: server_name(),
                });
            }
            let from = hop.checked_sub(1).map(|hop| visited[hop]);
            if before[server].is_some_and(|other| other != from) {
                return Err(NetworkError::NoTree { flow: name(), path, server: server_name() });
            }
            before[server] = Some(from);
        }
    }
    Ok(())
}

/// The servers in an order of all paths, each as early as its position permits; or a cycle.
fn order(servers: usize, streams: &[Stream]) -> Result<Vec<usize>, Vec<usize>> {
    let mut before: Vec<BTreeSet<usize>> = vec![BTreeSet::new(); servers];
    for pair in streams.iter().flat_map(|stream| stream.servers.windows(2)) {
        before[pair[1]].insert(pair[0]);
    }
    let mut left: BTreeSet<usize> = (0..servers).collect();
    let mut order = Vec::new();
    while let Some(&first) = left.first() {
        let blocked = |server: usize| before[server].iter().find(|&it| left.contains(it)).copied();
        let Some(free) = left.iter().copied().find(|&server| blocked(server).is_none()) else {
            // Backwards from any server that waits: the walk must meet itself.
            let mut walk = vec![first];
            loop {
                let next = blocked(walk[walk.len() - 1]).expect("every server waits");
                if let Some(start) = walk.iter().position(|&server| server == next) {
                    walk.drain(..start);
                    walk.reverse();
                    let least = (0..walk.len()).min_by_key(|&at| walk[at]);
                    walk.rotate_left(least.unwrap_or_default());
                    return Err(walk);
                }
                walk.push(next);
            }
        };
        left.remove(&free);
        order.push(free);
    }
    Ok(order)
}
