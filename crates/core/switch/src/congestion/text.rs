//! The text form of a congestion control in plans and on command lines.

use super::{Config, SwiftConfig, Target};
use std::fmt;
use std::str::FromStr;
use wire::Duration;

/// A text that is not a congestion control.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "invalid congestion control '{0}': expected none, swift, swift=50us (the target of the round \
     trip) or rate=5G (bits per second on the wire)"
)]
pub struct UnknownCongestion(pub String);

impl FromStr for Config {
    type Err = UnknownCongestion;
    fn from_str(text: &str) -> Result<Self, UnknownCongestion> {
        let known = match text.split_once('=') {
            None if text == "none" => Some(Self::None),
            None if text == "swift" => Some(Self::Swift(SwiftConfig::default())),
            Some(("swift", time)) => {
                let time = time.parse().ok().filter(|time| *time > Duration::ZERO);
                time.map(|time| {
                    let target = Target::RoundTrip(time);
                    Self::Swift(SwiftConfig { target, ..SwiftConfig::default() })
                })
            }
            Some(("rate", rate)) => rate.parse().ok().map(Self::Rate),
            _ => None,
        };
        known.ok_or_else(|| UnknownCongestion(text.to_owned()))
    }
}

impl fmt::Display for Config {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.pad("none"),
            Self::Rate(rate) => f.pad(&format!("rate={rate}")),
            Self::Swift(SwiftConfig { target: Target::RoundTrip(time), .. }) => {
                f.pad(&format!("swift={}", time.exact()))
            }
            Self::Swift(_) => f.pad("swift"),
        }
    }
}
