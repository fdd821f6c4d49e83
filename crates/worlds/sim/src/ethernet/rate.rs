//! Line rates and the time of a byte.

use std::fmt;
use std::str::FromStr;

use wire::Duration;
use wire::units::line_rate;

/// The data rate of a link (IEEE 802.3 MAC data rate).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rate {
    /// 100 Mb/s: 80 ns per byte.
    M100,
    /// 1 Gb/s: 8 ns per byte.
    G1,
    /// 2.5 Gb/s: 3200 ps per byte.
    G2_5,
    /// 10 Gb/s: 800 ps per byte.
    G10,
    /// 25 Gb/s: 320 ps per byte.
    G25,
    /// 50 Gb/s: 160 ps per byte.
    G50,
    /// 100 Gb/s: 80 ps per byte.
    G100,
}

impl Rate {
    /// All rates, slowest first.
    pub const ALL: [Self; 7] =
        [Self::M100, Self::G1, Self::G2_5, Self::G10, Self::G25, Self::G50, Self::G100];

    /// Picoseconds per byte; exact for every rate.
    pub const fn ps_per_byte(self) -> u64 {
        match self {
            Self::M100 => 80_000,
            Self::G1 => 8_000,
            Self::G2_5 => 3_200,
            Self::G10 => 800,
            Self::G25 => 320,
            Self::G50 => 160,
            Self::G100 => 80,
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

    /// The name: `100M`, `1G`, `2.5G`, `10G`, `25G`, `50G` or `100G`.
    pub const fn name(self) -> &'static str {
        match self {
            Self::M100 => "100M",
            Self::G1 => "1G",
            Self::G2_5 => "2.5G",
            Self::G10 => "10G",
            Self::G25 => "25G",
            Self::G50 => "50G",
            Self::G100 => "100G",
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
#[error("invalid Ethernet rate '{0}': expected 100M, 1G, 2.5G, 10G, 25G, 50G or 100G")]
pub struct UnknownRate(pub String);

impl FromStr for Rate {
    type Err = UnknownRate;
    fn from_str(text: &str) -> Result<Self, UnknownRate> {
        let bits = line_rate(text);
        let found = Self::ALL.into_iter().find(|rate| Some(rate.bits_per_second()) == bits);
        found.ok_or_else(|| UnknownRate(text.to_owned()))
    }
}
