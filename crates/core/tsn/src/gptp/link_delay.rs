//! The delay of a link, and the rate of the partner's clock, measured with Pdelay messages
//! (IEEE 802.1AS-2020, 11.2.19). The partner is the system at the other end of the link.

use std::collections::VecDeque;

use wire::Duration;

use super::best_master::PortIdentity;
use super::message::{Body, Message, corrected, split};
use super::ratio::RateRatio;

/// How many answers in a row may be lost (allowedLostResponses, 11.5.3).
const ALLOWED_LOST: u8 = 9;

/// The most unanswered requests of a working link: the lost ones, and the one under way.
const MOST_UNANSWERED: u8 = ALLOWED_LOST + 1;

/// The rate ratio is calculated from the first and the last of this number of exchanges
/// (11.2.19.3.3 leaves the scheme open).
const RATIO_EXCHANGES: usize = 5;

/// The delay is the median of this number of values (linuxptp: `delay_filter moving_median`,
/// `delay_filter_length 10`).
const MEDIAN_OF: usize = 10;

/// An exchange that is under way.
#[derive(Clone, Copy, Debug, Default)]
struct Exchange {
    sequence: u16,
    sent: Option<i64>,
    /// When the partner received the request, and when this node received the response.
    received: Option<(i64, i64)>,
}

/// One end of a link.
#[derive(Clone, Debug)]
pub struct LinkDelay {
    own: PortIdentity,
    /// The longest delay at which the port is asCapable (meanLinkDelayThresh, 11.2.2).
    most: Duration,
    exchange: Exchange,
    /// Requests since the last answer, including the one under way.
    unanswered: u8,
    /// Of each exchange: when the partner sent the response, and when this node received it.
    stamps: VecDeque<(i64, i64)>,
    delays: VecDeque<i64>,
    ratio: Option<RateRatio>,
    /// A request of the partner whose response is being sent: sequence number and sender.
    asked: Option<(u16, PortIdentity)>,
}

impl LinkDelay {
    /// An end that has not measured yet. `most` is meanLinkDelayThresh.
    pub fn new(own: PortIdentity, most: Duration) -> Self {
        Self {
            own,
            most,
            exchange: Exchange::default(),
            unanswered: MOST_UNANSWERED + 1,
            stamps: VecDeque::new(),
            delays: VecDeque::new(),
            ratio: None,
            asked: None,
        }
    }

    /// Whether the partner supports 802.1AS and the delay is at most the threshold (asCapable,
    /// 11.2.2).
    pub fn is_able(&self) -> bool {
        self.unanswered <= MOST_UNANSWERED
            && self.ratio.is_some()
            && self.delay().is_some_and(|delay| delay <= self.most.as_ps() as i64)
    }

    /// meanLinkDelay in picoseconds of the partner's clock. `None` before the first exchange.
    /// Coarse time stamps may make the value negative.
    pub fn delay(&self) -> Option<i64> {
        let mut sorted: Vec<i64> = self.delays.iter().copied().collect();
        sorted.sort_unstable();
        let middle = sorted.len() / 2;
        match sorted.len() {
            0 => None,
            n if n % 2 == 1 => Some(sorted[middle]),
            _ => Some(sorted[middle - 1].midpoint(sorted[middle])),
        }
    }

    /// The rate of the partner's oscillator relative to the own one (neighborRateRatio); 1 until
    /// measured.
    pub fn ratio(&self) -> RateRatio {
        self.ratio.unwrap_or_default()
    }

    /// Makes the next request. An unanswered previous request is given up.
    pub fn request(&mut self, log_interval: i8) -> Message {
        self.unanswered = (self.unanswered + 1).min(MOST_UNANSWERED + 1);
        let sequence = self.exchange.sequence.wrapping_add(1);
        self.exchange = Exchange { sequence, ..Exchange::default() };
        let (source, domain, correction) = (self.own, 0, 0);
        Message { domain, correction, source, sequence, log_interval, body: Body::DelayRequest }
    }

    /// Records that a message of this end was sent at `at`, in picoseconds of the oscillator.
    /// Returns the follow-up message, if one is due.
    pub fn sent(&mut self, message: &Message, at: i64) -> Option<Message> {
        match message.body {
            Body::DelayRequest if message.sequence == self.exchange.sequence => {
                self.exchange.sent = Some(at);
                None
            }
            Body::DelayResponse { requester, .. } => {
                let asked = self.asked.take_if(|asked| *asked == (message.sequence, requester));
                asked.map(|(sequence, requester)| {
                    let (sent, correction) = split(at);
                    self.answer(sequence, correction, Body::DelayFollowUp { sent, requester })
                })
            }
            _ => None,
        }
    }

    /// Handles a message of the partner, received at `at`, in picoseconds of the oscillator.
    /// Returns the answer, if any.
    pub fn handle(&mut self, message: &Message, at: i64) -> Option<Message> {
        match message.body {
            Body::DelayRequest => {
                self.asked = Some((message.sequence, message.source));
                let (received, correction) = split(at);
                let requester = message.source;
                let body = Body::DelayResponse { received, requester };
                // The answer's correction subtracts the fraction of the stamp (11.2.20.3.1).
                Some(self.answer(message.sequence, -correction, body))
            }
            Body::DelayResponse { received, requester } if self.is_mine(message, requester) => {
                let theirs = received.saturating_sub(corrected(message.correction));
                self.exchange.received = Some((theirs, at));
                None
            }
            Body::DelayFollowUp { sent, requester } if self.is_mine(message, requester) => {
                self.measure(sent.saturating_add(corrected(message.correction)));
                None
            }
            _ => None,
        }
    }

    fn is_mine(&self, message: &Message, requester: PortIdentity) -> bool {
        requester == self.own && message.sequence == self.exchange.sequence
    }

    fn answer(&self, sequence: u16, correction: i64, body: Body) -> Message {
        // logMessageInterval of answers is 0x7F (table 10-12).
        Message { domain: 0, correction, source: self.own, sequence, log_interval: 0x7f, body }
    }

    /// Completes the exchange: the partner sent its response at `theirs`.
    fn measure(&mut self, theirs: i64) {
        let Exchange { sent: Some(t1), received: Some((t2, t4)), .. } = self.exchange else {
            return;
        };
        (self.exchange.sent, self.unanswered) = (None, 0);
        keep(&mut self.stamps, (theirs, t4), RATIO_EXCHANGES);
        if let (Some(first), true) = (self.stamps.front(), self.stamps.len() > 1) {
            let ratio =
                RateRatio::of_spans(theirs.saturating_sub(first.0), t4.saturating_sub(first.1));
            self.ratio = ratio;
            if ratio.is_none() {
                // A clock was set, so earlier stamps are invalid.
                self.stamps.clear();
            }
        }
        // ((t4 - t1) * r - (t3 - t2)) / 2 (11.2.19.3.4).
        let round_trip = self.ratio().convert(t4.saturating_sub(t1));
        let turnaround = theirs.saturating_sub(t2);
        keep(&mut self.delays, round_trip.saturating_sub(turnaround) / 2, MEDIAN_OF);
    }
}

fn keep<T>(queue: &mut VecDeque<T>, value: T, most: usize) {
    if queue.len() == most {
        queue.pop_front();
    }
    queue.push_back(value);
}
