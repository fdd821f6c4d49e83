//! Runs worlds of streams, and records the arrivals of their frames.

use crate::{Lab, Simulation};
use report::Failure;
use sim::ethernet::Frame;
use sim::ethernet::traffic::StreamId;
use sim::measure::Observer;
use sim::network::Tree;
use sim::world::Report;
use sim::{Config, World};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::{Duration, Instant};

/// A frame from application to application.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time at which the frame was created.
    pub created: Instant,
    /// Time at which the last bit had arrived.
    pub at: Instant,
}

/// The results of the streams of a world.
#[derive(Debug)]
pub struct Observed {
    /// The simulator's report.
    pub report: Report,
    /// Arrivals by stream, in the order of arrival.
    pub arrivals: BTreeMap<StreamId, Vec<Arrival>>,
}

/// Statistics of the latencies of a stream in microseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latencies {
    /// The shortest.
    pub min: f64,
    /// The longest.
    pub max: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Standard deviation.
    pub deviation: f64,
}

type Arrivals = Rc<RefCell<BTreeMap<StreamId, Vec<Arrival>>>>;

struct Watch(Arrivals);

impl Observer for Watch {
    fn arrival(&mut self, at: Instant, _: usize, frame: &Frame) {
        let Some(stream) = StreamId::of_frame(frame.id) else { return };
        let created = frame.latency.created();
        self.0.borrow_mut().entry(stream).or_default().push(Arrival { created, at });
    }
}

/// Runs the simulations of a case.
#[derive(Clone, Copy)]
pub struct CaseLab<'a> {
    lab: Lab<'a>,
    case: &'a str,
    rows: &'a [&'a str],
}

impl<'a> CaseLab<'a> {
    /// Creates a laboratory of a case. No figures follow from its simulations.
    pub fn new(lab: Lab<'a>, case: &'a str) -> Self {
        Self { lab, case, rows: &[] }
    }

    /// Returns the same laboratory, for simulations from which these figures follow.
    #[must_use]
    pub fn rows(self, rows: &'a [&'a str]) -> Self {
        Self { rows, ..self }
    }

    /// Runs the streams of a network for `runtime`.
    ///
    /// # Errors
    /// If the configuration is invalid, with the name of the case.
    pub fn run(self, tree: &mut Tree, runtime: Duration) -> Result<Observed, Failure> {
        let network = tree.network().clone();
        let config = Config { network, runtime: Some(runtime), ..Config::default() };
        let rows: Vec<String> =
            self.rows.iter().map(|row| format!("{}.{row}", self.case)).collect();
        let name = rows.first().map_or(self.case, String::as_str).to_owned();
        let config = (self.lab)(Simulation { name, rows, config })?;
        let failure = |error| Failure(format!("simulation of {}: {error}", self.case));
        let mut world = World::new(&config).map_err(failure)?;
        let arrivals = Arrivals::default();
        world.observe(Box::new(Watch(arrivals.clone())));
        let report = world.run().map_err(failure)?;
        let arrivals = arrivals.take();
        Ok(Observed { report, arrivals })
    }
}

impl Observed {
    /// Returns the arrived frames of a stream.
    pub fn arrivals(&self, stream: StreamId) -> &[Arrival] {
        self.arrivals.get(&stream).map_or(&[], Vec::as_slice)
    }

    /// Returns the arrival of the frame `number` of a stream.
    ///
    /// # Errors
    /// If fewer frames arrived.
    pub fn arrival(&self, stream: StreamId, number: usize) -> Result<Arrival, Failure> {
        let arrival = self.arrivals(stream).get(number).copied();
        let StreamId { station, number: own } = stream;
        let error = || Failure(format!("frame {number} of stream {station}-{own} did not arrive"));
        arrival.ok_or_else(error)
    }

    /// Returns the latencies of these streams; NaN if no frame arrived.
    pub fn latencies(&self, streams: &[StreamId]) -> Latencies {
        let all = streams.iter().flat_map(|stream| self.arrivals(*stream));
        let all: Vec<f64> = all.map(|arrival| us(arrival.at.since(arrival.created))).collect();
        let n = all.len() as f64;
        let mean = all.iter().sum::<f64>() / n;
        let variance = all.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / n;
        let min = all.iter().copied().fold(f64::INFINITY, f64::min);
        let max = all.iter().copied().fold(0.0, f64::max);
        Latencies { min, max, mean, deviation: variance.sqrt() }
    }

    /// Returns the number of lost frames of a stream.
    pub fn lost(&self, stream: StreamId) -> u64 {
        self.report.stream(stream).map_or(0, |counts| counts.lost())
    }
}

/// Converts a time to microseconds, exact to the picosecond.
pub(super) fn us(time: Duration) -> f64 {
    time.as_ps() as f64 / 1e6
}
