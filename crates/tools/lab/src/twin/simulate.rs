//! Simulates a plan, and gives its frames the stamps that the lab measures.

use super::SEGMENTS;
use crate::experiment::{Experiment, Run, Timing};
use crate::window::Gates;
use latency::schedule::Schedule;
use latency::{Analysis, ClockError, Counts, Departure, Input, Sample, Sequence, Source, stamp};
use latency_linux::{Document, Faults};
use report::Failure;
use sim::World;
use sim::ethernet::traffic::StreamId;
use sim::ethernet::{Frame, LineEvent};
use sim::measure::{Observer, Point};
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;
use wire::Instant;

/// The beginning of the simulation in stamps, because a stamp of 0 is unknown.
const EPOCH: u64 = 1_000_000_000;

/// The most events of a simulation: more than `plan_text::Frames` need, unless the load is far
/// beyond the line.
const MOST_EVENTS: u64 = 20_000_000;

/// When each frame of a stream left the talker, and when its listener's application had it.
#[derive(Default)]
struct Seen {
    departed: BTreeMap<u64, Instant>,
    received: BTreeMap<u64, Instant>,
}

struct Watch(StreamId, Rc<RefCell<Seen>>);

impl Observer for Watch {
    fn line(&mut self, _: Instant, _: Point, event: &LineEvent) {
        let LineEvent::Transmit(sent) = event else { return };
        if StreamId::of_frame(sent.frame.id) == Some(self.0) {
            // The first line is the talker's.
            self.1.borrow_mut().departed.entry(sent.frame.id).or_insert(sent.start);
        }
    }

    fn arrival(&mut self, at: Instant, _: usize, frame: &Frame) {
        if StreamId::of_frame(frame.id) == Some(self.0) {
            self.1.borrow_mut().received.insert(frame.id, at);
        }
    }
}

/// Simulates `count` frames of a run by its plan.
///
/// # Errors
/// The plan or the simulation is not possible.
pub fn simulate(
    experiment: &Experiment,
    run: &Run,
    count: u64,
    text: &str,
) -> Result<(Analysis, Counts), Failure> {
    let planned = plan::Plan::parse("plan", text).and_then(|plan| plan.build());
    let mut planned = planned.map_err(|error| Failure(error.to_string()))?;
    planned.config.limits.events = MOST_EVENTS;
    let stream = planned.streams[0].1;
    let listener = planned.config.network.stations[1].rx_delay.as_ns();
    let seen = Rc::new(RefCell::new(Seen::default()));
    let mut world = World::new(&planned.config).map_err(|error| Failure(error.to_string()))?;
    world.observe(Box::new(Watch(stream, seen.clone())));
    world.run().map_err(|error| Failure(error.to_string()))?;
    let Seen { departed, received } = seen.take();
    let Timing { interval, offset, .. } = experiment.timing(run);
    let slot = experiment.gates.as_ref().map(Gates::slot);
    let schedule = Schedule { base: EPOCH, interval, offset, slot };
    let (mut samples, mut sequence) = (Vec::new(), Sequence::default());
    for (id, at) in received {
        let number = id - stream.first_frame();
        sequence.take(number);
        let (due, at) = (schedule.due(number), EPOCH + at.as_ns());
        let driver = departed.get(&id).and_then(|at| stamp(EPOCH + at.as_ns()));
        samples.push(Sample {
            sequence: number,
            scheduled: due,
            woken: due,
            sent: due,
            departure: Departure { driver, ..Departure::default() },
            arrived: stamp(at - listener),
            received: stamp(at),
            opens: schedule.window(due).opens,
            ..Sample::default()
        });
    }
    sequence.end(count);
    let clock = ClockError { source: Source::Shared, series: Vec::new(), parts: Vec::new() };
    let window = schedule.window(schedule.due(0));
    let input = Input { samples: &samples, interval, window, clock, band: None };
    let mut analysis = Analysis::from_input(&input);
    analysis.segments.retain(|segment| SEGMENTS.contains(&segment.segment.as_str()));
    Ok((analysis, sequence.counts()))
}

/// Returns the document of the simulated frames of a measured run.
pub fn document(measured: &Document, analysis: Analysis, counts: Counts) -> Document {
    Document {
        end: "listen".to_owned(),
        label: format!("{}, simulated", measured.label),
        address: "simulated".to_owned(),
        ended: "done".to_owned(),
        settings: Vec::new(),
        faults: Faults::default(),
        tags: Vec::new(),
        band: None,
        counts: Some(counts),
        analysis,
        ..measured.clone()
    }
}
