//! The network part of the simulator, machine by machine and put together.

mod bridges;
mod cables;
mod courses;
mod frames;
mod hosts;
mod ports;
mod preemption;
mod shapers;
mod tcp;
mod verification;
mod world;

use crate::gates_of;
use bytes::Bytes;
use sim::ethernet::{
    Bridge, Cable, Frame, FrameLatency, FrameStage, LineEvent, Mac, Nic, Port, Rate, Tag,
    Transmission, bridge, cable, frame, nic, port,
};
use stats::random::{Probability, Random};
use tsn::gates::Operation;
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// The transmission of a port that interrupts none.
fn transmitted(event: LineEvent) -> Transmission {
    let LineEvent::Transmit(transmission) = event else { panic!("interrupted: {event:?}") };
    transmission
}

/// Hands `inputs` over to a machine at their times, until nothing happens any more; what it puts
/// out. `poll` yields an output, or when to poll again.
fn run<M, I, O>(
    machine: &mut M,
    mut inputs: Vec<(Instant, I)>,
    handle: impl Fn(&mut M, Instant, I),
    poll: impl Fn(&mut M, Instant) -> Result<O, Option<Instant>>,
) -> Vec<O> {
    inputs.sort_by_key(|(at, _)| *at);
    let mut inputs = inputs.into_iter().peekable();
    let (mut now, mut outputs) = (Instant::ZERO, Vec::new());
    loop {
        while let Some((_, input)) = inputs.next_if(|(at, _)| *at <= now) {
            handle(machine, now, input);
        }
        match poll(machine, now) {
            Ok(output) => outputs.push(output),
            Err(wake) => {
                assert!(wake.is_none_or(|at| at > now), "no progress at {now}");
                let next = inputs.peek().map(|(at, _)| *at);
                match wake.into_iter().chain(next).min() {
                    Some(at) => now = at,
                    None => return outputs,
                }
            }
        }
    }
}
