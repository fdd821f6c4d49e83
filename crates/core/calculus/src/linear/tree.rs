//! The programme of one tree of servers.
//!
//! Times are counted backwards from the date at which the bit of interest leaves the last server,
//! bits of a stream backwards from those that have arrived at the latest date of its first server.
//! So all variables are at least 0, and all at 0 is a trajectory.

use super::Dates;
use super::program::{Program, Sum};
use crate::curve::{Bound, Rational, TokenBucket, to_f64};
use crate::method::MethodError;
use crate::network::{Multiplexing, Network, Origin, Stream};
use crate::{separated, total};
use num_traits::{One, Zero};
use std::collections::BTreeMap;

/// Entries of a programme, variables times constraints, beyond which it is refused.
const LARGEST: usize = 4_000_000;

/// A tree, its programme without streams' own arrivals, and where its variables are.
pub(super) struct Tree {
    network: Network,
    dates: Dates,
    /// The position in the forest of each stream.
    parts: Vec<usize>,
    /// Servers before their successors; the last is the root.
    order: Vec<usize>,
    successor: Vec<Option<usize>>,
    /// By server and date, the latest first: which earlier dates are certainly not later.
    ordered: Vec<Vec<Vec<usize>>>,
    /// The variable of the first date of each server.
    first_date: Vec<usize>,
    /// The variable of the second date of each stream's arrivals.
    first_bits: Vec<usize>,
    variables: usize,
}

impl Tree {
    /// The tree of `servers`, the root first, in a forest.
    pub(super) fn new(
        forest: &Network,
        servers: &[usize],
        dates: Dates,
    ) -> Result<Self, MethodError> {
        let local = |server: usize| servers.iter().position(|&it| it == server);
        let (mut streams, mut parts) = (Vec::new(), Vec::new());
        for (part, stream) in forest.streams.iter().enumerate() {
            let inside: Vec<_> = stream.servers.iter().map_while(|&it| local(it)).collect();
            if !inside.is_empty() {
                streams.push(Stream { servers: inside, ..stream.clone() });
                parts.push(part);
            }
        }
        let models = servers.iter().map(|&server| forest.servers[server].clone()).collect();
        let network = Network::of_streams(models, streams, Multiplexing::Fifo, forest.lines);
        let mut successor = vec![None; servers.len()];
        for pair in network.streams.iter().flat_map(|stream| stream.servers.windows(2)) {
            successor[pair[0]] = Some(pair[1]);
        }
        let order: Vec<_> = network.order.clone().unwrap_or_default();
        let mut tree = Self {
            ordered: vec![Vec::new(); servers.len()],
            first_date: vec![0; servers.len()],
            first_bits: Vec::new(),
            variables: 0,
            network,
            dates,
            parts,
            order,
            successor,
        };
        tree.place_dates(&forest.servers[servers[0]].name)?;
        Ok(tree)
    }

    /// Numbers the dates and bits, from the root upstream.
    fn place_dates(&mut self, root: &str) -> Result<(), MethodError> {
        for &server in self.order.clone().iter().rev() {
            let after =
                self.successor[server].map_or(vec![Vec::new()], |it| self.ordered[it].clone());
            self.first_date[server] = self.variables;
            self.ordered[server] = match self.dates {
                Dates::Polynomial => {
                    (0..=after.len()).map(|at| (at + 1..=after.len()).collect()).collect()
                }
                Dates::Exponential => doubled(&after),
            };
            self.variables += self.ordered[server].len();
            self.check_size(root, self.variables)?;
        }
        for stream in &self.network.streams {
            self.first_bits.push(self.variables);
            self.variables += self.ordered[stream.servers[0]].len() - 1;
        }
        let streams = self.network.streams.iter();
        let pairs = streams.map(|stream| {
            let dates = &self.ordered[stream.servers[0]];
            let pairs = dates.iter().map(Vec::len).sum::<usize>();
            pairs * (1 + stream.arrival.buckets().len())
        });
        self.check_size(root, pairs.sum())
    }

    fn check_size(&self, root: &str, rows: usize) -> Result<(), MethodError> {
        if self.variables.saturating_mul(rows) <= LARGEST {
            return Ok(());
        }
        let method = if self.dates == Dates::Polynomial { "plp" } else { "elp" };
        Err(MethodError::TooLarge {
            method,
            server: root.to_owned(),
            variables: self.variables,
            rows,
        })
    }

    /// The variable of a date of a server, or of the end of the programme.
    fn date(&self, server: Option<usize>, date: usize) -> Option<usize> {
        server.map(|server| self.first_date[server] + date)
    }

    /// The variable of a stream's bits at a date of the server `hops` behind its first.
    fn bits(&self, stream: usize, hops: usize, date: usize) -> Option<usize> {
        let first = match self.dates {
            Dates::Polynomial => date,
            Dates::Exponential => date << hops,
        };
        first.checked_sub(1).map(|at| self.first_bits[stream] + at)
    }

    /// The date at a server of bits that leave it at a date of its successor.
    fn arrival_date(&self, date: usize) -> usize {
        match self.dates {
            Dates::Polynomial => date,
            Dates::Exponential => 2 * date,
        }
    }

    /// Pairs of a date of the successor and the date at which the server's service for it starts.
    fn service_dates(&self, server: usize) -> Vec<(usize, usize)> {
        let count = self.ordered[server].len();
        match self.dates {
            Dates::Polynomial => vec![(count - 2, count - 1)],
            Dates::Exponential => (0..count / 2).map(|date| (date, 2 * date + 1)).collect(),
        }
    }

    /// Bounds of the delay of a part of a stream, from its first server to the root.
    pub(super) fn delay(&self, part: usize) -> Result<Bound, MethodError> {
        let Some(stream) = self.parts.iter().position(|&it| it == part) else { return Ok(None) };
        let program = self.program(None)?;
        Ok(program.maximum(self.first_date[self.network.streams[stream].servers[0]]))
    }

    /// Bounds of the delay in the root.
    pub(super) fn delay_of_last(&self) -> Result<Bound, MethodError> {
        let root = self.order[self.order.len() - 1];
        Ok(self.program(None)?.maximum(self.first_date[root]))
    }

    /// Bounds of the bits of a part that are in the tree, if `bucket` bounds its arrivals: the burst
    /// with which it leaves.
    pub(super) fn backlog(&self, part: usize, bucket: &TokenBucket) -> Result<Bound, MethodError> {
        let Some(stream) = self.parts.iter().position(|&it| it == part) else { return Ok(None) };
        let mut program = self.program(Some((stream, bucket)))?;
        let backlog = program.variable(self.units().1);
        let first = self.network.streams[stream].servers[0];
        for date in 0..self.ordered[first].len() {
            // Bits that arrive between this date and the end.
            let mut sum = Sum::difference(Some(backlog), None);
            sum.add(&Rational::one(), self.bits(stream, 0, date));
            sum.add(&-&bucket.rate, self.date(Some(first), date));
            program.at_most(sum, bucket.burst.clone());
        }
        Ok(program.maximum(backlog))
    }

    /// All constraints. For `only`, one token bucket replaces a stream's arrival curve.
    fn program(&self, only: Option<(usize, &TokenBucket)>) -> Result<Program, MethodError> {
        let (time, bits) = self.units();
        let dates = self.ordered.iter().map(Vec::len).sum();
        let mut scales = vec![time; dates];
        scales.resize(self.variables, bits);
        let mut program = Program { scales, rows: Vec::new() };
        self.add_times(&mut program);
        for stream in 0..self.network.streams.len() {
            self.add_arrivals(&mut program, stream, only);
        }
        for server in 0..self.network.servers.len() {
            self.add_service(&mut program, server);
            self.add_shapes(&mut program, server);
        }
        if self.dates == Dates::Polynomial {
            self.add_known_delays(&mut program)?;
        }
        Ok(program)
    }

    /// Usual times and amounts of data: the largest burst, and how long it takes at least.
    fn units(&self) -> (f64, f64) {
        let bursts = self.network.streams.iter().map(|stream| to_f64(stream.arrival.burst()));
        let bits = bursts.fold(0.0, f64::max).max(1.0);
        let functions = self.network.servers.iter().flat_map(|server| server.service.functions());
        let times = functions.map(|it| to_f64(&it.latency) + bits / to_f64(&it.rate));
        (times.fold(0.0, f64::max), bits)
    }

    fn add_times(&self, program: &mut Program) {
        let zero = Rational::zero;
        for server in 0..self.network.servers.len() {
            let dates = &self.ordered[server];
            for (late, early) in pairs(dates) {
                let late = self.date(Some(server), late);
                program.at_most(Sum::difference(late, self.date(Some(server), early)), zero());
            }
            let after = self.successor[server];
            for date in 0..after.map_or(1, |after| self.ordered[after].len()) {
                let here = self.date(Some(server), self.arrival_date(date));
                program.at_most(Sum::difference(self.date(after, date), here), zero());
            }
        }
    }

    /// Arrivals of a stream at its first server are growing and within its curve.
    fn add_arrivals(
        &self,
        program: &mut Program,
        stream: usize,
        only: Option<(usize, &TokenBucket)>,
    ) {
        let model = &self.network.streams[stream];
        let first = Some(model.servers[0]);
        let buckets = match only {
            Some((alone, bucket)) if alone == stream => std::slice::from_ref(bucket),
            _ => model.arrival.buckets(),
        };
        for (late, early) in pairs(&self.ordered[model.servers[0]]) {
            let (now, before) = (self.bits(stream, 0, late), self.bits(stream, 0, early));
            program.at_most(Sum::difference(now, before), Rational::zero());
            for bucket in buckets {
                let mut sum = Sum::difference(before, now);
                self.add_time(&mut sum, &bucket.rate, first, (late, early));
                program.at_most(sum, bucket.burst.clone());
            }
        }
    }

    /// Subtracts `rate` times the time between two dates of a server.
    fn add_time(
        &self,
        sum: &mut Sum,
        rate: &Rational,
        server: Option<usize>,
        dates: (usize, usize),
    ) {
        sum.add(rate, self.date(server, dates.0));
        sum.add(&-rate, self.date(server, dates.1));
    }

    fn add_service(&self, program: &mut Program, server: usize) {
        for (end, start) in self.service_dates(server) {
            for function in self.network.servers[server].service.functions() {
                let mut sum = Sum::default();
                sum.add(&function.rate, self.date(Some(server), start));
                sum.add(&-&function.rate, self.date(self.successor[server], end));
                for (stream, hop) in self.network.members(server) {
                    sum.add(&-Rational::one(), self.bits(stream, hop, start));
                    sum.add(&Rational::one(), self.bits(stream, hop + 1, end));
                }
                program.at_most(sum, &function.rate * &function.latency);
            }
        }
    }

    /// What lines into a server carry.
    fn add_shapes(&self, program: &mut Program, server: usize) {
        let mut lines: BTreeMap<Origin, Vec<(usize, usize)>> = BTreeMap::new();
        for (stream, hop) in self.network.members(server) {
            lines.entry(self.network.origin(stream, hop)).or_default().push((stream, hop));
        }
        for (origin, mut members) in lines {
            // ELP counts the streams that leave the network there too.
            if let (Origin::Server(from), Dates::Exponential) = (origin, self.dates) {
                members = self.network.members(from).map(|(it, hop)| (it, hop + 1)).collect();
            }
            let streams: Vec<_> = members.iter().map(|&(stream, _)| stream).collect();
            let shape = match origin {
                Origin::Source => None,
                Origin::Outside(_) => {
                    self.network.streams[streams[0]].inlet.clone().and_then(|it| it.1)
                }
                Origin::Server(from) => self.network.line_shape(from, &streams),
            };
            let Some(shape) = shape else { continue };
            for (late, early) in pairs(&self.ordered[server]) {
                let mut sum = Sum::default();
                for &(stream, hop) in &members {
                    sum.add(&Rational::one(), self.bits(stream, hop, early));
                    sum.add(&-Rational::one(), self.bits(stream, hop, late));
                }
                self.add_time(&mut sum, &shape.rate, Some(server), (late, early));
                program.at_most(sum, shape.burst.clone());
            }
        }
    }

    /// Delays by TFA and SFA of this tree.
    fn add_known_delays(&self, program: &mut Program) -> Result<(), MethodError> {
        for (server, delay) in total::delays(&self.network)?.into_iter().enumerate() {
            self.add_delay(program, server, server, delay);
        }
        let bounds = separated::sfa(&self.network, crate::method::Outputs::Flow);
        for (stream, path) in self.network.streams.iter().zip(bounds.paths) {
            let (first, last) = (stream.servers[0], stream.servers[stream.servers.len() - 1]);
            self.add_delay(program, first, last, path.delay);
        }
        Ok(())
    }

    fn add_delay(&self, program: &mut Program, first: usize, last: usize, delay: Bound) {
        let Some(delay) = delay else { return };
        let after = self.successor[last];
        for date in 0..after.map_or(1, |after| self.ordered[after].len()) {
            let start = self.date(Some(first), date);
            program.at_most(Sum::difference(start, self.date(after, date)), delay.clone());
        }
    }
}

/// A later date and an earlier one, for each pair in a known order.
fn pairs(ordered: &[Vec<usize>]) -> impl Iterator<Item = (usize, usize)> {
    let dates = ordered.iter().enumerate();
    dates.flat_map(|(late, earlier)| earlier.iter().map(move |&early| (late, early)))
}

/// Dates of ELP: for each date of the successor, when its bits arrived, and when the service for it
/// started.
fn doubled(after: &[Vec<usize>]) -> Vec<Vec<usize>> {
    let mut ordered = vec![Vec::new(); 2 * after.len()];
    for (date, earlier) in after.iter().enumerate() {
        ordered[2 * date].push(2 * date + 1);
        for &other in earlier {
            ordered[2 * date].extend([2 * other, 2 * other + 1]);
            ordered[2 * date + 1].push(2 * other + 1);
        }
    }
    ordered
}
