//! Line rates and the time of a byte.

use std::fmt;
use std::str::FromStr;

use wire::Duration;
use wire::units::line_rate;

/// The data rate of a link (IEEE 802.3 MAC data rate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rate {
    /// 10 Mb/s: 800 ns per byte.
    M10,
    /// 100 Mb/s: 80 ns per byte.
    M100,
    /// 1 Gb/s: 8 ns per byte.
    G1,
    /// 2.5 Gb/s: 3200 ps per byte.
    G2_5,
    /// 5 Gb/s: 1600 ps per byte.
    G5,
    /// 10 Gb/s: 800 ps per byte.
    G10,
    /// 25 Gb/s: 320 ps per byte.
    G25,
    /// 40 Gb/s: 200 ps per byte.
    G40,
    /// 50 Gb/s: 160 ps per byte.
    G50,
    /// 100 Gb/s: 80 ps per byte.
    G100,
    /// 200 Gb/s: 40 ps per byte.
    G200,
    /// 400 Gb/s: 20 ps per byte.
    G400,
}

impl Rate {
    /// All rates, slowest first.
    pub const ALL: [Self; 12] = [
        Self::M10,
        Self::M100,
        Self::G1,
        Self::G2_5,
        Self::G5,
        Self::G10,
        Self::G25,
        Self::G40,
        Self::G50,
        Self::G100,
        Self::G200,
        Self::G400,
    ];

    /// Picoseconds per byte; exact for every rate.
    pub const fn ps_per_byte(self) -> u64 {
        match self {
            Self::M10 => 800_000,
            Self::M100 => 80_000,
            Self::G1 => 8_000,
            Self::G2_5 => 3_200,
            Self::G5 => 1_600,
            Self::G10 => 800,
            Self::G25 => 320,
            Self::G40 => 200,
            Self::G50 => 160,
            Self::G100 => 80,
            Self::G200 => 40,
            Self::G400 => 20,
        }
    }

    /// Bits per second.
    pub const fn bits_per_second(self) -> u64 {
        8 * 1_000_000_000_000 / self.ps_per_byte()
    }

    /// How long `bytes` bytes take on the line.
    pub const fn duration(self, bytes: usize) -> Duration {
        Duration::from_ps(bytes as u64 * self.ps_per_byte())
    }

    /// The name, such as `2.5G`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::M10 => "10M",
            Self::M100 => "100M",
            Self::G1 => "1G",
            Self::G2_5 => "2.5G",
            Self::G5 => "5G",
            Self::G10 => "10G",
            Self::G25 => "25G",
            Self::G40 => "40G",
            Self::G50 => "50G",
            Self::G100 => "100G",
            Self::G200 => "200G",
            Self::G400 => "400G",
        }
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// A text that is not the name of a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid Ethernet rate '{0}': expected 10M, 100M, 1G, 2.5G, 5G, 10G, 25G, 40G, 50G, 100G, 200G or 400G"
)]
pub struct UnknownRate(pub String);

impl FromStr for Rate {
    type Err = UnknownRate;
    fn from_str(text: &str) -> Result<Self, UnknownRate> {
        let bits = line_rate(text);
        let found = Self::ALL.into_iter().find(|rate| Some(rate.bits_per_second()) == bits);
        found.ok_or_else(|| UnknownRate(text.to_owned()))
    }
}
