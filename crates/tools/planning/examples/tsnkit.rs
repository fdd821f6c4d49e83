//! Schedules an instance of tsnkit 0.3.0 with its own model, and writes the result in its format:
//! `tsnkit TOPO.csv TASK.csv SECONDS OUTPUT`. Prints `succ` or `fail`, placed streams, all streams,
//! the load of the busiest line in per cent, and seconds. `tests/tsnkit/compare.py` runs it.

#![allow(clippy::disallowed_methods, reason = "a program that measures its time and writes files")]

use farlane_planning::schedule::periodic::problem::{self, Problem, SLOT, Timing};
use farlane_planning::schedule::periodic::search::{Found, search};
use farlane_planning::schedule::periodic::{board::gcd, capacity};
use plan::{Plan, Planned};
use sim::network::CableEnd;
use std::error::Error;
use std::fmt::Write;
use std::time::Instant;
use wire::Duration;

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [topology, task, seconds, output] = &args[..] else {
        return Err("expected TOPO.csv TASK.csv SECONDS OUTPUT".into());
    };
    let seconds: f64 = seconds.parse()?;
    let files = [topology, task].map(std::path::absolute);
    let [topology, task] = files.map(|file| file.map(|file| file.display().to_string()));
    let text = format!("runtime = \"1ms\"\ninclude = [{:?}, {:?}]\n", topology?, task?);
    let begin = Instant::now();
    let planned = Plan::parse("instance", &text).and_then(|plan| plan.build());
    let planned = planned.map_err(|error| error.to_string())?;
    let problem = problem::build(&planned, Timing::Tsnkit, (Duration::ZERO, SLOT));
    let checked = problem.and_then(|problem| capacity::cycles(&problem).map(|_| problem));
    let problem = match checked {
        Ok(problem) => problem,
        Err(why) => {
            eprintln!("{why}");
            println!("fail 0 {} 100 {:.3}", planned.streams.len(), begin.elapsed().as_secs_f64());
            return Ok(());
        }
    };
    let found = search(&problem, 1, &|| begin.elapsed().as_secs_f64() > seconds);
    let elapsed = begin.elapsed().as_secs_f64();
    let (placed, all) = (found.board.count(), problem.streams.len());
    let result = if placed == all { "succ" } else { "fail" };
    println!("{result} {placed} {all} {:.0} {elapsed:.3}", busiest(&problem) * 100.0);
    if placed == all {
        write(output, &planned, &problem, &found)?;
    }
    Ok(())
}

/// The share of time for which the busiest line is busy.
fn busiest(problem: &Problem) -> f64 {
    let mut loads = vec![0.0f64; problem.ports.len()];
    for stream in &problem.streams {
        for hop in &stream.hops {
            loads[hop.port] += hop.busy as f64 / stream.period as f64;
        }
    }
    loads.into_iter().fold(0.0, f64::max)
}

/// The files of `core/_config.py`.
fn write(
    output: &str,
    planned: &Planned,
    problem: &Problem,
    found: &Found<'_>,
) -> Result<(), Box<dyn Error>> {
    let wiring = planned.config.network.wiring();
    let name = |end| planned.node_name(end);
    let link = |place: CableEnd| {
        let end = wiring.across(place).map_or(place, |(_, end)| end);
        format!("\"({}, {})\"", name(place), name(end))
    };
    let periods = problem.streams.iter().map(|stream| stream.period);
    let hyperperiod = periods.reduce(|a, b| a / gcd(a, b) * b).unwrap_or(0);
    let mut gates = "link,queue,start,end,cycle\n".to_owned();
    let mut offsets = "stream,frame,offset\n".to_owned();
    let mut routes = "stream,link\n".to_owned();
    let mut queues = "stream,frame,link,queue\n".to_owned();
    for (number, stream) in problem.streams.iter().enumerate() {
        let placed = found.placed(number).ok_or("a stream without a place")?;
        writeln!(offsets, "{},0,{}", stream.name, placed.release / 1000)?;
        for (hop, start) in stream.hops.iter().zip(&placed.starts) {
            let port = &problem.ports[hop.port];
            let class = port.classes[usize::from(placed.priority)];
            let link = link(port.place);
            writeln!(routes, "{},{link}", stream.name)?;
            writeln!(queues, "{},0,{link},{class}", stream.name)?;
            for frame in 0..hyperperiod / stream.period {
                let [start, end] =
                    [*start, start + hop.busy].map(|at| (at + frame * stream.period) / 1000);
                writeln!(gates, "{link},{class},{start},{end},{}", hyperperiod / 1000)?;
            }
        }
    }
    for (kind, text) in [("GCL", gates), ("OFFSET", offsets), ("ROUTE", routes), ("QUEUE", queues)]
    {
        std::fs::write(format!("{output}-{kind}.csv"), text)?;
    }
    Ok(())
}
