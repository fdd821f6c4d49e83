//! The aggregation policies: when queued TLPs leave, and how many TLPs a frame has.

use pcie::Ready;
use std::collections::VecDeque;
use std::fmt;
use std::str::FromStr;
use wire::tlp::Class;
use wire::{Duration, Instant};

/// The longest wait. With a longer wait, a peer could consider the link lost.
const MAX_WAIT: Duration = Duration::from_ms(10);

/// When the next frame of TLPs leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Departure {
    /// Now.
    Now,
    /// At this time, if no further TLP is queued.
    At(Instant),
    /// Not before another input: the queue is empty, or its TLPs have no credits or no room.
    Later,
}

/// The TLPs that wait in an aggregation queue.
#[derive(Clone, Copy, Debug)]
pub struct Queued {
    /// Number of queued TLPs by class.
    pub packets: [usize; 3],
    /// Number of bytes of queued TLPs in each class, including the encapsulation of the transport.
    pub bytes: [usize; 3],
    /// The classes whose first TLP has credits.
    pub sendable: Ready,
    /// Room for TLPs in the next frame, in bytes.
    pub room: usize,
}

impl Queued {
    /// Whether the queued TLPs of all sendable classes fill a frame.
    pub fn fills_frame(&self) -> bool {
        self.sendable_classes().map(|class| self.bytes[class.index()]).sum::<usize>() >= self.room
    }

    fn sendable_classes(&self) -> impl Iterator<Item = Class> {
        Class::ALL.into_iter().filter(|class| self.sendable.has(*class))
    }
}

/// The state of an aggregation policy for the queue of one link. [`Policy::Own`] adds a custom
/// policy.
///
/// The queue ensures order, credits and the size of frames: a policy only delays frames or makes
/// them shorter. The simulator and live nodes use the same policies.
pub trait Aggregation: fmt::Debug + Send {
    /// When the next frame leaves. Called again after each input of the link, and at the returned
    /// time. TLPs that were not in `queued` of the last call were queued `now`. While no TLP has
    /// credits and fits, no frame leaves.
    fn departure(&mut self, now: Instant, queued: &Queued) -> Departure;

    /// Called when the first `packets` TLPs of `class` have left or were dropped.
    fn removed(&mut self, _class: Class, _packets: usize) {}

    /// The maximum number of TLPs in a frame. With 1, every TLP also gets its own TCP segments.
    fn max_packets(&self) -> usize {
        usize::MAX
    }
}

/// When queued TLPs go into a frame.
#[derive(Clone, Copy, Debug, Default)]
pub enum Policy {
    /// One TLP per frame, as soon as the network takes it: plain ExpEther (J. Suzuki et al.,
    /// "ExpEther: Ethernet-Based Virtualization Technology for Reconfigurable Hardware Platform",
    /// Hot Interconnects 2006).
    PerTlp,
    /// A frame leaves when it is full, or this time after its first TLP was queued: method 1 of the
    /// related work in Suzuki et al. (2014).
    Wait(Duration),
    /// When the network takes a frame, all queued TLPs go into the frame, up to its size (J. Suzuki
    /// et al., "End-to-End Adaptive Packet Aggregation for High-Throughput I/O Bus Network Using
    /// Ethernet", Hot Interconnects 2014). No timer, no parameter.
    #[default]
    Adaptive,
    /// A custom policy. The function makes a new instance for each connection. A custom policy has
    /// no text form.
    Own(fn() -> Box<dyn Aggregation>),
}

impl PartialEq for Policy {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::Wait(wait), Self::Wait(other)) => wait == other,
            (Self::Own(start), Self::Own(other)) => std::ptr::fn_addr_eq(*start, *other),
            _ => std::mem::discriminant(self) == std::mem::discriminant(other),
        }
    }
}

impl Eq for Policy {}

impl Policy {
    /// Starts the policy for one queue.
    pub fn start(self) -> Box<dyn Aggregation> {
        match self {
            Self::PerTlp => Box::new(PerTlp),
            Self::Wait(wait) => Box::new(Wait { wait, queued_at: Default::default() }),
            Self::Adaptive => Box::new(Adaptive),
            Self::Own(start) => start(),
        }
    }

    /// The text forms that [`FromStr`] accepts, for messages.
    pub const WORDS: &'static str = "per-tlp, wait=TIME (such as wait=1us) or adaptive";
}

impl fmt::Display for Policy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::PerTlp => f.pad("per-tlp"),
            Self::Wait(time) => f.pad(&format!("wait={}", time.exact())),
            Self::Adaptive => f.pad("adaptive"),
            Self::Own(_) => f.pad("own"),
        }
    }
}

#[derive(Debug)]
struct Adaptive;

impl Aggregation for Adaptive {
    fn departure(&mut self, _: Instant, _: &Queued) -> Departure {
        Departure::Now
    }
}

#[derive(Debug)]
struct PerTlp;

impl Aggregation for PerTlp {
    fn departure(&mut self, _: Instant, _: &Queued) -> Departure {
        Departure::Now
    }

    fn max_packets(&self) -> usize {
        1
    }
}

#[derive(Debug)]
struct Wait {
    wait: Duration,
    /// When each TLP was queued, by class.
    queued_at: [VecDeque<Instant>; 3],
}

impl Aggregation for Wait {
    fn departure(&mut self, now: Instant, queued: &Queued) -> Departure {
        for (queued_at, packets) in self.queued_at.iter_mut().zip(queued.packets) {
            queued_at.resize(packets, now);
        }
        let first = |class: Class| self.queued_at[class.index()].front().copied();
        let first = queued.sendable_classes().filter_map(first).min();
        match first.map(|first| first + self.wait) {
            Some(until) if now < until && !queued.fills_frame() => Departure::At(until),
            _ => Departure::Now,
        }
    }

    fn removed(&mut self, class: Class, packets: usize) {
        let queued_at = &mut self.queued_at[class.index()];
        queued_at.drain(..packets.min(queued_at.len()));
    }
}

/// A text that is not a policy, with the reason.
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
            let message = format!("invalid aggregation policy '{text}': expected {}", Self::WORDS);
            return Err(UnknownPolicy(message));
        };
        let wait: Duration = time.parse().map_err(|error| UnknownPolicy(format!("{error}")))?;
        if wait == Duration::ZERO || wait > MAX_WAIT {
            let message =
                format!("invalid 'wait={time}': expected above 0 and up to {}", MAX_WAIT.exact());
            return Err(UnknownPolicy(message));
        }
        Ok(Self::Wait(wait))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn policies_round_trip_as_text() {
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
    fn policy_parse_errors_name_allowed_words() {
        let error = |text: &str| text.parse::<Policy>().unwrap_err().to_string();
        assert!(error("none").contains("per-tlp, wait=TIME"), "{}", error("none"));
        assert!(error("wait=1").contains("invalid time '1'"), "{}", error("wait=1"));
        assert!(error("wait=0us").contains("above 0"));
        assert!(error("wait=11ms").contains("up to 10ms"));
    }
}
