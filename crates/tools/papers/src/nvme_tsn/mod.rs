//! Missing Link Electronics, "Latency Analysis for NVMe/TSN", version 1.0 ("the NVMe/TSN paper"):
//! three topologies, three experiments, at its measuring points. Then what it announces or claims:
//! faster Ethernet, overlapping commands, MRRS tuned for tunnels; and what could be behind its read
//! over TSN.

pub mod depth;
mod least;
mod parameters;
mod published;
pub mod push;
pub mod requests;
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
    /// What the drive hangs on.
    pub enum Topology {
        /// The root port itself (section 4.1.1).
        Direct "direct",
        /// The tunnel over TCP (4.1.2).
        Tcp "tcp",
        /// The tunnel over TCP over TSN (4.1.3).
        Tsn "tsn",
    }
}

impl Topology {
    /// The simulated one.
    pub fn config(self, workload: Workload, rate: Rate) -> Config {
        match self {
            Self::Direct => Config::nvme_tsn_direct(workload),
            Self::Tcp => Config::nvme_tsn_tcp(workload, rate),
            Self::Tsn => Config::nvme_tsn_tsn(workload, rate),
        }
    }
}

/// What is done with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Experiment {
    /// Section 4.1.
    ConfigRead,
    /// Section 4.2.
    Read,
    /// Section 4.3.
    Write,
}

impl Experiment {
    const ALL: [Self; 3] = [Self::ConfigRead, Self::Read, Self::Write];

    /// As often as it takes for a mean that does not hang on its beginning.
    fn workload(self) -> Workload {
        match self {
            Self::ConfigRead => Workload::ConfigReads { count: 5, gap: Duration::from_us(10) },
            Self::Read => Workload::Dd { write: false, bs: 4096, count: 100 },
            Self::Write => Workload::Dd { write: true, bs: 4096, count: 100 },
        }
    }

    /// Its samples, taken where the NVMe/TSN paper took them.
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

/// To the picosecond.
fn mean(samples: &Latency) -> Duration {
    let n = u128::from(samples.count().max(1));
    Duration::from_ps(((samples.sum_ps() + n / 2) / n) as u64)
}

/// The tunnel's port; the topology without one has none.
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

/// Whole nanoseconds, rounded.
fn ns(time: Duration) -> u64 {
    (time.as_ps() + 500) / 1000
}

/// Microseconds, rounded to two decimals.
fn us(time: Duration) -> f64 {
    ((time.as_ps() + 5_000) / 10_000) as f64 / 100.0
}
