//! The minimum time that a tunnel with push adds to a 4 KiB command, computed from the parameters:
//! each pipeline counts once per direction, each bit once, and there are no waits.

use sim::Config;
use sim::ethernet::frame::{FCS, GAP, HEADER, PREAMBLE, TAG};
use sim::pcie::{FRAMING, LinkConfig, Rate};
use sim::transport::TransportConfig;
use sim::world::{Attached, HostConfig, PortConfig};
use wire::Duration;
use wire::frame::HEADER as FRAME;
use wire::nvme::{COMPLETION_ENTRY, SUBMISSION_ENTRY};
use wire::push::{BYTES_HEADER, Record};

/// Bytes of data of a command.
const BLOCK: usize = 4096;
/// Bytes of the header of a memory write below 4 GiB: 3 double words (PCIe Base 4.0, section
/// 2.2.1).
const WRITE: usize = 12;
/// Bytes of the header of a message: 4 double words (section 2.2.8).
const MESSAGE: usize = 16;
/// Bytes of a doorbell, or of the data of an MSI-X message.
const WORD: usize = 4;
/// Bytes of the headers of IP and TCP without options.
const SEGMENT: usize = 40;

struct Way<'a> {
    host: &'a HostConfig,
    port: &'a PortConfig,
    rate: sim::ethernet::Rate,
    /// Maximum bytes of a tunnel frame.
    burst: usize,
    tag: usize,
    /// Time of pipelines and cables in one direction.
    pipelines: Duration,
}

impl<'a> Way<'a> {
    /// Returns `None` without a tunnel over TCP.
    fn new(config: &'a Config) -> Option<Self> {
        let host = &config.hosts[0];
        let Attached::Switch(switch) = &host.attached else { return None };
        let port = switch.ports.first()?;
        let TransportConfig::Tcp(tcp) = &port.transport else { return None };
        let [near, far] = tcp.stations.map(|at| &config.network.stations[at]);
        let pipelines = host.link.upstream_port.receive
            + near.tx_delay
            + config.network.cables[0].propagation
            + far.rx_delay
            + port.link.downstream_port.transmit
            + port.link.propagation;
        Some(Self {
            host,
            port,
            rate: near.ports[0].rate,
            burst: tcp.burst,
            tag: if near.tagging.is_some() { TAG } else { 0 },
            pipelines,
        })
    }

    /// Returns the time on the line of TLPs with a total length of `bytes`, in as few segments as
    /// possible.
    fn line(&self, bytes: usize) -> Duration {
        let frames = bytes.div_ceil(self.burst - FRAME);
        let each = FRAME + SEGMENT + HEADER + self.tag + FCS + PREAMBLE;
        self.rate.duration(bytes + frames * each + (frames - 1) * GAP)
    }

    /// Returns the lengths of the messages, as TLPs, for the entry and the data of a write.
    fn messages(&self, data: usize) -> Vec<usize> {
        let payload = self.host.software.max_payload;
        let mut all = vec![MESSAGE + BYTES_HEADER + SUBMISSION_ENTRY];
        let (mut left, mut room) = (data, payload + MESSAGE - all[0]);
        while left > 0 {
            let piece = left.min(Record::most_bytes(room));
            *all.last_mut().expect("the entry") += BYTES_HEADER + piece;
            left -= piece;
            if left > 0 {
                all.push(MESSAGE);
                room = payload;
            }
        }
        all
    }

    /// Returns the time that a DMA read saves because the device node answers it.
    fn saved(&self) -> Duration {
        let (root, node) = (self.host.link.downstream_port, self.port.link.downstream_port);
        let host = root.receive + self.host.root.memory_read + root.transmit;
        host - (node.receive + node.transmit)
    }

    /// Returns the time to the drive: the messages and the doorbell.
    fn there(&self, data: usize) -> Duration {
        let (messages, doorbell) = (self.messages(data), WRITE + WORD);
        let (first, all) = (messages[0], messages.iter().sum::<usize>());
        let above = |bytes: &[usize]| on(&self.host.link, bytes);
        // The first message leaves while others arrive, unless the line is faster than PCIe.
        let slow_line = above(&[first]) + self.line(all + doorbell);
        let fast_line = above(&messages) + self.line(doorbell);
        // One range is pushed for the entry, and one for the data.
        let ranges = if data > 0 { 2 } else { 1 };
        self.pipelines
            + Duration::from_ps(self.host.root.memory_read.as_ps() * ranges)
            + slow_line.max(fast_line)
            + on(&self.port.link, &[doorbell])
    }

    /// Returns the time to the host for data, completion entry and interrupt, less the time on PCIe
    /// of a directly attached drive.
    fn back(&self, data: usize) -> Duration {
        let payload = self.host.software.max_payload;
        let mut tlps = vec![WRITE + payload; data.div_ceil(payload)];
        tlps.extend([WRITE + COMPLETION_ENTRY, WRITE + WORD]);
        let below = |bytes: &[usize]| on(&self.port.link, bytes);
        let interrupt = WRITE + WORD;
        let slow_line = below(&tlps[..1]) + self.line(tlps.iter().sum()) - below(&tlps);
        self.pipelines + slow_line.max(self.line(interrupt)) + on(&self.host.link, &[interrupt])
    }
}

/// Returns the time of TLPs with these lengths on a PCIe link.
fn on(link: &LinkConfig, lengths: &[usize]) -> Duration {
    let bytes = lengths.iter().map(|bytes| bytes + FRAMING).sum();
    Rate::new(link.generation, link.width).duration(bytes)
}

/// Returns the minimum time that a tunnel adds to a 4 KiB read or write.
///
/// # Panics
/// If the configuration has no tunnel over TCP.
pub fn least(config: &Config, write: bool) -> Duration {
    let way = Way::new(config).expect("a tunnel over TCP");
    let (to_drive, to_host) = if write { (BLOCK, 0) } else { (0, BLOCK) };
    // The drive reads the entry, then the data in concurrent reads.
    let drive = &way.port.drive;
    let reads = 1 + to_drive.div_ceil(drive.read_request * drive.reads_in_flight);
    let saved = Duration::from_ps(way.saved().as_ps() * reads as u64);
    way.there(to_drive) + way.back(to_host) - saved
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nvme_tsn::{Experiment, Topology};
    use sim::ethernet::Rate as Ethernet;

    #[test]
    fn the_least_of_a_read_at_one_gigabit() {
        let config = Topology::Tcp.config(Experiment::Read.workload(), Ethernet::G1);
        let way = Way::new(&config).expect("a tunnel");
        assert_eq!(way.pipelines, Duration::from_ns(134 + 894 + 10 + 894 + 134 + 1));
        // Down: a message of 16 + 16 + 64 bytes and a doorbell of 16, in a frame of 12 + 112 + 40 +
        // 14 + 4 + 8 = 190 bytes. PCIe takes 0.5 ns per byte, with 8 additional bytes per TLP.
        assert_eq!(way.messages(0), [96]);
        let one_way_ns = 2_067 + 200 + 52 + 190 * 8 + 12;
        assert_eq!(way.there(0), Duration::from_ns(one_way_ns));
        // Up: 16 x 268 + 28 + 16 = 4332 bytes in 3 frames with 78 additional bytes each and 2 gaps.
        // PCIe takes 276 bytes before, and a direct drive 4332 + 18 x 8.
        let back = 2_067 + 138 + (4_332 + 3 * 78 + 24) * 8 - 2_238 + 12;
        assert_eq!(way.back(BLOCK), Duration::from_ns(back));
        // 50 + 200 + 50 ns instead of 134 + 134.
        assert_eq!(least(&config, false), Duration::from_ns(one_way_ns + back - 32));
    }

    #[test]
    fn messages_are_as_long_as_those_sent() {
        let config = Topology::Tcp.config(Experiment::Write.workload(), Ethernet::G1);
        let way = Way::new(&config).expect("a tunnel");
        // 256 - 80 - 16 = 160 bytes of data after the entry, then 16 x 240, then 96.
        let mut expected = vec![16 + 256; 17];
        expected.push(16 + 16 + 96);
        assert_eq!(way.messages(BLOCK), expected);
    }
}
