//! The cases of a bench.

use credentials::Cipher;
use nvme::initiator::Op;
use schemars::JsonSchema;
use serde::Serialize;

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
    /// fio's name: `randread`, `randwrite`, `read` or `write`.
    pub rw: &'static str,
    /// Read or write.
    #[serde(skip)]
    pub op: Op,
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
        format!("{} {} KiB QD{}", self.rw, self.bs >> 10, self.iodepth)
    }
}

const fn random(op: Op, rw: &'static str, iodepth: usize) -> Case {
    Case { rw, op, random: true, bs: 4096, iodepth }
}

const fn sequential(op: Op, rw: &'static str) -> Case {
    Case { rw, op, random: false, bs: 128 << 10, iodepth: 8 }
}

/// The workload that fills a drive before it is measured.
pub const FILL: Case = sequential(Op::Write, "write");

/// All workloads.
pub const CASES: [Case; 8] = [
    random(Op::Read, "randread", 1),
    random(Op::Read, "randread", 8),
    random(Op::Read, "randread", 32),
    random(Op::Write, "randwrite", 1),
    random(Op::Write, "randwrite", 8),
    random(Op::Write, "randwrite", 32),
    sequential(Op::Read, "read"),
    sequential(Op::Write, "write"),
];
