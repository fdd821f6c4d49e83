//! One setup of the link to the drive: link, transport, policy.

use super::network::TestNetwork;
use super::{Link, Transport};
use crate::TraceTarget;
use crate::case::{CASES, Case, Path, sequential};
use crate::local::{self, LocalLink, Node};
use crate::testbed::{LoadGenerator, Series, settings};
use live::attached::Switch;
use live::trace::Tracer;
use live::{Clock, Waiting};
use node::push;
use report::Failure;
use report::latency::Latency;
use switch::aggregate::Policy;
use switch::tunnel::Counters;
use wire::Duration;

/// Bytes of a drive. The whole drive is written before the measurement, TLP by TLP.
const DRIVE: u64 = 4 << 20;

/// Returns the workloads of every setup: both directions on a full link, and one command at a time.
pub fn cases() -> Vec<Case> {
    let latency = CASES.into_iter().filter(|case| case.iodepth == 1);
    [sequential("read", 100, 32 << 10, 8), sequential("write", 0, 32 << 10, 8)]
        .into_iter()
        .chain(latency)
        .collect()
}

/// A link, a transport and a policy, and the machine that uses them.
pub struct Setup {
    /// The link.
    pub link: Link,
    /// The transport.
    pub transport: Transport,
    /// The policy.
    pub policy: Policy,
    /// The network.
    pub place: TestNetwork,
    /// The results, by case.
    pub series: Vec<Series>,
    /// Numbers of TLPs and frames in the direction of the data, by case.
    pub carried: Vec<(u64, u64)>,
    load: LoadGenerator<Switch>,
    _node: Node,
}

impl Setup {
    /// Brings both ends up and writes the drive.
    ///
    /// # Errors
    /// If an end does not come up.
    pub fn new(
        clock: Clock,
        waiting: Waiting,
        mps: u16,
        (link, transport, policy): (Link, Transport, Policy),
        cases: &[Case],
    ) -> Result<Self, Failure> {
        let place = match link {
            Link::Loopback => TestNetwork::loopback(transport)?,
            Link::Veth(_) => TestNetwork::cable(transport)?,
        };
        let push = push::Settings::default();
        let local =
            LocalLink { clock, waiting, max_payload: mps, aggregation: policy, push, cipher: None };
        let start = || Node::device(&place.far_address, local, 0, DRIVE, TraceTarget::default());
        let node = place.far.enter(start)??;
        let peer = place.peer(&node.address);
        let load = place.near.enter(|| {
            let host = local::host(local, settings(), &[peer], Tracer::default())?;
            LoadGenerator::new(mps, host, DRIVE)
        })??;
        let series = cases.iter().map(|case| Series::new(Path::Tunnelled, mps, push.mode, *case));
        let (series, carried) = (series.collect(), vec![(0, 0); cases.len()]);
        Ok(Self { link, transport, policy, place, series, carried, load, _node: node })
    }

    /// Runs one round of case `index`.
    ///
    /// # Errors
    /// If a command fails or takes too long.
    pub fn round(&mut self, index: usize, span: Duration) -> Result<(), Failure> {
        let before = self.counters();
        let series = &mut self.series[index];
        let round = self.load.round(series.case, span, &mut series.latency)?;
        series.rounds.push(round);
        let rwmixread = series.case.rwmixread;
        let after = self.counters();
        let moved = |counters: Counters| match rwmixread {
            100 => (counters.tlps_received, counters.frames_received),
            _ => (counters.tlps_sent, counters.frames_sent),
        };
        let ((tlps, frames), (tlps_then, frames_then)) = (moved(after), moved(before));
        self.carried[index].0 += tlps - tlps_then;
        self.carried[index].1 += frames - frames_then;
        self.load.settle()
    }

    /// Measures the median latency of case `index` in nanoseconds, in a round that counts for no
    /// other result.
    ///
    /// # Errors
    /// As [`round`](Self::round).
    pub fn p50(&mut self, index: usize, span: Duration) -> Result<u64, Failure> {
        let case = self.series[index].case;
        let round = self.load.round(case, span, &mut Latency::default())?;
        self.load.settle()?;
        Ok(round.p50_ns)
    }

    fn counters(&self) -> Counters {
        self.load.host.machine.attached().upstream().tunnel(0).counters()
    }
}
