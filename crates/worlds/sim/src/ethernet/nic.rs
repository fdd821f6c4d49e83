//! A network interface with one or more ports: pipelines with a fixed delay in both directions, the
//! 802.1Q tag, and a bounded transmit ring for each queue of a port.
//!
//! The rings limit the host: [`Nic::room_for`] is the number of frames of a priority that the host
//! may send now. Further data wait in the host, where they can still be aggregated. A ring that
//! waits for its gate does not block the other rings.

use std::collections::VecDeque;

use tsn::{Clock, QUEUES, StepPolicy};
use wire::{Duration, Instant, earliest};

use super::frame::{Frame, Mac, Tag, Transmission};
use super::port::{Admission, Reception, SchedulerGroups};
use super::streams::{self, Handling, StreamTable, Verdict};
use super::{Dropped, FrameStage, LineEvent, Port, port};
use crate::processor::{self, Flow, Processor};

/// The tags of sent frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tagging {
    /// VLAN identifier of all frames; 0 for a priority tag.
    pub vid: u16,
    /// The priority code point of each priority of the host (Linux:
    /// `egress-qos-map`).
    pub pcp_of_priority: [u8; QUEUES],
}

impl Tagging {
    /// Tags with the VLAN `vid` and the priority as PCP.
    pub const fn vlan(vid: u16) -> Self {
        Self { vid, pcp_of_priority: [0, 1, 2, 3, 4, 5, 6, 7] }
    }

    /// The tag of frames with this priority.
    pub fn tag(self, priority: u8) -> Tag {
        Tag { pcp: self.pcp_of_priority[usize::from(priority)], vid: self.vid }
    }
}

/// An interface's parameters.
#[derive(Clone, Debug)]
pub struct Config {
    /// The address. Frames for other unicast addresses are dropped.
    pub mac: Mac,
    /// The ports, 1 to [`MAX_PORTS`]. The limits of their queues are not used, because the rings
    /// limit them.
    pub ports: Vec<port::Config>,
    /// Delay from the host to the port.
    pub tx_delay: Duration,
    /// Delay from the last bit received to the host.
    pub rx_delay: Duration,
    /// The most frames in a transmit ring, including frames in the pipeline. Each queue has a ring.
    pub tx_ring: usize,
    /// Tags of sent frames. The tag of a received frame is always removed.
    pub tagging: Option<Tagging>,
    /// Streams whose frames are numbered when sent, or whose copies are discarded when received.
    /// The R-TAG of a received frame is always removed.
    pub streams: Vec<Handling>,
    /// The output ports of group addresses. All other frames without their own path leave through
    /// the first port.
    pub groups: Vec<(Mac, Outputs)>,
}

/// The most ports of an interface.
pub const MAX_PORTS: usize = 8;

/// Output ports of a frame: bit n for port n.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Outputs(u8);

impl Outputs {
    /// The first port.
    pub const FIRST: Self = Self(1);

    /// The ports.
    pub fn ports(self) -> impl Iterator<Item = usize> {
        (0..MAX_PORTS).filter(move |port| self.0 >> port & 1 != 0)
    }
}

impl<'a> FromIterator<&'a usize> for Outputs {
    fn from_iter<I: IntoIterator<Item = &'a usize>>(ports: I) -> Self {
        Self(ports.into_iter().fold(0, |bits, port| bits | 1 << port))
    }
}

/// Input of an interface.
#[derive(Clone, Debug)]
pub enum Input {
    /// A frame of the host; [`Nic::room_for`] limits the number per priority.
    FromHost(Frame),
    /// A frame that [`Nic::admit`] has admitted to a port and for which [`Nic::takes`] returns true.
    Admitted {
        /// The port.
        port: usize,
        /// The frame.
        frame: Frame,
        /// Its admission.
        admission: Admission,
    },
    /// A whole frame from the line of a port.
    FromLine {
        /// The port.
        port: usize,
        /// The frame.
        transmission: Transmission,
    },
}

/// Output of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// A line event happens at a port now. After the start of a frame, one more frame has room.
    Line {
        /// The port.
        port: usize,
        /// The event.
        event: LineEvent,
    },
    /// A frame for the host, without tag.
    ToHost(Frame),
    /// No output before this time.
    Timeout(Option<Instant>),
}

/// Counters of an interface, in addition to the counters of its port.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames from the line.
    pub received: u64,
    /// Frames dropped by the FCS check.
    pub fcs_errors: u64,
    /// Frames dropped because they are for another unicast address.
    pub not_for_us: u64,
    /// Frames for the host.
    pub to_host: u64,
    /// Received frames that a stream's filter or recovery function discarded.
    pub eliminated: u64,
}

/// A turn in which a processor sends frames.
#[derive(Debug, Default)]
struct Turn {
    began: Instant,
    /// The connections of the frames.
    flows: Vec<Flow>,
    /// The number of frames in the pipeline.
    frames: usize,
}

/// A port and the pipeline to it.
#[derive(Debug)]
struct Sender {
    port: Port,
    tx: VecDeque<(Instant, (Frame, Admission))>,
    /// Frames in `tx`, by queue.
    in_pipeline: [usize; QUEUES],
}

/// A network interface.
#[derive(Debug)]
pub struct Nic {
    config: Config,
    senders: Vec<Sender>,
    groups: SchedulerGroups,
    rx: VecDeque<(Instant, Frame)>,
    streams: StreamTable,
    counters: Counters,
    dropped: Dropped,
    /// The processor that sends and receives frames. `None`: frames pass in parallel.
    processor: Option<Processor>,
    /// Received frames that wait for the processor.
    arrived: VecDeque<Frame>,
    /// The last turn of sending.
    sending: Turn,
    /// When received frames last gave way to all other work.
    gave_way: Option<Instant>,
}

impl Nic {
    /// An idle interface.
    ///
    /// # Panics
    /// If a stream's handling is invalid.
    pub fn new(mut config: Config) -> Self {
        config.groups.sort_unstable();
        // Twice the ring, so that frames that are not yet eligible use no room of eligible frames.
        let depth = 2 * config.tx_ring;
        let sender = |port: &port::Config| Sender {
            port: Port::new(port.clone().with_depth(depth, usize::MAX)),
            tx: VecDeque::new(),
            in_pipeline: [0; QUEUES],
        };
        let streams = StreamTable::new(&config.streams).expect("checked before");
        Self {
            senders: config.ports.iter().map(sender).collect(),
            config,
            streams,
            groups: SchedulerGroups::default(),
            rx: VecDeque::new(),
            counters: Counters::default(),
            dropped: Dropped::default(),
            processor: None,
            arrived: VecDeque::new(),
            sending: Default::default(),
            gave_way: None,
        }
    }

    /// The interface with a processor that sends and receives its frames in turns.
    pub(crate) fn with_processor(self, processor: Option<Processor>) -> Self {
        Self { processor, ..self }
    }

    /// Replaces the processor.
    pub(crate) fn set_processor(&mut self, processor: Option<Processor>) {
        self.processor = processor;
    }

    /// The processor of the station.
    pub(crate) fn processor(&self) -> Option<&Processor> {
        self.processor.as_ref()
    }

    /// When the host may send again, if the processor is busy. A turn sends all frames of an
    /// instant.
    pub(crate) fn busy(&self, now: Instant) -> Option<Instant> {
        self.processor.as_ref()?.busy(now).filter(|_| self.sending.began != now)
    }

    /// Begins a turn that receives all arrived frames, if the processor is free and all other work
    /// of this instant is done. Returns whether it began.
    pub(crate) fn begin_receiving(&mut self, now: Instant) -> bool {
        let Some(processor) = &self.processor else { return false };
        if self.arrived.is_empty() || processor.busy(now).is_some() {
            return false;
        }
        if self.gave_way.replace(now) != Some(now) {
            return false;
        }
        let (mut span, mut turn) = (Duration::ZERO, Vec::new());
        for load in self.arrived.iter().filter_map(processor::load) {
            span = span + processor.frame(&mut turn, load, self.config.rx_delay);
        }
        let due = processor.occupy(now, span);
        self.rx.extend(self.arrived.drain(..).map(|frame| (due, frame)));
        true
    }

    /// Drops all frames, as in a power loss, except frames already on the line.
    pub fn reset(&mut self, now: Instant) {
        self.senders.iter_mut().for_each(|sender| sender.port.clear(now));
        let mut dropped = std::mem::take(self.dropped());
        let waiting = self.senders.iter().flat_map(|sender| &sender.tx);
        let sending = waiting.map(|(_, (frame, _))| frame);
        let received = self.rx.iter().map(|(_, frame)| frame).chain(&self.arrived);
        sending.chain(received).for_each(|frame| dropped.note(frame));
        self.streams.restart(now);
        let streams = std::mem::take(&mut self.streams);
        let new = Self::new(self.config.clone()).with_processor(self.processor.take());
        *self = Self { counters: self.counters, dropped, streams, ..new };
    }

    /// Frames of streams that the interface or its ports dropped.
    pub fn dropped(&mut self) -> &mut Dropped {
        let senders = self.senders.iter_mut();
        senders.for_each(|sender| self.dropped.append(sender.port.dropped()));
        &mut self.dropped
    }

    /// Replaces the node's clock at `now`; see [`Port::set_clock`].
    pub fn set_clock(&mut self, now: Instant, clock: Clock, stepped: Option<StepPolicy>) {
        let senders = self.senders.iter_mut();
        senders.for_each(|sender| sender.port.set_clock(now, clock, stepped));
    }

    /// Adds an untagged frame that the node itself made to the queue of `class` at a port. Such
    /// frames do not use the room of the ring.
    pub fn send_untagged(&mut self, now: Instant, port: usize, frame: Frame, class: usize) {
        self.push(port, now + self.config.tx_delay, frame, Admission::own(class));
    }

    /// Number of frames that the host may send now at any priority and port.
    pub fn room(&self) -> usize {
        let queues = |sender| (0..QUEUES).map(move |queue| self.room_in(sender, queue));
        self.senders.iter().flat_map(queues).min().expect("there are queues")
    }

    /// Number of frames with the host's priority `priority`, 0 to 7, that the host may send now at
    /// any port.
    pub fn room_for(&self, priority: u8) -> usize {
        let tag = self.tag(priority);
        let queues = |sender: &Sender| {
            let queues = sender.port.queues_of(tag).into_iter();
            queues.map(|queue| self.room_in(sender, queue)).min()
        };
        self.senders.iter().filter_map(queues).min().expect("there is one")
    }

    /// Whether sent frames are tagged.
    pub fn tags(&self) -> bool {
        self.config.tagging.is_some()
    }

    fn room_in(&self, sender: &Sender, queue: usize) -> usize {
        let taken = sender.in_pipeline[queue] + sender.port.queued_frames_in(queue);
        self.config.tx_ring.saturating_sub(taken)
    }

    /// Tags and numbers a frame of the host. `tag` is the tag of frames of a stream. Returns the
    /// ports through which copies of the frame leave.
    pub fn prepare(&mut self, frame: &mut Frame, tag: Option<Tag>) -> Outputs {
        frame.tag = tag;
        if let Some(ports) = self.streams.send(frame) {
            let outputs: Outputs = ports.iter().collect();
            self.dropped.note_copies(frame, ports.len());
            return outputs;
        }
        let groups = &self.config.groups;
        if groups.is_empty() {
            return Outputs::FIRST;
        }
        let group = groups.binary_search_by_key(&frame.destination(), |(group, _)| *group);
        let outputs = group.map_or(Outputs::FIRST, |at| groups[at].1);
        self.dropped.note_copies(frame, outputs.ports().count());
        outputs
    }

    /// Schedules a prepared frame that waits in the host for a ring of a port with the asynchronous
    /// shaper, which comes before the rings. Returns the class of the frame and the time from which
    /// the frame may leave; `None` if the frame is dropped.
    pub fn admit(&mut self, now: Instant, port: usize, frame: &Frame) -> Option<Admission> {
        let reception = Reception { from: None, at: now };
        self.senders[port].port.admit(&mut self.groups, reception, (frame, None))
    }

    /// When the host may send an admitted frame, so that the frame is eligible at the end of the
    /// pipeline.
    pub fn hand_over_at(&self, port: usize, admission: Admission) -> Instant {
        let eligible = self.senders[port].port.config().clock.global(admission.eligible);
        eligible - self.config.tx_delay
    }

    /// Whether the ring of a port for an admitted frame has room now.
    pub fn takes(&self, now: Instant, port: usize, admission: Admission) -> bool {
        let (sender, until) = (&self.senders[port], now + self.config.tx_delay);
        let taken = sender.port.eligible_frames_in(admission.class, until);
        let taken = sender.in_pipeline[admission.class] + taken;
        self.busy(now).is_none() && taken < self.config.tx_ring
    }

    /// Adds a frame that reaches the port at `due`, but not before earlier frames.
    fn push(&mut self, port: usize, due: Instant, frame: Frame, admission: Admission) {
        let Sender { tx, in_pipeline, .. } = &mut self.senders[port];
        in_pipeline[admission.class] += 1;
        let due = tx.back().map_or(due, |(last, _)| due.max(*last));
        tx.push_back((due, (frame, admission)));
    }

    /// Sends a frame of the host. Returns when the frame reaches the port.
    fn send(&mut self, now: Instant, frame: &Frame) -> Instant {
        let Some(processor) = &self.processor else { return now + self.config.tx_delay };
        // Work of another system call sends a pure acknowledgement.
        let Some(load) = processor::load(frame) else { return now };
        let Turn { began, flows, frames } = &mut self.sending;
        if std::mem::replace(began, now) != now {
            flows.clear();
            *frames = 0;
        }
        let span = processor.frame(flows, load, self.config.tx_delay);
        let due = processor.occupy(now, span);
        // The frames of a turn leave together.
        for sender in &mut self.senders {
            sender.tx.iter_mut().rev().take(*frames).for_each(|(at, _)| *at = due);
        }
        *frames += 1;
        due
    }

    fn tag(&self, priority: u8) -> Option<Tag> {
        self.config.tagging.map(|tagging| tagging.tag(priority))
    }

    /// The counters of each stream until `now`, by the stream's number.
    pub fn streams(&self, now: Instant) -> impl Iterator<Item = (usize, streams::Counters)> {
        self.streams.counters(now)
    }

    /// The counters.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Sets whether the link at a port is up; see [`Port::set_link`].
    pub fn set_link(&mut self, port: usize, is_up: bool) {
        self.senders[port].port.set_link(is_up);
    }

    /// A port, for the counters.
    pub fn port(&self, index: usize) -> &Port {
        &self.senders[index].port
    }

    /// The address.
    pub fn mac(&self) -> Mac {
        self.config.mac
    }

    /// Number of ports.
    pub fn ports(&self) -> usize {
        self.senders.len()
    }

    /// Handles a frame.
    ///
    /// # Panics
    /// If the host sends a frame although its ring is full.
    pub fn handle(&mut self, now: Instant, input: Input) {
        match input {
            Input::FromHost(mut frame) => {
                let tag = self.tag(frame.priority);
                let outputs = self.prepare(&mut frame, tag);
                let mut due = None;
                for port in outputs.ports() {
                    let Some(admission) = self.admit(now, port, &frame) else { continue };
                    let room = self.room_in(&self.senders[port], admission.class);
                    assert!(room > 0, "the transmit ring is full");
                    let at = *due.get_or_insert_with(|| self.send(now, &frame));
                    self.push(port, at, frame.clone(), admission);
                }
            }
            Input::Admitted { port, frame, admission } => {
                assert!(self.takes(now, port, admission), "the transmit ring is full");
                let due = self.send(now, &frame);
                self.push(port, due, frame, admission);
            }
            Input::FromLine { port, transmission } => self.receive(now, port, transmission.frame),
        }
    }

    /// The next transmission or frame for the host, or when to poll again.
    pub fn poll(&mut self, now: Instant) -> Output {
        let mut wake = self.turn(now);
        for (number, Sender { port, tx, in_pipeline }) in self.senders.iter_mut().enumerate() {
            while let Some((due, (mut frame, admission))) = pop_due(tx, now) {
                in_pipeline[admission.class] -= 1;
                frame.latency.book(FrameStage::Nic, due);
                port.handle(now, port::Input::Frame(frame, admission));
            }
            match port.poll(now) {
                port::Output::Line(event) => return Output::Line { port: number, event },
                port::Output::Timeout(at) => {
                    wake = earliest([wake, at, tx.front().map(|next| next.0)]);
                }
            }
        }
        if let Some((due, mut frame)) = pop_due(&mut self.rx, now) {
            frame.latency.book(FrameStage::Nic, due);
            (frame.tag, frame.sequence) = (None, None);
            self.counters.to_host += 1;
            return Output::ToHost(frame);
        }
        Output::Timeout(earliest([wake, self.rx.front().map(|next| next.0)]))
    }

    /// When the processor is free for frames that wait.
    fn turn(&self, now: Instant) -> Option<Instant> {
        let busy = self.processor.as_ref()?.busy(now);
        busy.or_else(|| (!self.arrived.is_empty()).then_some(now))
    }

    fn receive(&mut self, now: Instant, port: usize, mut frame: Frame) {
        frame.security = 0;
        if let Some(control) = frame.control.filter(|_| !frame.corrupt) {
            return self.senders[port].port.handle(now, port::Input::Control(control));
        }
        self.counters.received += 1;
        let destination = frame.destination();
        if frame.corrupt {
            self.counters.fcs_errors += 1;
            self.dropped.note(&frame);
        } else if destination != self.config.mac && !destination.is_group() {
            self.counters.not_for_us += 1;
            self.dropped.note(&frame);
        } else if self.streams.take(now, port, &mut frame) == Verdict::Drop {
            self.counters.eliminated += 1;
            self.dropped.note(&frame);
        } else if let Some(processor) = &self.processor {
            if !self.arrived.is_empty() || processor::load(&frame).is_some() {
                if processor.cpu().free_at() < now {
                    processor.occupy(now, processor.config().wake);
                }
                return self.arrived.push_back(frame);
            }
            let due = self.rx.back().map_or(now, |(last, _)| now.max(*last));
            self.rx.push_back((due, frame));
        } else {
            self.rx.push_back((now + self.config.rx_delay, frame));
        }
    }
}

fn pop_due<T>(queue: &mut VecDeque<(Instant, T)>, now: Instant) -> Option<(Instant, T)> {
    match queue.front() {
        Some((due, _)) if *due <= now => queue.pop_front(),
        _ => None,
    }
}
