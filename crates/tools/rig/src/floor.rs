//! Raw TCP over the network of a plan: the floor under every latency, and a sign of a busy machine.

use crate::cpus::Cpus;
use crate::network::{RigNetwork, address};
use live::net::Namespace;
use live::{Clock, Waiting};
use load::floor::{BYTES, Copies, FloorEnds, round_trips, stream_between};
use plan::Planned;
use report::Failure;
use wire::Duration;

/// Round trips of one round.
const TRIPS: usize = 1000;
/// Duration of the stream of one round.
const SPAN: Duration = Duration::from_ms(100);

/// Raw TCP between the ends of the first link.
pub struct Floor {
    network: Option<(RigNetwork, [usize; 2], Cpus)>,
}

/// One round of raw TCP.
#[derive(Clone, Copy, Debug, Default)]
pub struct FloorRound {
    /// Median round trip of 64 bytes, in nanoseconds.
    pub round_trip_ns: u64,
    /// Bytes per second of a one-way stream with a copy of the payload on each side.
    pub stream_bytes_per_s: u64,
}

impl Floor {
    /// Creates the network of a plan. Without a network the floor is that of loopback.
    ///
    /// # Errors
    /// As [`RigNetwork::new`].
    pub fn new(plan: &Planned) -> Result<Self, Failure> {
        let stations = plan.tunnel_links().next().and_then(|link| link.link.transport.stations());
        let network = |(stations, _)| {
            RigNetwork::new(plan).map(|network| (network, stations, Cpus::new(plan)))
        };
        Ok(Self { network: stations.map(network).transpose()? })
    }

    /// Measures one round.
    ///
    /// # Errors
    /// If the kernel provides no connection.
    pub fn measure(&self, waiting: Waiting) -> Result<FloorRound, Failure> {
        let round_trip_ns = self.reply(waiting, BYTES)?;
        let stream =
            |ends: &FloorEnds<'_>, clock| stream_between(ends, clock, SPAN, Copies::OnEachSide);
        Ok(FloorRound { round_trip_ns, stream_bytes_per_s: self.on_cpus(BYTES, stream)? })
    }

    /// Measures the median time from a message of 64 bytes to the end of an answer of `reply`
    /// bytes, in nanoseconds.
    ///
    /// # Errors
    /// If the kernel provides no connection.
    pub fn reply(&self, waiting: Waiting, reply: usize) -> Result<u64, Failure> {
        self.on_cpus(reply, |ends, clock| {
            Ok(round_trips(ends, clock, waiting, TRIPS)?.summary().p50_ns)
        })
    }

    /// Runs a measurement with each end on the CPU of its node, in a thread of its own, which keeps
    /// the CPU.
    fn on_cpus(
        &self,
        reply: usize,
        measure: impl FnOnce(&FloorEnds<'_>, Clock) -> Result<u64, Failure> + Send,
    ) -> Result<u64, Failure> {
        let measured = std::thread::scope(|scope| {
            scope.spawn(|| self.with_ends(reply, |ends| measure(ends, Clock::start()))).join()
        });
        measured.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    fn with_ends(
        &self,
        reply: usize,
        measure: impl FnOnce(&FloorEnds<'_>) -> Result<u64, Failure>,
    ) -> Result<u64, Failure> {
        let Some((network, [host, device], cpus)) = &self.network else {
            return measure(&FloorEnds::loopback(&Namespace::current()?, reply));
        };
        cpus.keep(*host)?;
        measure(&FloorEnds {
            near: &network.stations[*host],
            far: &network.stations[*device],
            address: address(*device).into(),
            far_cpu: Some(cpus.of(*device)),
            reply,
        })
    }
}
