//! The aggregation policy: when a TLP leaves.

use std::fmt;
use std::str::FromStr;
use wire::Duration;

/// The longest wait. A peer could take a longer one for a lost link.
const MAX_WAIT: Duration = Duration::from_ms(10);

/// When queued TLPs go into a frame.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Policy {
    /// One TLP a frame, as soon as the network takes it: plain ExpEther
    /// (J. Suzuki et al., "ExpEther: Ethernet-Based Virtualization Technology
    /// for Reconfigurable Hardware Platform", Hot Interconnects 2006).
    PerTlp,
    /// A frame leaves when it is full, or this long after its first TLP was
    /// queued: what Suzuki et al. (2014) call method 1 of the related work.
    Wait(Duration),
    /// Whenever the network takes a frame, all queued TLPs go into it, up to the frame's size (J.
    /// Suzuki et al., "End-to-End Adaptive Packet Aggregation for High-Throughput I/O Bus Network
    /// Using Ethernet", Hot Interconnects 2014). No timer, no parameter.
    #[default]
    Adaptive,
}

impl Policy {
    /// The words that [`FromStr`] takes, for messages.
    pub const WORDS: &'static str = "per-tlp, wait=TIME (such as wait=1us) or adaptive";
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerTlp => f.pad("per-tlp"),
            Self::Wait(time) => f.pad(&format!("wait={}", time.exact())),
            Self::Adaptive => f.pad("adaptive"),
        }
    }
}

/// A text that names no policy, and why.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct UnknownPolicy(String);

impl FromStr for Policy {
    type Err = UnknownPolicy;
    fn from_str(text: &str) -> Result<Self, UnknownPolicy> {
        match text {
            "per-tlp" => return Ok(Self::PerTlp),
            "adaptive" => return Ok(Self::Adaptive),
            _ => {}
        }
        let Some(time) = text.strip_prefix("wait=") else {
            let what = format!("no aggregation policy: '{text}'; there are {}", Self::WORDS);
            return Err(UnknownPolicy(what));
        };
        let wait: Duration = time.parse().map_err(|error| UnknownPolicy(format!("{error}")))?;
        if wait == Duration::ZERO || wait > MAX_WAIT {
            let what = format!("wait={time}: a time above 0 and up to {}", MAX_WAIT.exact());
            return Err(UnknownPolicy(what));
        }
        Ok(Self::Wait(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_policies_are_the_same() {
        let us = Policy::Wait(Duration::from_us(1));
        for (text, policy) in
            [("per-tlp", Policy::PerTlp), ("wait=1us", us), ("adaptive", Policy::Adaptive)]
        {
            assert_eq!(text.parse(), Ok(policy));
            assert_eq!(policy.to_string(), text);
        }
        let odd: Policy = "wait=1.5us".parse().unwrap();
        assert_eq!(odd.to_string().parse(), Ok(odd));
    }

    #[test]
    fn mistakes_name_the_words() {
        let error = |text: &str| text.parse::<Policy>().unwrap_err().to_string();
        assert!(error("none").contains("per-tlp, wait=TIME"), "{}", error("none"));
        assert!(error("wait=1").contains("'1' is no time"), "{}", error("wait=1"));
        assert!(error("wait=0us").contains("above 0"));
        assert!(error("wait=11ms").contains("up to 10ms"));
    }
}
