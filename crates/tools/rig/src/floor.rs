//! Raw TCP over the network of a plan: the floor under every latency, and a sign of a busy machine.

use crate::cpus::Cpus;
use crate::network::{RigNetwork, address};
use live::net::Namespace;
use live::{Clock, Waiting};
use load::floor::{Copies, FloorEnds, RoundTrips, Stream, round_trips, stream_between};
use plan::Planned;
use report::Failure;
use sim::world::Attached;
use wire::Duration;

/// Round trips of one round.
const TRIPS: usize = 1000;
/// Duration of the stream of one round.
const SPAN: Duration = Duration::from_ms(100);

/// Raw TCP between the first host and its first device node.
pub struct Floor {
    network: Option<(RigNetwork, [usize; 2])>,
}

/// One round of raw TCP.
#[derive(Clone, Debug, Default)]
pub struct FloorRound {
    /// Round trips of 64 bytes.
    pub trips: RoundTrips,
    /// A one-way stream with a copy of the payload on each side.
    pub stream: Stream,
}

impl Floor {
    /// Creates the network of a plan. Without a network the floor is that of loopback.
    ///
    /// # Errors
    /// As [`RigNetwork::new`].
    pub fn new(plan: &Planned) -> Result<Self, Failure> {
        let stations = plan.config.hosts.iter().find_map(|host| match &host.attached {
            Attached::Switch(switch) => switch.ports[0].transport.stations(),
            Attached::Direct(_) => None,
        });
        let network = |(stations, _)| RigNetwork::new(plan).map(|network| (network, stations));
        Ok(Self { network: stations.map(network).transpose()? })
    }

    /// Measures one round, each end on the CPU of its node.
    ///
    /// # Errors
    /// If the kernel provides no connection.
    pub fn measure(&self, waiting: Waiting) -> Result<FloorRound, Failure> {
        // The thread keeps its CPU, so the caller's thread does not measure.
        let measured = std::thread::scope(|scope| scope.spawn(|| self.round(waiting)).join());
        measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn round(&self, waiting: Waiting) -> Result<FloorRound, Failure> {
        let here = Namespace::current()?;
        let cpus = Cpus::default();
        let ends = match &self.network {
            Some((network, [host, device])) => {
                cpus.keep(*host)?;
                FloorEnds {
                    near: &network.stations[*host],
                    far: &network.stations[*device],
                    address: address(*device).into(),
                    far_cpu: Some(cpus.of(*device)),
                }
            }
            None => {
                FloorEnds { near: &here, far: &here, address: [127, 0, 0, 1].into(), far_cpu: None }
            }
        };
        let clock = Clock::start();
        Ok(FloorRound {
            trips: round_trips(&ends, clock, waiting, TRIPS)?,
            stream: stream_between(&ends, clock, SPAN, Copies::OnEachSide)?,
        })
    }
}
