//! A part of an experiment's results: text, tables and plots, for a terminal and for a page.

use report::{Column, Page, Plot, Table};

/// Text, tables and plots of one part.
#[derive(Clone, Debug, Default)]
pub struct Section {
    /// Heading.
    pub title: String,
    /// Tables in order, each with a caption.
    pub tables: Vec<(String, Table)>,
    /// Remarks, one paragraph each.
    pub notes: Vec<String>,
    /// Plots, for pages.
    pub plots: Vec<Plot>,
}

const WIDTH: usize = 96;

impl Section {
    /// Creates a section with one table, which has a row for each item, and remarks.
    pub(crate) fn from_rows<'a, T: 'a>(
        title: &str,
        columns: &[Column<T>],
        rows: impl IntoIterator<Item = &'a T>,
        notes: &[&str],
    ) -> Self {
        let tables = vec![(String::new(), Table::from_rows(columns, rows))];
        let notes = notes.iter().map(|note| (*note).to_owned()).collect();
        Self { title: title.to_owned(), tables, notes, plots: Vec::new() }
    }

    /// Formats the section for a terminal.
    pub fn text(&self) -> String {
        let mut out = format!("{}\n{}\n", self.title, "-".repeat(self.title.chars().count()));
        for table in self.table_texts() {
            out += &table;
            out.push('\n');
        }
        for note in &self.notes {
            out += &wrap(note);
            out.push('\n');
        }
        out
    }

    /// Formats the tables for a terminal.
    pub fn table_texts(&self) -> impl Iterator<Item = String> {
        let text = |(title, table): &(String, Table)| match &title[..] {
            "" => table.text(),
            title => format!("{title}\n{}", table.text()),
        };
        self.tables.iter().map(text)
    }

    /// Adds the section to a page.
    pub fn write(&self, page: &mut Page) {
        page.section(&self.title);
        for (title, table) in &self.tables {
            if !title.is_empty() {
                page.text(title);
            }
            page.table(table);
        }
        let figure = |plot: &Plot| (plot.title.clone(), String::new(), plot.html());
        page.figures(&self.plots.iter().map(figure).collect::<Vec<_>>());
        self.notes.iter().for_each(|note| page.note(note));
    }
}

/// Wraps text at [`WIDTH`] characters.
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
    use report::Align;

    #[test]
    fn words_are_left_numbers_right_and_notes_wrapped() {
        let head = [("name", Align::Left), ("ns", Align::Right), ("why", Align::Left)];
        let mut table = Table::new(&head);
        table.row(vec!["a".into(), "1".into(), "µ".into()]);
        table.row(vec!["long name".into(), "1000".into(), "because".into()]);
        let expected =
            "Title\n  name         ns  why\n  a             1  µ\n  long name  1000  because\n";
        let tables = vec![("Title".to_owned(), table)];
        let section = Section { tables, ..Section::default() };
        assert!(section.table_texts().eq([expected]));
        let notes = vec!["word ".repeat(30).trim().to_owned()];
        let section = Section { title: "T".into(), notes, ..Section::default() };
        assert!(section.text().lines().all(|line| line.len() <= WIDTH));
        assert_eq!(section.text().split_whitespace().filter(|word| *word == "word").count(), 30);
    }
}
