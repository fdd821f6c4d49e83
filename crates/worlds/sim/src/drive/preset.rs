//! Tables of known drives.

use super::Timing;
use wire::Duration;

impl Timing {
    /// Samsung 970 Pro (NVMeVirt, `ssd_config.h`, `SAMSUNG_970PRO`).
    pub const SAMSUNG_970_PRO: Self = Self {
        firmware_read: Duration::from_ns(21_500),
        firmware_read_large: Duration::from_ns(30_490),
        write_base: Duration::from_ns(4_000),
        write_4k: Duration::from_ns(460),
        channels: 8,
        luns: 2,
        channel_rate: 800_000_000,
        read_lsb: Duration::from_ns(29_760),
        read_msb: Duration::from_ns(41_760),
        program: Duration::from_ns(185_000),
        page: 32 << 10,
        write_buffer: 1 << 20,
        variation: Duration::ZERO,
        stream_rate: 0,
    };

    /// A drive with byte-addressable media, such as Intel's Optane. Reads and writes take less than
    /// 10 us (Intel Optane SSD DC P4800X product brief: "less than 10 us"). How this time is
    /// divided between firmware and media is an assumption.
    pub const OPTANE: Self = Self {
        firmware_read: Duration::from_ns(2_000),
        firmware_read_large: Duration::from_ns(2_000),
        write_base: Duration::from_ns(6_000),
        write_4k: Duration::from_ns(300),
        channels: 7,
        luns: 4,
        channel_rate: 2_000_000_000,
        read_lsb: Duration::from_ns(3_000),
        read_msb: Duration::from_ns(3_000),
        ..Self::NULL
    };

    /// Media that take no time.
    pub const NULL: Self = Self {
        firmware_read: Duration::ZERO,
        firmware_read_large: Duration::ZERO,
        write_base: Duration::ZERO,
        write_4k: Duration::ZERO,
        channels: 1,
        luns: 1,
        channel_rate: 0,
        read_lsb: Duration::ZERO,
        read_msb: Duration::ZERO,
        program: Duration::ZERO,
        page: 4096,
        write_buffer: 0,
        variation: Duration::ZERO,
        stream_rate: 0,
    };

    /// A SATA SSD of 2014 behind a controller that transfers data TLP by TLP (J. Suzuki et al.,
    /// "End-to-End Adaptive Packet Aggregation for High-Throughput I/O Bus Network Using
    /// Ethernet", Hot Interconnects 2014). The paper names no drive. The rate is calibrated to the
    /// points where aggregation starts in the paper: at 5 Gb/s and below with one SSD, at 10 Gb/s
    /// with two or more. The time of a command is calibrated to 4 KB reads and writes without
    /// aggregation, and includes file system and scheduler. See docs/experiments/expether.md.
    pub const SATA_SSD: Self = Self {
        firmware_read: Duration::from_ns(45_510),
        firmware_read_large: Duration::from_ns(45_510),
        write_base: Duration::from_ns(72_150),
        page: 64 << 10,
        stream_rate: 360_000_000,
        ..Self::NULL
    };

    /// The names of all presets.
    pub const PRESETS: [&'static str; 5] = ["970-pro", "optane", "sata-ssd", "null", "ram"];

    /// The preset with this name, one of [`Self::PRESETS`].
    pub fn preset(name: &str) -> Option<Self> {
        match name {
            "970-pro" => Some(Self::SAMSUNG_970_PRO),
            "optane" => Some(Self::OPTANE),
            "sata-ssd" => Some(Self::SATA_SSD),
            "null" | "ram" => Some(Self::NULL),
            _ => None,
        }
    }
}
