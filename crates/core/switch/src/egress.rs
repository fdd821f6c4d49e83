//! The egress scheduler: the queues of a node, one per destination, share the bandwidth of the
//! node.
//!
//! Destinations with frames to send get equal numbers of bytes, regardless of frame lengths:
//! deficit round robin (M. Shreedhar and G. Varghese, "Efficient Fair Queuing Using Deficit Round
//! Robin", SIGCOMM 1995). The length of a frame is not known before the frame is sent. So a frame
//! may overdraw the deficit, and the destination sends less in the next round (surplus round robin,
//! H. Adiseshu, G. Parulkar and G. Varghese, "A Reliable and Scalable Striping Protocol", SIGCOMM
//! 1996).
//!
//! A rate limit over all destinations is the congestion control unit of the prototype (J. Suzuki et
//! al., Hot Interconnects 2014, "Sending TLPs"). While the limit delays frames, TLPs wait in the
//! aggregation queue. [`Gate`] delays frames until a window opens.

mod gate;

pub use gate::{Gate, GateCounters, Windows};

use crate::congestion::{Rate, RateLimit};
use std::fmt;
use std::str::FromStr;
use wire::Instant;
use wire::units::{exact_line_rate, line_rate};

/// The egress scheduler. The default has no destination.
#[derive(Clone, Debug, Default)]
pub struct Egress {
    /// The number of bytes that each destination may still send in its turn; negative if overdrawn.
    deficits: Vec<i64>,
    quantum: i64,
    turn: usize,
    /// Number of consecutive destinations that had nothing to send.
    idle: usize,
    limit: Option<RateLimit>,
}

impl Egress {
    /// A scheduler for `destinations` destinations, with frames of at most `frame` bytes.
    ///
    /// # Panics
    /// If `destinations` or `frame` is 0.
    pub fn new(destinations: usize, frame: usize, limit: Option<Rate>) -> Self {
        assert!(destinations > 0 && frame > 0, "nothing to send");
        let limit = limit.map(|rate| RateLimit::new(rate, frame as u64));
        Self { deficits: vec![0; destinations], quantum: frame as i64, turn: 0, idle: 0, limit }
    }

    /// Changes the rate limit. Frames that the earlier limit delays may leave at once, so that a much
    /// too low limit can be mended.
    pub fn set_limit(&mut self, limit: Option<Rate>) {
        self.limit = limit.map(|rate| RateLimit::new(rate, self.quantum as u64));
    }

    /// Starts a round: any destination may have frames to send.
    pub fn begin(&mut self) {
        self.idle = 0;
    }

    /// The destination that may send one frame now. Report the result to [`served`](Self::served).
    /// `None` if the rate limit delays frames, or if no destination had a frame to send since
    /// [`begin`](Self::begin).
    pub fn turn(&mut self, now: Instant) -> Option<usize> {
        if self.idle >= self.deficits.len() || self.is_rate_limited(now) {
            return None;
        }
        let deficit = &mut self.deficits[self.turn];
        if *deficit <= 0 {
            *deficit += self.quantum;
        }
        Some(self.turn)
    }

    /// Reports that the destination of [`turn`](Self::turn) has sent a frame of `bytes` bytes, or,
    /// with `None`, that it had nothing to send or no room.
    pub fn served(&mut self, now: Instant, bytes: Option<usize>) {
        let deficit = &mut self.deficits[self.turn];
        match bytes {
            Some(bytes) => {
                self.idle = 0;
                *deficit -= bytes as i64;
                let more = *deficit > 0;
                self.sent(now, bytes);
                if more {
                    return;
                }
            }
            None => {
                // An idle destination does not accumulate a share.
                self.idle += 1;
                *deficit = 0;
            }
        }
        self.turn = (self.turn + 1) % self.deficits.len();
    }

    /// Counts a frame for the rate limit, as [`served`](Self::served) does. For a node with one
    /// destination, which needs no turns.
    pub fn sent(&mut self, now: Instant, bytes: usize) {
        if let Some(limit) = &mut self.limit {
            limit.sent(now, bytes as u64);
        }
    }

    /// Whether the rate limit delays frames.
    pub fn is_rate_limited(&self, now: Instant) -> bool {
        self.limit.as_ref().is_some_and(|limit| !limit.may_send(now))
    }

    /// When the rate limit admits the next frame; `None` if it admits a frame now.
    pub fn rate_limited_until(&self, now: Instant) -> Option<Instant> {
        let limit = self.limit.as_ref().filter(|limit| !limit.may_send(now));
        limit.map(RateLimit::not_before)
    }
}

/// A text that is not a rate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid rate '{0}': expected bits per second above 0, such as 250M or 5G (k, M or G)")]
pub struct InvalidRate(String);

impl FromStr for Rate {
    type Err = InvalidRate;
    fn from_str(text: &str) -> Result<Self, InvalidRate> {
        let bits =
            line_rate(text).filter(|bits| *bits > 0).ok_or_else(|| InvalidRate(text.to_owned()))?;
        Ok(Self { bits_per_second: bits, burst: 1 })
    }
}

impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&exact_line_rate(self.bits_per_second))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use wire::Duration;

    const FRAME: usize = 1_500;

    /// Destinations, each with a number of waiting frames of one length.
    struct Loads {
        frames: Vec<usize>,
        waiting: Vec<u64>,
        sent: Vec<u64>,
    }

    impl Loads {
        fn new(frames: &[usize], waiting: u64) -> Self {
            let (frames, count) = (frames.to_vec(), frames.len());
            Self { frames, waiting: vec![waiting; count], sent: vec![0; count] }
        }

        fn send(&mut self, destination: usize) -> Option<usize> {
            self.waiting[destination] = self.waiting[destination].checked_sub(1)?;
            self.sent[destination] += self.frames[destination] as u64;
            Some(self.frames[destination])
        }

        /// Sends until no frame waits, or until the rate limit delays frames.
        fn served_by(&mut self, egress: &mut Egress, now: Instant) {
            egress.begin();
            while let Some(destination) = egress.turn(now) {
                egress.served(now, self.send(destination));
            }
        }
    }

    fn rate(text: &str) -> Option<Rate> {
        Some(text.parse().unwrap())
    }

    /// Sends for `span`, each time the limit admits a frame; returns the end time.
    fn run(egress: &mut Egress, loads: &mut Loads, span: Duration) -> Instant {
        let mut now = Instant::ZERO;
        loop {
            loads.served_by(egress, now);
            let Some(at) = egress.rate_limited_until(now) else { return now };
            if at > Instant::ZERO + span {
                return at;
            }
            assert!(at > now, "the limit holds nothing back, but nothing went");
            now = at;
        }
    }

    proptest! {
        #[test]
        fn unequal_loads_share_bytes_within_one_frame(
            frames in prop::collection::vec(24usize..=FRAME, 2..8),
        ) {
            let mut egress = Egress::new(frames.len(), FRAME, rate("1G"));
            let mut loads = Loads::new(&frames, u64::MAX);
            run(&mut egress, &mut loads, Duration::from_ms(2));
            let (least, most) = (loads.sent.iter().min(), loads.sent.iter().max());
            let apart = most.unwrap() - least.unwrap();
            // Two destinations may differ by a quantum, in the middle of a round, plus one
            // overdrawn frame.
            prop_assert!(apart <= 2 * FRAME as u64, "{:?}", loads.sent);
        }

        #[test]
        fn the_rate_is_kept(bits in 1_000_000u64..10_000_000_000, frame in 24usize..=FRAME) {
            let rate = Rate { bits_per_second: bits, burst: 1 };
            let mut egress = Egress::new(3, FRAME, Some(rate));
            let mut loads = Loads::new(&[frame; 3], 1_000);
            let end = run(&mut egress, &mut loads, Duration::from_ms(600_000));
            let sent: u64 = loads.sent.iter().sum();
            prop_assert_eq!(sent, 3_000 * frame as u64);
            let wanted = u128::from(sent) * 8 * 1_000_000_000_000 / u128::from(bits);
            let took = u128::from(end.as_ps());
            // The time of each frame is rounded up to a picosecond.
            prop_assert!(took >= wanted && took <= wanted + 3_000, "{took} of {wanted} ps");
        }
    }

    #[test]
    fn an_idle_destination_costs_nothing() {
        let run = |waiting: [u64; 3]| {
            let mut egress = Egress::new(3, FRAME, rate("1G"));
            let mut loads = Loads { waiting: waiting.to_vec(), ..Loads::new(&[FRAME; 3], 0) };
            run(&mut egress, &mut loads, Duration::from_ms(1));
            loads.sent
        };
        let alone = run([u64::MAX, 0, 0]);
        // The first frame begins at time 0, and 83 1/3 frames take a millisecond.
        assert_eq!(alone, [84 * FRAME as u64, 0, 0]);
        let two = run([u64::MAX, 0, u64::MAX]);
        assert_eq!(two, [42 * FRAME as u64, 0, 42 * FRAME as u64]);
    }

    #[test]
    fn idle_destination_accumulates_no_share() {
        let mut egress = Egress::new(2, FRAME, rate("1G"));
        let mut loads = Loads::new(&[100, 100], 0);
        loads.waiting[0] = u64::MAX;
        run(&mut egress, &mut loads, Duration::from_ms(1));
        let before = loads.sent[0];
        loads.waiting[1] = u64::MAX;
        let mut now = Instant::ZERO + Duration::from_ms(1);
        for _ in 0..600 {
            now = egress.rate_limited_until(now).unwrap_or(now);
            loads.served_by(&mut egress, now);
        }
        let [first, second] = [loads.sent[0] - before, loads.sent[1]];
        assert!(first.abs_diff(second) <= FRAME as u64, "{first} and {second}");
    }

    #[test]
    fn without_a_limit_nothing_waits() {
        let mut egress = Egress::new(4, FRAME, None);
        let mut loads = Loads::new(&[24, 1_500, 700, 90], 1_000);
        loads.waiting[2] = 0;
        loads.served_by(&mut egress, Instant::ZERO);
        assert_eq!(loads.waiting, [0; 4]);
        assert_eq!(egress.rate_limited_until(Instant::ZERO), None);
    }

    #[test]
    fn rates_are_read_and_written() {
        for (text, bits, back) in [
            ("5G", 5_000_000_000, "5G"),
            ("2.5G", 2_500_000_000, "2500M"),
            ("250M", 250_000_000, "250M"),
            ("9600", 9_600, "9600"),
        ] {
            let rate: Rate = text.parse().unwrap();
            assert_eq!((rate.bits_per_second, rate.to_string().as_str()), (bits, back));
        }
        for bad in ["", "0", "0G", "5T", "fast", "-1G"] {
            let error = bad.parse::<Rate>().unwrap_err().to_string();
            assert!(error.contains("or 5G"), "{error}");
        }
    }
}
