//! Admission of a received frame: its queue, and the time from which the frame may leave.

use std::collections::BTreeMap;

use tsn::{Gates, LocalTime, ats};
use wire::Instant;

use super::super::frame::{Frame, GAP, HEADER, Mac, PREAMBLE, Tag};
use super::super::traffic::StreamId;
use super::config::{Algorithm, Ats, Committed, Config, Counted};
use super::counters::Counters;

/// The queue and eligibility of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Admission {
    /// The traffic class of the frame.
    pub class: usize,
    /// The time of the node's clock from which the frame may leave. Frames of the class leave in
    /// the order of this time.
    pub eligible: LocalTime,
    /// Whether the node itself made the frame. The queue accepts such frames beyond its depth.
    pub is_own: bool,
}

/// How a frame reached the sending node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reception {
    /// The port that received the frame, and the frame's class at the upstream port; `None` if the
    /// node is the talker.
    pub from: Option<(usize, usize)>,
    /// When the frame was received or made.
    pub at: Instant,
}

/// The frames that share a scheduler.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Flow {
    Stream(StreamId),
    Addresses(Mac, Mac),
}

/// The schedulers of all classes with asynchronous traffic shaping.
#[derive(Clone, Debug, Default)]
pub(super) struct Admissions {
    /// The schedulers by reception port, class and flow.
    schedulers: BTreeMap<(Option<usize>, usize, Flow), ats::Scheduler>,
}

/// The key of a scheduler group. Frames of a group stay in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum GroupKey {
    /// A reception port and an upstream class.
    Received(usize, usize),
    /// The class and the flow of frames that the node made.
    Made(usize, Flow),
}

/// The scheduler groups of a node, common to all output ports: one for each reception port and
/// upstream traffic class (IEEE 802.1Q-2022, 8.6.5.6), and one for each class and flow of frames
/// that the node made.
#[derive(Clone, Debug, Default)]
pub struct SchedulerGroups(BTreeMap<GroupKey, ats::Group>);

/// The class of frames with `tag`. A frame without a tag has priority 0.
pub(super) fn class_of(config: &Config, tag: Option<Tag>) -> usize {
    let priority = tag.map_or(0, |tag| tag.pcp);
    usize::from(config.queue_of_priority[usize::from(priority)])
}

impl Admission {
    /// The admission of a frame that the node itself made, to the queue of `class`, in arrival
    /// order.
    pub const fn own(class: usize) -> Self {
        Self { class, eligible: LocalTime::from_ps(i64::MIN), is_own: true }
    }
}

impl Admissions {
    /// Admits a frame that reached the node by `reception`. `None`: the frame is dropped. If given,
    /// the internal priority `ipv` selects the queue (8.6.5.4).
    pub(super) fn admit(
        &mut self,
        config: &Config,
        groups: &mut SchedulerGroups,
        reception: Reception,
        (frame, ipv): (&Frame, Option<u8>),
        counters: &mut Counters,
    ) -> Option<Admission> {
        let class = ipv.map_or_else(
            || class_of(config, frame.tag),
            |ipv| usize::from(config.queue_of_priority[usize::from(ipv)]),
        );
        let class = filled(config, class, reception.at);
        if config.classes[class].max_sdu.is_some_and(|most| frame.bytes.len() - HEADER > most) {
            counters.oversize += 1;
            return None;
        }
        let eligible = match &config.classes[class].algorithm {
            Algorithm::Ats(shaper) => {
                let arrival = config.clock.local(reception.at);
                let eligible =
                    self.eligible(shaper, groups, (reception.from, class), arrival, frame);
                counters.late_eligible += u64::from(eligible.is_none());
                eligible?
            }
            // In arrival order.
            _ => LocalTime::from_ps(i64::MIN),
        };
        Some(Admission { class, eligible, is_own: false })
    }

    fn eligible(
        &mut self,
        shaper: &Ats,
        groups: &mut SchedulerGroups,
        (from, class): (Option<(usize, usize)>, usize),
        arrival: LocalTime,
        frame: &Frame,
    ) -> Option<LocalTime> {
        let flow = match StreamId::of_frame(frame.id) {
            Some(stream) => Flow::Stream(stream),
            None => Flow::Addresses(frame.source(), frame.destination()),
        };
        let key = match from {
            Some((port, upstream)) => GroupKey::Received(port, upstream),
            None => GroupKey::Made(class, flow),
        };
        let group = groups.0.entry(key).or_default();
        let scheduler = self
            .schedulers
            .entry((from.map(|(port, _)| port), class, flow))
            .or_insert_with(|| scheduler(committed(shaper, flow)));
        let bytes = match shaper.counted {
            Counted::WithGap => PREAMBLE + frame.length() + GAP,
            Counted::FrameOnly => frame.length(),
        };
        // Times of schedulers start at zero, and times of clocks may be negative.
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

/// The class whose queue receives a frame at `received`. Differs from `class` only in a pair with
/// cyclic queuing and forwarding.
fn filled(config: &Config, class: usize, received: Instant) -> usize {
    let pair = config.cqf.iter().find(|pair| pair.classes.contains(&(class as u8)));
    pair.map_or(class, |pair| {
        let clock = config.gates.as_ref().map(Gates::clock).unwrap_or_default();
        usize::from(pair.queue_at(&clock, received))
    })
}
