//! Rows of marks on one axis: values of cases, without interpolation.

use super::{Axis, colour, escape, svg};

/// Width of the picture, and the space at each side for half of an axis label, in pixels.
const WIDTH: f64 = 440.0;
const SIDE: f64 = 24.0;
/// Height of a row with its name, distance of the marks from the top of the row, and height of the
/// axis, in pixels.
const ROW: f64 = 34.0;
const LINE: f64 = 23.0;
const AXIS: f64 = 34.0;
const HALF: f64 = 4.5;
const WIDE: f64 = 2.0 * HALF;
/// Colour of values beyond the limit, as of warnings on pages.
const BAD: &str = "#b00020";

/// A case.
#[derive(Clone, Debug)]
pub struct DotRow {
    /// Name of the case.
    pub name: String,
    /// Text at the other end of the row.
    pub note: String,
    /// Whether the note describes a problem.
    pub bad: bool,
    /// Values by series.
    pub values: Vec<Vec<f64>>,
    /// Confidence interval of the first series, drawn as a bar.
    pub interval: Option<[f64; 2]>,
}

/// A row for each case, with a mark for each value.
#[derive(Clone, Debug)]
pub struct Dots {
    /// The description for screen readers.
    pub title: String,
    /// Axis from left to right.
    pub axis: Axis,
    /// Names of the series.
    pub series: Vec<String>,
    /// The cases.
    pub rows: Vec<DotRow>,
    /// Position of the limit line; marks beyond it are red.
    pub limit: Option<f64>,
}

impl Dots {
    /// Returns the picture, and the key if there are several series.
    pub fn html(&self) -> String {
        let bottom = ROW * self.rows.len() as f64;
        let mut out = svg(WIDTH, bottom + AXIS, &self.title);
        for (value, text) in self.axis.labels() {
            let at = self.at(value);
            out += &format!(
                "<path d=\"M{at:.1} 0V{bottom}\" stroke=\"#e3e8ec\"/>\
                 <text x=\"{at:.1}\" y=\"{:.1}\" text-anchor=\"middle\">{}</text>",
                bottom + 13.0,
                escape(&text)
            );
        }
        if let Some(limit) = self.limit {
            let at = self.at(limit);
            out += &format!("<path d=\"M{at:.1} 0V{bottom}\" stroke=\"{BAD}\"/>");
        }
        for (number, row) in self.rows.iter().enumerate() {
            self.row(&mut out, row, ROW * number as f64);
        }
        out += &format!(
            "<text x=\"{WIDTH}\" y=\"{:.1}\" text-anchor=\"end\">{}</text></svg>",
            bottom + 28.0,
            escape(&self.axis.label)
        );
        if self.series.len() > 1 {
            out += &self.key();
        }
        out
    }

    fn at(&self, value: f64) -> f64 {
        SIDE + self.axis.place(value) * (WIDTH - 2.0 * SIDE)
    }

    fn row(&self, out: &mut String, row: &DotRow, top: f64) {
        let style = if row.bad { format!(" style=\"fill:{BAD}\"") } else { String::new() };
        let line = top + LINE;
        *out += &format!(
            "<text x=\"0\" y=\"{0:.1}\" class=\"mark\">{1}</text>\
             <text x=\"{WIDTH}\" y=\"{0:.1}\" text-anchor=\"end\" class=\"mark\"{style}>{2}</text>\
             <path d=\"M{SIDE} {line:.1}H{3:.1}\" stroke=\"#d9dfe5\"/>",
            top + 12.0,
            escape(&row.name),
            escape(&row.note),
            WIDTH - SIDE
        );
        if let Some([low, high]) = row.interval {
            let [left, right] = [low, high].map(|end| self.at(end));
            let [from, to] = [low, high].map(|end| (self.axis.format)(end));
            *out += &format!(
                "<path d=\"M{left:.1} {line:.1}H{right:.1}\" stroke=\"{}\" stroke-width=\"{WIDE}\" \
                 stroke-opacity=\".35\"><title>95 % interval: {}</title></path>",
                colour(0),
                escape(&format!("{from} to {to}")),
            );
        }
        // The first series is drawn on top, so that each shape of equal values is visible.
        for (number, values) in row.values.iter().enumerate().rev() {
            let name = self.series.get(number).map_or("", |name| name.as_str());
            for value in values {
                let is_beyond = self.limit.is_some_and(|limit| *value > limit);
                let paint = if is_beyond { BAD } else { colour(number) };
                let words = format!("{name}: {}", (self.axis.format)(*value));
                *out += &mark(number, self.at(*value), line, paint, &words);
            }
        }
    }

    fn key(&self) -> String {
        let entry = |(number, name): (usize, &String)| {
            let mark = mark(number, 6.0, 6.0, colour(number), name);
            let name = escape(name);
            format!(
                "<li><svg width=\"12\" height=\"12\" aria-hidden=\"true\">{mark}</svg> {name}</li>"
            )
        };
        let entries: String = self.series.iter().enumerate().map(entry).collect();
        format!("<ul class=\"key\">{entries}</ul>")
    }
}

/// Draws a mark of a series. Each series has its own shape, in case colours are not visible.
fn mark(series: usize, x: f64, y: f64, paint: &str, words: &str) -> String {
    let (left, right, top, bottom) = (x - HALF, x + HALF, y - HALF, y + HALF);
    let path = match series % 4 {
        0 => {
            format!("M{left:.1} {y:.1}a{HALF} {HALF} 0 0 0 {WIDE} 0a{HALF} {HALF} 0 0 0 -{WIDE} 0Z")
        }
        1 => format!("M{left:.1} {y:.1}L{x:.1} {top:.1}L{right:.1} {y:.1}L{x:.1} {bottom:.1}Z"),
        2 => format!("M{left:.1} {top:.1}H{right:.1}V{bottom:.1}H{left:.1}Z"),
        _ => format!("M{left:.1} {bottom:.1}H{right:.1}L{x:.1} {top:.1}Z"),
    };
    let words = escape(words);
    format!("<path d=\"{path}\" fill=\"{paint}\" fill-opacity=\".8\"><title>{words}</title></path>")
}
