//! A simulation of greedy flows in FIFO servers that serve no more than their curves require. Data
//! are drops: a flow sends a drop when its arrival curve allows all of it, and a server passes it on when
//! its service curve requires the first bit.

use super::{Model, Traffic};

/// Bits of a drop.
const DROP: f64 = 0.5;

/// Drops of each flow.
const DROPS: u32 = 50;

/// The largest values.
pub struct Run {
    /// By flow, end to end.
    pub delays: Vec<f64>,
    /// By server.
    pub backlogs: Vec<f64>,
}

/// Simulates a network. Paths visit servers by rising position.
pub fn run(model: &Model) -> Run {
    // By flow, where each drop is at what time.
    let sent: Vec<Vec<f64>> = model.flows.iter().map(sending_times).collect();
    let mut now = sent.clone();
    let mut backlogs = Vec::new();
    for server in 0..model.servers.len() {
        let mut queue: Vec<(f64, usize, usize)> = Vec::new();
        for (flow, times) in now.iter().enumerate() {
            if model.flows[flow].path.contains(&server) {
                queue.extend(times.iter().enumerate().map(|(drop, &time)| (time, flow, drop)));
            }
        }
        queue.sort_by(|a, b| a.0.total_cmp(&b.0));
        let functions = model.functions(server);
        let served: Vec<f64> = (0..queue.len())
            .map(|last| {
                let since = |first: usize| {
                    let bits = f64::from(last as u32 - first as u32) * DROP;
                    let times = functions
                        .iter()
                        .map(|&(latency, rate)| f64::from(latency) + bits / f64::from(rate));
                    queue[first].0 + times.fold(f64::MAX, f64::min)
                };
                (0..=last).map(since).fold(0.0, f64::max)
            })
            .collect();
        let waiting = |(arrived, &(time, _, _)): (usize, &(f64, usize, usize))| {
            let left = served.iter().filter(|&&end| end <= time).count();
            f64::from((arrived - left.min(arrived)) as u32) * DROP
        };
        backlogs.push(queue.iter().enumerate().map(waiting).fold(0.0, f64::max));
        for (&(_, flow, drop), end) in queue.iter().zip(served) {
            now[flow][drop] = end;
        }
    }
    let delay = |(sent, now): (&Vec<f64>, &Vec<f64>)| {
        sent.iter().zip(now).map(|(sent, now)| now - sent).fold(0.0, f64::max)
    };
    Run { delays: sent.iter().zip(&now).map(delay).collect(), backlogs }
}

/// When a flow sends its drops: each as soon as all token buckets allow it.
fn sending_times(flow: &Traffic) -> Vec<f64> {
    let time = |drop: u32| {
        let bits = f64::from(drop) * DROP;
        let wait = |(burst, rate): (u32, u32)| (bits - f64::from(burst)) / f64::from(rate);
        f64::from(flow.start) + flow.buckets().into_iter().map(wait).fold(0.0, f64::max)
    };
    (1..=DROPS).map(time).collect()
}
