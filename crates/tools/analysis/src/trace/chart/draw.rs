//! Draws the diagram as SVG: plain shapes and text, without scripts and external references.
//!
//! The directions differ in colour and in lightness, and have arrows, so that they can be
//! distinguished in a black-and-white print.

use super::labels::{self, Label, Line};
use super::layout::{HEIGHT, LEFT, LINE, TOP, spread, tick};
use super::{Band, Chart, Column, Group, MOST_LINES, is_bad};
use crate::commands::Direction;
use crate::trace::locations::{Location, Point};
use crate::trace::path::Stage;
use report::escape;
use report::span::micros;

/// Width of the space at the right for the length of the command and the scale.
const RIGHT: f64 = 76.0;
const DOWN: &str = "#123f73";
const UP: &str = "#d06c00";
const MEDIA: &str = "#4b7f52";
const BAD: &str = "#b00020";
const STYLE: &str = "\
.sequence text{font-family:Helvetica,Arial,'Liberation Sans',sans-serif;font-size:11px;fill:#111}\
.sequence .title{font-size:16px;font-weight:bold}.sequence .small{font-size:10px;fill:#555}\
.sequence .stage{font-size:13px;font-weight:bold}.sequence .axis{stroke:#111;stroke-width:1}\
.sequence .grid{stroke:#ddd;stroke-width:.6}.sequence .location{stroke:#111;stroke-width:1.2}\
.sequence .unseen{stroke:#aaa;stroke-width:1;stroke-dasharray:3 3}\
.sequence .leader{stroke:#888;stroke-width:.6;fill:none}\
.sequence .halo{fill:#fff;fill-opacity:.88}\
.sequence .frame{stroke-linecap:butt;stroke-width:7;stroke-opacity:.28}\
.sequence .tlp{fill:none;stroke-width:1.3}";

/// Draws the whole SVG document.
pub(super) fn svg(chart: &Chart) -> String {
    let right = chart.columns.last().map_or(LEFT, |column| column.right) + RIGHT;
    let bottom = TOP + HEIGHT;
    let height = bottom + 74.0 + 14.0 * chart.footer.len() as f64;
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sequence\" viewBox=\"0 0 {right:.0} {height:.0}\" \
         width=\"{right:.0}\" height=\"{height:.0}\" role=\"img\">\n\
         <title>{}</title>\n<style>{STYLE}</style>\n<defs>{}</defs>\n\
         <rect width=\"100%\" height=\"100%\" fill=\"#fff\"/>\n",
        escape(&chart.title),
        defs(),
    );
    text(&mut out, 18.0, 28.0, "title", "start", &chart.title);
    text(&mut out, 18.0, 46.0, "small", "start", &chart.subtitle);
    chart.columns.iter().for_each(|column| stage(&mut out, column));
    gates(&mut out, chart);
    axis(&mut out, chart, right - RIGHT);
    locations(&mut out, chart);
    chart.bands.iter().for_each(|band| frame(&mut out, chart, band));
    media(&mut out, chart);
    chart.groups.iter().for_each(|group| tlps(&mut out, chart, group));
    frame_labels(&mut out, chart);
    tlp_labels(&mut out, chart, Direction::Down);
    tlp_labels(&mut out, chart, Direction::Up);
    total(&mut out, chart, right - RIGHT + 16.0);
    scale(&mut out, chart, right - RIGHT + 34.0);
    legend(&mut out, chart, bottom + 40.0);
    for (i, line) in chart.footer.iter().enumerate() {
        text(&mut out, 18.0, bottom + 66.0 + 14.0 * i as f64, "small", "start", line);
    }
    out + "</svg>\n"
}

fn defs() -> String {
    let arrow = |name: &str, colour: &str| {
        format!(
            "<marker id=\"{name}\" viewBox=\"0 0 10 10\" refX=\"9.5\" refY=\"5\" \
             markerWidth=\"7\" markerHeight=\"7\" orient=\"auto\" \
             markerUnits=\"userSpaceOnUse\"><path d=\"M0 .8L10 5L0 9.2z\" fill=\"{colour}\"/>\
             </marker>"
        )
    };
    let hatch = "<pattern id=\"hatch\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
                 patternTransform=\"rotate(45)\"><rect width=\"7\" height=\"7\" fill=\"#fafafa\"/>\
                 <path d=\"M0 0V7\" stroke=\"#e2e2e2\" stroke-width=\"2\"/></pattern>";
    arrow("down", DOWN) + &arrow("up", UP) + &arrow("bad", BAD) + hatch
}

fn text(out: &mut String, x: f64, y: f64, class: &str, anchor: &str, words: &str) {
    let words = escape(words);
    *out += &format!(
        "<text class=\"{class}\" x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{words}</text>\n"
    );
}

fn width(words: &str, size: f64) -> f64 {
    words.chars().count() as f64 * size * 0.52
}

fn colour(group: &Group) -> (&'static str, &'static str) {
    match (is_bad(&group.first), group.first.direction) {
        (true, _) => (BAD, "bad"),
        (false, Direction::Down) => (DOWN, "down"),
        (false, Direction::Up) => (UP, "up"),
    }
}

fn y(chart: &Chart, at: i64) -> f64 {
    TOP + (at - chart.first) as f64 / (chart.last - chart.first) as f64 * HEIGHT
}

/// Draws a stage's heading. A hatched background with "not observed" marks a stage that no trace
/// covers, a pale background the network.
fn stage(out: &mut String, column: &Column) {
    let Column { stage, left, right, seen } = column;
    let (middle, width) = ((left + right) / 2.0, right - left);
    let background = match (seen, stage) {
        (false, _) => Some(("class=\"not-observed\" ", "url(#hatch)")),
        (true, Stage::Network) => Some(("", "#f4f6f8")),
        (true, _) => None,
    };
    if let Some((class, fill)) = background {
        let (top, height) = (TOP - 12.0, HEIGHT + 24.0);
        *out += &format!(
            "<rect {class}x=\"{left:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
             height=\"{height:.1}\" fill=\"{fill}\"/>\n"
        );
    }
    if !seen {
        text(out, middle, TOP - 20.0, "small", "middle", "not observed");
    }
    text(out, middle, TOP - 36.0, "stage", "middle", stage.name());
}

/// Draws closed gates in the network's column: at the left the gates on the way from the host, at
/// the right the gates on the way to the host.
fn gates(out: &mut String, chart: &Chart) {
    for column in chart.columns.iter().filter(|column| column.stage == Stage::Network) {
        for closed in &chart.gates {
            let width = (column.right - column.left) / 2.0;
            let x = if closed.up { column.left + width } else { column.left };
            let (top, bottom) = (y(chart, closed.from), y(chart, closed.to));
            *out += &format!(
                "<rect class=\"closed\" x=\"{x:.1}\" y=\"{top:.1}\" width=\"{width:.1}\" \
                 height=\"{:.1}\" fill=\"#8a97a3\" fill-opacity=\".38\"/>\n",
                bottom - top
            );
        }
    }
}

/// Draws the time axis with ticks and grid, from the start of the command.
fn axis(out: &mut String, chart: &Chart, right: f64) {
    let span = (chart.last - chart.first) as f64;
    let step = tick(span, 12.0);
    let decimals =
        if step < 10.0 { 3 } else { (4.0 - step.log10().ceil()).clamp(0.0, 3.0) as usize };
    text(out, LEFT - 10.0, TOP - 36.0, "small", "end", "time in us");
    let mut number = (chart.first as f64 / step).ceil() as i64;
    while number as f64 * step <= chart.last as f64 {
        let at = number as f64 * step;
        let y = y(chart, at as i64);
        *out += &format!(
            "<line class=\"grid\" x1=\"{LEFT:.1}\" y1=\"{y:.1}\" x2=\"{right:.1}\" y2=\"{y:.1}\"/>\n"
        );
        let label = format!("{:.decimals$}", at / 1000.0);
        text(out, LEFT - 10.0, y + 3.5, "small", "end", &label);
        number += 1;
    }
}

fn locations(out: &mut String, chart: &Chart) {
    for pair in chart.columns.windows(2) {
        let class = if pair[0].seen || pair[1].seen { "location" } else { "unseen" };
        let x = pair[0].right;
        let (top, bottom) = (TOP - 12.0, TOP + HEIGHT + 12.0);
        *out += &format!(
            "<line class=\"{class}\" x1=\"{x:.1}\" y1=\"{top:.1}\" x2=\"{x:.1}\" y2=\"{bottom:.1}\"/>\n"
        );
    }
}

fn frame(out: &mut String, chart: &Chart, band: &Band) {
    let stroke = if band.frame.up { UP } else { DOWN };
    *out += &format!(
        "<line class=\"frame\" stroke=\"{stroke}\" x1=\"{:.1}\" y1=\"{:.1}\" x2=\"{:.1}\" \
         y2=\"{:.1}\"><title>frame {}</title></line>\n",
        chart.x(band.from.location),
        y(chart, band.from.at),
        chart.x(band.to.location),
        y(chart, band.to.at),
        band.frame.sequence,
    );
}

/// Draws accesses to the media as bars along the drive's side.
fn media(out: &mut String, chart: &Chart) {
    let x = chart.x(Location::Function);
    for (from, to, words) in &chart.media {
        let (top, bottom) = (y(chart, *from), y(chart, *to));
        *out += &format!(
            "<rect class=\"media\" x=\"{x:.1}\" y=\"{top:.2}\" width=\"7\" height=\"{:.2}\" \
             fill=\"{MEDIA}\"><title>{}</title></rect>\n",
            (bottom - top).max(1.0),
            escape(words)
        );
    }
}

/// Draws a label along each frame that has room for one.
fn frame_labels(out: &mut String, chart: &Chart) {
    for column in chart.columns.iter().filter(|column| column.stage == Stage::Network) {
        let inside = |point: &Point| {
            (column.left - 0.5..=column.right + 0.5).contains(&chart.x(point.location))
        };
        let bands = chart.bands.iter().filter(|band| inside(&band.from) && inside(&band.to));
        let bands: Vec<(&Band, String)> = bands.map(|band| (band, frame_words(band))).collect();
        let line = |(band, words): &(&Band, String)| {
            let end = |point: &Point| (chart.x(point.location), y(chart, point.at));
            let (mut from, mut to) = (end(&band.from), end(&band.to));
            if from.0 > to.0 {
                std::mem::swap(&mut from, &mut to);
            }
            (Line { from, to }, width(words, 10.0))
        };
        let lines: Vec<(Line, f64)> = bands.iter().map(line).collect();
        let room = [column.left, TOP - 16.0, column.right, TOP + HEIGHT + 14.0];
        for ((_, words), label) in bands.iter().zip(labels::place(&lines, room)) {
            if let Some(label) = label {
                frame_label(out, &label, words);
            }
        }
    }
}

fn frame_words(band: &Band) -> String {
    let s = if band.frame.tlps == 1 { "" } else { "s" };
    format!("frame {}: {} TLP{s}, {} B", band.frame.sequence, band.frame.tlps, band.frame.bytes)
}

fn frame_label(out: &mut String, label: &Label, words: &str) {
    let ((x, y), angle) = (label.at, label.angle.to_degrees());
    let down = if label.below { "13" } else { "-7" };
    *out += &format!(
        "<text class=\"small frame-label\" text-anchor=\"middle\" \
         transform=\"translate({x:.1} {y:.1}) rotate({angle:.1})\" dy=\"{down}\">{words}</text>\n"
    );
}

/// Draws the lines of a group. Of a long group only the first and the last line are drawn, and a
/// surface between.
fn tlps(out: &mut String, chart: &Chart, group: &Group) {
    let (stroke, marker) = colour(group);
    *out += &format!("<g class=\"tlp {marker}\" stroke=\"{stroke}\">\n");
    *out += &format!("<title>{}, packet {}</title>\n", escape(&words(group)), group.first.number);
    let lines: Vec<&Vec<Point>> = group.lines.iter().filter(|line| !line.is_empty()).collect();
    match lines[..] {
        [first, .., last] if lines.len() > MOST_LINES && first.len() == last.len() => {
            surface(out, chart, first, last, stroke);
            line(out, chart, first, marker);
            line(out, chart, last, marker);
        }
        _ => lines.iter().for_each(|points| line(out, chart, points, marker)),
    }
    out.push_str("</g>\n");
}

fn places(chart: &Chart, points: &[Point]) -> Vec<String> {
    let place = |point: &Point| format!("{:.1},{:.2}", chart.x(point.location), y(chart, point.at));
    points.iter().map(place).collect()
}

fn line(out: &mut String, chart: &Chart, points: &[Point], marker: &str) {
    let places = places(chart, points);
    if let [place] = &places[..] {
        // The TLP was seen at one point only.
        let (x, y) = place.split_once(',').unwrap_or_default();
        *out += &format!("<circle cx=\"{x}\" cy=\"{y}\" r=\"2.5\"/>\n");
    } else {
        let places = places.join(" ");
        *out += &format!("<polyline points=\"{places}\" marker-end=\"url(#{marker})\"/>\n");
    }
}

fn surface(out: &mut String, chart: &Chart, first: &[Point], last: &[Point], fill: &str) {
    let mut places_all = places(chart, first);
    places_all.extend(places(chart, last).into_iter().rev());
    *out += &format!(
        "<polygon points=\"{}\" stroke=\"none\" fill=\"{fill}\" fill-opacity=\".3\"/>\n",
        places_all.join(" ")
    );
}

fn words(group: &Group) -> String {
    let (count, bytes) = (group.lines.len(), group.bytes[0]);
    let bad = match (is_bad(&group.first), group.first.from_push) {
        (true, _) => " FAILED",
        (false, true) => " from push",
        (false, false) => "",
    };
    if count == 1 {
        return format!("{}: {}, {bytes} B{bad}", group.first.kind, group.first.tlp);
    }
    if group.bytes.iter().all(|other| *other == bytes) {
        return format!("{}: {count} × {}, {bytes} B each{bad}", group.first.kind, group.first.tlp);
    }
    let sum: u64 = group.bytes.iter().map(|bytes| u64::from(*bytes)).sum();
    format!("{}: {count} × {}, {sum} B in all{bad}", group.first.kind, group.first.tlp)
}

/// Draws labels of the TLPs of one direction, next to the start of their lines.
fn tlp_labels(out: &mut String, chart: &Chart, direction: Direction) {
    let groups: Vec<(&Group, &Point)> = chart
        .groups
        .iter()
        .filter(|group| group.first.direction == direction)
        .filter_map(|group| Some((group, group.lines.iter().find_map(|line| line.first())?)))
        .collect();
    let preferred: Vec<f64> = groups.iter().map(|(_, start)| y(chart, start.at)).collect();
    let places = spread(&preferred, LINE, TOP - 4.0, TOP + HEIGHT + 4.0);
    for (((group, start), place), at) in groups.iter().zip(places).zip(preferred) {
        let words = words(group);
        let x = chart.x(start.location);
        let (side, anchor) = match direction {
            Direction::Down => (-1.0, "end"),
            Direction::Up => (1.0, "start"),
        };
        *out += &format!(
            "<path class=\"leader\" d=\"M{x:.1} {at:.1}L{:.1} {place:.1}H{:.1}\"/>\n",
            x + side * 12.0,
            x + side * 16.0
        );
        let wide = width(&words, 11.0);
        let left = if side < 0.0 { (x - 19.0 - wide).max(LEFT) } else { x + 19.0 };
        *out += &format!(
            "<rect class=\"halo\" x=\"{left:.1}\" y=\"{:.1}\" width=\"{wide:.1}\" height=\"14\"/>\n",
            place - 7.0
        );
        text(out, x + side * 19.0, place + 3.8, "label", anchor, &words);
    }
}

fn legend(out: &mut String, chart: &Chart, at: f64) {
    let mut x = 18.0;
    for (stroke, marker, words) in [(DOWN, "down", "from the host"), (UP, "up", "from the drive")] {
        *out += &format!(
            "<line x1=\"{x:.1}\" y1=\"{at:.1}\" x2=\"{:.1}\" y2=\"{at:.1}\" stroke=\"{stroke}\" \
             stroke-width=\"1.6\" marker-end=\"url(#{marker})\"/>\n",
            x + 34.0
        );
        text(out, x + 40.0, at + 4.0, "legend", "start", words);
        x += 60.0 + width(words, 11.0);
    }
    if !chart.bands.is_empty() {
        *out += &format!(
            "<line class=\"frame\" stroke=\"{DOWN}\" x1=\"{x:.1}\" y1=\"{at:.1}\" x2=\"{:.1}\" \
             y2=\"{at:.1}\"/>\n",
            x + 34.0
        );
        text(out, x + 40.0, at + 4.0, "legend", "start", "frame of the tunnel");
        x += 60.0 + width("frame of the tunnel", 11.0);
    }
    if !chart.gates.is_empty() {
        *out += &format!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"34\" height=\"10\" fill=\"#8a97a3\" \
             fill-opacity=\".38\"/>\n",
            at - 5.0
        );
        let words = "gate closed: left from the host, right from the drive";
        text(out, x + 40.0, at + 4.0, "legend", "start", words);
        x += 60.0 + width(words, 11.0);
    }
    if !chart.media.is_empty() {
        *out += &format!(
            "<rect x=\"{x:.1}\" y=\"{:.1}\" width=\"7\" height=\"12\" fill=\"{MEDIA}\"/>\n",
            at - 6.0
        );
        text(out, x + 13.0, at + 4.0, "legend", "start", "access to the media");
    }
}

fn total(out: &mut String, chart: &Chart, x: f64) {
    let Some(total) = chart.total else { return };
    let (top, bottom) = (y(chart, 0), y(chart, total));
    *out += &format!(
        "<path class=\"axis total\" fill=\"none\" d=\"M{:.1} {top:.1}h8M{x:.1} {top:.1}V{bottom:.1}\
         m-4 0h8\"/>\n",
        x - 4.0
    );
    let middle = (top + bottom) / 2.0;
    let words = format!("{} us", micros(total as u64));
    *out += &format!(
        "<text class=\"legend\" text-anchor=\"middle\" dy=\"-5\" \
         transform=\"translate({x:.1} {middle:.1}) rotate(-90)\">{words}</text>\n"
    );
}

fn scale(out: &mut String, chart: &Chart, x: f64) {
    let span = (chart.last - chart.first) as f64;
    let step = tick(span, 12.0);
    let length = step / span * HEIGHT;
    let top = TOP + HEIGHT - length;
    *out += &format!(
        "<path class=\"axis scale\" fill=\"none\" d=\"M{x:.1} {top:.1}h6m-3 0v{length:.1}m-3 0h6\"/>\n"
    );
    let words = format!("{} us", step / 1000.0);
    text(out, x, top - 5.0, "small", "start", &words);
}
