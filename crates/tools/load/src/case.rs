//! The cases of a bench.

use credentials::Cipher;
use nvme::initiator::Op;
use schemars::JsonSchema;
use serde::Serialize;
use stats::random::Random;

wire::named! {
    /// The path to the drive: with or without the tunnel, and the tunnel's encryption.
    pub enum Path {
        /// The controller is directly below the root port.
        Direct "direct",
        /// Through switch, tunnel and TCP on loopback.
        Tunnelled "tunnelled",
        /// As `Tunnelled`, under TLS with AES-GCM and 128-bit keys.
        Aes128 "tls-aes-128-gcm",
        /// As `Tunnelled`, under TLS with AES-GCM and 256-bit keys.
        Aes256 "tls-aes-256-gcm",
        /// As `Tunnelled`, under TLS with ChaCha20-Poly1305.
        ChaCha20 "tls-chacha20-poly1305",
    }
}

impl Path {
    /// The encryption of the link.
    pub fn cipher(self) -> Option<Cipher> {
        match self {
            Self::Direct | Self::Tunnelled => None,
            Self::Aes128 => Some(Cipher::Aes128Gcm),
            Self::Aes256 => Some(Cipher::Aes256Gcm),
            Self::ChaCha20 => Some(Cipher::ChaCha20Poly1305),
        }
    }
}

/// One workload, in fio's terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct Case {
    /// fio's name: `randread`, `randwrite`, `read` or `write`; of mixed workloads `randrw` or `rw`.
    pub rw: &'static str,
    /// Percentage of reads, 0 to 100.
    #[serde(skip)]
    pub rwmixread: u8,
    /// Whether addresses are random; otherwise they are sequential.
    #[serde(skip)]
    pub random: bool,
    /// Bytes per command.
    pub bs: u32,
    /// Commands in flight.
    pub iodepth: usize,
}

impl Case {
    /// Returns the name of the row in tables.
    pub fn name(&self) -> String {
        let mix = match self.rwmixread {
            0 | 100 => String::new(),
            reads => format!(" {reads}/{}", 100 - reads),
        };
        format!("{}{mix} {} KiB QD{}", self.rw, self.bs >> 10, self.iodepth)
    }

    /// Chooses the operation of the next command.
    pub(crate) fn next_op(&self, random: &mut Random) -> Op {
        match self.rwmixread {
            0 => Op::Write,
            100 => Op::Read,
            reads if random.below(100) < u64::from(reads) => Op::Read,
            _ => Op::Write,
        }
    }
}

const fn random(rw: &'static str, rwmixread: u8, iodepth: usize) -> Case {
    Case { rw, rwmixread, random: true, bs: 4096, iodepth }
}

pub(crate) const fn sequential(rw: &'static str, rwmixread: u8, bs: u32, iodepth: usize) -> Case {
    Case { rw, rwmixread, random: false, bs, iodepth }
}

/// The workload that fills a drive before it is measured.
pub const FILL: Case = sequential("write", 0, 128 << 10, 8);

/// All workloads.
pub const CASES: [Case; 8] = [
    random("randread", 100, 1),
    random("randread", 100, 8),
    random("randread", 100, 32),
    random("randwrite", 0, 1),
    random("randwrite", 0, 8),
    random("randwrite", 0, 32),
    sequential("read", 100, 128 << 10, 8),
    sequential("write", 0, 128 << 10, 8),
];

/// Returns the workloads of `bench efficiency`: reads, 70 % reads, and writes of 4 KiB, at random
/// and at sequential addresses.
pub const fn efficiency_cases(iodepth: usize) -> [Case; 6] {
    [
        random("randread", 100, iodepth),
        random("randrw", 70, iodepth),
        random("randwrite", 0, iodepth),
        sequential("read", 100, 4096, iodepth),
        sequential("rw", 70, 4096, iodepth),
        sequential("write", 0, 4096, iodepth),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_have_the_shares_of_the_mix() {
        let mut random = Random::new(7);
        for case in efficiency_cases(1) {
            let reads = (0..10_000).filter(|_| case.next_op(&mut random) == Op::Read).count();
            assert!(reads.abs_diff(100 * usize::from(case.rwmixread)) < 200, "{}", case.name());
        }
    }
}
