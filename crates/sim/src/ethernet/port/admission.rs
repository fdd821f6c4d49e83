//! Into which queue a frame goes, and from when on it may leave: at its reception.

use std::collections::BTreeMap;

use tsn::{Gates, LocalTime, ats};
use wire::Instant;

use super::super::frame::{Frame, GAP, HEADER, Mac, PREAMBLE, Tag};
use super::super::traffic::StreamId;
use super::config::{Algorithm, Ats, Committed, Config, Counted};
use super::counters::Counters;

/// Where a frame waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// Its class.
    pub class: usize,
    /// It is not selected before this time of the node's clock, and behind frames of its class that may be selected
    /// earlier.
    pub eligible: LocalTime,
}

/// Whose rate a scheduler holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flow {
    Stream(StreamId),
    Addresses(Mac, Mac),
}

/// The schedulers of the classes with asynchronous traffic shaping.
#[derive(Clone, Debug, Default)]
pub(super) struct Admissions {
    schedulers: BTreeMap<(usize, usize, Flow), ats::Scheduler>,
}

/// The scheduler groups of a node: one for each reception port and upstream traffic class, whatever
/// port the frames leave by (IEEE 802.1Q-2022, 8.6.5.6).
#[derive(Clone, Debug, Default)]
pub struct SchedulerGroups(BTreeMap<(usize, u8), ats::Group>);

impl SchedulerGroups {
    /// The group of a frame that the reception port `from` has received. Every priority has a class
    /// of its own at the port that sent it.
    fn of(&mut self, from: usize, frame: &Frame) -> &mut ats::Group {
        self.0.entry((from, frame.tag.map_or(0, |tag| tag.pcp))).or_default()
    }
}

/// The class of frames with this tag.
pub(super) fn class_of(config: &Config, tag: Option<Tag>) -> usize {
    let priority = tag.map_or(0, |tag| tag.pcp);
    usize::from(config.queue_of_priority[usize::from(priority)])
}

impl Admission {
    /// Into the queue of `class`, first come, first served.
    pub const fn to(class: usize) -> Self {
        Self { class, eligible: LocalTime::from_ps(i64::MIN) }
    }
}

impl Admissions {
    /// Admits a frame that the reception port `from` has received at `received`; `None` if it is
    /// dropped. It waits as if it had the internal priority `ipv`, if there is one (8.6.5.4).
    pub fn admit(
        &mut self,
        config: &Config,
        groups: &mut SchedulerGroups,
        (from, received): (usize, Instant),
        (frame, ipv): (&Frame, Option<u8>),
        counters: &mut Counters,
    ) -> Option<Admission> {
        let class = ipv.map_or_else(
            || class_of(config, frame.tag),
            |ipv| usize::from(config.queue_of_priority[usize::from(ipv)]),
        );
        let class = filled(config, class, received);
        if config.classes[class].max_sdu.is_some_and(|most| frame.bytes.len() - HEADER > most) {
            counters.oversize += 1;
            return None;
        }
        let eligible = match &config.classes[class].algorithm {
            Algorithm::Ats(shaper) => {
                let group = groups.of(from, frame);
                let arrival = config.clock.local(received);
                let eligible = self.eligible(shaper, group, (from, class), arrival, frame);
                counters.late_eligible += u64::from(eligible.is_none());
                eligible?
            }
            // First come, first served, at the queue.
            _ => LocalTime::from_ps(i64::MIN),
        };
        Some(Admission { class, eligible })
    }

    fn eligible(
        &mut self,
        shaper: &Ats,
        group: &mut ats::Group,
        (from, class): (usize, usize),
        arrival: LocalTime,
        frame: &Frame,
    ) -> Option<LocalTime> {
        let flow = match StreamId::of_frame(frame.id) {
            Some(stream) => Flow::Stream(stream),
            None => Flow::Addresses(frame.source(), frame.destination()),
        };
        let scheduler = self
            .schedulers
            .entry((from, class, flow))
            .or_insert_with(|| scheduler(committed(shaper, flow)));
        let bytes = match shaper.counted {
            Counted::WithGap => PREAMBLE + frame.length() + GAP,
            Counted::FrameOnly => frame.length(),
        };
        // Schedulers count from zero on, and clocks may show times before it.
        let arrival = Instant::from_ps(arrival.as_ps().wrapping_sub(i64::MIN) as u64);
        let eligible = scheduler.admit(group, arrival, bytes as u64 * 8, shaper.max_residence)?;
        Some(LocalTime::from_ps((eligible.as_ps() as i64).wrapping_add(i64::MIN)))
    }
}

fn committed(shaper: &Ats, flow: Flow) -> Committed {
    let own = shaper.streams.iter().find(|(stream, _)| flow == Flow::Stream(*stream));
    own.map_or(shaper.committed, |(_, committed)| *committed)
}

fn scheduler(committed: Committed) -> ats::Scheduler {
    ats::Scheduler::new(committed.rate, committed.burst).expect("checked before")
}

/// The class that is filled at `received`, where `class` belongs to a pair with cyclic queuing and
/// forwarding.
fn filled(config: &Config, class: usize, received: Instant) -> usize {
    let pair = config.cqf.iter().find(|pair| pair.classes.contains(&(class as u8)));
    pair.map_or(class, |pair| {
        let clock = config.gates.as_ref().map(Gates::clock).unwrap_or_default();
        usize::from(pair.queue_at(&clock, received))
    })
}
