//! INET's showcases of shapers: a client with best effort and video, a bridge, and a server.

use super::star::{Star, gates};
use super::{CaseLab, Figures, Observed, credit};
use report::Failure;
use sim::ethernet::port::{Algorithm, Ats, Committed, Counted};
use sim::ethernet::traffic::{Pattern, StreamId};
use sim::network::TrafficConfig;
use wire::{Duration, Instant};

const BEST_EFFORT: usize = 0;
const VIDEO: usize = 4;
const SEEDS: u64 = 3;

/// Returns a star with one client that sends frames of this length with tag and FCS.
fn client(bytes: usize, patterns: [Pattern; 2], seed: u64) -> (Star, [StreamId; 2]) {
    let mut star = Star::new(1, Duration::ZERO);
    let client = star.senders[0];
    let streams = [(BEST_EFFORT, 2 * seed), (VIDEO, 2 * seed + 1)];
    let mut patterns = patterns.into_iter();
    let streams = streams.map(|(class, seed)| {
        let pattern = patterns.next().expect("a pattern each");
        let stream = TrafficConfig::new(0, bytes - 4, class as u8, pattern);
        star.tree.stream(client, TrafficConfig { seed, ..stream })
    });
    (star, streams)
}

/// Returns the rate of frames in Mb/s from `from` to `to` in ms, counting `bytes` per frame.
fn rate(observed: &Observed, stream: StreamId, bytes: usize, from: u64, to: u64) -> f64 {
    let [from, to] = [from, to].map(|ms| Instant::from_ns(ms * 1_000_000));
    let within = |arrival: &&super::Arrival| (from..to).contains(&arrival.at);
    let frames = observed.arrivals(stream).iter().filter(within).count();
    (8 * bytes * frames) as f64 / (to.since(from).as_ps() as f64 / 1e6)
}

/// Frames that take 1000 bytes on the line and a gap of 12, at nearly the rates of the slopes.
pub(super) fn credit_based(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    let lab = lab.rows(&["best_effort", "best_effort_limit", "video", "video_limit"]);
    let (mut best_effort, mut video) = (0.0, 0.0);
    for seed in 0..SEEDS {
        let patterns = [200, 400].map(|us| Pattern::Poisson(Duration::from_us(us)));
        let (mut star, streams) = client(1000 - 8, patterns, seed);
        let port = star.port();
        port.classes[BEST_EFFORT].algorithm = credit::shaper(40_000_000);
        port.classes[VIDEO].algorithm = credit::shaper(20_000_000);
        let observed = lab.run(&mut star.tree, Duration::from_ms(1000))?;
        best_effort += rate(&observed, streams[0], 1000 + 12, 0, 1000) / SEEDS as f64;
        video += rate(&observed, streams[1], 1000 + 12, 0, 1000) / SEEDS as f64;
    }
    Ok(vec![
        ("best_effort", best_effort),
        ("best_effort_limit", best_effort),
        ("video", video),
        ("video_limit", video),
    ])
}

/// A client that always sends its peak traffic, through gates and credit-based shapers.
pub(super) fn credit_and_gates(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    // 1054 bytes with the preamble: 1000 of the application, 46 of headers and FCS.
    let patterns = [181_818, 250_000].map(|ns| Pattern::Periodic(Duration::from_ns(ns)));
    let (mut star, streams) = client(1000 + 46, patterns, 0);
    let port = star.port();
    port.gates = Some(gates(&[(1 << BEST_EFFORT, 4_000.0), (1 << VIDEO, 2_000.0)]));
    port.classes[BEST_EFFORT].algorithm = credit::shaper(42_640_000);
    port.classes[VIDEO].algorithm = credit::shaper(21_320_000);
    let lab = lab.rows(&["best_effort", "video"]);
    let observed = lab.run(&mut star.tree, Duration::from_ms(700))?;
    // 100 cycles.
    let [best_effort, video] = streams.map(|stream| rate(&observed, stream, 1066, 60, 660));
    Ok(vec![("best_effort", best_effort), ("video", video)])
}

/// The peak traffic through asynchronous shapers, which drop frames that would wait too long.
pub(super) fn asynchronous(lab: CaseLab<'_>) -> Result<Figures, Failure> {
    // 47 and 34 Mb/s of application data.
    let intervals = [170_213, 235_294].map(Duration::from_ns);
    let loaded = lab.rows(&["best_effort", "video", "dropped"]);
    let (observed, streams) = asynchronous_with(loaded, intervals.map(Pattern::Poisson))?;
    let [best_effort, video] = streams.map(|stream| rate(&observed, stream, 1000, 0, 1000));
    let dropped = streams.map(|stream| observed.lost(stream));
    // Almost no other traffic delays this stream.
    let seldom = Pattern::Periodic(Duration::from_ms(2000));
    let lab = lab.rows(&["longest", "longest_reaches"]);
    let (alone, [_, shaped]) = asynchronous_with(lab, [seldom, Pattern::Periodic(intervals[1])])?;
    let longest = alone.latencies(&[shaped]).max;
    Ok(vec![
        ("best_effort", best_effort),
        ("video", video),
        ("dropped", dropped[0].min(dropped[1]) as f64),
        ("longest", longest),
        ("longest_reaches", longest),
    ])
}

fn asynchronous_with(
    lab: CaseLab<'_>,
    patterns: [Pattern; 2],
) -> Result<(Observed, [StreamId; 2]), Failure> {
    let frame = 1000 + 46;
    let (mut star, streams) = client(frame, patterns, 1);
    let shaper = |frames: u64, interval_us: u64| {
        let bits = 8 * frame as u64;
        let committed = Committed { rate: bits * 1_000_000 / interval_us, burst: frames * bits };
        let max_residence = Some(Duration::from_ms(10));
        let counted = Counted::FrameOnly;
        Algorithm::Ats(Ats { committed, streams: Vec::new(), max_residence, counted })
    };
    let port = star.port();
    port.classes[BEST_EFFORT].algorithm = shaper(10, 200);
    port.classes[VIDEO].algorithm = shaper(5, 400);
    Ok((lab.run(&mut star.tree, Duration::from_ms(1000))?, streams))
}
