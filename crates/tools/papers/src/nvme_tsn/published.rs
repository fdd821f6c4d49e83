//! The published figures: `data/nvme-tsn.json`, with their sections.

use super::Topology;
use serde::Deserialize;

const DATA: &str = include_str!("../../data/nvme-tsn.json");

/// The file.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Of the publication.
    pub title: String,
    /// Whose it is.
    pub publisher: String,
    /// Its version.
    pub version: String,
    /// Section 4.1.
    pub config_read_ns: ByTopology<Samples>,
    /// The first table of section 4.4.
    pub table_of_config_reads_ns: ByTopology<Vec<u64>>,
    /// Sections 4.1.2 and 4.1.3.
    pub t_tunnel_ns: Tunnel,
    /// Section 4.2.
    pub read_4k_us: ByTopology<f64>,
    /// Section 4.3.
    pub write_4k_us: ByTopology<f64>,
}

/// A figure of each topology.
#[derive(Clone, Debug, Deserialize)]
pub struct ByTopology<T> {
    /// The section.
    pub source: String,
    direct: T,
    tcp: T,
    tsn: T,
}

/// Samples with their average as printed.
#[derive(Clone, Debug, Deserialize)]
pub struct Samples {
    /// In order.
    pub samples: Vec<u64>,
    /// As the NVMe/TSN paper goes on with it.
    pub average: u64,
}

/// T_tunnel.
#[derive(Clone, Debug, Deserialize)]
pub struct Tunnel {
    /// The sections.
    pub source: String,
    /// Over TCP.
    pub tcp: u64,
    /// Over TSN.
    pub tsn: u64,
}

impl<T> ByTopology<T> {
    /// That of one.
    pub fn at(&self, topology: Topology) -> &T {
        match topology {
            Topology::Direct => &self.direct,
            Topology::Tcp => &self.tcp,
            Topology::Tsn => &self.tsn,
        }
    }
}

impl Published {
    /// The whole title.
    pub fn citation(&self) -> String {
        format!("{}, \"{}\", version {}", self.publisher, self.title, self.version)
    }
}

/// Reads the file.
///
/// # Panics
/// If it does not fit: it is part of the program.
pub fn published() -> Published {
    serde_json::from_str(DATA).expect("data/nvme-tsn.json is part of the program")
}
