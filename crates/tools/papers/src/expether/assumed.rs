//! The effect of assumptions about parameters that the paper omits.

use super::setup::{self, POLICIES, Setup};
use super::sweep::BYTES;
use crate::{Runs, Section};
use report::Align::{Left, Right};
use report::{Column, Failure};
use schemars::JsonSchema;
use serde::Serialize;
use sim::Config;
use sim::node::RootConfig;
use sim::pcie::Generation;
use sim::world::{Attached, PortConfig, Report};
use wire::Duration;

/// Number of SSDs. With four, Ethernet is the bottleneck.
const SSDS: u16 = 4;

type Change = fn(&mut Config);

const CASES: [(&str, Change); 9] = [
    ("as above", |_| {}),
    ("16 DMA reads in flight", |c| port(c).drive.reads_in_flight = 16),
    ("64 DMA reads in flight", |c| port(c).drive.reads_in_flight = 64),
    ("DMA reads of 256 bytes", |c| port(c).drive.read_request = 256),
    ("DMA reads of 512 bytes", |c| port(c).drive.read_request = 512),
    ("nodes' pipelines of 100 ns", |c| pipelines(c, Duration::from_ns(100))),
    ("nodes' pipelines of 500 ns", |c| pipelines(c, Duration::from_ns(500))),
    ("PCIe Gen1 x8", |c| {
        c.hosts[0].link.generation = Generation::Gen1;
        port(c).link.generation = Generation::Gen1;
    }),
    ("host memory below 4 GiB", |c| c.hosts[0].root.memory_at = RootConfig::LOW_MEMORY),
];

fn port(config: &mut Config) -> &mut PortConfig {
    match &mut config.hosts[0].attached {
        Attached::Switch(switch) => &mut switch.ports[0],
        Attached::Direct(_) => unreachable!("the prototype has a tunnel"),
    }
}

fn pipelines(config: &mut Config, time: Duration) {
    for station in &mut config.network.stations {
        (station.tx_delay, station.rx_delay) = (time, time);
    }
}

/// Results with one assumption changed. Throughputs are in 10^6 bytes per second.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Assumed {
    /// The changed assumption.
    pub case: &'static str,
    /// Throughput of four SSDs read without aggregation.
    pub read_off_mb_per_s: f64,
    /// Gain of aggregation for reads, in per cent.
    pub read_gain_percent: f64,
    /// Throughput of four SSDs written without aggregation.
    pub write_off_mb_per_s: f64,
    /// Gain of aggregation for writes, in per cent.
    pub write_gain_percent: f64,
    /// TLPs per frame of a write with aggregation, one SSD at 10 Gb/s: 1 in the paper.
    pub write_one_ssd_tlps_per_frame: f64,
}

/// Runs each case.
///
/// # Errors
/// If a simulation fails.
pub fn simulate() -> Result<Vec<Assumed>, Failure> {
    let mut runs = Runs::default();
    for (name, change) in CASES {
        let mut add = |setup: Setup, write| {
            let mut config = setup.config(setup::transfer(write, BYTES / 4));
            change(&mut config);
            runs.add(setup.name(name), config);
        };
        for write in [false, true] {
            POLICIES.into_iter().for_each(|policy| add(Setup::new(policy, SSDS), write));
        }
        add(Setup::new(POLICIES[0], 1), true);
    }
    let reports = runs.run()?;
    let case = |((name, _), reports): (&(&'static str, Change), &[Report])| {
        let rate = |at: usize| setup::throughput(&reports[at]);
        Assumed {
            case: name,
            read_off_mb_per_s: rate(1),
            read_gain_percent: setup::gain(rate(0), rate(1)),
            write_off_mb_per_s: rate(3),
            write_gain_percent: setup::gain(rate(2), rate(3)),
            write_one_ssd_tlps_per_frame: setup::tlps_per_frame(&reports[4], true),
        }
    };
    Ok(CASES.iter().zip(reports.chunks(5)).map(case).collect())
}

/// Returns the results as a table.
pub fn section(cases: &[Assumed]) -> Section {
    let columns: [Column<Assumed>; 6] = [
        ("four SSDs", Left, |case| case.case.to_owned()),
        ("read, without, MB/s", Right, |case| format!("{:.1}", case.read_off_mb_per_s)),
        ("gain", Right, |case| format!("{:+.1} %", case.read_gain_percent + 0.0)),
        ("write, without, MB/s", Right, |case| format!("{:.1}", case.write_off_mb_per_s)),
        ("gain", Right, |case| format!("{:+.1} %", case.write_gain_percent + 0.0)),
        ("one SSD: TLPs a frame of a write", Right, |case| {
            format!("{:.2}", case.write_one_ssd_tlps_per_frame)
        }),
    ];
    Section::from_rows("How much hangs on what the paper does not say", &columns, cases, &NOTES)
}

const NOTES: [&str; 3] = [
    "Transfers of 1 MB, of whose time beginning and end take some per cent: to be compared with the \
     first row, not with the curves.",
    "Reads hang on nothing but the bytes on the wire. What aggregation gains a write hangs on how \
     many DMA reads are in flight for how long: with few, too few completions wait to fill a frame. \
     DMA reads of 512 bytes would let the four completions of one request share frames with one SSD \
     already, which the paper did not see.",
    "With host memory below 4 GiB the headers of a drive's writes have 3 double words like those of \
     completions, and a read would be as fast as a write: the paper's 89993 us against 91622 us \
     without aggregation are the fourth double word.",
];
