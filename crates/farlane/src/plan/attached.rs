//! Drives and PCIe links.

use super::section::Section;
use super::units::{ByteRate, Bytes};
use super::{PlanError, units};
use sim::drive::{DriveConfig, Timing};
use sim::pcie::{Generation, LinkConfig, PortLatency};
use sim::world::READS_IN_FLIGHT;

/// Of a drive, and of its write buffer: 64 TiB.
const MOST_BYTES: u64 = 1 << 46;

/// Namespaces of a drive.
pub const MOST_NAMESPACES: usize = 32;

/// A power of two in a range.
fn power(section: &Section, key: &str, least: u64, most: u64) -> Result<Option<usize>, PlanError> {
    let value = match section.find(key).map(|entry| &entry.value.kind) {
        // A number without a unit is bytes here, as everywhere in PCIe.
        Some(super::value::Kind::Integer(_)) => section.number(key, least, most)?,
        _ => section.parsed(key, units::size)?,
    };
    match value {
        Some(value) if !value.is_power_of_two() || !(least..=most).contains(&value) => {
            let what = format!("{key}: a power of two, {least} to {most} bytes");
            Err(section.place(key).fail(what))
        }
        value => Ok(value.map(|value| value as usize)),
    }
}

/// A drive, without its serial number, and how many of it there are.
pub fn drive(section: &Section) -> Result<(DriveConfig, usize), PlanError> {
    let timing = timing(section)?;
    let standard = DriveConfig::new("", timing).as_in_the_brief(READS_IN_FLIGHT);
    let more = section.list("namespaces", units::size)?.unwrap_or_default();
    let size = section.parsed("size", units::size)?.unwrap_or(standard.size);
    let namespaces = more.iter().map(|(size, origin)| ("namespaces", *size, origin.clone()));
    let first = std::iter::once(("size", size, section.place("size")));
    for (key, size, origin) in first.chain(namespaces) {
        if !(4096..=MOST_BYTES).contains(&size) || !size.is_multiple_of(4096) {
            let what = format!("{key}: a multiple of 4096B, 4096B to 65536GiB");
            return Err(origin.fail(what));
        }
    }
    if more.len() >= MOST_NAMESPACES {
        let what = format!("namespaces: at most {} besides the first", MOST_NAMESPACES - 1);
        return Err(section.place("namespaces").fail(what));
    }
    let drive = DriveConfig {
        volatile: section.word("media", &["persistent", "volatile"])? == Some("volatile"),
        size,
        more: more.into_iter().map(|(size, _)| size).collect(),
        max_payload: power(section, "mps", 128, 4096)?.unwrap_or(standard.max_payload),
        read_request: power(section, "dma_read", 128, 4096)?.unwrap_or(standard.read_request),
        reads_in_flight: section
            .number("reads_in_flight", 1, 1024)?
            .map_or(standard.reads_in_flight, |reads| reads as usize),
        ..standard
    };
    Ok((drive, section.number("count", 1, 32)?.unwrap_or(1) as usize))
}

fn timing(section: &Section) -> Result<Timing, PlanError> {
    let preset = section.word("preset", &Timing::PRESETS)?.unwrap_or("970-pro");
    let standard = Timing::preset(preset).expect("one of the presets");
    let time = |key, standard| section.time(key, standard);
    let rate = |key, least: u64, standard: u64| -> Result<u64, PlanError> {
        let range = ByteRate(least)..=ByteRate::MOST;
        Ok(section.within(key, &range)?.map_or(standard, |rate| rate.0))
    };
    let few = |key, standard: u16| -> Result<u16, PlanError> {
        Ok(section.number(key, 1, 256)?.map_or(standard, |number| number as u16))
    };
    let sizes = Bytes(0)..=Bytes(MOST_BYTES);
    let timing = Timing {
        firmware_read: time("firmware_read", standard.firmware_read)?,
        firmware_read_large: time("firmware_read_large", standard.firmware_read_large)?,
        write_base: time("write_base", standard.write_base)?,
        write_4k: time("write_4k", standard.write_4k)?,
        channels: few("channels", standard.channels)?,
        luns: few("dies", standard.luns)?,
        channel_rate: rate("channel_rate", 1_000, standard.channel_rate)?,
        read_lsb: time("read_lsb", standard.read_lsb)?,
        read_msb: time("read_msb", standard.read_msb)?,
        program: time("program", standard.program)?,
        page: power(section, "page", 4096, 1 << 24)?.unwrap_or(standard.page),
        write_buffer: section
            .within("write_buffer", &sizes)?
            .map_or(standard.write_buffer, |b| b.0),
        variation: time("variation", standard.variation)?,
        stream_rate: rate("stream_rate", 0, standard.stream_rate)?,
    };
    if timing.write_buffer != 0 && timing.write_buffer < timing.page as u64 {
        let place = section.place("write_buffer");
        return Err(place.fail("write_buffer: 0B, or a page at least, up to 65536GiB"));
    }
    Ok(timing)
}

/// `[pcie]`.
#[derive(Clone, Copy, Debug)]
pub struct Pcie {
    generation: Generation,
    width: u8,
    propagation: wire::Duration,
    root_port: PortLatency,
    switch_port: PortLatency,
    drive_port: PortLatency,
    /// If it is given.
    pub mps: Option<usize>,
    /// MRRS.
    pub mrrs: usize,
    /// Completions of host memory.
    pub rcb: usize,
}

impl Pcie {
    /// Reads the table; what is not there is as in the brief.
    pub fn read(section: &Section) -> Result<Self, PlanError> {
        let (top, bottom) = super::host::brief_links();
        let generation = match section.number("generation", 1, 5)? {
            None => top.generation,
            Some(1) => Generation::Gen1,
            Some(2) => Generation::Gen2,
            Some(3) => Generation::Gen3,
            Some(4) => Generation::Gen4,
            Some(_) => Generation::Gen5,
        };
        let width = section.number("width", 1, 16)?.map_or(top.width, |width| width as u8);
        if !width.is_power_of_two() {
            return Err(section.place("width").fail("width: 1, 2, 4, 8 or 16 lanes"));
        }
        let port = |key, standard: PortLatency| -> Result<PortLatency, PlanError> {
            let both = section.within(key, &units::SHORT)?;
            Ok(both.map_or(standard, |time| PortLatency { transmit: time, receive: time }))
        };
        let propagation = section.time("propagation", top.propagation)?;
        Ok(Self {
            generation,
            width,
            propagation,
            root_port: port("root_port", top.top)?,
            switch_port: port("switch_port", top.bottom)?,
            drive_port: port("drive_port", bottom.bottom)?,
            mps: power(section, "mps", 128, 4096)?,
            mrrs: power(section, "mrrs", 128, 4096)?.unwrap_or(512),
            rcb: power(section, "rcb", 64, 4096)?.unwrap_or(128),
        })
    }

    fn link(&self, top: PortLatency, bottom: PortLatency) -> LinkConfig {
        let Self { generation, width, propagation, .. } = *self;
        let buffer = sim::pcie::Buffer::default();
        LinkConfig { generation, width, propagation, top, bottom, buffer }
    }

    /// Root port to drive, or to the upstream port of the switch.
    pub fn below_root(&self, direct: bool) -> LinkConfig {
        self.link(self.root_port, if direct { self.drive_port } else { self.switch_port })
    }

    /// Downstream port to drive.
    pub fn below_switch(&self) -> LinkConfig {
        self.link(self.switch_port, self.drive_port)
    }
}
