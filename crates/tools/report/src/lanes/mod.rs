//! Lanes along one time axis: open and closed intervals, boxes on a line, lengths of a queue, and
//! credit.

mod draw;
#[cfg(test)]
mod tests;

use super::{colour, escape};

/// The colours of bands.
const OPEN: &str = "#d3efe4";
const CLOSED: &str = "#b3bcc5";
const HELD: &str = "#882255";
/// The colour of the selected box.
const CHOSEN: &str = "#b00020";
/// The colour of preamble, gap and other overhead of a frame.
const OVERHEAD: &str = "#1c2733";

/// The meaning of an interval on a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// Everything may pass.
    Open,
    /// Nothing may pass.
    Closed,
    /// Nothing that can be interrupted may pass.
    Held,
}

/// The kind of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A box that cannot be interrupted.
    Whole,
    /// A box that can be interrupted.
    Interruptible,
    /// The selected box, which the picture shows.
    Chosen,
}

impl Kind {
    fn colour(self) -> &'static str {
        match self {
            Self::Whole => colour(0),
            Self::Interruptible => colour(4),
            Self::Chosen => CHOSEN,
        }
    }
}

/// A box that occupies a line for some time.
#[derive(Clone, Debug)]
pub struct Occupied {
    /// Start and end.
    pub span: (f64, f64),
    /// Time of the overhead at the start and at the end.
    pub overhead: (f64, f64),
    /// Kind of the box.
    pub kind: Kind,
    /// Label inside the box, if there is room.
    pub name: String,
    /// Description, shown as a tooltip.
    pub title: String,
    /// End of the previous piece, if this box continues an interrupted one.
    pub since: Option<f64>,
}

/// A step line or a line.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// A one-word label.
    pub name: &'static str,
    /// Unit of the values.
    pub unit: &'static str,
    /// Times and values.
    pub points: Vec<(f64, f64)>,
}

/// One lane. Times are nanoseconds since the left end.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Heading of the lane.
    pub name: String,
    /// Bands behind the boxes.
    pub bands: Vec<(f64, f64, Band)>,
    /// Boxes in order of time.
    pub boxes: Vec<Occupied>,
    /// A wait above the boxes: start, end and label.
    pub wait: Option<(f64, f64, String)>,
    /// Step line: each value holds until the next point.
    pub steps: Option<Course>,
    /// Crosses on the steps: time and meaning.
    pub crosses: Vec<(f64, String)>,
    /// Line: values are linear between points.
    pub line: Option<Course>,
}

/// Lanes that are stacked vertically.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// The description for screen readers.
    pub title: String,
    /// Length of the lanes in nanoseconds.
    pub length: f64,
    /// The lanes from top to bottom.
    pub lanes: Vec<Lane>,
    /// Labels of the key: open, closed and held; whole, interruptible and selected; overhead.
    pub words: Words,
}

/// The meanings of the colours.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// Labels by [`Band`].
    pub bands: [&'static str; 3],
    /// Labels by [`Kind`].
    pub kinds: [&'static str; 3],
    /// Label of the dark ends of boxes.
    pub overhead: &'static str,
    /// Label of the line that joins pieces.
    pub joined: &'static str,
    /// Label of crosses.
    pub crosses: &'static str,
}

impl Lanes {
    /// Draws the picture.
    pub fn svg(&self) -> String {
        draw::svg(self)
    }

    /// Returns the key of the colours that the picture contains.
    pub fn key(&self) -> String {
        let Words { bands, kinds, overhead, joined, crosses } = self.words;
        let any = |has: &dyn Fn(&Lane) -> bool| self.lanes.iter().any(has);
        let swatch = |colour: &str, words: &str| {
            let words = escape(words);
            format!("<li><span class=\"swatch\" style=\"background:{colour}\"></span>{words}</li>")
        };
        let mut out = String::new();
        for (band, colour, words) in [
            (Band::Open, OPEN, bands[0]),
            (Band::Closed, CLOSED, bands[1]),
            (Band::Held, HELD, bands[2]),
        ] {
            if any(&|lane| lane.bands.iter().any(|(.., kind)| *kind == band)) {
                out += &swatch(colour, words);
            }
        }
        for (kind, words) in [Kind::Whole, Kind::Interruptible, Kind::Chosen].into_iter().zip(kinds)
        {
            if any(&|lane| lane.boxes.iter().any(|one| one.kind == kind)) {
                out += &swatch(kind.colour(), words);
            }
        }
        let x = draw::Scale::new(self);
        let dark = |one: &Occupied| x.shows(one.overhead.0) || x.shows(one.overhead.1);
        if any(&|lane| lane.boxes.iter().any(dark)) {
            out += &swatch(OVERHEAD, overhead);
        }
        let line = |path: &str, colour: &str, words: &str| {
            format!(
                "<li><svg width=\"26\" height=\"10\" aria-hidden=\"true\"><path d=\"{path}\" \
                 fill=\"none\" stroke=\"{colour}\" stroke-width=\"1.8\"/></svg> {}</li>",
                escape(words)
            )
        };
        if any(&|lane| lane.boxes.iter().any(|one| one.since.is_some())) {
            out += &line("M0 5h26", Kind::Interruptible.colour(), joined);
        }
        if any(&|lane| !lane.crosses.is_empty()) {
            out += &line("M9 1l8 8m0 -8l-8 8", CHOSEN, crosses);
        }
        format!("<ul class=\"key\">{out}</ul>")
    }
}
