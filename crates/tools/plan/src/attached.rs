//! Drives and PCIe links.

use super::workload::any;
use keys::job::MOST_NAMESPACES;
use keys::{KeyError, Origin, Section, all, set_fields};
use sim::Config;
use sim::drive::{DriveConfig, Timing};
use sim::ethernet::Rate;
use sim::pcie::{Buffer, Generation, LinkConfig, PortLatency};
use sim::world::{Attached, READS_IN_FLIGHT};
use wire::Duration;

/// Reads a drive without its serial number, and the number of its copies.
pub fn drive(section: &Section) -> Result<(DriveConfig, usize), KeyError> {
    let timing = timing(section)?;
    let drive = DriveConfig::new("", timing);
    let mut drive = match section.text("preset") {
        Some("ram") => drive.as_in_farlane(),
        _ => drive.as_in_nvme_tsn(READS_IN_FLIGHT),
    };
    drive.more = section.list("namespaces").into_iter().map(|(size, _)| size).collect();
    if drive.more.len() as u64 >= MOST_NAMESPACES {
        let (most, found) = (MOST_NAMESPACES - 1, drive.more.len());
        let message =
            format!("namespaces: expected at most {most} besides the first; found {found}");
        return section.fail("namespaces", message);
    }
    set_fields!(drive, section, size reads_in_flight);
    let faults = section.list::<String>("faults").into_iter();
    let parse = |(text, origin): (String, Origin)| {
        keys::drive_fault(&text).map_err(|message| origin.fail(format!("faults: {message}")))
    };
    drive.faults = all(faults.map(parse))?;
    drive.volatile = section.text("media") == Some("volatile");
    drive.max_payload = section.get("mps").unwrap_or(drive.max_payload);
    drive.read_request = section.get("dma_read").unwrap_or(drive.read_request);
    Ok((drive, section.get("count").unwrap_or(1)))
}

fn timing(section: &Section) -> Result<Timing, KeyError> {
    let preset = section.text("preset").unwrap_or("970-pro");
    let mut timing = Timing::preset(preset).expect("one of the presets");
    set_fields!(timing, section,
        firmware_read firmware_read_large write_base write_4k channels channel_rate read_lsb
        read_msb program page write_buffer variation stream_rate);
    timing.luns = section.get("dies").unwrap_or(timing.luns);
    if timing.write_buffer != 0 && timing.write_buffer < timing.page as u64 {
        let message = "write_buffer: 0B, or a page at least, up to 65536GiB";
        return section.fail("write_buffer", message);
    }
    Ok(timing)
}

/// Returns the PCIe links of the NVMe/TSN paper: below the root port, and below the switch.
fn nvme_tsn_links() -> (LinkConfig, LinkConfig) {
    let config = Config::nvme_tsn_tcp(any(), Rate::G1);
    let Attached::Switch(switch) = &config.hosts[0].attached else { unreachable!("a tunnel") };
    (config.hosts[0].link, switch.ports[0].link)
}

/// The table `[pcie]`.
#[derive(Clone, Copy, Debug)]
pub struct Pcie {
    generation: Generation,
    width: u8,
    propagation: Duration,
    root_port: PortLatency,
    switch_port: PortLatency,
    drive_port: PortLatency,
    /// MPS in bytes; `None` if the plan does not set it.
    pub mps: Option<usize>,
    /// MRRS in bytes.
    pub mrrs: usize,
    /// Size of host memory's completions, in bytes.
    pub rcb: usize,
}

impl Pcie {
    /// Reads the table. Defaults are from the NVMe/TSN paper.
    pub fn read(section: &Section) -> Result<Self, KeyError> {
        use Generation::{Gen1, Gen2, Gen3, Gen4, Gen5};
        let (top, bottom) = nvme_tsn_links();
        let generation = section.get("generation").map(|number: usize| number - 1);
        let width: u8 = section.get("width").unwrap_or(top.width);
        if !width.is_power_of_two() {
            let message = format!("width: expected 1, 2, 4, 8 or 16 lanes; found {width}");
            return section.fail("width", message);
        }
        let port = |key, standard| {
            let both = section.get(key);
            both.map_or(standard, |time| PortLatency { transmit: time, receive: time })
        };
        Ok(Self {
            generation: generation.map_or(top.generation, |at| [Gen1, Gen2, Gen3, Gen4, Gen5][at]),
            width,
            propagation: section.get("propagation").unwrap_or(top.propagation),
            root_port: port("root_port", top.downstream_port),
            switch_port: port("switch_port", top.upstream_port),
            drive_port: port("drive_port", bottom.upstream_port),
            mps: section.get("mps"),
            mrrs: section.get("mrrs").unwrap_or(512),
            rcb: section.get("rcb").unwrap_or(128),
        })
    }

    fn link(&self, downstream_port: PortLatency, upstream_port: PortLatency) -> LinkConfig {
        let Self { generation, width, propagation, .. } = *self;
        LinkConfig {
            generation,
            width,
            propagation,
            downstream_port,
            upstream_port,
            buffer: Buffer::default(),
        }
    }

    /// Returns the link below the root port: to the drive if `direct`, otherwise to the upstream
    /// port of the switch.
    pub fn below_root(&self, direct: bool) -> LinkConfig {
        self.link(self.root_port, if direct { self.drive_port } else { self.switch_port })
    }

    /// Returns the link from a downstream port to its drive.
    pub fn below_switch(&self) -> LinkConfig {
        self.link(self.switch_port, self.drive_port)
    }
}
