//! When streams send.

use super::*;
use sim::ethernet::recorded::{Frames, Recorded, Recording};
use sim::ethernet::traffic::{self, OnOff, Output, Pattern, Source};
use std::sync::Arc;

const INTERVAL: Duration = Duration::from_us(100);

fn config(pattern: Pattern) -> traffic::Config {
    traffic::Config {
        own_clock: false,
        source: Mac::local(1),
        destination: Mac::local(2),
        length: 64,
        priority: 0,
        pattern,
        jitter: Duration::ZERO,
        on_off: None,
        burst: 1,
        start: Instant::from_ns(7_000),
        stop: Some(Instant::from_ns(2_000_000_000)),
        seed: 5,
        babbles: Vec::new(),
        line_time: Duration::from_us(10),
        first_id: 0,
    }
}

/// The times at which a source sends, in nanoseconds.
fn times(config: traffic::Config) -> Vec<u64> {
    let (mut source, mut now, mut times) = (Source::new(config), Instant::ZERO, Vec::new());
    loop {
        match source.poll(now, None) {
            Output::Timeout(None) => return times,
            Output::Timeout(Some(at)) => now = at,
            Output::Frame(_) => times.push(now.as_ns()),
        }
    }
}

fn intervals(times: &[u64]) -> Vec<u64> {
    times.windows(2).map(|pair| pair[1] - pair[0]).collect()
}

fn mean(values: &[u64]) -> u64 {
    values.iter().sum::<u64>() / values.len() as u64
}

/// 20,000 intervals: the mean of both distributions is within 2 % of theirs.
#[test]
fn random_intervals_keep_their_bounds_and_their_mean() {
    let (least, spread) = (Duration::from_us(60), Duration::from_us(30));
    let sporadic = intervals(&times(config(Pattern::Sporadic { mean: INTERVAL, least })));
    assert!(sporadic.iter().all(|ns| *ns >= 60_000));
    assert!(sporadic.iter().any(|ns| *ns > 200_000), "an exponential tail");
    let uniform = intervals(&times(config(Pattern::Uniform { mean: INTERVAL, spread })));
    assert!(uniform.iter().all(|ns| (70_000..=130_000).contains(ns)));
    assert!(uniform.iter().any(|ns| *ns < 71_000) && uniform.iter().any(|ns| *ns > 129_000));
    for values in [&sporadic, &uniform] {
        assert!(mean(values).abs_diff(100_000) < 2_000, "{}", mean(values));
    }
}

/// Each frame is late by up to the jitter, and no lateness adds up.
#[test]
fn jitter_delays_each_period_alone() {
    let jitter = Duration::from_us(40);
    let sent = times(traffic::Config { jitter, ..config(Pattern::Periodic(INTERVAL)) });
    let due = (0..).map(|number| 7_000 + number * 100_000);
    let late: Vec<u64> = sent.iter().zip(due).map(|(sent, due)| sent - due).collect();
    assert_eq!(sent.len(), 20_000);
    assert!(late.iter().all(|ns| *ns <= 40_000));
    assert!(mean(&late).abs_diff(20_000) < 500, "{}", mean(&late));
}

#[test]
fn nothing_is_sent_in_a_pause_and_each_time_of_sending_begins_at_once() {
    let on_off = Some(OnOff { on: Duration::from_us(250), off: Duration::from_us(800) });
    let sent = times(traffic::Config { on_off, ..config(Pattern::Periodic(INTERVAL)) });
    let expected: Vec<u64> =
        [0, 100, 200, 1050, 1150, 1250, 2100].map(|us| 7_000 + us * 1_000).into();
    assert_eq!(sent[..7], expected);
    let random = times(traffic::Config { on_off, ..config(Pattern::Poisson(INTERVAL)) });
    assert!(random.iter().all(|at| (at - 7_000) % 1_050_000 < 250_000), "in a pause");
}

/// Frames in any time are at most the burst and one per interval, and never fewer are sent.
#[test]
fn envelope_sends_all_that_its_token_bucket_permits() {
    let pattern = Pattern::Envelope { interval: INTERVAL, frames: 4 };
    let sent = times(config(pattern.clone()));
    let expected = [0, 0, 0, 0, 100, 200, 300].map(|us| 7_000 + us * 1_000);
    assert_eq!(sent[..7], expected);
    // A pause of 250 us fills the bucket with two frames; the third is due 100 us after the last.
    let on_off = Some(OnOff { on: Duration::from_us(150), off: Duration::from_us(250) });
    let sent = times(traffic::Config { on_off, ..config(pattern) });
    let expected = [0, 0, 0, 0, 100, 400, 400, 400, 500, 800].map(|us| 7_000 + us * 1_000);
    assert_eq!(sent[..10], expected);
}

#[derive(Debug)]
struct Memory(Vec<(u64, usize)>);

impl Recorded for Memory {
    fn open(&self) -> Frames {
        let frames = self.0.clone().into_iter();
        Box::new(frames.map(|(us, length)| (Duration::from_us(us), length)))
    }
}

#[test]
fn recording_is_sent_once_or_repeats_after_its_mean_interval() {
    let replayed = |repeats| {
        let frames = Arc::new(Memory(vec![(0, 64), (30, 60), (40, 64)]));
        let recording = Recording { frames, interval: Duration::from_us(20), length: 62, repeats };
        let pattern = Pattern::Recorded(recording);
        let stop = Some(Instant::from_ns(140_000));
        let mut source = Source::new(traffic::Config { stop, ..config(pattern) });
        let (mut now, mut sent) = (Instant::ZERO, Vec::new());
        loop {
            match source.poll(now, None) {
                Output::Timeout(None) => return sent,
                Output::Timeout(Some(at)) => now = at,
                Output::Frame(frame) => sent.push((now.as_ns() / 1_000, frame.bytes.len() + 4)),
            }
        }
    };
    assert_eq!(replayed(false), [(7, 64), (37, 60), (47, 64)]);
    let expected = [(7, 64), (37, 60), (47, 64), (67, 64), (97, 60), (107, 64), (127, 64)];
    assert_eq!(replayed(true), expected);
}

/// Besides its own frames, a source that babbles creates one per line time.
#[test]
fn a_babbling_source_fills_its_line() {
    let at = |us: u64| Instant::from_ns(us * 1_000);
    let babbles = vec![(at(1_005), at(1_035)), (at(2_000), at(2_010))];
    let plain = times(config(Pattern::Periodic(INTERVAL)));
    let sent = times(traffic::Config { babbles, ..config(Pattern::Periodic(INTERVAL)) });
    let mut wanted = [&plain[..], &[1_005, 1_015, 1_025, 2_000].map(|us| us * 1_000)].concat();
    wanted.sort_unstable();
    let mut sent = sent;
    sent.sort_unstable();
    assert_eq!(sent, wanted);
}
