//! The simulations for each group of statements.

use super::setup::{Boards, INTERVAL};
use crate::tsn_ports::{Arrival, CaseLab, Figures, Observed};
use report::{Axis, Failure, Plot, Scale};
use sim::ethernet::traffic::StreamId;
use sim::network::MeasuredSample;
use tsn::gptp::{Stamping, Walk};
use wire::{Duration, Instant};

/// Figures and plots of a case.
pub type Simulated = (Figures, Vec<Plot>);

const SECOND: u64 = 1_000_000_000_000;

fn too_short(figure: &str) -> Failure {
    Failure(format!("{figure}: fewer than two packets are of use"))
}

fn us(ps: i64) -> f64 {
    ps as f64 / 1e6
}

/// Returns the time from the start of a packet's slot to its arrival.
fn since_slot(arrival: &Arrival, late: Duration) -> f64 {
    let planned = arrival.created.as_ps() - late.as_ps();
    us((arrival.at.as_ps() - planned) as i64)
}

/// Simulates applications that wake up late.
pub fn missed_slot(lab: CaseLab<'_>) -> Result<Simulated, Failure> {
    let latency = |lab: CaseLab<'_>, late_us: u64| -> Result<f64, Failure> {
        let late = Duration::from_us(late_us);
        let (observed, packets) = Boards::new(late, true).run(lab, Duration::from_ms(20))?;
        let all = observed.arrivals(packets).iter().map(|arrival| since_slot(arrival, late));
        Ok(all.fold(0.0, f64::max))
    };
    let mut figures = Vec::new();
    for (name, late) in [
        ("on_time", 0),
        ("99_us_late", 99),
        ("100_us_late", 100),
        ("500_us_late", 500),
        ("600_us_late", 600),
    ] {
        figures.push((name, latency(lab.rows(&[name]), late)?));
    }
    let mut points = Vec::new();
    for late in (0..1_100).step_by(20) {
        points.push((late as f64, latency(lab, late)?));
    }
    let x = Axis::new("woken late by, us", Scale::Linear, |us| format!("{us}"), (0.0, 1_100.0));
    let y = Axis::new("latency, us", Scale::Linear, |us| format!("{us}"), (0.0, 1_600.0));
    let mut plot = Plot::new("Latency of a packet whose application wakes up late", x, y);
    plot.line("latency from the beginning of the slot", points);
    Ok((figures, vec![plot]))
}

/// Simulates clocks that PTP controls.
pub fn servo_swings(lab: CaseLab<'_>) -> Result<Simulated, Failure> {
    let runtime = Duration::from_ms(300_000);
    // The values of INET's gPTP showcases.
    let walk =
        Walk { step_ppt: 1_000_000, every: Duration::from_ns(12_500_000), limit_ppt: 100_000_000 };
    let boards = || Boards::new(Duration::ZERO, true).drifting(20, Some(walk));
    let hardware = boards().synchronised(Stamping::Hardware, Duration::ZERO);
    let hardware = hardware.run(lab.rows(&["hardware_least", "hardware_most"]), runtime)?;
    let software = boards().synchronised(Stamping::Software, Duration::from_us(20));
    let rows = ["software_least", "software_most", "software_on_one_side", "true_latency_spread"];
    let software = software.run(lab.rows(&rows), runtime)?;
    let without = Boards::new(Duration::ZERO, true).drifting(20, None);
    let without = without.run(lab.rows(&["without_ptp_per_second"]), runtime)?;
    let [hard, soft] = [(&hardware, 20), (&software, 40)].map(|(run, from)| measured(run, from));
    let spread = soft.iter().map(|m| m.truly[1]).max().unwrap_or(0)
        - soft.iter().map(|m| m.truly[0]).min().unwrap_or(0);
    let least =
        |samples: &[MeasuredSample]| us(samples.iter().map(|m| m.measured[0]).min().unwrap_or(0));
    let most =
        |samples: &[MeasuredSample]| us(samples.iter().map(|m| m.measured[1]).max().unwrap_or(0));
    let ramp = measured(&without, 0);
    let [first, .., last] = ramp[..] else { return Err(too_short("without_ptp_per_second")) };
    let seconds = (last.from.as_ps() - first.from.as_ps()) as f64 / SECOND as f64;
    let slope = us(last.measured[0] - first.measured[0]).abs() / seconds;
    let figures = vec![
        ("true_latency_spread", us(spread)),
        ("hardware_least", least(&hard)),
        ("hardware_most", most(&hard)),
        ("software_least", least(&soft)),
        ("software_most", most(&soft)),
        ("software_on_one_side", one_side(&soft)),
        ("without_ptp_per_second", slope),
    ];
    let plots = vec![
        along("Measured latency, hardware stamps", &hard),
        along("Measured latency, software stamps", &soft),
    ];
    Ok((figures, plots))
}

/// Returns the samples that both boards measured, from second `from` on.
fn measured((observed, packets): &(Observed, StreamId), from: u64) -> Vec<MeasuredSample> {
    let from = Instant::from_ps(from * SECOND);
    let all =
        observed.report.stream(*packets).map(|stream| stream.listeners[0].measured.as_slice());
    all.unwrap_or_default().iter().filter(|sample| sample.from >= from).copied().collect()
}

/// Returns the longest time in seconds in which measured latencies stayed above, or below, the true
/// ones.
fn one_side(samples: &[MeasuredSample]) -> f64 {
    let (mut longest, mut side, mut since) = (0, None, Instant::ZERO);
    for sample in samples {
        let above = sample.measured[0] > sample.truly[0];
        let below = sample.measured[1] < sample.truly[1];
        let now = (above || below).then_some(above);
        if side != now {
            (side, since) = (now, sample.from);
        }
        if side.is_some() {
            longest = longest.max(sample.from.since(since).as_ps());
        }
    }
    longest as f64 / SECOND as f64
}

fn along(title: &str, samples: &[MeasuredSample]) -> Plot {
    let all = samples.iter().flat_map(|sample| sample.measured).map(us);
    let most = all.map(f64::abs).fold(1.0, f64::max) * 1.1;
    let time = |at: Instant| at.as_ps() as f64 / SECOND as f64;
    let [from, to] = [samples.first(), samples.last()].map(|s| s.map_or(0.0, |s| time(s.from)));
    let x = Axis::new("time in s", Scale::Linear, |s| format!("{s}"), (from, to.max(from + 1.0)));
    let y = Axis::new("us", Scale::Linear, |us| format!("{us}"), (-most, most));
    let mut plot = Plot::new(title, x, y);
    plot.line("measured", samples.iter().map(|s| (time(s.from), us(s.measured[1]))));
    plot.line("true", samples.iter().map(|s| (time(s.from), us(s.truly[1]))));
    plot
}

/// Returns a sender whose gate stops at 50.95 ms, closed and 50 us before it would open.
fn stalled(by: Duration) -> Boards {
    Boards::new(Duration::ZERO, false).stalled(Instant::from_ns(50_950_000), by)
}

/// Returns the packets that wait behind a stopped gate, with their latencies in microseconds.
fn late(run: &(Observed, StreamId)) -> Vec<(Arrival, f64)> {
    let all = run.0.arrivals(run.1).iter();
    let all = all.map(|arrival| (*arrival, since_slot(arrival, Duration::ZERO)));
    all.filter(|(_, us)| *us > 500.0).collect()
}

/// Simulates stalls.
pub fn stall(lab: CaseLab<'_>) -> Result<Simulated, Failure> {
    let run = |lab, ms| stalled(Duration::from_ms(ms)).run(lab, Duration::from_ms(1_000));
    let rows = ["short_longest", "short_late", "short_decline", "short_at_once"];
    let short_run = run(lab.rows(&rows), 6)?;
    let long_run = run(lab.rows(&["long_longest", "long_late", "long_at_once"]), 160)?;
    let [short, long] = [&short_run, &long_run].map(late);
    let longest =
        |arrivals: &[(Arrival, f64)]| arrivals.iter().map(|(_, us)| *us).fold(0.0, f64::max);
    let at_once = |arrivals: &[(Arrival, f64)]| match (arrivals.first(), arrivals.last()) {
        (Some((first, _)), Some((last, _))) => us(last.at.since(first.at).as_ps() as i64),
        _ => 0.0,
    };
    let [(_, first), .., (_, last)] = short[..] else { return Err(too_short("short_decline")) };
    let falls = (first - last) / (short.len() - 1) as f64;
    let figures = vec![
        ("short_longest", longest(&short)),
        ("short_late", short.len() as f64),
        ("short_decline", falls),
        ("short_at_once", at_once(&short)),
        ("long_longest", longest(&long)),
        ("long_late", long.len() as f64),
        ("long_at_once", at_once(&long)),
    ];
    let x = Axis::new("sent at, ms", Scale::Linear, |ms| format!("{ms}"), (0.0, 260.0));
    let y = Axis::new("latency, ms", Scale::Linear, |ms| format!("{ms}"), (0.0, 170.0));
    let mut plot = Plot::new("Latencies along time, with a stall of 160 ms", x, y);
    let points = long_run.0.arrivals(long_run.1).iter().map(|arrival| {
        (arrival.created.as_ps() as f64 / 1e9, since_slot(arrival, Duration::ZERO) / 1e3)
    });
    plot.line("latency", points.filter(|(at, _)| *at <= 260.0));
    Ok((figures, vec![plot]))
}

/// Compares a run with and without the packets of its stall.
pub fn data_range(lab: CaseLab<'_>) -> Result<Simulated, Failure> {
    let lab = lab.rows(&["maximum_falls", "mean_falls", "deviation_left"]);
    let run = stalled(Duration::from_ms(6)).run(lab, Duration::from_ms(60_000))?;
    let all: Vec<f64> =
        run.0.arrivals(run.1).iter().map(|arrival| since_slot(arrival, Duration::ZERO)).collect();
    let skipped = (SECOND / INTERVAL.as_ps()) as usize;
    let (whole, quiet) = (&all[..], &all[skipped.min(all.len())..]);
    let most = |values: &[f64]| values.iter().copied().fold(0.0, f64::max);
    let mean = |values: &[f64]| values.iter().sum::<f64>() / values.len() as f64;
    let middle = mean(quiet);
    let squares = quiet.iter().map(|us| (us - middle).powi(2)).sum::<f64>();
    let figures = vec![
        ("maximum_falls", most(whole) - most(quiet)),
        ("mean_falls", mean(whole) - middle),
        ("deviation_left", (squares / quiet.len() as f64).sqrt()),
    ];
    Ok((figures, Vec::new()))
}
