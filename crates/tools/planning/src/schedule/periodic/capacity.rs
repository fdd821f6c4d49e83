//! Contradictions that no search can resolve.

use super::board::gcd;
use super::problem::Problem;
use std::collections::BTreeMap;
use tsn::gates::hyperperiod;
use wire::Duration;

/// The longest cycle of a list.
pub const LONGEST: Duration = Duration::from_ms(1000);

/// The cycle after which all times at each port repeat.
///
/// # Errors
/// A stream whose interval is not a multiple of the grain. A port whose streams repeat only after more than [`LONGEST`], whose streams need more time than
/// there is, or with two streams that always overlap.
pub fn cycles(problem: &Problem) -> Result<Vec<u64>, String> {
    let mut streams: Vec<Vec<(usize, u64)>> = vec![Vec::new(); problem.ports.len()];
    for (number, stream) in problem.streams.iter().enumerate() {
        if !stream.period.is_multiple_of(problem.grain) {
            let [period, grain] =
                [stream.period, problem.grain].map(|ps| Duration::from_ps(ps).exact());
            return Err(format!(
                "stream {}: its interval {period} is not a multiple of the grain {grain} of lists",
                stream.name
            ));
        }
        for hop in &stream.hops {
            streams[hop.port].push((number, hop.busy + 2 * problem.margin));
        }
    }
    (0..problem.ports.len()).map(|port| cycle(problem, port, &streams[port])).collect()
}

fn cycle(problem: &Problem, port: usize, streams: &[(usize, u64)]) -> Result<u64, String> {
    let name = &problem.ports[port].name;
    let period = |at: usize| problem.streams[at].period;
    let time = |ps| Duration::from_ps(ps).exact();
    let with_margin = match problem.margin {
        0 => String::new(),
        margin => {
            format!(" with {} for clocks and jitter at both ends of each window", time(margin))
        }
    };
    let mut cycle = problem.grain;
    for (at, _) in streams {
        let both = [cycle, period(*at)].map(Duration::from_ps);
        cycle = match hyperperiod(both.into_iter()).filter(|cycle| *cycle <= LONGEST) {
            Some(cycle) => cycle.as_ps(),
            None => {
                return Err(format!(
                    "stream {}: with the period {} the streams and the grain {} of {name} repeat \
                     only after more than {}",
                    problem.streams[*at].name,
                    time(period(*at)),
                    time(problem.grain),
                    LONGEST.exact()
                ));
            }
        };
    }
    let busy = |(at, busy): &(usize, u64)| u128::from(*busy) * u128::from(cycle / period(*at));
    let sum: u128 = streams.iter().map(busy).sum();
    if sum > u128::from(cycle) {
        let most = streams.iter().max_by_key(|one| busy(one)).map_or(0, |(at, _)| *at);
        return Err(format!(
            "{name} is overloaded: its streams need {:.1} % of the time{with_margin}, stream {} most of all",
            sum as f64 / cycle as f64 * 100.0,
            problem.streams[most].name
        ));
    }
    // The two longest of each period.
    let mut longest: BTreeMap<u64, Vec<(u64, usize)>> = BTreeMap::new();
    for (at, busy) in streams {
        let all = longest.entry(period(*at)).or_default();
        all.push((*busy, *at));
        all.sort_unstable_by_key(|one| std::cmp::Reverse(*one));
        all.truncate(2);
    }
    let all: Vec<(u64, usize)> = longest.into_values().flatten().collect();
    for (at, (one, first)) in all.iter().enumerate() {
        for (other, second) in &all[at + 1..] {
            let common = gcd(period(*first), period(*second));
            if one + other > common {
                return Err(format!(
                    "streams {} and {} collide at {name}: with the periods {} and {} they are at \
                     most {} apart{with_margin}",
                    problem.streams[*first].name,
                    problem.streams[*second].name,
                    time(period(*first)),
                    time(period(*second)),
                    time(common)
                ));
            }
        }
    }
    Ok(cycle)
}
