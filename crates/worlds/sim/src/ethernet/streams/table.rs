//! The streams that a node knows, and their state there.

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

/// What a node does with a stream, in this order.
#[derive(Clone, Debug)]
pub struct Handling {
    /// The number of the stream in the network.
    pub stream: usize,
    /// Its frames.
    pub identification: Identification,
    /// Reception ports, each with those to which its frames go. Frames from other ports are not of
    /// the stream. Empty: frames from all ports, which go where their address leads.
    pub routes: Vec<(usize, Vec<usize>)>,
    /// Filters and polices them.
    pub filter: Option<psfp::Config>,
    /// Discards copies.
    pub recover: Option<Recover>,
    /// Numbers frames that have none.
    pub numbers: bool,
    /// Removes the R-TAG.
    pub untags: bool,
}

/// What a node counted of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Frames that it numbered.
    pub numbered: u64,
    /// Copies that it made: frames sent to more than one port, one less than ports each.
    pub copies: u64,
    /// Of its recovery function.
    pub recovery: Option<frer::Counters>,
    /// Tests for latent errors that signalled one.
    pub latent_errors: u64,
    /// Of its filter.
    pub filter: Option<psfp::Counters>,
}

/// What becomes of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is of no stream.
    None,
    /// It is of the stream with this number in the table, and goes on.
    Pass {
        /// In the table.
        at: usize,
        /// The priority whose queue it goes into, if that is not its own.
        ipv: Option<u8>,
    },
    /// It is discarded.
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

/// The streams of a node. A frame is of the first one that it matches.
#[derive(Clone, Debug, Default)]
pub struct StreamTable {
    streams: Vec<State>,
    looks_inside: bool,
}

impl StreamTable {
    /// A table without any frame seen.
    ///
    /// # Errors
    /// What a recovery function or filter cannot be.
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

    /// What becomes of a frame that the port `from` received at `now`. It gets or loses its number.
    pub fn take(&mut self, now: Instant, from: usize, frame: &mut Frame) -> Verdict {
        let Some(at) = self.find(Some(from), frame) else { return Verdict::None };
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

    /// Numbers a frame that the node itself sends.
    pub fn send(&mut self, frame: &mut Frame) {
        if let Some(at) = self.find(None, frame) {
            self.streams[at].number(frame);
        }
    }

    /// The ports to which a stream's frames from `from` go; none: where their address leads.
    pub fn ports(&self, at: usize, from: usize) -> Option<&[usize]> {
        let routes = &self.streams[at].handling.routes;
        let found = routes.iter().find(|(port, _)| *port == from);
        found.map(|(_, to)| to.as_slice())
    }

    /// A frame of a stream was sent to so many ports.
    pub fn copied(&mut self, at: usize, ports: usize) {
        self.streams[at].counters.copies += ports.saturating_sub(1) as u64;
    }

    /// Forgets numbers and what was policed, as after a loss of power. Counters stay.
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

    /// The node's clock, by which its stream gates go, runs as `clock` from now on.
    pub fn set_clock(&mut self, clock: Clock) {
        let filters = self.streams.iter_mut().filter_map(|state| state.filter.as_mut());
        filters.for_each(|filter| filter.set_clock(clock));
    }

    /// By stream: its number in the network, and what was counted until `now`.
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

    /// The first stream of a frame; `from` is the port that received it, if it came from one.
    fn find(&self, from: Option<usize>, frame: &Frame) -> Option<usize> {
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
            let here = |port| {
                handling.routes.is_empty() || handling.routes.iter().any(|route| route.0 == port)
            };
            from.is_none_or(here) && handling.identification.matches(&header)
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

/// A frame as a filter measures it: payload behind the EtherType, and header to FCS.
fn measured(frame: &Frame) -> psfp::Frame {
    psfp::Frame {
        sdu: (frame.bytes.len() - HEADER) as u64,
        length: frame.length() as u64,
        drop_eligible: false,
    }
}
