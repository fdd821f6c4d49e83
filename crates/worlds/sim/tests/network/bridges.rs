//! Bridges: latency, learning, order, and background traffic.

use super::*;
use proptest::prelude::*;
use sim::ethernet::bridge::{Config, Input, Mode, Output};
use sim::ethernet::traffic::{self, Pattern, Source};

const DELAY: Duration = Duration::from_ns(700);

fn bridge(mode: Mode, rates: &[Rate]) -> Config {
    Config {
        ports: rates.iter().map(|&rate| port::Config::new(rate)).collect(),
        mode,
        delay: DELAY,
        jitter: Duration::ZERO,
        seed: 1,
        addresses: (0..rates.len()).map(|port| (Mac::local(port as u32), port)).collect(),
        groups: Vec::new(),
        learns: false,
        forwards: Vec::new(),
        streams: Vec::new(),
    }
}

fn frame(id: u64, from: u32, to: u32, pcp: u8, length: usize) -> Frame {
    let mut bytes = vec![0; length - 8];
    bytes[..6].copy_from_slice(&Mac::local(to).0);
    bytes[6..12].copy_from_slice(&Mac::local(from).0);
    let mut frame = Frame::new(id, Bytes::from(bytes), pcp, Instant::ZERO);
    frame.tag = Some(Tag { pcp, vid: 0 });
    frame
}

/// The input for a frame that begins to arrive at a port at `start`, as a cable delivers it.
fn arriving(
    port: usize,
    mut frame: Frame,
    start: Instant,
    rate: Rate,
    mode: Mode,
) -> (Instant, Input) {
    let end = start + frame.duration(rate);
    let at = match mode {
        Mode::StoreAndForward => end,
        Mode::CutThrough => start + rate.duration(8 + 18),
    };
    frame.latency.book(FrameStage::Queue, start);
    frame.latency.book(FrameStage::Serialisation, at);
    (
        at,
        Input::Frame {
            port,
            transmission: Transmission { frame, start, end, rate, preemptable: false, class: 0 },
        },
    )
}

/// Passes frames to the bridge at their times. Returns the sent frames with their ports.
fn run(bridge: &mut Bridge, arriving: Vec<(Instant, Input)>) -> Vec<(usize, Transmission)> {
    super::run(bridge, arriving, Bridge::handle, |bridge, now| match bridge.poll(now) {
        Output::Line { port, event } => Ok((port, transmitted(event))),
        Output::Timeout(wake) => Err(wake),
    })
}

fn one(mode: Mode, rates: [Rate; 2], length: usize) -> Transmission {
    let input = arriving(0, frame(0, 0, 1, 0, length), Instant::from_ns(100), rates[0], mode);
    let mut left = run(&mut Bridge::new(bridge(mode, &rates)), vec![input]);
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].0, 1);
    left.remove(0).1
}

#[test]
fn latency_of_both_modes() {
    use Mode::{CutThrough, StoreAndForward};
    let start = Instant::from_ns(100);
    for length in [64, 512, 1522] {
        let whole = Rate::G1.duration(8 + length);
        let header = Rate::G1.duration(8 + 18);
        assert_eq!(one(StoreAndForward, [Rate::G1; 2], length).start, start + whole + DELAY);
        assert_eq!(one(CutThrough, [Rate::G1; 2], length).start, start + header + DELAY);
        // A cut-through bridge stores frames to a faster line, and cuts through to a slower line.
        let faster = one(CutThrough, [Rate::G1, Rate::G10], length);
        assert_eq!(faster.start, start + whole + DELAY);
        assert_eq!(faster.frame.latency.spent(FrameStage::Serialisation), whole);
        let slower = one(CutThrough, [Rate::G1, Rate::M100], length);
        assert_eq!(slower.start, start + header + DELAY);
        let sent = one(CutThrough, [Rate::G1; 2], length);
        assert_eq!(sent.frame.latency.spent(FrameStage::Bridge), DELAY);
        assert_eq!(sent.frame.latency.until(), sent.start);
    }
}

#[test]
fn busy_output_queues_cut_through_frames() {
    let mut config = bridge(Mode::CutThrough, &[Rate::G1; 3]);
    config.delay = Duration::ZERO;
    let inputs = [(0, 0u32, 1522), (1, 1, 64)].map(|(port, from, length)| {
        let frame = frame(port as u64, from, 2, 0, length);
        arriving(port, frame, Instant::ZERO, Rate::G1, Mode::CutThrough)
    });
    let left = run(&mut Bridge::new(config), inputs.to_vec());
    assert_eq!(left[1].1.start, left[0].1.end + Duration::from_ns(96));
}

proptest! {
    /// Frames may be handed over later than they are received, while the bridge's delay lasts.
    /// They leave at the same times as frames that are handed over at once.
    #[test]
    fn bridge_uses_time_of_reception_not_of_hand_over(
        frames in prop::collection::vec((0usize..3, 1u32..3, 64usize..400, 0u64..3_000), 1..40),
        lags in prop::collection::vec(0..=DELAY.as_ps(), 40),
        cuts_through: bool,
    ) {
        let mode = if cuts_through { Mode::CutThrough } else { Mode::StoreAndForward };
        let mut free = [Instant::ZERO; 3];
        let mut inputs = Vec::new();
        for (id, (port, other, length, gap)) in (0u64..).zip(frames) {
            let to = (port as u32 + other) % 3;
            let start = free[port] + Duration::from_ns(gap);
            free[port] = start + Rate::G1.duration(8 + length + 12);
            let frame = frame(id, port as u32, to, 0, length);
            inputs.push(arriving(port, frame, start, Rate::G1, mode));
        }
        inputs.sort_by_key(|(at, _)| *at);
        let config = bridge(mode, &[Rate::G1; 3]);
        let expected = run(&mut Bridge::new(config.clone()), inputs.clone());
        // No frame is handed over before earlier frames.
        let mut latest = Instant::from_ns(u64::MAX / 1_000);
        let mut late: Vec<_> = inputs.into_iter().zip(lags).rev().map(|((at, input), lag)| {
            latest = latest.min(at + Duration::from_ps(lag));
            (latest, (at, input))
        }).collect();
        late.reverse();
        let handle = |bridge: &mut Bridge, _: Instant, (at, input)| bridge.handle(at, input);
        let left = super::run(&mut Bridge::new(config), late, handle, |bridge, now| {
            match bridge.poll(now) {
                Output::Line { port, event } => Ok((port, transmitted(event))),
                Output::Timeout(wake) => Err(wake),
            }
        });
        prop_assert_eq!(left, expected);
    }
}

/// A store-and-forward bridge drops corrupt frames, and a cut-through bridge forwards them.
#[test]
fn corrupt_frames() {
    for (mode, passed) in [(Mode::StoreAndForward, 0), (Mode::CutThrough, 1)] {
        let mut bad = frame(0, 0, 1, 0, 100);
        bad.corrupt = true;
        let input = arriving(0, bad, Instant::ZERO, Rate::G1, mode);
        let mut bridge = Bridge::new(bridge(mode, &[Rate::G1; 2]));
        let left = run(&mut bridge, vec![input]);
        assert_eq!(left.len(), passed);
        assert_eq!(bridge.counters().fcs_errors, 1 - passed as u64);
        assert!(left.iter().all(|(_, sent)| sent.frame.corrupt));
    }
}

#[test]
fn addresses_are_learned() {
    let mut config = bridge(Mode::StoreAndForward, &[Rate::G1; 3]);
    config.addresses.clear();
    config.learns = true;
    let mut bridge = Bridge::new(config);
    let mut deliver = |id, from, to, at_us: u64| {
        let start = Instant::from_ns(at_us * 1_000);
        let (port, frame) = (from as usize, frame(id, from, to, 0, 64));
        let input = arriving(port, frame, start, Rate::G1, Mode::StoreAndForward);
        let left = run(&mut bridge, vec![input]);
        left.iter().map(|(port, _)| *port).collect::<Vec<_>>()
    };
    assert_eq!(deliver(0, 0, 1, 0), [1, 2], "unknown: to all others");
    assert_eq!(deliver(1, 1, 0, 100), [0], "learned");
    assert_eq!(deliver(2, 2, 1, 200), [1]);
    assert_eq!(bridge.counters().flooded, 1);
    assert_eq!(bridge.counters().forwarded, 4);
}

/// Jitter has the configured standard deviation and keeps the order of a flow.
#[test]
fn jitter() {
    const COUNT: u64 = 2_000;
    let mut config = bridge(Mode::StoreAndForward, &[Rate::G10; 2]);
    config.delay = Duration::from_ns(4_388);
    config.jitter = Duration::from_ps(24_500);
    let input = |id| {
        let start = Instant::from_ns(id * 1_000);
        arriving(0, frame(id, 0, 1, 0, 64), start, Rate::G10, Mode::StoreAndForward)
    };
    let [left, again] =
        [(); 2].map(|()| run(&mut Bridge::new(config.clone()), (0..COUNT).map(input).collect()));
    assert!(left == again, "two runs differ");
    let delays: Vec<i64> = left
        .iter()
        .map(|(_, sent)| sent.frame.latency.spent(FrameStage::Bridge).as_ps() as i64 - 4_388_000)
        .collect();
    assert!(left.is_sorted_by_key(|(_, sent)| sent.frame.id));
    let mean = delays.iter().sum::<i64>() / COUNT as i64;
    let variance = delays.iter().map(|delay| delay * delay).sum::<i64>() / COUNT as i64;
    assert!(mean.abs() < 2_000, "{mean} ps");
    // The variance in square picoseconds: the standard deviation of 24.5 ns, within 8 %.
    assert!((510_000_000..700_000_000).contains(&variance), "{variance}");
}

fn source(port: u32, pattern: Pattern, length: usize) -> Source {
    Source::new(traffic::Config {
        own_clock: false,
        source: Mac::local(port),
        destination: Mac::local(2),
        length,
        priority: port as u8,
        pattern,
        jitter: Duration::ZERO,
        on_off: None,
        burst: 1,
        start: Instant::ZERO,
        stop: Some(Instant::from_ns(10_000_000)),
        seed: 3,
        babbles: Vec::new(),
        line_time: Duration::ZERO,
        first_id: u64::from(port) << 32,
    })
}

/// The frames of a source as they arrive at a bridge, tagged with their priority.
fn arrivals(source: &mut Source, port: usize) -> Vec<(Instant, Input)> {
    let mut now = Instant::ZERO;
    let mut frames = Vec::new();
    loop {
        match source.poll(now, None) {
            traffic::Output::Timeout(None) => return frames,
            traffic::Output::Timeout(Some(at)) => now = at,
            traffic::Output::Frame(mut frame) => {
                assert_eq!(frame.latency.created(), now);
                frame.tag = Some(Tag { pcp: frame.priority, vid: 0 });
                frames.push(arriving(port, frame, now, Rate::G1, Mode::StoreAndForward));
            }
        }
    }
}

/// Frames of a lower priority overload a port. Frames of the higher priority wait for at most one
/// frame of the lower one, whose queue is full. Every frame is counted.
#[test]
fn strict_priority_under_overload() {
    let full = Rate::G1.duration(8 + 1522 + 12);
    let mut low = source(0, Pattern::Periodic(full), 1518);
    let mut high = source(1, Pattern::Poisson(Duration::from_us(40)), 1000);
    let mut inputs = arrivals(&mut low, 0);
    let high_frames = arrivals(&mut high, 1);
    // 250 expected, standard deviation 16.
    assert!((200..300).contains(&high_frames.len()), "{}", high_frames.len());
    inputs.extend(high_frames);
    let mut config = bridge(Mode::StoreAndForward, &[Rate::G1; 3]);
    config.ports[2] = config.ports[2].clone().with_depth(1024, 20_000);
    let mut bridge = Bridge::new(config);
    let left = run(&mut bridge, inputs);
    let (mut frames, mut bytes, mut longest) = ([0; 2], 0, Duration::ZERO);
    for (port, sent) in &left {
        assert_eq!(*port, 2);
        let flow = usize::from(sent.frame.tag.unwrap().pcp);
        frames[flow] += 1;
        if flow == 0 {
            bytes += sent.frame.length();
            longest = longest.max(sent.end.since(sent.frame.latency.created()));
        }
    }
    let counters = bridge.port(2).counters();
    assert!(counters.full[0] > 100 && counters.full[1] == 0, "{counters:?}");
    assert_eq!(frames[0] + counters.full[0], low.made());
    assert_eq!(frames[1], high.made());
    assert_eq!(bytes as u64, frames[0] * 1522);
    // A frame waits for one frame on the line, and for frames of its own priority.
    let waited: Vec<_> = left
        .iter()
        .filter(|(_, sent)| sent.frame.priority == 1)
        .map(|(_, sent)| sent.frame.latency.spent(FrameStage::Queue))
        .collect();
    let one = Rate::G1.duration(8 + 1522 + 12);
    let short = waited.iter().filter(|&&wait| wait <= one).count();
    assert!(short * 10 > waited.len() * 7, "{short} of {}", waited.len());
    assert!(longest > Duration::from_us(100));
}
