//! A simulation: distributions, and the frames of its longest command.

use plan::Planned;
use sim::World;
use sim::ethernet::LineEvent;
use sim::ethernet::traffic::StreamId;
use sim::measure::{Breakdown, CommandRecord, Latency, Observer, Point};
use std::cell::RefCell;
use std::rc::Rc;
use wire::{Duration, Instant};

/// The most frames that wait for the end of their command.
const MOST_FRAMES: usize = 20_000;

/// A frame or fragment on a wire.
#[derive(Clone, Copy, Debug)]
pub struct Sent {
    /// The wire.
    pub wire: usize,
    /// Start and end.
    pub span: (Instant, Instant),
    /// The stream; `None`: a tunnel, a flow or a protocol.
    pub stream: Option<StreamId>,
}

/// The longest command.
#[derive(Clone, Debug)]
pub struct LongestCommand {
    /// The command.
    pub record: CommandRecord,
    /// The frames on all wires meanwhile.
    pub frames: Vec<Sent>,
}

/// The results of a simulation.
pub struct Simulated {
    /// The latency of the transfers of each host.
    pub hosts: Vec<Latency>,
    /// The mean time of a command by stage, of each host.
    pub stages: Vec<(Breakdown, u64)>,
    /// The latency of each stream at each listener.
    pub streams: Vec<Vec<Latency>>,
    /// The longest command of all hosts.
    pub longest: Option<LongestCommand>,
}

#[derive(Default)]
struct Seen {
    frames: Vec<Sent>,
    longest: Option<LongestCommand>,
}

struct Watcher(Rc<RefCell<Seen>>);

impl Observer for Watcher {
    fn line(&mut self, at: Instant, point: Point, event: &LineEvent) {
        let Point::Wire(wire) = point else { return };
        let mut seen = self.0.borrow_mut();
        let wire = usize::from(wire);
        match event {
            LineEvent::Transmit(sent) => {
                if seen.frames.len() == MOST_FRAMES {
                    seen.frames.drain(..MOST_FRAMES / 2);
                }
                let stream = StreamId::of_frame(sent.frame.id);
                seen.frames.push(Sent { wire, span: (sent.start, sent.end), stream });
            }
            LineEvent::Suspend(suspend) => {
                let last = seen.frames.iter_mut().rev().find(|sent| sent.wire == wire);
                if let Some(sent) = last {
                    sent.span.1 = suspend.end;
                }
            }
            LineEvent::Resume(resume) => {
                let stream = None;
                seen.frames.push(Sent { wire, span: (at, resume.end), stream });
            }
        }
    }

    fn command(&mut self, record: &CommandRecord) {
        let mut seen = self.0.borrow_mut();
        let span = |record: &CommandRecord| record.until.since(record.since);
        if seen.longest.as_ref().is_some_and(|known| span(&known.record) >= span(record)) {
            return;
        }
        let (from, until) = (record.since, record.until);
        let within = |sent: &&Sent| sent.span.1 > from && sent.span.0 < until;
        let frames = seen.frames.iter().filter(within).copied().collect();
        seen.longest = Some(LongestCommand { record: *record, frames });
    }
}

/// Simulates a plan once.
///
/// # Errors
/// The error of the simulation.
pub fn simulate(planned: &Planned) -> Result<Simulated, String> {
    let seen = Rc::new(RefCell::new(Seen::default()));
    let mut world = World::new(&planned.config).map_err(|error| error.to_string())?;
    world.observe(Box::new(Watcher(seen.clone())));
    let report = world.run().map_err(|error| error.to_string())?;
    let stream = |(_, id): &(String, StreamId)| {
        let stream = report.stream(*id).map_or(&[][..], |stream| &stream.listeners);
        stream.iter().map(|listener| listener.latency.clone()).collect()
    };
    let longest = seen.borrow_mut().longest.take();
    Ok(Simulated {
        hosts: report.hosts.iter().map(|host| host.latency.clone()).collect(),
        stages: report.hosts.iter().map(|host| (host.breakdown, host.commands)).collect(),
        streams: planned.streams.iter().map(stream).collect(),
        longest,
    })
}

impl LongestCommand {
    /// The latency.
    pub fn latency(&self) -> Duration {
        self.record.until.since(self.record.since)
    }
}
