//! Results of each stream.

use super::{MeasuredSample, Network, NetworkConfig};
use crate::ethernet::frame::FCS;
use crate::ethernet::traffic::StreamId;
use crate::ethernet::{Dropped, Frame};
use crate::measure::Latency;
use std::collections::VecDeque;
use wire::{Duration, Instant};

/// The results of a stream since the start of the simulation.
#[derive(Clone, Debug)]
pub struct StreamReport {
    /// The stream.
    pub stream: StreamId,
    /// Frames that its application sent.
    pub sent: u64,
    /// The most bytes (header to FCS, without tag) on the way at once, not counting copies. A frame
    /// is on the way until it has arrived at all listeners, or its last copy is lost.
    pub backlog_bytes: u64,
    /// The results of each listener, in the order of the configuration.
    pub listeners: Vec<ListenerReport>,
}

/// The results of a stream at one listener.
#[derive(Clone, Debug)]
pub struct ListenerReport {
    /// The station.
    pub station: usize,
    /// Frames that arrived at the application of the station.
    pub arrived: u64,
    /// Frames that cannot arrive any more, because their last copy was dropped. Frames that neither
    /// arrived nor are lost are still on the way.
    pub lost: u64,
    /// Frames that missed the deadline: they arrived later, are lost, or have been on the way for
    /// longer. 0 without a deadline.
    pub late: u64,
    /// Copies that arrived after the first copy.
    pub duplicates: u64,
    /// Frames that arrived after a frame that was sent later.
    pub overtaken: u64,
    /// Latency of arrived frames, from application to application.
    pub latency: Latency,
    /// The latency over time, in true time and by the clocks of both stations. Empty if clocks are
    /// not simulated.
    pub measured: Vec<MeasuredSample>,
}

impl StreamReport {
    /// The sum of a count over all listeners.
    pub fn sum(&self, count: impl Fn(&ListenerReport) -> u64) -> u64 {
        self.listeners.iter().map(count).sum()
    }

    /// Frames that arrived, counted at each listener.
    pub fn arrived(&self) -> u64 {
        self.sum(|listener| listener.arrived)
    }

    /// Frames that are lost, counted at each listener.
    pub fn lost(&self) -> u64 {
        self.sum(|listener| listener.lost)
    }

    /// Frames that missed the deadline, counted at each listener.
    pub fn late(&self) -> u64 {
        self.sum(|listener| listener.late)
    }

    /// The latency of all listeners together.
    pub fn latency(&self) -> Latency {
        let mut all = Latency::default();
        self.listeners.iter().for_each(|listener| all.merge(&listener.latency));
        all
    }
}

impl ListenerReport {
    fn new(station: usize) -> Self {
        Self {
            station,
            arrived: 0,
            lost: 0,
            late: 0,
            duplicates: 0,
            overtaken: 0,
            latency: Latency::default(),
            measured: Vec::new(),
        }
    }
}

/// The frames of one stream.
#[derive(Debug)]
struct Stream {
    report: StreamReport,
    /// The stations of the listeners, sorted, with their indices.
    stations: Vec<(usize, usize)>,
    /// For each listener, its deadline.
    deadlines: Vec<Option<Duration>>,
    /// Frames on the way. The first has the ID `first`, each other the next ID.
    on_the_way: VecDeque<OnTheWay>,
    first: u64,
    /// Bytes of the frames that have not arrived at all listeners.
    missing: u64,
    /// For each listener, the highest ID that has arrived.
    highest: Vec<Option<u64>>,
}

/// A frame on the way.
#[derive(Debug)]
struct OnTheWay {
    sent: Instant,
    /// Time of sending by the sender's clock, in picoseconds.
    local: i64,
    /// Bytes, header to FCS, without tag.
    length: u64,
    /// Copies in the network. 0: the frame is no longer on the way.
    copies: u32,
    arrived: Arrived,
}

/// The listeners at which a frame has arrived: a bit for each.
#[derive(Debug, Default)]
struct Arrived {
    first: u64,
    more: Vec<u64>,
    count: usize,
}

impl Arrived {
    /// Adds a listener. Returns whether it is new.
    fn add(&mut self, listener: usize) -> bool {
        let word = match listener / 64 {
            0 => &mut self.first,
            at => {
                self.more.resize(self.more.len().max(at), 0);
                &mut self.more[at - 1]
            }
        };
        let bit = 1 << (listener % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        self.count += usize::from(is_new);
        is_new
    }

    fn has(&self, listener: usize) -> bool {
        let word = match listener / 64 {
            0 => self.first,
            at => self.more.get(at - 1).copied().unwrap_or(0),
        };
        word & 1 << (listener % 64) != 0
    }
}

/// The streams of a network, by station and number.
#[derive(Debug, Default)]
pub(super) struct Streams(Vec<Vec<Stream>>);

impl Streams {
    pub(super) fn new(config: &NetworkConfig) -> Self {
        let of_station = |(station, config): (usize, &super::StationConfig)| {
            let streams = config.traffic.iter().enumerate();
            let stream = streams.map(|(number, traffic)| {
                let to = traffic.listeners.iter();
                let stations = traffic.listeners_by_station();
                let stream = StreamId::new(station, number);
                let listeners = to.clone().map(|to| ListenerReport::new(to.station)).collect();
                Stream {
                    report: StreamReport { stream, sent: 0, backlog_bytes: 0, listeners },
                    stations,
                    deadlines: to.map(|to| to.deadline).collect(),
                    on_the_way: VecDeque::new(),
                    first: stream.first_frame(),
                    missing: 0,
                    highest: vec![None; traffic.listeners.len()],
                }
            });
            stream.collect()
        };
        Self(config.stations.iter().enumerate().map(of_station).collect())
    }

    fn of_frame(&mut self, id: u64) -> Option<&mut Stream> {
        let StreamId { station, number } = StreamId::of_frame(id)?;
        self.0.get_mut(usize::from(station))?.get_mut(usize::from(number))
    }

    /// Handles a frame that the application sends when the sender's clock shows `local`
    /// picoseconds. A stream sends its frames in the order of their IDs.
    pub(super) fn send(&mut self, frame: &Frame, local: i64) {
        let Some(stream) = self.of_frame(frame.id) else { return };
        stream.report.sent += 1;
        let (sent, arrived) = (frame.latency.created(), Arrived::default());
        let length = (frame.bytes.len() + FCS) as u64;
        stream.on_the_way.push_back(OnTheWay { sent, local, length, copies: 1, arrived });
        stream.missing += length;
        stream.report.backlog_bytes = stream.report.backlog_bytes.max(stream.missing);
    }

    /// Handles a frame that has arrived at a station at `now`. With simulated clocks, `clock` has
    /// the time of the receiver's clock in picoseconds and the length of the measurement intervals.
    /// Returns whether the station is a listener.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        station: usize,
        frame: &Frame,
        clock: Option<(i64, Duration)>,
    ) -> bool {
        let Some(stream) = self.of_frame(frame.id) else { return false };
        let listener = stream.stations.binary_search_by_key(&station, |(station, _)| *station);
        if let Ok(listener) = listener {
            stream.arrive(now, stream.stations[listener].1, frame, clock);
        }
        stream.end_copy(frame.id);
        listener.is_ok()
    }

    /// Handles the frames that a part of the network copied and dropped.
    pub(super) fn settle(&mut self, dropped: &mut Dropped) {
        for id in dropped.take_copied() {
            let frame = self.of_frame(id).and_then(|stream| stream.frame(id));
            frame.into_iter().for_each(|frame| frame.copies += 1);
        }
        self.lose(dropped.take());
    }

    /// Handles dropped copies of frames. A frame is lost to a listener if its last copy is gone and
    /// no copy has arrived there.
    pub(super) fn lose(&mut self, ids: impl Iterator<Item = u64>) {
        for id in ids {
            self.of_frame(id).into_iter().for_each(|stream| stream.end_copy(id));
        }
    }
}

impl Stream {
    fn frame(&mut self, id: u64) -> Option<&mut OnTheWay> {
        let at = id.checked_sub(self.first)? as usize;
        self.on_the_way.get_mut(at).filter(|frame| frame.copies > 0)
    }

    fn arrive(
        &mut self,
        now: Instant,
        listener: usize,
        frame: &Frame,
        clock: Option<(i64, Duration)>,
    ) {
        let (listeners, deadline) = (self.report.listeners.len(), self.deadlines[listener]);
        let Some(on_the_way) = self.frame(frame.id) else { return };
        let first = on_the_way.arrived.add(listener);
        let (sent, everywhere) = (on_the_way.local, on_the_way.arrived.count == listeners);
        let length = on_the_way.length;
        let report = &mut self.report.listeners[listener];
        if !first {
            report.duplicates += 1;
            return;
        }
        let latency = frame.latency.total();
        self.missing -= u64::from(everywhere) * length;
        let highest = &mut self.highest[listener];
        report.overtaken += u64::from(Some(frame.id) < *highest);
        *highest = (*highest).max(Some(frame.id));
        if let Some((local, every)) = clock {
            let (truly, measured) = (latency.as_ps() as i64, local.saturating_sub(sent));
            MeasuredSample::record(&mut report.measured, now, every, truly, measured);
        }
        report.arrived += 1;
        report.latency.record(latency);
        report.late += u64::from(deadline.is_some_and(|most| latency > most));
    }

    /// Removes a copy of a frame.
    fn end_copy(&mut self, id: u64) {
        let Some(frame) = self.frame(id) else { return };
        frame.copies -= 1;
        if frame.copies > 0 {
            return;
        }
        let (arrived, length) = (std::mem::take(&mut frame.arrived), frame.length);
        if arrived.count < self.report.listeners.len() {
            self.missing -= length;
            for (at, listener) in self.report.listeners.iter_mut().enumerate() {
                let lost = u64::from(!arrived.has(at));
                listener.lost += lost;
                listener.late += lost * u64::from(self.deadlines[at].is_some());
            }
        }
        while self.on_the_way.front().is_some_and(|frame| frame.copies == 0) {
            self.on_the_way.pop_front();
            self.first += 1;
        }
    }

    fn report(&self, now: Instant) -> StreamReport {
        let mut report = self.report.clone();
        for frame in self.on_the_way.iter().filter(|frame| frame.copies > 0) {
            let span = now.since(frame.sent);
            for (at, listener) in report.listeners.iter_mut().enumerate() {
                let overdue = self.deadlines[at].is_some_and(|deadline| span > deadline);
                listener.late += u64::from(overdue && !frame.arrived.has(at));
            }
        }
        report
    }
}

impl Network {
    /// The results of each stream until `now`, in the order of station and number.
    pub(crate) fn streams(&self, now: Instant) -> Vec<StreamReport> {
        self.streams.0.iter().flatten().map(|stream| stream.report(now)).collect()
    }
}
