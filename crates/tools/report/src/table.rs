//! Tables.

use super::escape;

/// How the cells of a column are aligned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// To the left, for words.
    Left,
    /// To the right, for numbers.
    Right,
    /// To the left, for words that may take several lines.
    Wrap,
}

/// The text of a cell that is red on a page.
pub const FAIL: &str = "FAIL";

/// A table of texts.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

/// A column: its name, its alignment, and a function that formats its cell of a row.
pub type Column<T> = (&'static str, Align, fn(&T) -> String);

impl Table {
    /// Creates a table with one row per item.
    pub fn from_rows<'a, T: 'a>(
        columns: &[Column<T>],
        rows: impl IntoIterator<Item = &'a T>,
    ) -> Self {
        let head: Vec<_> = columns.iter().map(|(name, align, _)| (*name, *align)).collect();
        let mut table = Self::new(&head);
        for row in rows {
            table.row(columns.iter().map(|(.., text)| text(row)).collect());
        }
        table
    }

    /// Creates a table with these columns.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let head = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        Self { head, rows: Vec::new() }
    }

    /// Adds a row with a text for each column.
    ///
    /// # Panics
    /// If the number of texts differs from the number of columns.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.head.len(), "a cell a column");
        self.rows.push(cells);
    }

    /// Returns the number of rows.
    pub fn rows(&self) -> usize {
        self.rows.len()
    }

    fn widths(&self) -> Vec<usize> {
        let width = |(at, (name, _)): (usize, &(String, Align))| {
            let cells = self.rows.iter().map(|row| row[at].chars().count());
            cells.chain([name.chars().count()]).max().unwrap_or(0)
        };
        self.head.iter().enumerate().map(width).collect()
    }

    /// Returns the heading and the rows, padded to these widths.
    fn padded(&self, widths: &[usize]) -> Vec<Vec<String>> {
        let names = self.head.iter().map(|(name, _)| name.clone()).collect();
        let cell = |((cell, (_, align)), width): ((&String, &(_, Align)), &usize)| match align {
            Align::Right => format!("{cell:>width$}"),
            Align::Left | Align::Wrap => format!("{cell:<width$}"),
        };
        let row = |row: &Vec<String>| row.iter().zip(&self.head).zip(widths).map(cell).collect();
        std::iter::once(&names).chain(&self.rows).map(row).collect()
    }

    /// Formats the table for a terminal, with columns as wide as their cells.
    pub fn text(&self) -> String {
        let line = |cells: Vec<String>| format!("  {}", cells.join("  ")).trim_end().to_owned();
        self.padded(&self.widths()).into_iter().map(|cells| line(cells) + "\n").collect()
    }

    /// Formats the table for a terminal, with columns at least this wide.
    pub fn fixed(&self, widths: &[usize]) -> String {
        self.padded(widths).into_iter().map(|cells| cells.join(" ") + "\n").collect()
    }

    /// Formats the table as Markdown. Pages contain the printed output unchanged.
    pub fn markdown(&self) -> String {
        let widths = self.widths();
        let mut lines = self.padded(&widths);
        let rule = |((_, align), width): (&(_, Align), &usize)| match align {
            Align::Right => "-".repeat(width - 1) + ":",
            Align::Left | Align::Wrap => "-".repeat(*width),
        };
        lines.insert(1, self.head.iter().zip(&widths).map(rule).collect());
        lines.into_iter().map(|cells| format!("| {} |\n", cells.join(" | "))).collect()
    }

    /// Formats the table as HTML.
    pub fn html(&self) -> String {
        let class = |align: &Align| match align {
            Align::Left => " class=\"l\"",
            Align::Right => "",
            Align::Wrap => " class=\"l wrap\"",
        };
        let cells = |cells: &[String], tag: &str| -> String {
            let columns = self.head.iter().zip(cells);
            let cell = |((_, align), text): (&(String, Align), &String)| {
                let class = if text == FAIL { " class=\"l bad\"" } else { class(align) };
                format!("<{tag}{class}>{}</{tag}>", escape(text))
            };
            columns.map(cell).collect()
        };
        let names: Vec<String> = self.head.iter().map(|(name, _)| name.clone()).collect();
        let mut out = format!("<table><thead><tr>{}</tr></thead>\n<tbody>", cells(&names, "th"));
        for row in &self.rows {
            out += &format!("\n<tr>{}</tr>", cells(row, "td"));
        }
        out + "</tbody></table>"
    }
}
