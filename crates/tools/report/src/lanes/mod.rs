//! Lanes along one axis of time: when something is open, what is on a line, how long a queue is,
//! how much credit there is.

mod draw;
#[cfg(test)]
mod tests;

use super::{colour, escape};

/// The colours of bands.
const OPEN: &str = "#d3efe4";
const CLOSED: &str = "#b3bcc5";
const HELD: &str = "#882255";
/// The colour of the box that the picture is about.
const CHOSEN: &str = "#b00020";
/// The colour of preamble, gap and other overhead of a frame.
const OVERHEAD: &str = "#1c2733";

/// The meaning of a stretch of time on a band.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Band {
    /// Something may pass.
    Open,
    /// Nothing may.
    Closed,
    /// Nothing may that can be interrupted.
    Held,
}

/// The kind of a box.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Nothing interrupts it.
    Whole,
    /// It can be interrupted.
    Interruptible,
    /// The one that the picture is about.
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

/// What occupies a line from one time to another.
#[derive(Clone, Debug)]
pub struct Occupied {
    /// From when until when.
    pub span: (f64, f64),
    /// How much of it is overhead at the beginning and at the end.
    pub overhead: (f64, f64),
    /// Its kind.
    pub kind: Kind,
    /// What stands in it where there is room.
    pub name: String,
    /// All about it, for those who point at it.
    pub title: String,
    /// The end of the piece before it, if it continues what was interrupted.
    pub since: Option<f64>,
}

/// A step line or a line.
#[derive(Clone, Debug, Default)]
pub struct Course {
    /// A one-word label.
    pub name: &'static str,
    /// The unit of its values.
    pub unit: &'static str,
    /// Times and values.
    pub points: Vec<(f64, f64)>,
}

/// One lane. Times are nanoseconds since the left end.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    /// Its heading.
    pub name: String,
    /// Bands behind the boxes.
    pub bands: Vec<(f64, f64, Band)>,
    /// Boxes, in the order of time.
    pub boxes: Vec<Occupied>,
    /// A wait above the boxes, with its words.
    pub wait: Option<(f64, f64, String)>,
    /// Steps from a value on to the next one.
    pub steps: Option<Course>,
    /// Crosses on the steps, with what they mean.
    pub crosses: Vec<(f64, String)>,
    /// Values that are linear in between.
    pub line: Option<Course>,
}

/// Lanes above each other.
#[derive(Clone, Debug)]
pub struct Lanes {
    /// The description for screen readers.
    pub title: String,
    /// How long they are, nanoseconds.
    pub length: f64,
    /// From top to bottom.
    pub lanes: Vec<Lane>,
    /// The words of the key for open, closed and held, whole, interruptible and chosen, overhead.
    pub words: Words,
}

/// What the colours mean.
#[derive(Clone, Copy, Debug)]
pub struct Words {
    /// By [`Band`].
    pub bands: [&'static str; 3],
    /// By [`Kind`].
    pub kinds: [&'static str; 3],
    /// The dark ends of boxes.
    pub overhead: &'static str,
    /// The line that joins pieces.
    pub joined: &'static str,
    /// Crosses.
    pub crosses: &'static str,
}

impl Lanes {
    /// The picture.
    pub fn svg(&self) -> String {
        draw::svg(self)
    }

    /// What its colours mean, as far as it has them.
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
