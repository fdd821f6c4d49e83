//! Plots: lines of several series, distributions, histograms.

use super::{colour, escape, round_time, svg, time};
use crate::latency::Latency;

/// Size of the whole picture, and the space for labels around the plot, in pixels.
const SIZE: (f64, f64) = (440.0, 250.0);
/// Minimum space at the left in pixels; long labels need more.
const LEFT: f64 = 58.0;
/// Approximate width of a character of a label, and the space beside a label, in pixels.
const CHARACTER: f64 = 6.2;
const BESIDE: f64 = 24.0;
const RIGHT: f64 = 14.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 40.0;
/// Dash patterns, which distinguish series if colours are not visible.
const DASHES: [&str; 4] = ["", "6 3", "2 3", "8 3 2 3"];
/// Number of drawn quantiles of a distribution.
const STEPS: u32 = 200;
const LAST: f64 = 0.999;
/// Number of bars of a histogram.
const BINS: usize = 48;

/// The scale of an axis.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scale {
    /// Linear.
    Linear,
    /// Linear, with labels only at whole numbers.
    Whole,
    /// Logarithmic; values are above 0.
    Log,
}

/// One direction of a plot.
#[derive(Clone, Debug)]
pub struct Axis {
    /// The quantity of the axis.
    pub label: String,
    /// Scale of the axis.
    pub scale: Scale,
    /// Formats a value.
    pub format: fn(f64) -> String,
    /// The smallest and the largest value.
    pub range: (f64, f64),
}

/// A line.
#[derive(Clone, Debug)]
pub struct Series {
    /// Name of the series.
    pub name: String,
    /// Points in the order in which they are joined.
    pub points: Vec<(f64, f64)>,
}

/// Lines in one plot.
#[derive(Clone, Debug)]
pub struct Plot {
    /// The description for screen readers.
    pub title: String,
    /// Axis from left to right.
    pub x: Axis,
    /// Axis from bottom to top.
    pub y: Axis,
    /// The drawn lines.
    pub series: Vec<Series>,
    /// Bars below the lines: left, right, value.
    pub bars: Vec<(f64, f64, f64)>,
    /// Positions on the x axis, each with a label.
    pub marks: Vec<(f64, String)>,
    /// Labels below the x axis and their positions, instead of round values.
    pub names: Vec<(f64, String)>,
}

impl Axis {
    /// Creates an axis.
    pub fn new(label: &str, scale: Scale, format: fn(f64) -> String, range: (f64, f64)) -> Self {
        Self { label: label.to_owned(), scale, format, range }
    }

    /// Creates a logarithmic axis of times in nanoseconds, from `least` to `greatest`.
    pub fn times(label: &str, least: f64, greatest: f64) -> Self {
        let least = least.max(1.0);
        let range = (least, greatest.max(least * 1.2));
        Self::new(label, Scale::Log, round_time, range)
    }

    /// Creates an axis from 0 to 1 in per cent.
    pub fn shares(label: &str) -> Self {
        Self::new(label, Scale::Linear, |share| format!("{:.0} %", share * 100.0), (0.0, 1.0))
    }

    /// Returns the position of a value on the axis, 0 to 1.
    pub(super) fn place(&self, value: f64) -> f64 {
        let (low, high) = self.range;
        match self.scale {
            Scale::Linear | Scale::Whole => (value - low) / (high - low),
            Scale::Log => (value.max(low * 1e-9) / low).ln() / (high / low).ln(),
        }
        .clamp(0.0, 1.0)
    }

    /// Returns a few round values with different texts.
    pub fn labels(&self) -> Vec<(f64, String)> {
        let mut parts = 6.0;
        loop {
            let labels: Vec<_> =
                self.ticks(parts).into_iter().map(|at| (at, (self.format)(at))).collect();
            // Fewer and rounder values have shorter texts.
            if labels.windows(2).all(|pair| pair[0].1 != pair[1].1) {
                return labels;
            }
            parts /= 2.0;
        }
    }

    /// Returns the products of these first digits and powers of ten that are in the range of the
    /// axis.
    fn decimal(&self, digits: &[f64]) -> Vec<f64> {
        let (low, high) = self.range;
        let powers = low.log10().floor() as i32..=high.log10().ceil() as i32;
        let all = powers.flat_map(|p| digits.iter().map(move |d| d * 10f64.powi(p)));
        all.filter(|value| (low..=high).contains(value)).collect()
    }

    /// Returns about `parts` round values, or fewer.
    pub(super) fn ticks(&self, parts: f64) -> Vec<f64> {
        let (low, high) = self.range;
        let decades = (high / low).log10();
        match self.scale {
            Scale::Log if parts >= 1.0 && decades > 0.3 => {
                let coarsest = [2.5, 1.2, 0.6].iter().filter(|least| decades <= **least).count();
                let with = |digits: &&[f64]| self.decimal(digits);
                let all = DIGITS[coarsest..].iter().map(with).find(|all| all.len() > 1);
                all.unwrap_or_default()
            }
            // Within a factor of two, a logarithmic axis is nearly linear.
            _ => {
                let least = if self.scale == Scale::Whole { 1.0 } else { 0.0 };
                let step = step((high - low) / parts).max(least);
                let first = (low / step).ceil() as i64;
                (first..).map(|n| n as f64 * step).take_while(|v| *v <= high * 1.000_001).collect()
            }
        }
    }
}

/// First digits of the round values of a logarithmic axis, from few to many.
const DIGITS: [&[f64]; 4] =
    [&[1.0], &[1.0, 3.0], &[1.0, 2.0, 5.0], &[1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0]];

/// Returns 1, 2 or 5 times a power of ten, at least `rough`.
fn step(rough: f64) -> f64 {
    let power = 10f64.powf(rough.max(1e-12).log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|factor| factor * power >= rough * 0.999_999);
    factor.unwrap_or(10.0) * power
}

impl Plot {
    /// Creates an empty plot.
    pub fn new(title: &str, x: Axis, y: Axis) -> Self {
        let (series, bars) = (Vec::new(), Vec::new());
        let (marks, names) = (Vec::new(), Vec::new());
        Self { title: title.to_owned(), x, y, series, bars, marks, names }
    }

    /// Adds a line.
    pub fn line(&mut self, name: &str, points: impl IntoIterator<Item = (f64, f64)>) {
        let points = points.into_iter().collect();
        self.series.push(Series { name: name.to_owned(), points });
    }

    /// Returns the position of the y axis in pixels: the longest label of the axis fits to the left
    /// of it.
    fn left(&self) -> f64 {
        let lengths = self.y.labels().into_iter().map(|(_, text)| text.chars().count());
        (lengths.max().unwrap_or(0) as f64 * CHARACTER + BESIDE).max(LEFT)
    }

    /// Returns the position of an x value, if the y axis is at `left`.
    fn at(&self, left: f64, x: f64) -> f64 {
        left + self.x.place(x) * (SIZE.0 - left - RIGHT)
    }

    fn level(&self, y: f64) -> f64 {
        TOP + (1.0 - self.y.place(y)) * (SIZE.1 - TOP - BOTTOM)
    }

    /// Returns the picture, and the key if there are several lines.
    pub fn html(&self) -> String {
        let mut out = svg(SIZE.0, SIZE.1, &self.title);
        let left = self.left();
        self.grid(&mut out, left);
        for (from, to, value) in &self.bars {
            let (from, to) = (self.at(left, *from), self.at(left, *to));
            let top = self.level(*value);
            let height = SIZE.1 - BOTTOM - top;
            let width = (to - from - 0.6).max(0.4);
            out += &format!(
                "<rect x=\"{from:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
                 fill=\"{}\" fill-opacity=\".75\"/>",
                colour(0)
            );
        }
        let series = self.series.iter().enumerate();
        series.for_each(|(number, one)| self.drawn(&mut out, left, number, one));
        self.marks(&mut out, left);
        out += "</svg>";
        if self.series.len() > 1 {
            out += &self.key();
        }
        out
    }

    fn grid(&self, out: &mut String, left: f64) {
        let (right, bottom) = (SIZE.0 - RIGHT, SIZE.1 - BOTTOM);
        for (tick, text) in self.y.labels() {
            let at = self.level(tick);
            *out += &format!(
                "<path d=\"M{left:.1} {at:.1}H{right}\" stroke=\"#e3e8ec\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>",
                left - 5.0,
                at + 3.8,
                escape(&text)
            );
        }
        self.columns(out, left);
        *out += &format!(
            "<path d=\"M{left:.1} {TOP}V{bottom}H{right}\" fill=\"none\" stroke=\"#5b6875\"/>\
             <text x=\"{right}\" y=\"{:.1}\" text-anchor=\"end\">{}</text>\
             <text transform=\"translate(11 {:.1}) rotate(-90)\" text-anchor=\"middle\">{}</text>",
            SIZE.1 - 7.0,
            escape(&self.x.label),
            (TOP + bottom) / 2.0,
            escape(&self.y.label),
        );
    }

    /// Draws vertical grid lines, and the labels below them.
    fn columns(&self, out: &mut String, left: f64) {
        let all = if self.names.is_empty() { self.x.labels() } else { self.names.clone() };
        let bottom = SIZE.1 - BOTTOM;
        let mut free = f64::NEG_INFINITY;
        for (place, name) in all {
            let at = self.at(left, place);
            *out += &format!("<path d=\"M{at:.1} {TOP}V{bottom}\" stroke=\"#e3e8ec\"/>");
            let half = name.chars().count() as f64 * CHARACTER / 2.0;
            let middle = at.min(SIZE.0 - half);
            // A label that would touch the previous one is left out.
            if middle - half < free {
                continue;
            }
            free = middle + half + CHARACTER;
            *out += &format!(
                "<text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 15.0,
                escape(&name)
            );
        }
    }

    fn drawn(&self, out: &mut String, left: f64, number: usize, series: &Series) {
        let points = series.points.iter();
        let points: Vec<String> = points
            .map(|(x, y)| format!("{:.1},{:.1}", self.at(left, *x), self.level(*y)))
            .collect();
        *out += &format!(
            "<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"1.8\" stroke-linejoin=\"round\" \
             stroke-dasharray=\"{}\" points=\"{}\"><title>{}</title></polyline>",
            colour(number),
            DASHES[number % DASHES.len()],
            points.join(" "),
            escape(&series.name)
        );
    }

    /// Draws marks from right to left. Each label begins below the labels to its right that it
    /// would overlap.
    fn marks(&self, out: &mut String, left: f64) {
        let mut marks: Vec<&(f64, String)> = self.marks.iter().collect();
        marks.sort_by(|a, b| b.0.total_cmp(&a.0));
        for (number, (place, name)) in marks.into_iter().enumerate() {
            let (at, top) = (self.at(left, *place), TOP + 13.0 * number as f64);
            let wide = name.chars().count() as f64 * CHARACTER;
            let (shift, anchor) =
                if at - wide - 6.0 > left { (-4.0, "end") } else { (4.0, "start") };
            *out += &format!(
                "<path d=\"M{at:.1} {top:.1}V{}\" stroke=\"#1c2733\" stroke-dasharray=\"3 3\"/>\
                 <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\" class=\"mark\">{}</text>",
                SIZE.1 - BOTTOM,
                at + shift,
                top + 10.0,
                escape(name)
            );
        }
    }

    fn key(&self) -> String {
        let entry = |(number, series): (usize, &Series)| {
            format!(
                "<li><svg width=\"26\" height=\"8\" aria-hidden=\"true\"><path d=\"M0 4h26\" \
                 stroke=\"{}\" stroke-width=\"2.2\" stroke-dasharray=\"{}\"/></svg> {}</li>",
                colour(number),
                DASHES[number % DASHES.len()],
                escape(&series.name)
            )
        };
        let entries: String = self.series.iter().enumerate().map(entry).collect();
        format!("<ul class=\"key\">{entries}</ul>")
    }
}

/// Plots cumulative distributions: the share of samples up to each latency. Every sample counts;
/// the largest thousandth is beyond the right end.
pub fn distribution(title: &str, all: &[(String, &Latency)]) -> Plot {
    let some = || all.iter().filter(|(_, latency)| latency.count() > 0);
    let least = some().map(|(_, latency)| latency.quantile_ns(0.0)).min().unwrap_or(1);
    let most = some().map(|(_, latency)| latency.quantile_ns(LAST)).max().unwrap_or(10);
    let x = Axis::times("latency, logarithmic", least as f64 * 0.95, most as f64 * 1.05);
    let mut plot = Plot::new(title, x, Axis::shares("share of commands"));
    for (name, latency) in some() {
        let shares = (0..=STEPS).map(|step| f64::from(step) / f64::from(STEPS) * LAST);
        let points = shares.map(|share| (latency.quantile_ns(share).max(1) as f64, share));
        plot.line(name, points);
    }
    plot
}

/// Plots a histogram of latencies, with median and 99th percentile.
pub fn histogram(title: &str, latency: &Latency) -> Plot {
    let (least, most) = (latency.quantile_ns(0.0).max(1), latency.quantile_ns(1.0).max(2));
    let x = Axis::times("latency, logarithmic", least as f64 * 0.95, most as f64 * 1.05);
    let (low, high) = x.range;
    let ratio = (high / low).powf(1.0 / BINS as f64);
    let edge = |bin: usize| low * ratio.powi(bin as i32);
    let mut counts = vec![0u64; BINS];
    for (_, largest, count) in latency.bins().used() {
        let ns = (largest as f64).clamp(low, high);
        let bin = ((ns / low).ln() / ratio.ln()) as usize;
        counts[bin.min(BINS - 1)] += count;
    }
    let top = counts.iter().copied().max().unwrap_or(1).max(1) as f64;
    // The range has room for the labels of two marks.
    let range = (0.0, top * 1.2);
    let y = Axis::new("commands", Scale::Whole, |count| format!("{count:.0}"), range);
    let mut plot = Plot::new(title, x, y);
    let bars = counts.iter().enumerate().filter(|(_, count)| **count > 0);
    plot.bars = bars.map(|(bin, count)| (edge(bin), edge(bin + 1), *count as f64)).collect();
    for (share, name) in [(0.5, "median"), (0.99, "p99")] {
        let ns = latency.quantile_ns(share) as f64;
        plot.marks.push((ns, format!("{name} {}", time(ns))));
    }
    plot
}
