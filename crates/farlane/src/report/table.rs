//! Tables.

use super::escape;

/// On which side a column's cells begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Align {
    /// Words.
    Left,
    /// Numbers.
    Right,
    /// Words that may take several lines.
    Wrap,
}

/// A table of texts.
#[derive(Clone, Debug, Default)]
pub struct Table {
    head: Vec<(String, Align)>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// A table with these columns.
    pub fn new(columns: &[(&str, Align)]) -> Self {
        let head = columns.iter().map(|(name, align)| ((*name).to_owned(), *align)).collect();
        Self { head, rows: Vec::new() }
    }

    /// Adds a row: a text for each column.
    ///
    /// # Panics
    /// If there are more or fewer.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.head.len(), "a cell a column");
        self.rows.push(cells);
    }

    /// As HTML.
    pub fn html(&self) -> String {
        let class = |align: &Align| match align {
            Align::Left => " class=\"l\"",
            Align::Right => "",
            Align::Wrap => " class=\"l wrap\"",
        };
        let cells = |cells: &[String], tag: &str| -> String {
            let columns = self.head.iter().zip(cells);
            let cell = |((_, align), text): (&(String, Align), &String)| {
                format!("<{tag}{}>{}</{tag}>", class(align), escape(text))
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
