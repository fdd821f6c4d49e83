//! One direction of a cable: propagation and faults.

use std::collections::VecDeque;
use std::ops::Add;

use wire::{Duration, Instant};

use super::frame::{HEADER, PREAMBLE, TAG, Transmission};
use super::port::{Resume, Suspend};
use super::{Dropped, FrameStage, LineEvent};
use stats::random::{Probability, Random};

/// Random faults of a cable. Each cable has its own seed, so that its faults do not depend on the
/// traffic of other cables.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// Seed of all faults.
    pub seed: u64,
    /// Probability that a frame is lost.
    pub loss: Probability,
    /// Probability that a frame arrives with wrong bits; the FCS check of the receiver drops the
    /// frame.
    pub corruption: Probability,
    /// Probability that a frame is delayed.
    pub delay: Probability,
    /// The longest delay of a delayed frame; delays are uniformly distributed from zero. Frames
    /// stay in order.
    pub delay_up_to: Duration,
    /// Probability that a frame is delayed, up to `delay_up_to`, while later frames pass it. Does not
    /// apply to preemptable frames.
    pub reordering: Probability,
    /// Probability that a frame arrives twice, the copy right behind it. Does not apply to
    /// preemptable frames.
    pub duplication: Probability,
    /// Pairs of times between which the probabilities apply. Empty: always.
    pub during: Vec<(Instant, Instant)>,
    /// Pairs of times at which the cable is cut and repaired. A frame is lost if any part of it is
    /// on the cable in between.
    pub cuts: Vec<(Instant, Instant)>,
}

/// When a frame is delivered to the receiver.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Delivery {
    /// After its last bit: network interfaces, store-and-forward bridges.
    #[default]
    Whole,
    /// After preamble, header and tag: cut-through bridges. A preemptable frame is delivered whole,
    /// because it is reassembled first.
    Header,
}

/// A cable's parameters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Config {
    /// Time from one end to the other; about 5 ns per metre in copper and glass.
    pub propagation: Duration,
    /// When a frame is delivered to the receiver.
    pub delivery: Delivery,
    /// The faults of the cable.
    pub faults: Faults,
}

/// Output of a cable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A frame for the receiver; `start` and `end` are times at the receiver.
    Deliver(Transmission),
    /// No output before this time.
    Timeout(Option<Instant>),
}

/// Counters of a cable. `offered` + `duplicated` = `delivered` + `lost` + `cut` + `unfinished` + the
/// frames in flight.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames given to the cable.
    pub offered: u64,
    /// Frames delivered, including corrupt ones.
    pub delivered: u64,
    /// Frames lost.
    pub lost: u64,
    /// Frames whose bits were flipped.
    pub corrupted: u64,
    /// Frames that took longer than the propagation.
    pub delayed: u64,
    /// Frames that a later one may have passed.
    pub reordered: u64,
    /// Frames that arrived twice.
    pub duplicated: u64,
    /// Frames lost because the cable was cut.
    pub cut: u64,
    /// Interrupted frames whose rest was never sent.
    pub unfinished: u64,
}

impl Add for Counters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            offered: self.offered + other.offered,
            delivered: self.delivered + other.delivered,
            lost: self.lost + other.lost,
            corrupted: self.corrupted + other.corrupted,
            delayed: self.delayed + other.delayed,
            reordered: self.reordered + other.reordered,
            duplicated: self.duplicated + other.duplicated,
            cut: self.cut + other.cut,
            unfinished: self.unfinished + other.unfinished,
        }
    }
}

#[derive(Clone, Debug)]
struct OnTheWay {
    due: Instant,
    /// The delay of this frame.
    takes: Duration,
    /// Whether later frames may pass it.
    reordered: bool,
    transmission: Transmission,
}

/// The preemptable frame whose transmission began last.
#[derive(Clone, Debug, Default)]
enum Preemptable {
    /// There is no such frame, or the frame was lost.
    #[default]
    None,
    /// The frame is the last one in `on_the_way`.
    OnTheWay,
    /// The frame is interrupted.
    Suspended(Box<OnTheWay>),
}

/// The random faults of a frame.
#[derive(Clone, Copy, Debug, Default)]
struct Drawn {
    lost: bool,
    corrupt: bool,
    reordered: bool,
    duplicated: bool,
    extra: Duration,
}

/// One direction of a cable. The line rate and the longest delay limit the number of its frames.
#[derive(Clone, Debug)]
pub struct Cable {
    config: Config,
    random: Random,
    on_the_way: VecDeque<OnTheWay>,
    preemptable: Preemptable,
    /// When the last bit of the last frame arrives. Later frames arrive later.
    last_end: Instant,
    counters: Counters,
    dropped: Dropped,
}

impl Cable {
    /// An empty cable.
    pub fn new(config: Config) -> Self {
        let random = Random::new(config.faults.seed);
        Self {
            config,
            random,
            on_the_way: VecDeque::new(),
            preemptable: Preemptable::None,
            last_end: Instant::ZERO,
            counters: Counters::default(),
            dropped: Dropped::default(),
        }
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Frames of streams that the cable lost.
    pub fn dropped(&mut self) -> &mut Dropped {
        &mut self.dropped
    }

    /// Frames on the way.
    pub fn on_the_way(&self) -> usize {
        self.on_the_way.len() + usize::from(matches!(self.preemptable, Preemptable::Suspended(_)))
    }

    /// Whether the cable is cut at `now`, and when this changes next.
    pub fn cut(&self, now: Instant) -> (bool, Option<Instant>) {
        let cuts = &self.config.faults.cuts;
        let is_cut = cuts.iter().any(|(from, until)| *from <= now && now < *until);
        let changes = cuts.iter().flat_map(|(from, until)| [*from, *until]);
        (is_cut, changes.filter(|change| *change > now && *change < Instant::MAX).min())
    }

    /// When the next frame arrives.
    pub fn next(&self) -> Option<Instant> {
        self.on_the_way.front().map(|front| front.due)
    }

    /// Handles a line event that happens at `now`.
    pub fn handle(&mut self, now: Instant, event: LineEvent) {
        match event {
            LineEvent::Transmit(transmission) => self.transmit(now, transmission),
            LineEvent::Suspend(suspend) => self.suspend(suspend),
            LineEvent::Resume(resume) => self.resume(resume),
        }
    }

    fn transmit(&mut self, now: Instant, mut transmission: Transmission) {
        assert_eq!(transmission.start, now, "a transmission is handed over when it starts");
        self.counters.offered += 1;
        if transmission.preemptable {
            self.give_up();
        }
        // Every frame draws all random numbers, so that one kind of fault does not change the
        // others.
        let Drawn { lost, corrupt, reordered, duplicated, extra } = self.draw(&transmission);
        let takes = self.config.propagation.max(self.last_end.since(transmission.start));
        let takes = match reordered {
            true => takes + extra,
            false => takes.max(self.config.propagation + extra),
        };
        if self.is_cut(transmission.start, transmission.end + takes) {
            self.counters.cut += 1;
            self.dropped.note(&transmission.frame);
            return;
        }
        if lost {
            self.counters.lost += 1;
            self.dropped.note(&transmission.frame);
            return;
        }
        self.counters.delayed += u64::from(takes > self.config.propagation);
        if corrupt {
            self.counters.corrupted += 1;
            transmission.frame.corrupt = true;
        }
        transmission.start += takes;
        transmission.end += takes;
        if transmission.preemptable {
            self.preemptable = Preemptable::OnTheWay;
        }
        self.counters.reordered += u64::from(reordered);
        let copy = duplicated.then(|| {
            self.counters.duplicated += 1;
            let span = transmission.end - transmission.start;
            let (start, end) = (transmission.end, transmission.end + span);
            (takes + span, Transmission { start, end, ..transmission.clone() })
        });
        for (takes, transmission) in [Some((takes, transmission)), copy].into_iter().flatten() {
            if !reordered {
                self.last_end = transmission.end;
            }
            let due = self.due(&transmission);
            let passes = |earlier: &OnTheWay| earlier.reordered && earlier.due > due;
            let behind = self.on_the_way.iter().rposition(|earlier| !passes(earlier));
            let at = behind.map_or(0, |behind| behind + 1);
            self.on_the_way.insert(at, OnTheWay { due, takes, reordered, transmission });
        }
    }

    /// Draws the random faults of a frame.
    fn draw(&mut self, transmission: &Transmission) -> Drawn {
        let (faults, random) = (&self.config.faults, &mut self.random);
        let lost = random.happens(faults.loss);
        let corrupt = random.happens(faults.corruption);
        let delayed = random.happens(faults.delay);
        let reordered = random.happens(faults.reordering) && !transmission.preemptable;
        let extra = match delayed || reordered {
            true => Duration::from_ps(random.below(faults.delay_up_to.as_ps() + 1)),
            false => Duration::ZERO,
        };
        let duplicated = random.happens(faults.duplication) && !transmission.preemptable;
        let acts =
            |(from, until): &(Instant, Instant)| (*from..*until).contains(&transmission.start);
        match faults.during.is_empty() || faults.during.iter().any(acts) {
            true => Drawn { lost, corrupt, reordered, duplicated, extra },
            false => Drawn::default(),
        }
    }

    /// Drops an interrupted frame, because the sender has started another preemptable frame.
    fn give_up(&mut self) {
        if let Preemptable::Suspended(frame) = std::mem::take(&mut self.preemptable) {
            self.counters.unfinished += 1;
            self.dropped.note(&frame.transmission.frame);
        }
    }

    fn suspend(&mut self, Suspend { end, .. }: Suspend) {
        if !matches!(self.preemptable, Preemptable::OnTheWay) {
            return;
        }
        let mut frame = self.on_the_way.pop_back().expect("it was put there");
        self.last_end = end + frame.takes;
        frame.transmission.frame.latency.book(FrameStage::Serialisation, end);
        self.preemptable = Preemptable::Suspended(Box::new(frame));
    }

    fn resume(&mut self, Resume { start, end }: Resume) {
        let Preemptable::Suspended(mut frame) = std::mem::take(&mut self.preemptable) else {
            return;
        };
        let OnTheWay { takes, transmission, .. } = &mut *frame;
        if self.is_cut(transmission.start - *takes, end + *takes) {
            self.counters.cut += 1;
            self.dropped.note(&transmission.frame);
            return;
        }
        transmission.frame.latency.book(FrameStage::Preempted, start);
        transmission.end = end + *takes;
        (self.last_end, frame.due) = (transmission.end, transmission.end);
        self.on_the_way.push_back(*frame);
        self.preemptable = Preemptable::OnTheWay;
    }

    /// The next frame that has arrived, or when to poll again.
    pub fn poll(&mut self, now: Instant) -> Output {
        match self.on_the_way.front() {
            None => return Output::Timeout(None),
            Some(front) if now < front.due => return Output::Timeout(Some(front.due)),
            Some(_) => {}
        }
        let OnTheWay { due, takes, mut transmission, .. } =
            self.on_the_way.pop_front().expect("looked at");
        let on_line = due.since(Instant::ZERO) - takes;
        let latency = &mut transmission.frame.latency;
        latency.book(FrameStage::Serialisation, Instant::ZERO + on_line);
        latency.book(FrameStage::Propagation, due);
        self.counters.delivered += 1;
        if self.on_the_way.is_empty() && matches!(self.preemptable, Preemptable::OnTheWay) {
            self.preemptable = Preemptable::None;
        }
        Output::Deliver(transmission)
    }

    fn due(&self, transmission: &Transmission) -> Instant {
        match self.config.delivery {
            Delivery::Header if !transmission.preemptable => {
                let tag = if transmission.frame.tag.is_some() { TAG } else { 0 };
                transmission.start + transmission.rate.duration(PREAMBLE + HEADER + tag)
            }
            _ => transmission.end,
        }
    }

    fn is_cut(&self, start: Instant, end: Instant) -> bool {
        self.config.faults.cuts.iter().any(|&(from, until)| start < until && end > from)
    }
}
