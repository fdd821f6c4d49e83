//! Flows over TCP that send as much as TCP permits.

use super::{EndId, Network};
use crate::kernel::Component;
use crate::node::Context;
use crate::transport::TcpConfig;
use bytes::Bytes;
use wire::{Duration, Instant, earliest};

/// A flow over TCP. It connects at the start of the simulation.
#[derive(Clone, Debug)]
pub struct BulkConfig {
    /// The sending and the receiving station.
    pub stations: [usize; 2],
    /// Priority of its frames, 0 to 7.
    pub priority: u8,
    /// Start of sending.
    pub start: Instant,
    /// End of sending: no data is passed to TCP at this time or later.
    pub stop: Option<Instant>,
    /// Bytes to send; `None`: without limit.
    pub bytes: Option<u64>,
}

/// The results of a flow.
#[derive(Clone, Debug)]
pub struct BulkReport {
    /// Bytes that the application of the receiver has received.
    pub delivered: u64,
    /// Time from the start to the last of these bytes.
    pub span: Duration,
    /// Segments that the sender sent again.
    pub retransmitted: u64,
    /// Length of the intervals of `progress`.
    pub interval: Duration,
    /// Bytes received in each interval since the start.
    pub progress: Vec<u64>,
}

/// The most intervals of a report. With more, two become one.
const INTERVALS: u64 = 200;

/// The first length of an interval.
const INTERVAL: Duration = Duration::from_us(10);

/// Pause before the next attempt to connect, as of tunnels.
const PAUSE: Duration = Duration::from_ms(200);

/// Bytes passed to TCP in one call.
static DATA: [u8; 64 << 10] = [0; 64 << 10];

/// The applications at both ends of a flow.
#[derive(Debug)]
pub(crate) struct Bulk {
    config: BulkConfig,
    owner: Component,
    ends: [EndId; 2],
    sent: u64,
    /// Retransmissions of earlier connections, and of this one.
    retransmitted: [u64; 2],
    connects_at: Option<Instant>,
    report: BulkReport,
}

impl Bulk {
    /// Opens the connection at this port. The component `owner` runs the flow.
    pub fn new(network: &mut Network, config: &BulkConfig, port: u16, owner: Component) -> Self {
        let BulkConfig { stations, priority, .. } = *config;
        let tcp = TcpConfig { stations, priority, burst: DATA.len() };
        Self {
            config: config.clone(),
            owner,
            ends: network.open(&tcp, port, [owner; 2]),
            sent: 0,
            retransmitted: [0; 2],
            connects_at: None,
            report: BulkReport {
                delivered: 0,
                span: Duration::ZERO,
                retransmitted: 0,
                interval: INTERVAL,
                progress: Vec::new(),
            },
        }
    }

    /// The component of the flow, if the flow uses this station.
    pub fn owner_at(&self, station: usize) -> Option<Component> {
        self.config.stations.contains(&station).then_some(self.owner)
    }

    /// The results so far.
    pub fn report(&self, network: &Network) -> BulkReport {
        let [earlier, _] = self.retransmitted;
        let retransmitted = earlier + network.retransmitted_by(self.ends[0]);
        BulkReport { retransmitted, ..self.report.clone() }
    }

    /// Receives and sends. Returns when to run again.
    pub fn run(&mut self, network: &mut Network, context: &mut Context) -> Option<Instant> {
        let now = context.now;
        let BulkConfig { start, stop, bytes, .. } = self.config;
        while let Some(arrived) = network.receive(self.ends[1]) {
            self.report.deliver(now.since(start), arrived.bytes.len() as u64);
        }
        let connects = self.reconnect(network, context);
        if now < start {
            return earliest([Some(start), connects]);
        }
        while stop.is_none_or(|stop| now < stop) {
            let left = bytes.map_or(u64::MAX, |bytes| bytes - self.sent);
            let room = left.min(DATA.len() as u64) as usize;
            let room = if room > 0 { network.room(now, self.ends[0]).min(room) } else { 0 };
            if room == 0 {
                break;
            }
            let data = Bytes::from_static(&DATA[..room]);
            self.sent += room as u64;
            let station = network.send(now, self.ends[0], data, 0);
            context.kernel.arm_by(station, now);
        }
        let processor = network.processor(self.config.stations[0]);
        earliest([connects, processor.and_then(|processor| processor.busy(now))])
    }

    /// Connects again if an end lost its power. The new connection continues after the last byte
    /// received. Returns when to try again.
    fn reconnect(&mut self, network: &mut Network, context: &mut Context) -> Option<Instant> {
        let now = context.now;
        let [sender, receiver] = self.ends;
        if network.is_closed(receiver) {
            context.kernel.arm_by(network.reopen(now, receiver), now);
        }
        if network.is_connected(sender) {
            self.retransmitted[1] = network.retransmitted_by(sender);
            return None;
        }
        self.sent = self.report.delivered;
        self.retransmitted = [self.retransmitted.iter().sum(), 0];
        if network.is_connected(receiver) {
            // Without data to send, the receiver does not notice that the sender has restarted.
            network.close(now, receiver);
            context.kernel.arm_by(network.reopen(now, receiver), now);
        }
        if !network.is_closed(sender) {
            return None;
        }
        let at = *self.connects_at.get_or_insert(now + PAUSE);
        if now < at {
            return Some(at);
        }
        self.connects_at = None;
        context.kernel.arm_by(network.reopen(now, sender), now);
        None
    }
}

impl BulkReport {
    fn deliver(&mut self, after: Duration, bytes: u64) {
        self.delivered += bytes;
        self.span = after;
        while after.as_ps() / self.interval.as_ps() >= INTERVALS {
            self.interval = self.interval + self.interval;
            self.progress = self.progress.chunks(2).map(|pair| pair.iter().sum()).collect();
        }
        let at = (after.as_ps() / self.interval.as_ps()) as usize;
        self.progress.resize(self.progress.len().max(at + 1), 0);
        self.progress[at] += bytes;
    }
}

impl Network {
    /// Segments that this end of a TCP connection sent again, since it last connected.
    fn retransmitted_by(&self, end: EndId) -> u64 {
        let host = self.stations[end.station].host.as_ref();
        let id = self.socket(end);
        host.zip(id).map_or(0, |(host, id)| host.retransmitted(id))
    }
}
