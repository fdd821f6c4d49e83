//! A part of an experiment's results: text, tables and plots, for a terminal
//! and for a page.

use crate::report::{Align, Page, Plot, Table};
use std::fmt::Write;

/// A table of texts; words in the first column, numbers in the others.
#[derive(Clone, Debug)]
pub struct Grid {
    /// What it shows.
    pub title: String,
    /// Names of the columns.
    pub columns: Vec<String>,
    /// A text for each column.
    pub rows: Vec<Vec<String>>,
    /// Columns of words besides the first one.
    pub words: Vec<usize>,
}

/// See the module.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Tables, in order.
    pub grids: Vec<Grid>,
    /// What is to be said about them, a paragraph each.
    pub notes: Vec<String>,
    /// Plots, for pages.
    pub plots: Vec<Plot>,
}

/// Letters on a line of notes.
const WIDTH: usize = 96;

impl Grid {
    /// Without rows.
    pub fn new(title: &str, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|name| (*name).to_owned()).collect();
        Self { title: title.to_owned(), columns, rows: Vec::new(), words: Vec::new() }
    }

    /// Adds a row.
    ///
    /// # Panics
    /// If it has more or fewer cells than there are columns.
    pub fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.columns.len(), "a cell a column");
        self.rows.push(cells);
    }

    fn is_words(&self, column: usize) -> bool {
        column == 0 || self.words.contains(&column)
    }

    /// For a terminal, every line ended.
    pub fn text(&self) -> String {
        let all = || std::iter::once(&self.columns).chain(&self.rows);
        let width = |column: usize| all().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> =
            (0..self.columns.len()).map(|column| width(column).unwrap_or(0)).collect();
        let mut out = String::new();
        if !self.title.is_empty() {
            let _ = writeln!(out, "{}", self.title);
        }
        for row in all() {
            let mut line = String::from(" ");
            for (column, (cell, width)) in row.iter().zip(&widths).enumerate() {
                let _ = match self.is_words(column) {
                    true => write!(line, " {cell:<width$} "),
                    false => write!(line, " {cell:>width$} "),
                };
            }
            let _ = writeln!(out, "{}", line.trim_end());
        }
        out
    }

    fn table(&self) -> Table {
        let align = |at| if self.is_words(at) { Align::Left } else { Align::Right };
        let names = self.columns.iter().enumerate().map(|(at, name)| (name.as_str(), align(at)));
        let mut table = Table::new(&names.collect::<Vec<_>>());
        self.rows.iter().for_each(|row| table.row(row.clone()));
        table
    }
}

impl Section {
    /// For a terminal.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n{}\n", self.title, "-".repeat(self.title.chars().count()));
        for grid in &self.grids {
            out += &grid.text();
            out.push('\n');
        }
        for note in &self.notes {
            out += &wrap(note);
            out.push('\n');
        }
        out
    }

    /// Onto a page.
    pub fn write(&self, page: &mut Page) {
        page.section(&self.title);
        for grid in &self.grids {
            if !grid.title.is_empty() {
                page.text(&grid.title);
            }
            page.table(&grid.table());
        }
        let figure = |plot: &Plot| (plot.title.clone(), String::new(), plot.html());
        page.figures(&self.plots.iter().map(figure).collect::<Vec<_>>());
        self.notes.iter().for_each(|note| page.note(note));
    }
}

/// Lines of at most [`WIDTH`] letters.
fn wrap(text: &str) -> String {
    let (mut out, mut length) = (String::new(), 0);
    for word in text.split(' ') {
        let letters = word.chars().count();
        if length > 0 && length + 1 + letters > WIDTH {
            out.push('\n');
            length = 0;
        } else if length > 0 {
            out.push(' ');
            length += 1;
        }
        out += word;
        length += letters;
    }
    out.push('\n');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_left_numbers_right_and_notes_wrapped() {
        let mut grid = Grid::new("Title", &["name", "ns", "why"]);
        grid.words = vec![2];
        grid.row(vec!["a".into(), "1".into(), "µ".into()]);
        grid.row(vec!["long name".into(), "1000".into(), "because".into()]);
        let expected =
            "Title\n  name         ns  why\n  a             1  µ\n  long name  1000  because\n";
        assert_eq!(grid.text(), expected);
        let notes = vec!["word ".repeat(30).trim().to_owned()];
        let section = Section { title: "T".into(), notes, ..Section::default() };
        assert!(section.text().lines().all(|line| line.len() <= WIDTH));
        assert_eq!(section.text().split_whitespace().filter(|word| *word == "word").count(), 30);
    }
}
