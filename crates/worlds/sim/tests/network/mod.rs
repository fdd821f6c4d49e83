//! The network of the simulator: each state machine alone, and all together.

mod bridges;
mod cables;
mod courses;
mod frames;
mod hosts;
mod ports;
mod preemption;
mod routes;
mod shapers;
mod tcp;
mod traffic_times;
mod verification;
mod wiring;
mod world;

use crate::gates_of;
use bytes::Bytes;
use sim::ethernet::port::{Reception, SchedulerGroups};
use sim::ethernet::{
    Bridge, Cable, Frame, FrameLatency, FrameStage, LineEvent, Mac, Nic, Port, Rate, Tag,
    Transmission, bridge, cable, frame, nic, port,
};
use stats::random::{Probability, Random};
use tsn::gates::Operation;
use tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// The transmission of a port without preemption.
fn transmitted(event: LineEvent) -> Transmission {
    let LineEvent::Transmit(transmission) = event else { panic!("interrupted: {event:?}") };
    transmission
}

/// Passes `inputs` to a machine at their times, and runs the machine until it is idle. Returns its
/// outputs. `poll` returns an output, or when to poll again.
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

/// A tagged frame of `length` bytes, header to FCS.
fn tagged(id: u64, pcp: u8, length: usize, now: Instant) -> Frame {
    let mut frame = Frame::new(id, Bytes::from(vec![0; length - 8]), pcp, now);
    frame.tag = Some(Tag { pcp, vid: 0 });
    assert_eq!(frame.length(), length);
    frame
}

/// Admits a frame to a port and queues it at once.
fn offer(port: &mut Port, now: Instant, frame: Frame) {
    let groups = &mut SchedulerGroups::default();
    let reception = Reception { from: None, at: now };
    if let Some(admission) = port.admit(groups, reception, (&frame, None)) {
        port.handle(now, port::Input::Frame(frame, admission));
    }
}

/// The line events of a port to which frames are offered. Each offer has a time, a priority and a
/// length; the index of the offer is the ID of the frame.
fn line_of(port: &mut Port, offers: &[(Instant, u8, usize)]) -> Vec<(Instant, LineEvent)> {
    let offers =
        (0..).zip(offers).map(|(id, &(at, pcp, length))| (at, tagged(id, pcp, length, at)));
    run(port, offers.collect(), offer, |port, now| match port.poll(now) {
        port::Output::Line(event) => Ok((now, event)),
        port::Output::Timeout(wake) => Err(wake),
    })
}
