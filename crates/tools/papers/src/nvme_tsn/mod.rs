//! Missing Link Electronics, "Latency Analysis for NVMe/TSN", version 1.0 ("the NVMe/TSN paper"):
//! three topologies and three experiments, at the paper's measuring points. Further parts simulate
//! what the paper announces or claims: faster Ethernet, overlapping commands, and MRRS tuned for
//! tunnels. One part examines possible causes of the paper's read latency over TSN.

pub mod depth;
mod least;
mod parameters;
mod published;
pub mod push;
pub mod requests;
mod results;
pub mod speeds;
mod table;
#[cfg(test)]
mod tests;
pub mod tsn_read;

pub use depth::Depth;
pub use parameters::{NvmeTsnParameter, parameters, section as parameter_section};
pub use published::{Published, published};
pub use push::PushedTunnel;
pub use requests::Requests;
pub use results::{NvmeTsnResults, Part};
pub use speeds::Speed;
pub use table::{Tables, tables};
pub use tsn_read::TsnRead;

use sim::Config;
use sim::drive::DriveConfig;
use sim::ethernet::Rate;
use sim::measure::Latency;
use sim::workload::Workload;
use sim::world::{Attached, PortConfig, Report};
use wire::Duration;

/// The rate of the NVMe/TSN paper's network.
const RATE: Rate = Rate::G1;

wire::named! {
    /// The path between host and drive.
    pub enum Topology {
        /// The drive is below the root port (section 4.1.1).
        Direct "direct",
        /// A tunnel over TCP (4.1.2).
        Tcp "tcp",
        /// A tunnel over TCP over TSN (4.1.3).
        Tsn "tsn",
    }
}

impl Topology {
    /// Builds the simulated topology.
    pub fn config(self, workload: Workload, rate: Rate) -> Config {
        match self {
            Self::Direct => Config::nvme_tsn_direct(workload),
            Self::Tcp => Config::nvme_tsn_tcp(workload, rate),
            Self::Tsn => Config::nvme_tsn_tsn(workload, rate),
        }
    }
}

/// An experiment of the paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Experiment {
    /// Configuration read (section 4.1).
    ConfigRead,
    /// 4 KiB read (section 4.2).
    Read,
    /// 4 KiB write (section 4.3).
    Write,
}

impl Experiment {
    const ALL: [Self; 3] = [Self::ConfigRead, Self::Read, Self::Write];

    /// Returns the workload, with so many operations that the first ones do not affect the mean.
    fn workload(self) -> Workload {
        match self {
            Self::ConfigRead => Workload::ConfigReads { count: 5, gap: Duration::from_us(10) },
            Self::Read => Workload::Dd { write: false, bs: 4096, count: 100 },
            Self::Write => Workload::Dd { write: true, bs: 4096, count: 100 },
        }
    }

    /// Returns the samples at the measuring point of the NVMe/TSN paper.
    fn samples(self, report: &Report) -> &Latency {
        match self {
            Self::ConfigRead => &report.hosts[0].config_reads,
            Self::Read | Self::Write => &report.hosts[0].root_port,
        }
    }

    fn mean(self, report: &Report) -> Duration {
        mean(self.samples(report))
    }
}

/// Returns the mean, exact to the picosecond.
fn mean(samples: &Latency) -> Duration {
    let n = u128::from(samples.count().max(1));
    Duration::from_ps(((samples.sum_ps() + n / 2) / n) as u64)
}

/// Returns the port with the tunnel; `None` for a directly attached drive.
fn port(config: &mut Config) -> Option<&mut PortConfig> {
    match &mut config.hosts[0].attached {
        Attached::Direct(_) => None,
        Attached::Switch(switch) => switch.ports.first_mut(),
    }
}

fn drive(config: &mut Config) -> &mut DriveConfig {
    match &mut config.hosts[0].attached {
        Attached::Direct(drive) => drive,
        Attached::Switch(switch) => &mut switch.ports[0].drive,
    }
}

/// Converts a time to whole nanoseconds, rounded.
fn ns(time: Duration) -> u64 {
    (time.as_ps() + 500) / 1000
}

/// Converts a time to microseconds, rounded to two decimals.
fn us(time: Duration) -> f64 {
    ((time.as_ps() + 5_000) / 10_000) as f64 / 100.0
}
