//! Results of each stream.

use super::{MeasuredSample, Network, NetworkConfig};
use crate::ethernet::traffic::StreamId;
use crate::ethernet::{Dropped, Frame};
use crate::measure::Latency;
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// The results of a stream since the start of the simulation.
#[derive(Clone, Debug)]
pub struct StreamReport {
    /// The stream.
    pub stream: StreamId,
    /// Frames that its application sent.
    pub sent: u64,
    /// Frames that arrived at the application of the other station.
    pub arrived: u64,
    /// Frames of which every copy was dropped. Frames that neither arrived nor are lost are still
    /// on the way.
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
    /// The most bytes (header to FCS, without tag) on the way at once, not counting copies.
    pub backlog_bytes: u64,
}

/// The frames of one stream.
#[derive(Debug)]
struct Stream {
    report: StreamReport,
    length: u64,
    deadline: Option<Duration>,
    /// Frames on the way, by ID.
    on_the_way: BTreeMap<u64, OnTheWay>,
    /// Frames of which no copy has arrived.
    missing: u64,
    /// The highest ID that has arrived.
    highest: Option<u64>,
}

/// A frame on the way.
#[derive(Debug)]
struct OnTheWay {
    sent: Instant,
    /// Time of sending by the sender's clock, in picoseconds.
    local: i64,
    copies: u32,
    arrived: bool,
}

/// The streams of a network.
#[derive(Debug, Default)]
pub(super) struct Streams(BTreeMap<StreamId, Stream>);

impl Streams {
    pub(super) fn new(config: &NetworkConfig) -> Self {
        let stations = config.stations.iter().enumerate();
        let all = stations.flat_map(|(station, config)| {
            config.traffic.iter().enumerate().map(move |(number, traffic)| {
                let stream = StreamId { station: station as u16, number: number as u8 };
                let report = StreamReport {
                    stream,
                    sent: 0,
                    arrived: 0,
                    lost: 0,
                    late: 0,
                    duplicates: 0,
                    overtaken: 0,
                    latency: Latency::default(),
                    measured: Vec::new(),
                    backlog_bytes: 0,
                };
                let (length, deadline) = (traffic.length as u64, traffic.deadline);
                let (on_the_way, missing, highest) = (BTreeMap::new(), 0, None);
                (stream, Stream { report, length, deadline, on_the_way, missing, highest })
            })
        });
        Self(all.collect())
    }

    fn of_frame(&mut self, id: u64) -> Option<&mut Stream> {
        self.0.get_mut(&StreamId::of_frame(id)?)
    }

    /// Handles a frame that the application sends when the sender's clock shows `local`
    /// picoseconds.
    pub(super) fn send(&mut self, frame: &Frame, local: i64) {
        let Some(stream) = self.of_frame(frame.id) else { return };
        stream.report.sent += 1;
        let sent = frame.latency.created();
        stream.on_the_way.insert(frame.id, OnTheWay { sent, local, copies: 1, arrived: false });
        stream.missing += 1;
        let bytes = stream.missing * stream.length;
        stream.report.backlog_bytes = stream.report.backlog_bytes.max(bytes);
    }

    /// Handles a frame that has arrived at `now`. With simulated clocks, `clock` has the time of
    /// the receiver's clock in picoseconds and the length of the measurement intervals.
    pub(super) fn receive(&mut self, now: Instant, frame: &Frame, clock: Option<(i64, Duration)>) {
        let Some(stream) = self.of_frame(frame.id) else { return };
        let Some(on_the_way) = stream.on_the_way.get_mut(&frame.id) else { return };
        let first = !std::mem::replace(&mut on_the_way.arrived, true);
        let sent = on_the_way.local;
        on_the_way.copies -= 1;
        if on_the_way.copies == 0 {
            stream.on_the_way.remove(&frame.id);
        }
        if first {
            let latency = frame.latency.total();
            stream.missing -= 1;
            stream.report.overtaken += u64::from(Some(frame.id) < stream.highest);
            stream.highest = stream.highest.max(Some(frame.id));
            if let Some((local, every)) = clock {
                let (truly, measured) = (latency.as_ps() as i64, local.saturating_sub(sent));
                let samples = &mut stream.report.measured;
                MeasuredSample::record(samples, now, every, truly, measured);
            }
            stream.report.arrived += 1;
            stream.report.latency.record(latency);
            stream.report.late += u64::from(stream.deadline.is_some_and(|most| latency > most));
        } else {
            stream.report.duplicates += 1;
        }
    }

    /// Handles the frames that a part of the network copied and dropped.
    pub(super) fn settle(&mut self, dropped: &mut Dropped) {
        for id in dropped.take_copied() {
            let Some(stream) = self.of_frame(id) else { continue };
            stream.on_the_way.entry(id).and_modify(|frame| frame.copies += 1);
        }
        self.lose(dropped.take());
    }

    /// Handles dropped copies of frames. A frame is lost if its last copy is dropped and no copy
    /// has arrived.
    pub(super) fn lose(&mut self, ids: impl Iterator<Item = u64>) {
        for id in ids {
            let Some(stream) = self.of_frame(id) else { continue };
            let Some(frame) = stream.on_the_way.get_mut(&id) else { continue };
            frame.copies -= 1;
            if frame.copies == 0 {
                let lost = u64::from(!frame.arrived);
                stream.on_the_way.remove(&id);
                stream.missing -= lost;
                stream.report.lost += lost;
                stream.report.late += lost * u64::from(stream.deadline.is_some());
            }
        }
    }
}

impl Network {
    /// The results of each stream until `now`, in the order of station and number.
    pub(crate) fn streams(&self, now: Instant) -> Vec<StreamReport> {
        let report = |stream: &Stream| {
            let late = |frame: &&OnTheWay| {
                !frame.arrived && stream.deadline.is_some_and(|d| now.since(frame.sent) > d)
            };
            let late = stream.on_the_way.values().filter(late).count() as u64;
            StreamReport { late: stream.report.late + late, ..stream.report.clone() }
        };
        self.streams.0.values().map(report).collect()
    }
}
