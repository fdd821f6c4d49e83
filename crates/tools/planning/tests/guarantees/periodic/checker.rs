//! The constraints of a placement, frame by frame over a hyperperiod.

use farlane_planning::schedule::periodic::board::Placed;
use farlane_planning::schedule::periodic::problem::{Hop, Problem};

/// A frame at a port: begin and end, the stream, and whether the frame waits.
type Span = (u64, u64, usize, bool);

/// Checks all constraints of placed streams.
///
/// # Panics
/// At the first violation.
pub fn check(problem: &Problem, placed: &[Option<Placed>]) {
    if let Some(violation) = violation(problem, placed) {
        panic!("{violation}\n{problem:#?}\n{placed:#?}");
    }
}

/// The first violated constraint.
pub fn violation(problem: &Problem, placed: &[Option<Placed>]) -> Option<String> {
    let all = || placed.iter().enumerate().filter_map(|(at, one)| Some((at, one.as_ref()?)));
    let hyper = all().map(|(at, _)| problem.streams[at].period).fold(1, lcm);
    let (margin, grain) = (problem.margin, problem.grain);
    for (number, one) in all() {
        let stream = &problem.streams[number];
        if one.release >= stream.period || !stream.priorities.contains(&one.priority) {
            return Some(format!("{}: release or priority", stream.name));
        }
        for (hop, start) in stream.hops.iter().zip(&one.starts) {
            let arrival = hop.before.map_or(one.release, |at| one.starts[at]) + hop.after;
            let whole = *start >= arrival + margin && start.is_multiple_of(grain) && hop.waits;
            if *start != arrival && !whole {
                return Some(format!("{} at {}: start", stream.name, hop.port));
            }
            if problem.within_period && start + hop.busy > stream.period {
                return Some(format!("{} at {}: after its period", stream.name, hop.port));
            }
        }
        for end in &stream.ends {
            let (mut at, mut error) = (Some(end.hop), 0);
            while let Some(hop) = at {
                let Hop { before, after, .. } = stream.hops[hop];
                let arrival = before.map_or(one.release, |at| one.starts[at]) + after;
                error = if one.starts[hop] > arrival { margin } else { error };
                at = before;
            }
            let latency = one.starts[end.hop] - one.release + end.after + error;
            if end.deadline.is_some_and(|deadline| latency > deadline) {
                return Some(format!("{}: deadline", stream.name));
            }
        }
    }
    for port in 0..problem.ports.len() {
        let (mut lines, mut queues): (Vec<Span>, [Vec<Span>; 8]) = Default::default();
        for (number, one) in all() {
            let stream = &problem.streams[number];
            let hops = stream.hops.iter().zip(&one.starts).filter(|(hop, _)| hop.port == port);
            for (hop, start) in hops {
                let arrival = hop.before.map_or(one.release, |at| one.starts[at]) + hop.after;
                let class = problem.ports[port].classes[usize::from(one.priority)];
                for frame in 0..hyper / stream.period {
                    // A period later, so that margins do not lead below zero.
                    let shift = (frame + 1) * stream.period;
                    let begin = start + shift - margin;
                    let line = (begin, begin + hop.busy + 2 * margin, number, false);
                    lines.push(line);
                    let early = (arrival + shift - margin - hop.gap) / grain * grain;
                    let end = start + shift + hop.busy - hop.gap + margin;
                    let late = end.next_multiple_of(grain);
                    if *start > arrival && late - early > stream.period {
                        return Some(format!("{}: a period in a queue", stream.name));
                    }
                    queues[usize::from(class)].push((early, late, number, *start > arrival));
                }
            }
        }
        if let Some((one, other)) = overlap(&lines, hyper, |_, _| true) {
            return Some(format!("port {port}: streams {one} and {other} at once"));
        }
        for queue in &queues {
            let waits = |one: &Span, other: &Span| one.3 || other.3;
            if let Some((one, other)) = overlap(queue, hyper, waits) {
                return Some(format!("port {port}: streams {one} and {other} in a queue"));
            }
        }
    }
    None
}

/// Two frames whose spans overlap, the spans repeated each `hyper`.
fn overlap(
    spans: &[Span],
    hyper: u64,
    matters: impl Fn(&Span, &Span) -> bool,
) -> Option<(usize, usize)> {
    let mut all: Vec<Span> = Vec::new();
    for (begin, end, stream, waits) in spans {
        let end = (*end).min(begin + hyper);
        let first = begin % hyper;
        // Twice, so that spans at the end meet spans at the begin.
        for begin_of in [first, first + hyper] {
            all.push((begin_of, begin_of + end - begin, *stream, *waits));
        }
    }
    all.sort_unstable();
    for (at, one) in all.iter().enumerate() {
        let later = all[at + 1..].iter().take_while(|other| other.0 < one.1);
        for other in later {
            if matters(one, other) && (one.2 != other.2 || one.0 != other.0) {
                return Some((one.2, other.2));
            }
        }
    }
    None
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y != 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}
