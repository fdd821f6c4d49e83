//! The transmissions of a port, and for which of them a frame waited.

use super::cause::{Cause, Causes};
use sim::ethernet::frame::GAP;
use sim::ethernet::port::{Algorithm, Config};
use sim::ethernet::{LineEvent, Transmission};
use std::collections::VecDeque;
use tsn::{Gates, QUEUES};
use wire::Instant;

/// Maximum number of transmissions in a history. Older waits have the cause `Other`.
const HISTORY: usize = 512;
/// Maximum number of listed frames for which a frame waited at a port; the last ones.
const LISTED: usize = 16;

/// A frame or fragment on the line, with the gap that follows, in picoseconds.
#[derive(Clone, Copy, Debug)]
struct Sent {
    from: u64,
    until: u64,
    class: u8,
    frame: u64,
}

/// A frame for which another frame waited.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Behind {
    /// ID of the frame; 0 for a packet between MACs.
    pub frame: u64,
    /// Class of the frame.
    pub class: u8,
    /// How long it was waited for, in picoseconds.
    pub ps: u64,
}

impl Behind {
    /// What sends frames of no stream.
    pub const SENDERS: [&str; 3] = ["tunnel or flow", "802.1AS", "MAC"];

    /// Returns the index of the sender in [`Self::SENDERS`].
    pub fn sender(&self) -> usize {
        match self.frame {
            0 => 2,
            frame if sim::network::is_ptp(frame) => 1,
            _ => 0,
        }
    }
}

/// The latest transmissions of a port.
#[derive(Clone, Debug)]
pub(super) struct Port {
    gap: u64,
    gates: Option<Gates>,
    /// Bit n: class n has a shaper.
    shaped: u8,
    /// Whether the cable has a rate limit.
    is_limited: bool,
    sent: VecDeque<Sent>,
    /// The interrupted frame.
    interrupted: Option<Sent>,
}

impl Port {
    pub fn new(config: &Config, is_limited: bool) -> Self {
        let is_shaped = |class: &usize| {
            let algorithm = &config.classes[*class].algorithm;
            !matches!(algorithm, Algorithm::StrictPriority | Algorithm::Ets { .. })
        };
        Self {
            gap: config.rate.duration(GAP).as_ps(),
            gates: config.gates.clone(),
            shaped: (0..QUEUES).filter(is_shaped).fold(0, |mask, class| mask | 1 << class),
            is_limited,
            sent: VecDeque::new(),
            interrupted: None,
        }
    }

    pub fn handle(&mut self, event: &LineEvent) {
        match event {
            LineEvent::Transmit(Transmission { frame, start, end, class, .. }) => {
                let (from, until) = (start.as_ps(), end.as_ps() + self.gap);
                self.push(Sent { from, until, class: *class as u8, frame: frame.id });
            }
            LineEvent::Suspend(suspend) => {
                if let Some(last) = self.sent.back_mut() {
                    last.until = suspend.end.as_ps() + self.gap;
                    self.interrupted = Some(*last);
                }
            }
            LineEvent::Resume(resume) => {
                if let Some(frame) = self.interrupted.take() {
                    let (from, until) = (resume.start.as_ps(), resume.end.as_ps() + self.gap);
                    self.push(Sent { from, until, ..frame });
                }
            }
        }
    }

    fn push(&mut self, sent: Sent) {
        if self.sent.len() == HISTORY {
            self.sent.pop_front();
        }
        self.sent.push_back(sent);
    }

    /// Divides the time `queued` for which a frame of `class` waited behind others. The frame
    /// starts at `start` and reached the port `window` before, which is longer than `queued` by the
    /// time for which gate and shaper alone delayed the frame. Adds the times to `causes`.
    pub fn divide(
        &self,
        (start, window, queued): (u64, u64, u64),
        class: u8,
        causes: &mut Causes,
    ) -> Vec<Behind> {
        let (begin, mut left, mut behind) = (start - window, queued, Vec::new());
        let overlap = |sent: &Sent| sent.until.min(start).saturating_sub(sent.from.max(begin));
        let recent = || self.sent.iter().rev().take_while(|sent| sent.until > begin);
        // A shaper delays only the first frame of a class, so frames of the own class in the window
        // are always in front.
        let mut own: u64 = recent().filter(|sent| sent.class == class).map(overlap).sum();
        let mut later = start;
        for sent in recent() {
            self.idle((sent.until.max(begin), later), class, (&mut left, own), causes);
            later = sent.from;
            let takes = overlap(sent);
            let (cause, reserved) = match sent.class.cmp(&class) {
                std::cmp::Ordering::Equal => (Cause::OwnClass, 0),
                std::cmp::Ordering::Greater => (Cause::HigherClass, own),
                std::cmp::Ordering::Less => (Cause::LowerClass, own),
            };
            let ps = takes.min(left.saturating_sub(reserved));
            own -= if cause == Cause::OwnClass { takes } else { 0 };
            left -= ps;
            causes[cause] += ps;
            if ps > 0 && behind.len() < LISTED {
                behind.push(Behind { frame: sent.frame, class: sent.class, ps });
            }
        }
        self.idle((begin, later), class, (&mut left, 0), causes);
        causes[Cause::Other] += left;
        behind.reverse();
        behind
    }

    /// Adds a time without transmission, up to `left` less what is `reserved`.
    fn idle(
        &self,
        (from, until): (u64, u64),
        class: u8,
        (left, reserved): (&mut u64, u64),
        causes: &mut Causes,
    ) {
        let ps = until.saturating_sub(from).min(left.saturating_sub(reserved));
        if ps == 0 {
            return;
        }
        let at = Instant::from_ps(from);
        let is_open = |gates: &Gates| {
            let changes = gates.next_change(class.into(), at);
            gates.is_open(class.into(), at) && changes.is_none_or(|at| at.as_ps() >= until)
        };
        let cause = match &self.gates {
            Some(gates) if !is_open(gates) => Cause::Gate,
            _ if self.shaped >> class & 1 != 0 => Cause::Shaper,
            _ if self.is_limited => Cause::RateLimit,
            _ => Cause::Other,
        };
        *left -= ps;
        causes[cause] += ps;
    }
}
