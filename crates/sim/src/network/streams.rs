//! What becomes of the frames of each stream.

use super::{MeasuredSample, Network, NetworkConfig};
use crate::ethernet::Frame;
use crate::ethernet::traffic::StreamId;
use crate::measure::Latency;
use std::collections::BTreeMap;
use wire::{Duration, Instant};

/// What became of a stream, from the beginning of the simulation.
#[derive(Clone, Debug)]
pub struct StreamReport {
    /// Which one.
    pub stream: StreamId,
    /// Frames that its application sent.
    pub sent: u64,
    /// Those that arrived at the application of the other station.
    pub arrived: u64,
    /// Those that were dropped anywhere on the way; the others are still on it.
    pub lost: u64,
    /// Those that missed the deadline: arrived late, lost, or on the way for longer.
    pub late: u64,
    /// From application to application, of those that arrived.
    pub latency: Latency,
    /// Along time, what both stations measure with their clocks, if clocks are simulated.
    pub measured: Vec<MeasuredSample>,
    /// The most bytes (header to FCS, without tag) that were on the way at once.
    pub backlog_bytes: u64,
}

/// The frames of one stream.
#[derive(Debug)]
struct Stream {
    report: StreamReport,
    length: u64,
    deadline: Option<Duration>,
    /// By id: when frames on the way were sent, in true time and by the sender's clock.
    on_the_way: BTreeMap<u64, (Instant, i64)>,
}

/// The streams of a network.
#[derive(Debug, Default)]
pub(super) struct Streams(BTreeMap<StreamId, Stream>);

impl Streams {
    pub fn new(config: &NetworkConfig) -> Self {
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
                    latency: Latency::default(),
                    measured: Vec::new(),
                    backlog_bytes: 0,
                };
                let (length, deadline) = (traffic.length as u64, traffic.deadline);
                (stream, Stream { report, length, deadline, on_the_way: BTreeMap::new() })
            })
        });
        Self(all.collect())
    }

    fn of_frame(&mut self, id: u64) -> Option<&mut Stream> {
        self.0.get_mut(&StreamId::of_frame(id)?)
    }

    /// The application sends a frame; its clock shows `local` picoseconds.
    pub fn send(&mut self, frame: &Frame, local: i64) {
        let Some(stream) = self.of_frame(frame.id) else { return };
        stream.report.sent += 1;
        stream.on_the_way.insert(frame.id, (frame.latency.created(), local));
        let bytes = stream.on_the_way.len() as u64 * stream.length;
        stream.report.backlog_bytes = stream.report.backlog_bytes.max(bytes);
    }

    /// A frame has arrived at `now`; if clocks are simulated, that of the receiver shows so many
    /// picoseconds, and measurements are of intervals of this length.
    pub fn receive(&mut self, now: Instant, frame: &Frame, clock: Option<(i64, Duration)>) {
        let Some(stream) = self.of_frame(frame.id) else { return };
        if let Some((_, sent)) = stream.on_the_way.remove(&frame.id) {
            let latency = frame.latency.total();
            if let Some((local, every)) = clock {
                let (truly, measured) = (latency.as_ps() as i64, local.saturating_sub(sent));
                let samples = &mut stream.report.measured;
                MeasuredSample::record(samples, now, every, truly, measured);
            }
            stream.report.arrived += 1;
            stream.report.latency.record(latency);
            stream.report.late += u64::from(stream.deadline.is_some_and(|most| latency > most));
        }
    }

    /// Frames were dropped.
    pub fn lose(&mut self, ids: impl Iterator<Item = u64>) {
        for id in ids {
            let Some(stream) = self.of_frame(id) else { continue };
            if stream.on_the_way.remove(&id).is_some() {
                stream.report.lost += 1;
                stream.report.late += u64::from(stream.deadline.is_some());
            }
        }
    }
}

impl Network {
    /// What became of each stream until `now`, by station and number.
    pub fn streams(&self, now: Instant) -> Vec<StreamReport> {
        let report = |stream: &Stream| {
            let late =
                |(sent, _): &&(Instant, i64)| stream.deadline.is_some_and(|d| now.since(*sent) > d);
            let late = stream.on_the_way.values().filter(late).count() as u64;
            StreamReport { late: stream.report.late + late, ..stream.report.clone() }
        };
        self.streams.0.values().map(report).collect()
    }
}
