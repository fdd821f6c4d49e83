//! Computes the minimum waits of requests: every queue is empty, every gate open, and nothing is
//! lost. If such a wait exceeds its limit, the limit breaks for certain.

use super::waits::{ADMIN, COMPLETION, IO};
use super::{Assumptions, CompletionTimeout, Limits, Row};
use crate::simulate::places;
use node::push::Mode as Push;
use sim::Config;
use sim::ethernet::bridge::Mode;
use sim::ethernet::frame::{HEADER, MINIMUM, PREAMBLE};
use sim::network::{CableEnd, Wiring};
use sim::pcie::{FRAMING, LinkConfig, Rate};
use sim::transport::TransportConfig;
use sim::workload::Workload;
use sim::world::{Attached, HostConfig};
use wire::Duration;

const RTO: &str = "Linux include/net/tcp.h, TCP_RTO_MIN; RFC 6298, 2.1";

/// Bytes of the shortest TLP on a PCIe link: a header of 3 double words (PCIe Base 4.0, 2.2.1), and
/// the framing.
const TLP: usize = 12 + FRAMING;

/// Returns the rows that exceed their limit for certain. Other minima are lower bounds of measured
/// rows and are left out.
pub(super) fn rows(config: &Config, assumed: &Assumptions) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    let wiring = config.network.wiring();
    let mut links = 0;
    for (number, host) in config.hosts.iter().enumerate() {
        let trips = match &host.attached {
            Attached::Direct(_) => {
                let name = format!("host {number}");
                vec![Trips { name, ..Trips::new(host, None, Duration::ZERO) }]
            }
            Attached::Switch(_) => {
                let all = host.links();
                let named = all.iter().zip(links..).filter_map(|(link, number)| {
                    let (drive, _) = link.drive?;
                    let trips = Trips::over(&wiring, host, drive);
                    Some(Trips { name: format!("link {number}"), ..trips })
                });
                links += all.len();
                named.collect()
            }
        };
        for trips in trips {
            rows.extend(trips.rows(host, assumed).into_iter().filter(|row| row.first.is_some()));
        }
    }
    worst_of_each(rows)
}

/// Returns one row per limit: the row with the smallest margin.
fn worst_of_each(mut rows: Vec<Row>) -> Vec<Row> {
    let mut worst: Vec<Row> = Vec::new();
    rows.sort_by_key(Row::margin_ps);
    for row in rows {
        if worst.iter().all(|known| known.name != row.name) {
            worst.push(row);
        }
    }
    worst
}

/// Minimum round trips on one link.
#[derive(Clone, Debug, Default)]
pub(in crate::simulate) struct Trips {
    /// Name of the drive.
    name: String,
    /// Configuration read as timed at the root port, and DMA read as timed at the drive's port:
    /// from the first bit of the request to the first bit of the completion.
    pub config_read: Duration,
    pub dma_read: Duration,
    /// Time from the write of a segment to the arrival of its acknowledgement.
    pub segment: Option<Duration>,
}

impl Trips {
    /// Computes the round trips between a host and a drive behind a tunnel.
    pub(in crate::simulate) fn over(wiring: &Wiring<'_>, host: &HostConfig, drive: usize) -> Self {
        let path = places::path(host, drive);
        let (mut network, mut segment) = (Duration::ZERO, None);
        for link in &path {
            if link.drive.is_none() {
                network = network + down(link.link) + up(link.link);
            }
            let Some(([near, far], _)) = link.transport.stations() else { continue };
            let [there, back] =
                places::routes(wiring, link.transport).map(|route| frames(wiring, &route));
            let stations = &wiring.network.stations;
            let pipelines = [near, far].map(|at| stations[at].tx_delay + stations[at].rx_delay);
            let own = there + back + pipelines[0] + pipelines[1];
            network = network + own;
            if let TransportConfig::Tcp(_) = link.transport {
                // A segment arrives before the pipeline of its receiver.
                let receive = stations[near].rx_delay.max(stations[far].rx_delay);
                segment = segment.max(Some(own - receive));
            }
        }
        let below = path.last().map(|link| link.link);
        Self { segment, ..Self::new(host, below, network) }
    }

    /// Computes the round trips; `network` is the time of the network in both directions.
    fn new(host: &HostConfig, below: Option<&LinkConfig>, network: Duration) -> Self {
        let memory = host.root.memory_read;
        let top = &host.link;
        // Requests and completions start after the pipeline of their port.
        let asks = down(top) - top.downstream_port.transmit;
        let (config_read, dma_read) = match below {
            None => (
                asks + top.upstream_port.transmit,
                up(top) - top.upstream_port.transmit + memory + top.downstream_port.transmit,
            ),
            Some(below) => (
                asks + down(below) + up(below) + top.upstream_port.transmit,
                up(below) - below.upstream_port.transmit
                    + up(top)
                    + memory
                    + down(top)
                    + below.downstream_port.transmit,
            ),
        };
        let [config_read, dma_read] = [config_read, dma_read].map(|trip| trip + network);
        Self { name: String::new(), config_read, dma_read, segment: None }
    }

    fn rows(&self, host: &HostConfig, assumed: &Assumptions) -> Vec<Row> {
        let root = host.root.completion_timeout;
        let CompletionTimeout { earliest, latest, .. } = assumed.completion_timeout;
        let drive = (earliest, latest);
        let at = |limit| (limit, limit);
        let mut rows = vec![
            self.row("round trip of a configuration read", self.config_read, at(root), COMPLETION),
            self.row("round trip of a DMA read", self.dma_read, drive, COMPLETION),
        ];
        if !matches!(host.workload, Workload::ConfigReads { .. }) {
            // The time of the doorbell, the completion entry, and the fetch between them unless it
            // is pushed.
            let direct = matches!(host.attached, Attached::Direct(_));
            let pushed = !direct && host.root.push != Push::Off;
            let fetch = if pushed { Duration::ZERO } else { self.dma_read };
            let command = self.config_read + fetch;
            let admin = at(assumed.admin_timeout);
            rows.push(self.row("I/O command", command, at(assumed.io_timeout), IO));
            rows.push(self.row("admin command", command, admin, ADMIN));
        }
        if let Some(segment) = self.segment {
            let limits = (assumed.rto_min, assumed.rto_initial);
            rows.push(self.row("round trip of a TCP segment", segment, limits, RTO));
        }
        rows
    }

    fn row(&self, name: &str, span: Duration, limits: Limits, source: &'static str) -> Row {
        let event = format!("{}: through empty queues and open gates", self.name);
        Row::new(format!("{name}, at the least"), limits, source).planned(Some(span), event)
    }
}

/// Returns the time of a TLP from one transaction layer to the other.
fn down(link: &LinkConfig) -> Duration {
    link.downstream_port.transmit + wire(link) + link.upstream_port.receive
}

fn up(link: &LinkConfig) -> Duration {
    link.upstream_port.transmit + wire(link) + link.downstream_port.receive
}

fn wire(link: &LinkConfig) -> Duration {
    Rate::new(link.generation, link.width).duration(TLP) + link.propagation
}

/// Returns the time of the shortest frame from the first port to the last bit at the other end.
fn frames(wiring: &Wiring<'_>, route: &[places::Egress<'_>]) -> Duration {
    let network = wiring.network;
    route.iter().fold(Duration::ZERO, |sum, egress| {
        let Some((cable, other)) = wiring.across(egress.place) else { return sum };
        let (delay, bytes) = match other {
            CableEnd::Station(..) => (Duration::ZERO, MINIMUM),
            CableEnd::Bridge(bridge, _) => {
                let bridge = &network.bridges[bridge];
                // The random delay of a bridge is practically never six times the jitter below its
                // mean.
                let spread = Duration::from_ps(bridge.jitter.as_ps().saturating_mul(6));
                let whole = bridge.mode == Mode::StoreAndForward;
                (bridge.delay - spread, if whole { MINIMUM } else { HEADER })
            }
        };
        sum + egress.rate.duration(PREAMBLE + bytes) + network.cables[cable].propagation + delay
    })
}
