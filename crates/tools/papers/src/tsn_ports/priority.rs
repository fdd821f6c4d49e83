//! Strict priority at one port, computed by hand.

use super::star::{Star, at, gates, once};
use super::{CaseLab, Figures};
use report::Failure;
use sim::ethernet::traffic::StreamId;
use wire::{Duration, Instant};

/// Bytes without tag of the longest frame; 1522 bytes with tag.
const LONGEST: usize = 1518;

pub(super) fn simulate(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let [highest, middle, lowest] = behind_the_longest(lab.rows(&["highest", "middle", "lowest"]))?;
    let [first, second] = behind_a_gate(lab.rows(&["gate_priority_5", "gate_priority_2"]))?;
    Ok(vec![
        ("highest", highest),
        ("middle", middle),
        ("lowest", lowest),
        ("gate_priority_5", first),
        ("gate_priority_2", second),
    ])
}

/// Frames of 100 bytes with three priorities arrive at the port 1 ns after a frame of 1522 bytes.
fn behind_the_longest(lab: CaseLab<'_>) -> Result<[f64; 3], Failure> {
    let mut star = Star::new(4, Duration::ZERO);
    let senders = star.senders.clone();
    star.tree.stream(senders[0], once(LONGEST, 0, Instant::ZERO));
    // The long frame arrives at 122.45 us. The short ones need 8.69 us to the port.
    let start = at(122.45 + 0.001 - 8.69);
    // The lowest priority is first, so that the order of equal times is no advantage.
    let streams = [1, 6, 7]
        .into_iter()
        .zip(&senders[1..])
        .map(|(priority, sender)| star.tree.stream(*sender, once(100 - 4, priority, start)));
    let streams: Vec<StreamId> = streams.collect();
    let observed = lab.run(&mut star.tree, Duration::from_ms(1))?;
    Ok([2, 1, 0].map(|stream| observed.latencies(&[streams[stream]]).max))
}

/// Frames with 1000 bytes of the application wait for gates that open together after 1 ms.
fn behind_a_gate(lab: CaseLab<'_>) -> Result<[f64; 2], Failure> {
    let mut star = Star::new(2, Duration::ZERO);
    star.port().gates = Some(gates(&[(0, 1000.0), (1 << 2 | 1 << 5, 1000.0)]));
    let senders = star.senders.clone();
    let length = 1000 + 8 + 20 + 14 + 4;
    let low = star.tree.stream(senders[0], once(length, 2, Instant::ZERO));
    let high = star.tree.stream(senders[1], once(length, 5, at(1.0)));
    let observed = lab.run(&mut star.tree, Duration::from_ms(2))?;
    Ok([high, low].map(|stream| observed.latencies(&[stream]).max))
}
