//! The parameters of the simulated configuration.

use super::setup::{LINE, POLICIES, Setup, small};
use crate::Section;
use report::Align::{Left, Right};
use report::Column;
use schemars::JsonSchema;
use serde::Serialize;
use sim::Config;
use sim::network::StationConfig;
use sim::workload::CompletionMode;
use sim::world::{Attached, PortConfig, SwitchConfig};
use wire::Duration;

/// A parameter.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct ExpetherParameter {
    /// Name of the parameter, with the unit.
    pub parameter: &'static str,
    /// Value with one SSD at 10 Gb/s.
    pub value: String,
    /// Source of the value.
    pub from: &'static str,
}

type Read = fn(&Config) -> String;

const SLIDES: &str = "the paper";
const ASSUMED: &str = "assumed";
const READ_64M: &str = "calibrated: the two 64 MB reads";
const NO_MATTER: &str = "assumed; see what hangs on it";

const TABLE: &[(&str, &str, Read)] = &[
    ("Ethernet", SLIDES, |c| format!("{}b/s", station(c).ports[0].rate)),
    ("payload of a TLP, bytes", SLIDES, |c| c.hosts[0].software.max_payload.to_string()),
    ("headers of a drive's writes, bytes", "64-bit addresses: memory above 4 GiB", |c| {
        if c.hosts[0].root.memory_at >= 4 << 30 { "16" } else { "12" }.to_owned()
    }),
    ("payload of an Ethernet frame at most, bytes", "IEEE 802.3", |_| "1500".to_owned()),
    ("Ethernet a frame, bytes", "IEEE 802.3: preamble, header, FCS, gap", |_| "38".to_owned()),
    ("headers of raw transport and tunnel a frame, bytes", "farlane's own", |_| {
        (wire::raw::HEADER + wire::frame::HEADER).to_string()
    }),
    ("ExpEther's encapsulation a frame beside them, bytes", READ_64M, |c| {
        switch(c).encapsulation.frame.to_string()
    }),
    ("ExpEther's encapsulation a TLP, bytes", READ_64M, |c| {
        switch(c).encapsulation.tlp.to_string()
    }),
    ("an SSD, MB/s", "calibrated: where aggregation begins", |c| {
        (port(c).drive.timing.stream_rate / 1_000_000).to_string()
    }),
    ("drive's time for a read, us", "calibrated: 4 KB read without aggregation", |c| {
        us(port(c).drive.timing.firmware_read)
    }),
    ("drive's time for a write, us", "calibrated: 4 KB write without aggregation", |c| {
        us(port(c).drive.timing.write_base)
    }),
    ("DMA reads of the drive, bytes", "chosen: no aggregation with one SSD", |c| {
        port(c).drive.read_request.to_string()
    }),
    ("DMA reads in flight", "5-bit tags, the default", |c| {
        port(c).drive.reads_in_flight.to_string()
    }),
    ("PCIe links", "ExpEther's FPGA; see what hangs on it", |c| {
        let link = &c.hosts[0].link;
        format!("{:?} x{}", link.generation, link.width)
    }),
    ("nodes, transmit, receive, ns", NO_MATTER, |c| {
        format!("{}, {}", station(c).tx_delay.as_ns(), station(c).rx_delay.as_ns())
    }),
    ("cable, ns", "assumed: 2 m", |c| c.network.cables[0].propagation.as_ns().to_string()),
    ("root port, transmit, receive, ns", ASSUMED, |c| pair(c.hosts[0].link.downstream_port)),
    ("switch ports, transmit, receive, ns", ASSUMED, |c| pair(port(c).link.downstream_port)),
    ("drive's port, transmit, receive, ns", ASSUMED, |c| pair(port(c).link.upstream_port)),
    ("host memory read, ns", "assumed; pcie-bench", |c| {
        c.hosts[0].root.memory_read.as_ns().to_string()
    }),
    ("submission, completion, us", "assumed; in the 4 KB rows with the drive's time", |c| {
        format!("{}, {}", us(c.hosts[0].software.submit), us(c.hosts[0].software.complete))
    }),
    ("interrupt to handler, us", "the same", |c| match c.hosts[0].software.completions {
        CompletionMode::Interrupt { latency } => us(latency),
        CompletionMode::Polling { interval } => us(interval),
    }),
    ("command at most, KiB", "drive's MDTS", |_| (sim::drive::MAX_TRANSFER / 1024).to_string()),
];

fn us(time: Duration) -> String {
    format!("{}", time.as_ns() as f64 / 1e3)
}

fn pair(port: sim::pcie::PortLatency) -> String {
    format!("{}, {}", port.transmit.as_ns(), port.receive.as_ns())
}

fn station(config: &Config) -> &StationConfig {
    &config.network.stations[0]
}

fn switch(config: &Config) -> &SwitchConfig {
    match &config.hosts[0].attached {
        Attached::Switch(switch) => switch,
        Attached::Direct(_) => unreachable!("the prototype has a tunnel"),
    }
}

fn port(config: &Config) -> &PortConfig {
    &switch(config).ports[0]
}

/// Returns every parameter. Runs differ only in the aggregation, the SSDs and the rate limit.
pub fn parameters() -> Vec<ExpetherParameter> {
    let setup = Setup { limit: LINE, ..Setup::new(POLICIES[0], 1) };
    let config = setup.config(small(false));
    let row = |(parameter, from, read): &(&'static str, &'static str, Read)| ExpetherParameter {
        parameter,
        value: read(&config),
        from,
    };
    TABLE.iter().map(row).collect()
}

/// Returns the parameters as a table.
pub fn section() -> Section {
    let columns: [Column<ExpetherParameter>; 3] = [
        ("parameter", Left, |one| one.parameter.to_owned()),
        ("value", Right, |one| one.value.clone()),
        ("from", Left, |one| one.from.to_owned()),
    ];
    let title = "Parameters: one set for everything; runs differ in aggregation, SSDs and limit";
    Section::from_rows(title, &columns, &parameters(), &[])
}
