//! The streams configured at a node, and their state.

use tsn::frer::{Config, Generator, LatentTest, LatentTester, Recovery};
use tsn::{Clock, frer, psfp};
use wire::Instant;

use super::super::frame::{Frame, HEADER};
use super::{Header, Identification};

/// A recovery function with its test for latent errors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recover {
    /// The function.
    pub recovery: Config,
    /// The test.
    pub latent: Option<LatentTest>,
}

/// In place of a reception port: the node itself sends the frame.
pub const OWN: usize = usize::MAX;

/// How a node handles a stream. The node applies the fields in this order.
#[derive(Clone, Debug)]
pub struct Handling {
    /// The number of the stream in the network.
    pub stream: usize,
    /// How the node identifies frames of the stream.
    pub identification: Identification,
    /// Reception ports or [`OWN`], each with the output ports for its frames. Frames from other
    /// ports do not belong to the stream. Empty: frames from all ports belong to the stream and are
    /// forwarded by address.
    pub routes: Vec<(usize, Vec<usize>)>,
    /// Filtering and policing.
    pub filter: Option<psfp::Config>,
    /// The recovery function that discards copies, if any.
    pub recover: Option<Recover>,
    /// Whether the node numbers frames without a number.
    pub numbers: bool,
    /// Whether the node removes the R-TAG.
    pub untags: bool,
}

/// Counters of a stream at a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that the node numbered.
    pub numbered: u64,
    /// Copies that the node made: for each frame, the number of output ports minus 1.
    pub copies: u64,
    /// Counters of the recovery function.
    pub recovery: Option<frer::Counters>,
    /// Number of tests that signalled a latent error.
    pub latent_errors: u64,
    /// Counters of the filter.
    pub filter: Option<psfp::Counters>,
}

/// The result for a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// The frame belongs to no stream.
    None,
    /// The frame belongs to a stream and is forwarded.
    Pass {
        /// Index of the stream in the table.
        at: usize,
        /// The internal priority, which selects the queue; `None`: the frame's own priority.
        ipv: Option<u8>,
    },
    /// The frame is discarded.
    Drop,
}

#[derive(Clone, Debug)]
struct State {
    handling: Handling,
    generator: Generator,
    recovery: Option<(Recovery, Option<LatentTester>)>,
    filter: Option<psfp::Filter>,
    counters: Counters,
}

/// The streams of a node. A frame belongs to the first stream that matches.
#[derive(Clone, Debug, Default)]
pub struct StreamTable {
    streams: Vec<State>,
    looks_inside: bool,
}

impl StreamTable {
    /// A table before the first frame.
    ///
    /// # Errors
    /// The invalid recovery function or filter.
    pub fn new(streams: &[Handling]) -> Result<Self, String> {
        let state = |handling: &Handling| {
            let recover = |config: Recover| {
                let recovery = Recovery::new(config.recovery).map_err(|error| error.to_string())?;
                let tester = config.latent.map(|test| LatentTester::new(test, Instant::ZERO));
                Ok::<_, String>((recovery, tester))
            };
            let filter = handling.filter.as_ref().map(psfp::Filter::new).transpose();
            Ok(State {
                generator: Generator::default(),
                recovery: handling.recover.map(recover).transpose()?,
                filter: filter.map_err(|error| error.to_string())?,
                counters: Counters::default(),
                handling: handling.clone(),
            })
        };
        let looks_inside = streams.iter().any(|handling| handling.identification.looks_inside());
        let streams = streams.iter().map(state).collect::<Result<_, String>>()?;
        Ok(Self { streams, looks_inside })
    }

    /// Handles a frame that the port `from` received at `now`. Adds or removes the sequence number
    /// of the frame as configured.
    pub fn take(&mut self, now: Instant, from: usize, frame: &mut Frame) -> Verdict {
        let Some(at) = self.find(from, frame) else { return Verdict::None };
        let state = &mut self.streams[at];
        let mut ipv = None;
        if let Some(filter) = &mut state.filter {
            match filter.take(now, measured(frame)) {
                psfp::Verdict::Pass { ipv: internal, .. } => ipv = internal,
                psfp::Verdict::Drop(_) => return Verdict::Drop,
            }
        }
        if let Some((recovery, tester)) = &mut state.recovery {
            recovery.advance(now);
            if let Some(tester) = tester {
                tester.advance(now, recovery.counters());
            }
            if !recovery.passes(now, frame.sequence) {
                return Verdict::Drop;
            }
        }
        state.number(frame);
        if state.handling.untags {
            frame.sequence = None;
        }
        Verdict::Pass { at, ipv }
    }

    /// Numbers a frame that the node itself sends. Returns the output ports of its stream; `None`
    /// if the stream has no paths.
    pub fn send(&mut self, frame: &mut Frame) -> Option<&[usize]> {
        let at = self.find(OWN, frame)?;
        self.streams[at].number(frame);
        let count = self.ports(at, OWN)?.len();
        self.copied(at, count);
        self.ports(at, OWN)
    }

    /// The output ports for frames of the stream `at` that the port `from` received. `None`: the
    /// frames are forwarded by address.
    pub fn ports(&self, at: usize, from: usize) -> Option<&[usize]> {
        let routes = &self.streams[at].handling.routes;
        let found = routes.iter().find(|(port, _)| *port == from);
        found.map(|(_, to)| to.as_slice())
    }

    /// Counts the copies of a frame of the stream `at` that was sent to `ports` ports.
    pub fn copied(&mut self, at: usize, ports: usize) {
        self.streams[at].counters.copies += ports.saturating_sub(1) as u64;
    }

    /// Forgets numbers and the state of policing, as in a power loss. Counters stay.
    pub fn restart(&mut self, now: Instant) {
        for state in &mut self.streams {
            state.generator.reset();
            if let Some((recovery, _)) = &mut state.recovery {
                recovery.advance(now);
                recovery.restart();
            }
            if let Some(filter) = &mut state.filter {
                filter.restart();
            }
        }
    }

    /// Replaces the node's clock, which stream gates use.
    pub fn set_clock(&mut self, clock: Clock) {
        let filters = self.streams.iter_mut().filter_map(|state| state.filter.as_mut());
        filters.for_each(|filter| filter.set_clock(clock));
    }

    /// For each stream, its number in the network and its counters until `now`.
    pub fn counters(&self, now: Instant) -> impl Iterator<Item = (usize, Counters)> {
        self.streams.iter().map(move |state| {
            let mut counters = state.counters;
            if let Some((recovery, tester)) = &state.recovery {
                let mut recovery = recovery.clone();
                recovery.advance(now);
                counters.recovery = Some(recovery.counters());
                counters.latent_errors = tester.as_ref().map_or(0, |tester| {
                    let mut tester = tester.clone();
                    tester.advance(now, recovery.counters());
                    tester.errors()
                });
            }
            counters.filter = state.filter.as_ref().map(psfp::Filter::counters);
            (state.handling.stream, counters)
        })
    }

    /// The first stream that matches a frame from the reception port `from`, or [`OWN`].
    fn find(&self, from: usize, frame: &Frame) -> Option<usize> {
        if self.streams.is_empty() {
            return None;
        }
        let header = match self.looks_inside {
            true => Header::from_frame(frame),
            false => Header {
                destination: frame.destination(),
                source: frame.source(),
                tag: frame.tag,
                ip: None,
            },
        };
        self.streams.iter().position(|State { handling, .. }| {
            let routes = &handling.routes;
            (routes.is_empty() || routes.iter().any(|route| route.0 == from))
                && handling.identification.matches(&header)
        })
    }
}

impl State {
    fn number(&mut self, frame: &mut Frame) {
        if self.handling.numbers && frame.sequence.is_none() {
            frame.sequence = Some(self.generator.number());
            self.counters.numbered += 1;
        }
    }
}

/// The properties of a frame that a filter uses.
fn measured(frame: &Frame) -> psfp::Frame {
    psfp::Frame {
        sdu: (frame.bytes.len() - HEADER) as u64,
        length: frame.length() as u64,
        drop_eligible: false,
    }
}
