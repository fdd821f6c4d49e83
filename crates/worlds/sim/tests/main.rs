//! Tests of the simulator's public interface: whole simulations, and the network alone.

extern crate farlane_sim as sim;

mod congestion;
mod network;
mod simulation;
mod time;
mod tsn;

use ::tsn::{Clock, Entry, GateControlList, GateStates, Gates};
use wire::{Duration, Instant};

/// Gates with a list from time zero. Each entry has the open queues as bits, and the interval.
fn gates_of(entries: &[(u8, Duration)]) -> Gates {
    let entry = |(states, interval): &(u8, Duration)| Entry::set(GateStates(*states), *interval);
    let entries: Vec<_> = entries.iter().map(entry).collect();
    let list = GateControlList::of_entries(Instant::ZERO, &entries).expect("a valid list");
    Gates::new(list, Clock::default())
}
