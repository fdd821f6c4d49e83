//! Draws lanes as SVG.

use super::{Band, CHOSEN, CLOSED, Course, HELD, Kind, Lane, Lanes, OPEN, OVERHEAD, Occupied};
use crate::{Axis, Scale as Layout, escape, ink, round_time};
use std::fmt::Write;

const WIDTH: f64 = 960.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 16.0;
/// Heights of the parts of a lane.
const HEADING: f64 = 20.0;
const WAIT: f64 = 22.0;
const BAND: f64 = 26.0;
const STEPS: f64 = 34.0;
const LINE: f64 = 62.0;
const SPACE: f64 = 6.0;
const AXIS: f64 = 22.0;
/// Distance of a box from the edge of its band.
const INSET: f64 = 4.0;
const CHARACTER: f64 = 6.2;
/// Minimum width of an element in pixels.
const LEAST: f64 = 0.8;

/// Converts times to positions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Scale {
    per_ns: f64,
}

impl Scale {
    pub fn new(lanes: &Lanes) -> Self {
        Self { per_ns: (WIDTH - LEFT - RIGHT) / lanes.length.max(1.0) }
    }

    fn x(self, ns: f64) -> f64 {
        (LEFT + ns * self.per_ns).clamp(LEFT, WIDTH - RIGHT)
    }

    /// Returns whether a span is wide enough to be seen.
    pub fn shows(self, ns: f64) -> bool {
        ns * self.per_ns >= LEAST
    }
}

fn height(lane: &Lane) -> f64 {
    let part = |present: bool, height: f64| if present { height } else { 0.0 };
    HEADING
        + part(lane.wait.is_some(), WAIT)
        + BAND
        + part(lane.steps.is_some(), STEPS)
        + part(lane.line.is_some(), LINE)
        + SPACE
}

/// Draws the picture.
pub(super) fn svg(lanes: &Lanes) -> String {
    let bottom: f64 = lanes.lanes.iter().map(height).sum();
    let title = escape(&lanes.title);
    let mut out = format!(
        "<svg class=\"lanes\" viewBox=\"0 0 {WIDTH} {}\" role=\"img\" aria-label=\"{title}\">",
        bottom + AXIS
    );
    let scale = Scale::new(lanes);
    axis(&mut out, lanes.length, scale, bottom);
    let mut top = 0.0;
    for lane in &lanes.lanes {
        draw(&mut out, lane, lanes.length, scale, top);
        top += height(lane);
    }
    out + "</svg>"
}

/// Draws vertical lines through all lanes, and their times below.
fn axis(out: &mut String, length: f64, scale: Scale, bottom: f64) {
    let axis = Axis::new("", Layout::Linear, round_time, (0.0, length));
    for (at, text) in axis.labels() {
        let x = scale.x(at);
        let half = text.chars().count() as f64 * CHARACTER / 2.0;
        let _ = write!(
            out,
            "<path d=\"M{x:.1} {:.1}V{bottom}\" stroke=\"#d9dfe5\"/>\
             <text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{text}</text>",
            HEADING,
            x.min(WIDTH - half),
            bottom + 15.0
        );
    }
}

fn draw(out: &mut String, lane: &Lane, length: f64, scale: Scale, top: f64) {
    let _ = write!(
        out,
        "<text x=\"0\" y=\"{:.1}\" class=\"mark\">{}</text>",
        top + 14.0,
        escape(&lane.name)
    );
    let mut top = top + HEADING;
    if let Some((from, to, words)) = &lane.wait {
        wait(out, scale, (*from, *to), words, top);
        top += WAIT;
    }
    for (from, to, band) in &lane.bands {
        bands(out, scale, (*from, *to), *band, top);
    }
    // The selected box is drawn on top.
    let about = |one: &&Occupied| one.kind == Kind::Chosen;
    lane.boxes.iter().filter(|one| !about(one)).for_each(|one| occupied(out, scale, one, top));
    lane.boxes.iter().filter(about).for_each(|one| occupied(out, scale, one, top));
    top += BAND;
    if let Some(course) = &lane.steps {
        steps(out, scale, course, length, top);
        crosses(out, scale, &lane.crosses, top);
        top += STEPS;
    }
    if let Some(course) = &lane.line {
        line(out, scale, course, top);
    }
}

/// Draws an interval with end marks, and its label beside or above it.
fn wait(out: &mut String, scale: Scale, (from, to): (f64, f64), words: &str, top: f64) {
    let (left, right, y) = (scale.x(from), scale.x(to), top + 16.0);
    let half = words.chars().count() as f64 * CHARACTER / 2.0;
    let middle = ((left + right) / 2.0).clamp(LEFT + half, WIDTH - RIGHT - half);
    // An interval that began before the picture has no left end mark.
    let end = if from < 0.0 { "" } else { "m0 -4v8" };
    let _ = write!(
        out,
        "<path d=\"M{left:.1} {y}{end}M{left:.1} {y}H{right:.1}m0 -4v8\" fill=\"none\" \
         stroke=\"{CHOSEN}\" stroke-width=\"1.4\"/>\
         <text x=\"{middle:.1}\" y=\"{:.1}\" text-anchor=\"middle\" class=\"mark\">{}</text>",
        y - 5.0,
        escape(words)
    );
}

fn bands(out: &mut String, scale: Scale, (from, to): (f64, f64), band: Band, top: f64) {
    let (left, right) = (scale.x(from), scale.x(to));
    let (fill, top, height) = match band {
        Band::Open => (OPEN, top, BAND),
        Band::Closed => (CLOSED, top, BAND),
        Band::Held => (HELD, top + BAND - INSET, INSET),
    };
    let _ = write!(
        out,
        "<rect x=\"{left:.2}\" y=\"{top:.1}\" width=\"{:.2}\" height=\"{height}\" fill=\"{fill}\"/>",
        right - left
    );
}

fn occupied(out: &mut String, scale: Scale, one: &Occupied, top: f64) {
    let (left, right) = (scale.x(one.span.0), scale.x(one.span.1));
    let (inset, least) = match one.kind {
        Kind::Chosen => (1.0, 3.0),
        _ => (INSET, LEAST),
    };
    let (y, high) = (top + inset, BAND - 2.0 * inset);
    let fill = one.kind.colour();
    if let Some(since) = one.since {
        let from = scale.x(since);
        let _ = write!(
            out,
            "<path d=\"M{from:.2} {0:.1}H{left:.2}\" stroke=\"{fill}\" stroke-width=\"1.8\"/>",
            y + high / 2.0
        );
    }
    let width = (right - left).max(least);
    let _ = write!(
        out,
        "<rect x=\"{left:.2}\" y=\"{y:.1}\" width=\"{width:.2}\" height=\"{high}\" fill=\"{fill}\" \
         stroke=\"#fff\" stroke-width=\"{:.1}\"><title>{}</title></rect>",
        if width > 4.0 { 0.6 } else { 0.0 },
        escape(&one.title)
    );
    let ends = [(left, one.overhead.0), (right, -one.overhead.1)];
    for (at, span) in ends.into_iter().filter(|(_, span)| scale.shows(span.abs())) {
        let wide = span.abs() * scale.per_ns;
        let _ = write!(
            out,
            "<rect x=\"{:.2}\" y=\"{y:.1}\" width=\"{wide:.2}\" height=\"{high}\" \
             fill=\"{OVERHEAD}\" fill-opacity=\".6\"/>",
            if span < 0.0 { at - wide } else { at }
        );
    }
    if one.name.chars().count() as f64 * CHARACTER + 8.0 < width {
        let _ = write!(
            out,
            "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" style=\"fill:{}\">{}</text>",
            (left + right) / 2.0,
            top + 17.0,
            ink(fill),
            escape(&one.name)
        );
    }
}

fn label(out: &mut String, y: f64, text: &str) {
    let text = escape(text);
    let _ =
        write!(out, "<text x=\"{:.1}\" y=\"{y:.1}\" text-anchor=\"end\">{text}</text>", LEFT - 6.0);
}

fn steps(out: &mut String, scale: Scale, course: &Course, length: f64, top: f64) {
    let most = course.points.iter().map(|point| point.1).fold(1.0, f64::max);
    let (low, high) = (top + STEPS - 4.0, top + 6.0);
    let level = |value: f64| low - value / most * (low - high);
    let mut path = format!("M{LEFT} {low:.1}");
    for (at, value) in &course.points {
        let _ = write!(path, "H{:.2}V{:.2}", scale.x(*at), level(*value));
    }
    let _ = write!(path, "H{:.2}", scale.x(length));
    let _ = write!(
        out,
        "<path d=\"{path}V{low:.1}Z\" fill=\"#c9d6e2\"/>\
         <path d=\"{path}\" fill=\"none\" stroke=\"#33475b\" stroke-width=\"1.4\"/>"
    );
    label(out, high + 7.0, &format!("{most:.0} {}", course.unit));
    label(out, low + 2.0, "0");
}

fn crosses(out: &mut String, scale: Scale, crosses: &[(f64, String)], top: f64) {
    for (at, words) in crosses {
        let (x, y) = (scale.x(*at) - 3.5, top + 3.0);
        let _ = write!(
            out,
            "<path d=\"M{x:.1} {y:.1}l7 7m0 -7l-7 7\" stroke=\"{CHOSEN}\" stroke-width=\"1.8\">\
             <title>{}</title></path>",
            escape(words)
        );
    }
}

fn digits(value: f64) -> String {
    let (value, unit) = if value.abs() >= 9999.5 { (value / 1000.0, "k") } else { (value, "") };
    let decimals = usize::from(!unit.is_empty() && value.abs() < 99.95);
    let sign = if value > 0.0 { "+" } else { "" };
    format!("{sign}{value:.decimals$}{unit}").replace('-', "−")
}

fn line(out: &mut String, scale: Scale, course: &Course, top: f64) {
    let values = || course.points.iter().map(|point| point.1);
    let (least, most) = (values().fold(0.0, f64::min), values().fold(0.0, f64::max));
    let (low, high) = (top + LINE - 8.0, top + 8.0);
    let level = |value: f64| low - (value - least) / (most - least).max(1.0) * (low - high);
    for value in [least, most, 0.0] {
        let y = level(value);
        let (stroke, dash) = if value == 0.0 { ("#5b6875", "") } else { ("#9aa5b0", "2 3") };
        let _ = write!(
            out,
            "<path d=\"M{LEFT} {y:.1}H{:.1}\" stroke=\"{stroke}\" stroke-dasharray=\"{dash}\"/>",
            WIDTH - RIGHT
        );
    }
    let points: Vec<String> = course
        .points
        .iter()
        .map(|(at, value)| format!("{:.2},{:.2}", scale.x(*at), level(*value)))
        .collect();
    let _ = write!(
        out,
        "<polyline fill=\"none\" stroke=\"#006b4f\" stroke-width=\"1.6\" points=\"{}\"/>",
        points.join(" ")
    );
    // A label that would touch the previous one is left out.
    let mut used: Vec<f64> = Vec::new();
    for (value, text) in [
        (0.0, format!("{} 0", course.name)),
        (most, format!("{} {}", digits(most), course.unit)),
        (least, format!("{} {}", digits(least), course.unit)),
    ] {
        let y = level(value) + 4.0;
        if used.iter().all(|other| (other - y).abs() >= 11.0) {
            label(out, y, &text);
            used.push(y);
        }
    }
}
