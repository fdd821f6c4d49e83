//! Bytes on the wire of TLPs in separate frames and in shared frames: the possible gain of
//! aggregation on a link that is the bottleneck.

use super::Transport;
use linux::{SMALLEST_FRAME, WIRE};
use nvme::initiator::Op;
use wire::{frame, raw};

const ETHERNET: usize = 14;
/// Maximum payload of a frame in bytes.
pub const MTU: usize = 1500;
/// Bytes of the IPv4 and TCP headers with timestamps (RFC 791, 3.1; RFC 9293, 3.1; RFC 7323, 3.2).
const IP_TCP: usize = 20 + 20 + 12;
/// Header bytes of TLPs with data (PCIe Base 4.0, section 2.2.1): of a write to host memory above 4
/// GiB, and of a completion.
const WRITE: usize = 16;
const COMPLETION: usize = 12;
/// Maximum bytes of TLPs in a tunnel frame of a TCP stream: 32 KiB.
const STREAM_FRAME: usize = 32 << 10;

/// Bytes on the wire per TLP with data.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Cost {
    /// Each TLP in a frame of its own.
    pub alone: f64,
    /// Frames with the maximum number of TLPs.
    pub together: f64,
}

impl Cost {
    /// Computes the cost of TLPs that carry `payload` bytes for `op`.
    pub fn new(transport: Transport, op: Op, payload: usize) -> Self {
        let tlp = payload + if op == Op::Read { WRITE } else { COMPLETION };
        match transport {
            Transport::Raw => {
                let fit = (MTU - raw::HEADER - frame::HEADER) / tlp;
                let frame = |tlps: usize| wire(raw::HEADER + frame::HEADER + tlps * tlp);
                Self { alone: frame(1) as f64, together: frame(fit) as f64 / fit as f64 }
            }
            Transport::Tcp => {
                let segment = MTU - IP_TCP;
                let fit = STREAM_FRAME / tlp;
                let of_stream = tlp as f64 + frame::HEADER as f64 / fit as f64;
                let share = of_stream / segment as f64;
                Self {
                    alone: wire(IP_TCP + frame::HEADER + tlp) as f64,
                    together: share * wire(MTU) as f64,
                }
            }
        }
    }

    /// Returns the possible increase in throughput of a full link, as a share.
    pub fn gain(&self) -> f64 {
        self.alone / self.together - 1.0
    }
}

/// Returns the bytes on the wire of a frame with `payload` bytes after its EtherType.
pub fn wire(payload: usize) -> usize {
    (ETHERNET + payload).max(SMALLEST_FRAME) + WIRE
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_counted_by_hand() {
        // 24 + 14 + 12 + 12 + (16 + 128), and ten of them in 24 + 14 + 1464.
        let raw = Cost::new(Transport::Raw, Op::Read, 128);
        assert_eq!(raw, Cost { alone: 206.0, together: 150.2 });
        assert_eq!(Cost::new(Transport::Raw, Op::Write, 128).alone, 202.0);
        // 24 + 14 + 52 + 12 + 144; 1448 bytes of the stream cost 1538.
        let tcp = Cost::new(Transport::Tcp, Op::Read, 128);
        assert_eq!(tcp.alone, 246.0);
        assert!((tcp.together - 144.0 * 1538.0 / 1448.0).abs() < 0.1, "{}", tcp.together);
        assert!(tcp.gain() > raw.gain() && raw.gain() > 0.37);
        assert_eq!(wire(1), 84);
    }
}
