//! The published figures: `data/nvme-tsn.json`, with their sections.

use super::Topology;
use serde::Deserialize;

const DATA: &str = include_str!("../../data/nvme-tsn.json");

/// The contents of the file.
#[derive(Clone, Debug, Deserialize)]
pub struct Published {
    /// Title of the publication.
    pub title: String,
    /// Publisher.
    pub publisher: String,
    /// Version of the publication.
    pub version: String,
    /// Configuration reads (section 4.1).
    pub config_read_ns: ByTopology<Samples>,
    /// Configuration reads in the first table of section 4.4.
    pub table_of_config_reads_ns: ByTopology<Vec<u64>>,
    /// T_tunnel (sections 4.1.2 and 4.1.3).
    pub t_tunnel_ns: Tunnel,
    /// 4 KiB reads (section 4.2).
    pub read_4k_us: ByTopology<f64>,
    /// 4 KiB writes (section 4.3).
    pub write_4k_us: ByTopology<f64>,
}

/// A figure for each topology.
#[derive(Clone, Debug, Deserialize)]
pub struct ByTopology<T> {
    /// Section of the figure.
    pub source: String,
    direct: T,
    tcp: T,
    tsn: T,
}

/// Samples, and their average as printed.
#[derive(Clone, Debug, Deserialize)]
pub struct Samples {
    /// Samples in the order of the paper.
    pub samples: Vec<u64>,
    /// Average, rounded as the paper uses it in later calculations.
    pub average: u64,
}

/// T_tunnel, the one-way time that the tunnel adds, in ns.
#[derive(Clone, Debug, Deserialize)]
pub struct Tunnel {
    /// Sections of the paper with the figures.
    pub source: String,
    /// T_tunnel over TCP.
    pub tcp: u64,
    /// T_tunnel over TSN.
    pub tsn: u64,
}

impl<T> ByTopology<T> {
    /// Returns the figure of one topology.
    pub fn at(&self, topology: Topology) -> &T {
        match topology {
            Topology::Direct => &self.direct,
            Topology::Tcp => &self.tcp,
            Topology::Tsn => &self.tsn,
        }
    }
}

impl Published {
    /// Returns the section of the row of a simulation.
    pub fn source(&self, row: &str) -> &str {
        match row {
            row if row.starts_with("config_read") => &self.config_read_ns.source,
            row if row.starts_with("read_4k") => &self.read_4k_us.source,
            _ => &self.write_4k_us.source,
        }
    }

    /// Returns the whole citation.
    pub fn citation(&self) -> String {
        format!("{}, \"{}\", version {}", self.publisher, self.title, self.version)
    }
}

/// Reads the file.
///
/// # Panics
/// If the file, which is part of the program, is invalid.
pub fn published() -> Published {
    serde_json::from_str(DATA).expect("data/nvme-tsn.json is part of the program")
}
