//! When ports are busy, and the earliest place of a stream between the others.
//!
//! Two frames with the periods p and q meet at all distances that are equal modulo gcd(p, q), so
//! that their offsets modulo this number decide whether they ever overlap (J. Korst et al.,
//! "Scheduling periodic tasks", INFORMS Journal on Computing 8, 1996). No hyperperiod is unrolled.

use super::problem::{Hop, Problem, Stream};

/// A placed stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placed {
    /// When the application sends the first burst.
    pub release: u64,
    /// The start at each hop, by the hops of the stream; not reduced by the period.
    pub starts: Vec<u64>,
    /// The priority of the stream.
    pub priority: u8,
}

/// A placed stream at a port.
#[derive(Clone, Copy, Debug)]
struct Slot {
    stream: usize,
    /// The period, by its number.
    period: usize,
    /// Begin and length of the time on the line, with margins.
    line: [u64; 2],
    /// Begin and length of the time in the queue.
    queue: [u64; 2],
    class: u8,
    waits: bool,
}

/// The placed streams at all ports.
#[derive(Clone, Debug)]
pub struct Board<'a> {
    /// The problem.
    pub problem: &'a Problem,
    /// By stream.
    pub placed: Vec<Option<Placed>>,
    ports: Vec<Vec<Slot>>,
    periods: Vec<u64>,
    /// The greatest common divisors of periods, by their numbers.
    common: Vec<Vec<u64>>,
}

/// The greatest common divisor.
pub fn gcd(mut a: u64, mut b: u64) -> u64 {
    while b != 0 {
        (a, b) = (b, a % b);
    }
    a
}

/// The longest time to a start: what waits for a gate on its way waits for another clock.
pub fn longest(planned: u64, earliest: u64, margin: u64) -> u64 {
    if planned > earliest { planned + margin } else { planned }
}

/// By how much the first interval, begin and length, must be later to be clear of the second, if
/// both repeat and meet at all distances modulo `common`. `None`: they always overlap.
fn clear(own: [u64; 2], other: [u64; 2], common: u64) -> Option<u64> {
    if own[1] + other[1] > common {
        return None;
    }
    let behind = (own[0] % common + common - other[0] % common) % common;
    match (behind < other[1], common - behind < own[1]) {
        (true, _) => Some(other[1] - behind),
        (_, true) => Some(common - behind + other[1]),
        _ => Some(0),
    }
}

/// A stream that cannot be placed: the number of the port that delays it most.
pub type Blocked = usize;

/// Finds a place for a stream with a priority and least waits at its hops, released in a span. Adds
/// to the delays of its hops.
type Attempt<'a> = fn(&Board<'a>, &Stream, (u8, &[u64]), [u64; 2], &mut [u64]) -> Option<Placed>;

impl<'a> Board<'a> {
    /// A board without streams.
    pub fn new(problem: &'a Problem) -> Self {
        let mut periods: Vec<u64> = problem.streams.iter().map(|stream| stream.period).collect();
        periods.sort_unstable();
        periods.dedup();
        let row = |one: &u64| periods.iter().map(|other| gcd(*one, *other)).collect();
        let common = periods.iter().map(row).collect();
        let ports = vec![Vec::new(); problem.ports.len()];
        Self { problem, placed: vec![None; problem.streams.len()], ports, periods, common }
    }

    fn period(&self, stream: &Stream) -> usize {
        self.periods.binary_search(&stream.period).unwrap_or_default()
    }

    /// The streams at a port.
    pub fn at(&self, port: usize) -> impl Iterator<Item = usize> {
        self.ports[port].iter().map(|slot| slot.stream)
    }

    /// The number of placed streams.
    pub fn count(&self) -> usize {
        self.placed.iter().flatten().count()
    }

    fn line(&self, hop: &Hop, start: u64, period: u64) -> [u64; 2] {
        let margin = self.problem.margin;
        // A later period is the same, and is never before zero.
        [start + period - margin, hop.busy + 2 * margin]
    }

    /// Begin and length of a stream's time in the queue: from the earliest begin of a window to the
    /// end of the window.
    pub fn queue(&self, hop: &Hop, arrival: u64, start: u64, period: u64) -> [u64; 2] {
        let Problem { margin, grain, .. } = *self.problem;
        let begin = (arrival + period - margin - hop.gap) / grain * grain;
        let end = (start + period + hop.busy - hop.gap + margin).next_multiple_of(grain);
        [begin, end - begin]
    }

    /// Adds a stream.
    pub fn add(&mut self, number: usize, placed: Placed) {
        let stream = &self.problem.streams[number];
        let class = usize::from(placed.priority);
        for (hop, start) in stream.hops.iter().zip(&placed.starts) {
            let arrival = hop.before.map_or(placed.release, |at| placed.starts[at]) + hop.after;
            let slot = Slot {
                stream: number,
                period: self.period(stream),
                line: self.line(hop, *start, stream.period),
                queue: self.queue(hop, arrival, *start, stream.period),
                class: self.problem.ports[hop.port].classes[class],
                waits: *start > arrival,
            };
            self.ports[hop.port].push(slot);
        }
        self.placed[number] = Some(placed);
    }

    /// Removes a stream.
    pub fn remove(&mut self, number: usize) -> Option<Placed> {
        for hop in &self.problem.streams[number].hops {
            self.ports[hop.port].retain(|slot| slot.stream != number);
        }
        self.placed[number].take()
    }

    /// Places a stream as early as possible from a release on, then from zero on; without waiting
    /// if possible.
    ///
    /// # Errors
    /// The port that blocks it.
    pub fn place(&mut self, number: usize, from: u64) -> Result<(), Blocked> {
        let stream = &self.problem.streams[number];
        let waits = vec![0; stream.hops.len()];
        self.place_in(number, from, &[(Self::direct, &waits), (Self::waiting, &waits)])
    }

    /// Places a stream that waits at least for these times at its hops.
    ///
    /// # Errors
    /// The port that blocks it.
    pub fn place_waiting(
        &mut self,
        number: usize,
        from: u64,
        waits: &[u64],
    ) -> Result<(), Blocked> {
        self.place_in(number, from, &[(Self::waiting, waits)])
    }

    fn place_in(
        &mut self,
        number: usize,
        from: u64,
        attempts: &[(Attempt<'a>, &[u64])],
    ) -> Result<(), Blocked> {
        let stream = &self.problem.streams[number];
        let last = match self.problem.within_period {
            true => {
                let starts = stream.earliest();
                let ends = starts.iter().zip(&stream.hops).map(|(start, hop)| start + hop.busy);
                let Some(last) = stream.period.checked_sub(ends.max().unwrap_or(0)) else {
                    return Err(stream.hops[0].port);
                };
                last
            }
            false => stream.period - 1,
        };
        let from = from.min(last);
        // Without the limit of a period, releases beyond it are releases in the next one.
        let spans = match self.problem.within_period {
            true if from > 0 => vec![[from, last], [0, from - 1]],
            true => vec![[0, last]],
            false => vec![[from, from + last]],
        };
        let mut delays = vec![0; stream.hops.len()];
        for (attempt, waits) in attempts {
            for priority in &stream.priorities {
                for span in &spans {
                    let placed = attempt(self, stream, (*priority, waits), *span, &mut delays);
                    if let Some(placed) = placed {
                        self.add(number, placed);
                        return Ok(());
                    }
                }
            }
        }
        let most = (0..delays.len()).max_by_key(|at| delays[*at]).unwrap_or(0);
        Err(stream.hops[most].port)
    }

    /// The earliest release in a span with which a stream waits nowhere.
    fn direct(
        &self,
        stream: &Stream,
        (priority, _): (u8, &[u64]),
        [mut release, last]: [u64; 2],
        delays: &mut [u64],
    ) -> Option<Placed> {
        let earliest = stream.earliest();
        let period = self.period(stream);
        'again: while release <= last {
            for (at, hop) in stream.hops.iter().enumerate() {
                let start = release + earliest[at];
                let line = self.line(hop, start, stream.period);
                let queue = self.queue(hop, start, start, stream.period);
                let class = self.problem.ports[hop.port].classes[usize::from(priority)];
                for slot in &self.ports[hop.port] {
                    let common = self.common[period][slot.period];
                    let wait = match clear(line, slot.line, common) {
                        Some(0) if slot.waits && slot.class == class => {
                            clear(queue, slot.queue, common)
                        }
                        wait => wait,
                    };
                    let Some(wait) = wait else {
                        delays[at] += stream.period;
                        return None;
                    };
                    if wait > 0 {
                        delays[at] += wait;
                        release += wait;
                        continue 'again;
                    }
                }
            }
            let starts = earliest.iter().map(|start| release + start).collect();
            return Some(self.reduced(stream, Placed { release, starts, priority }));
        }
        None
    }

    /// A placement with its release in the first period.
    fn reduced(&self, stream: &Stream, mut placed: Placed) -> Placed {
        let whole = placed.release / stream.period * stream.period;
        placed.release -= whole;
        placed.starts.iter_mut().for_each(|start| *start -= whole);
        placed
    }

    /// The earliest start at a hop: at the arrival, or from `floor` on at a whole grain after it.
    fn start(&self, stream: &Stream, hop: &Hop, arrival: u64, floor: u64) -> Option<u64> {
        let Problem { margin, grain, .. } = *self.problem;
        let rounded = |start: u64| match start > arrival {
            true => start.max(arrival + margin).next_multiple_of(grain),
            false => start,
        };
        let period = self.period(stream);
        let mut start = rounded(arrival.max(floor));
        let limit = start + stream.period;
        'again: while start <= limit {
            for slot in &self.ports[hop.port] {
                let line = self.line(hop, start, stream.period);
                let wait = clear(line, slot.line, self.common[period][slot.period])?;
                if wait > 0 {
                    start = rounded(start + wait);
                    continue 'again;
                }
            }
            return Some(start);
        }
        None
    }

    /// By how much a stream that waits at a hop, or passes one that waits there, must arrive later
    /// so that it is alone in its queue.
    fn isolate(&self, stream: &Stream, hop: &Hop, class: u8, times: [u64; 2]) -> Option<u64> {
        let [arrival, start] = times;
        let queue = self.queue(hop, arrival, start, stream.period);
        let period = self.period(stream);
        let slots = self.ports[hop.port].iter().filter(|slot| slot.class == class);
        let mut slots = slots.filter(|slot| slot.waits || start > arrival);
        let waits = slots.find_map(|slot| {
            let wait = clear(queue, slot.queue, self.common[period][slot.period]);
            (wait != Some(0)).then_some(wait)
        });
        match queue[1] > stream.period {
            true => None,
            false => waits.unwrap_or(Some(0)),
        }
    }

    /// The earliest release in a span with which a stream may wait in ports.
    fn waiting(
        &self,
        stream: &Stream,
        (priority, waits): (u8, &[u64]),
        [mut release, last]: [u64; 2],
        delays: &mut [u64],
    ) -> Option<Placed> {
        let hops = &stream.hops;
        let (earliest, mut starts) = (stream.earliest(), vec![0; hops.len()]);
        let mut floors = vec![0; hops.len()];
        let (mut at, mut steps) = (0, 0);
        while at < hops.len() {
            let hop = &hops[at];
            steps += 1;
            if release > last || steps > 64 * (hops.len() + self.ports[hop.port].len()) {
                return None;
            }
            let arrival = hop.before.map_or(release, |before| starts[before]) + hop.after;
            let floor = floors[at].max(arrival + waits[at]);
            let Some(start) = self.start(stream, hop, arrival, floor) else {
                delays[at] += stream.period;
                return None;
            };
            if self.problem.within_period && start + hop.busy > stream.period {
                delays[at] += stream.period;
                return None;
            }
            let class = self.problem.ports[hop.port].classes[usize::from(priority)];
            let longest = longest(start - release, earliest[at], self.problem.margin);
            let late = longest.saturating_sub(hop.latest);
            // The sender never waits: it sends later.
            let must = start > arrival && (at == 0 || !hop.waits);
            let shift = match (late, must) {
                (0, true) => start - arrival,
                (0, false) => {
                    let wait = self.isolate(stream, hop, class, [arrival, start]);
                    let Some(wait) = wait else {
                        delays[at] += stream.period;
                        return None;
                    };
                    wait
                }
                _ => 0,
            };
            delays[at] += late + shift;
            match (late, shift, hop.before) {
                (0, 0, _) => {
                    starts[at] = start;
                    at += 1;
                }
                (0, _, Some(before)) => {
                    floors[before] = starts[before] + shift;
                    at = before;
                }
                (late, shift, _) => {
                    release += late.max(shift);
                    floors.fill(0);
                    at = 0;
                }
            }
        }
        Some(self.reduced(stream, Placed { release, starts, priority }))
    }
}
