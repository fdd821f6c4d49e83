//! The methods, and what they return.

use crate::curve::Bound;
use crate::linear;
use crate::network::{Multiplexing, Network};
use crate::separated;
use crate::total;

/// A way to bound delays. Each is published; a smaller bound of one is not always above a larger
/// bound of another, and all bounds hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Total flow analysis: the sum of the delays of all data in each server.
    Tfa,
    /// Separated flow analysis: what the other flows leave to a flow, server by server, as one
    /// server.
    Sfa,
    /// Pay multiplexing only once: as SFA, with each burst of another flow counted once
    /// (Schmitt, Zdarsky and Fidler, INFOCOM 2008). It assumes arbitrary multiplexing, so its bounds
    /// hold with FIFO too.
    Pmoo,
    /// Polynomial linear programme for FIFO (Bouillard, Performance Evaluation 153, 2022).
    Plp,
    /// Exponential linear programme for FIFO (Bouillard and Stea, IEEE/ACM Transactions on
    /// Networking 23(6), 2015).
    Elp,
}

impl Method {
    /// Every method.
    pub const ALL: [Self; 5] = [Self::Tfa, Self::Sfa, Self::Pmoo, Self::Plp, Self::Elp];

    /// Its abbreviation in small letters.
    pub fn name(self) -> &'static str {
        match self {
            Self::Tfa => "tfa",
            Self::Sfa => "sfa",
            Self::Pmoo => "pmoo",
            Self::Plp => "plp",
            Self::Elp => "elp",
        }
    }

    /// Whether the method exists for servers with this multiplexing.
    pub fn applies(self, multiplexing: Multiplexing) -> bool {
        multiplexing == Multiplexing::Fifo || !matches!(self, Self::Plp | Self::Elp)
    }
}

/// How TFA, SFA and PMOO bound what leaves a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outputs {
    /// Streams that leave together are one aggregate, whose burst grows by rate and latency of the
    /// service that other flows leave to it. The flow of interest itself is left out. The choice of
    /// DNC (AGGR_PBOO_CONCATENATION; with arbitrary multiplexing the smaller of it and AGGR_PMOO).
    /// Line shaping is not used.
    Aggregate,
    /// Each stream leaves alone: its burst grows by rate and delay (TFA: xTFA, panco), or by rate
    /// and latency of the service that all other flows leave to it (SFA: panco).
    Flow,
}

/// Bounds of one method.
#[derive(Clone, Debug)]
pub struct Bounds {
    /// The paths of the first flow, then those of the second, and so on.
    pub paths: Vec<PathBounds>,
    /// One per server.
    pub servers: Vec<ServerBounds>,
}

/// Bounds of one path of a flow.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PathBounds {
    /// End to end, in seconds.
    pub delay: Bound,
    /// In each server, in seconds. The sum may be above `delay`.
    pub hops: Vec<Bound>,
}

/// Bounds of one server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerBounds {
    /// Largest delay of a flow, in seconds.
    pub delay: Bound,
    /// Bits that wait.
    pub backlog: Bound,
}

/// Why a method has no answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MethodError {
    /// Paths form a cycle, and the method requires feed-forward networks.
    #[error("{method} requires a network without cycles, and paths form the cycle {}", cycle.join(" > "))]
    Cyclic {
        /// Name of the method.
        method: &'static str,
        /// Names of the servers in order.
        cycle: Vec<String>,
    },
    /// Delays in a cycle grow without end.
    #[error("tfa finds no fixed point in {rounds} rounds: delays grow around the cycle {}", cycle.join(" > "))]
    Diverges {
        /// Limit of rounds.
        rounds: usize,
        /// Names of the servers in order.
        cycle: Vec<String>,
    },
    /// The method requires FIFO.
    #[error("{method} requires multiplexing \"FIFO\"")]
    NeedsFifo {
        /// Name of the method.
        method: &'static str,
    },
    /// The linear programme is too large.
    #[error(
        "{method} of server '{server}' has {variables} variables and {rows} constraints, more than this method is for"
    )]
    TooLarge {
        /// Name of the method.
        method: &'static str,
        /// Name of the last server of the programme.
        server: String,
        /// Variables of the programme.
        variables: usize,
        /// Constraints of the programme.
        rows: usize,
    },
}

/// Bounds all delays and backlogs of `network`. PLP and ELP ignore `outputs`, and so does TFA of
/// networks with cycles, which uses [`Outputs::Flow`].
///
/// # Errors
///
/// Cycles (except for TFA), cycles in which TFA diverges, PLP and ELP without FIFO, too large
/// linear programmes.
pub fn bounds(network: &Network, method: Method, outputs: Outputs) -> Result<Bounds, MethodError> {
    if !method.applies(network.multiplexing) {
        return Err(MethodError::NeedsFifo { method: method.name() });
    }
    if method != Method::Tfa
        && let Some(cycle) = network.cycle()
    {
        return Err(MethodError::Cyclic { method: method.name(), cycle });
    }
    match method {
        Method::Tfa => total::bounds(network, outputs),
        Method::Sfa => Ok(separated::sfa(network, outputs)),
        Method::Pmoo => Ok(separated::pmoo(network, outputs)),
        Method::Plp => linear::bounds(network, linear::Dates::Polynomial),
        Method::Elp => linear::bounds(network, linear::Dates::Exponential),
    }
}

impl Bounds {
    /// Bounds with the delays of paths, from which those of servers follow.
    pub(crate) fn of_paths(network: &Network, paths: Vec<PathBounds>) -> Self {
        let hops: Vec<_> = paths.iter().map(|path| path.hops.clone()).collect();
        let server = |server: usize| {
            let delays = network.members(server).map(|(stream, hop)| hops[stream][hop].clone());
            let delays: Option<Vec<_>> = delays.collect();
            ServerBounds {
                delay: delays.map(|delays| delays.into_iter().max().unwrap_or_default()),
                backlog: network.backlog(server, &hops),
            }
        };
        let servers = (0..network.servers.len()).map(server).collect();
        Self { paths, servers }
    }
}
