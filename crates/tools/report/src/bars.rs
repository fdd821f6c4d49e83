//! Stacked bars: parts of a whole.

use super::{colour, escape, ink, svg};

/// Width of the picture, and height of a bar with its label, in pixels.
const WIDTH: f64 = 440.0;
const ROW: f64 = 46.0;
const BAR: f64 = 22.0;

/// One bar.
#[derive(Clone, Debug)]
pub struct Bar {
    /// Name of the bar.
    pub name: String,
    /// The sum of the parts, as text.
    pub total: String,
    /// A value for each part.
    pub parts: Vec<u64>,
}

/// Bars of the same parts, each drawn over the full width, to compare the shares of the parts.
#[derive(Clone, Debug)]
pub struct Stack {
    /// Caption of the picture.
    pub title: String,
    /// A line below the caption.
    pub note: String,
    /// Names of the parts.
    pub parts: Vec<String>,
    /// The bars.
    pub bars: Vec<Bar>,
    /// Formats a value of a part.
    pub format: fn(u64) -> String,
}

impl Stack {
    /// Returns the picture, and the key with all values.
    pub fn html(&self) -> String {
        let mut out = svg(WIDTH, ROW * self.bars.len() as f64, &self.title);
        for (row, bar) in self.bars.iter().enumerate() {
            self.bar(&mut out, bar, ROW * row as f64);
        }
        out += "</svg>";
        out + &self.key()
    }

    fn bar(&self, out: &mut String, bar: &Bar, top: f64) {
        let (name, total) = (escape(&bar.name), escape(&bar.total));
        *out += &format!(
            "<text x=\"0\" y=\"{0:.1}\">{name}</text>\
             <text x=\"{WIDTH}\" y=\"{0:.1}\" text-anchor=\"end\">{total}</text>",
            top + 12.0
        );
        let whole = bar.parts.iter().sum::<u64>().max(1) as f64;
        let (mut left, top) = (0.0, top + 17.0);
        for (number, value) in bar.parts.iter().enumerate() {
            let share = *value as f64 / whole;
            let width = share * WIDTH;
            let part = self.parts.get(number).map_or("", |name| name.as_str());
            *out += &format!(
                "<rect x=\"{left:.2}\" y=\"{top:.1}\" width=\"{width:.2}\" height=\"{BAR}\" \
                 fill=\"{}\"><title>{}: {}</title></rect>",
                colour(number),
                escape(part),
                escape(&(self.format)(*value)),
            );
            if width > 34.0 {
                *out += &format!(
                    "<text x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"middle\" style=\"fill:{}\">\
                     {:.0} %</text>",
                    left + width / 2.0,
                    top + 15.0,
                    ink(colour(number)),
                    share * 100.0
                );
            }
            left += width;
        }
    }

    fn key(&self) -> String {
        let names: String =
            self.bars.iter().map(|bar| format!("<th>{}</th>", escape(&bar.name))).collect();
        let mut out = format!(
            "<div class=\"scroll\"><table class=\"parts\"><thead><tr><th class=\"l\"></th>{names}</tr></thead><tbody>"
        );
        for (number, part) in self.parts.iter().enumerate() {
            let values = self.bars.iter().map(|bar| bar.parts.get(number).copied().unwrap_or(0));
            let cells: String =
                values.map(|ns| format!("<td>{}</td>", escape(&(self.format)(ns)))).collect();
            out += &format!(
                "<tr><td class=\"l\"><span class=\"swatch\" style=\"background:{}\"></span>{}</td>\
                 {cells}</tr>",
                colour(number),
                escape(part)
            );
        }
        out + "</tbody></table></div>"
    }
}

/// Draws bars of shares from 0 to 1. Each bar has a name, the share as text, and the share.
pub fn shares(title: &str, bars: &[(String, String, f64)]) -> String {
    const BAR: f64 = 9.0;
    const ROW: f64 = 31.0;
    let mut out = svg(WIDTH, ROW * bars.len() as f64, title);
    for (row, (name, text, share)) in bars.iter().enumerate() {
        let top = ROW * row as f64;
        let width = share.clamp(0.0, 1.0) * WIDTH;
        out += &format!(
            "<text x=\"0\" y=\"{0:.1}\" class=\"mark\">{1}</text>\
             <text x=\"{WIDTH}\" y=\"{0:.1}\" text-anchor=\"end\">{2}</text>\
             <rect x=\"0\" y=\"{3:.1}\" width=\"{WIDTH}\" height=\"{BAR}\" fill=\"#e3e8ec\"/>\
             <rect x=\"0\" y=\"{3:.1}\" width=\"{width:.2}\" height=\"{BAR}\" fill=\"{4}\"/>",
            top + 12.0,
            escape(name),
            escape(text),
            top + 16.0,
            colour(0)
        );
    }
    out + "</svg>"
}
