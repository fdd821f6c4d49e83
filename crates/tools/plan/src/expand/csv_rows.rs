//! Rows of CSV files (RFC 4180).

use keys::allowed::kind;
use keys::{Entry, KeyError, Kind, Origin, Value, all};
use std::sync::Arc;

/// Returns the rows of a CSV text as tables. The first line has the names of the columns. A row has
/// the place of its first cell, a key the place of its column, a value the place of its cell.
///
/// # Errors
/// A row that has not a cell for each column, two equal columns, and arrays that are not TOML.
pub fn csv_rows(file: &str, text: &str) -> Result<Vec<Value>, KeyError> {
    let file: Arc<str> = file.into();
    let mut reader = csv::ReaderBuilder::new();
    let reader = reader.has_headers(false).flexible(true).trim(csv::Trim::All);
    let (mut line, mut counted) = (1, 0);
    let mut columns: Vec<(String, Origin)> = Vec::new();
    let mut rows = Vec::new();
    for record in reader.from_reader(text.as_bytes()).records() {
        let place = |line, column| Origin::File { file: file.clone(), line, column };
        let record = record.map_err(|error| place(line, 1).fail(error.to_string()))?;
        // A record begins behind the blank lines that the reader counts as its start.
        let start = record.position().map_or(0, |position| position.byte()) as usize;
        let start = text.len() - text[start..].trim_start_matches(['\r', '\n']).len();
        line += text[counted..start].matches('\n').count();
        counted = start;
        let places = (1..).map(|column| place(line, column));
        let cells = record.iter().map(str::to_owned).zip(places);
        if columns.is_empty() {
            columns = cells.collect();
            check(&columns)?;
            continue;
        }
        let (expected, found) = (columns.len(), record.len());
        if expected != found {
            let message = format!("expected {expected} cells, as in the first line; found {found}");
            return Err(place(line, 1).fail(message));
        }
        let entries = all(columns.iter().zip(cells).map(entry))?;
        rows.push(Value { origin: place(line, 1), kind: Kind::Table(entries) });
    }
    match columns[..] {
        [] => {
            let origin = Origin::File { file, line, column: 1 };
            Err(origin.fail("expected a first line with the names of the columns"))
        }
        _ => Ok(rows),
    }
}

fn check(columns: &[(String, Origin)]) -> Result<(), KeyError> {
    for (at, (name, origin)) in columns.iter().enumerate() {
        if columns[..at].iter().any(|(other, _)| other == name) {
            return Err(origin.fail(format!("two columns have the name '{name}'")));
        }
    }
    Ok(())
}

fn entry(
    ((key, column), (text, origin)): (&(String, Origin), (String, Origin)),
) -> Result<Entry, KeyError> {
    let kind = match kind(&text, &origin)? {
        // A number such as 007 is a name.
        Kind::Integer(number) if number.to_string() != text => Kind::Text(text),
        kind => kind,
    };
    Ok(Entry { key: key.clone(), origin: column.clone(), value: Value { origin, kind } })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cell(value: &Entry) -> &Kind {
        &value.value.kind
    }

    #[test]
    fn cells_have_kinds() {
        let rows = csv_rows("s.csv", "\u{feff}a, b,c\n-5,007,\n\"x,\"\"y\",[1],\" \"\n").unwrap();
        let kinds = |row: &Value| {
            row.entries().unwrap().iter().map(|e| cell(e).clone()).collect::<Vec<_>>()
        };
        let text = |text: &str| Kind::Text(text.to_owned());
        assert_eq!(kinds(&rows[0]), [Kind::Integer(-5), text("007"), text("")]);
        let found = kinds(&rows[1]);
        assert!(matches!(&found[1], Kind::List(items) if items[0].kind == Kind::Integer(1)));
        assert_eq!((&found[0], &found[2]), (&text("x,\"y"), &text("")));
        let keys: Vec<_> = rows[0].entries().unwrap().iter().map(|entry| &*entry.key).collect();
        assert_eq!(keys, ["a", "b", "c"]);
        assert!(
            csv_rows("s.csv", "\n").unwrap_err().to_string().starts_with("s.csv:1:1: expected")
        );
        assert_eq!(csv_rows("s.csv", "a,b\n"), Ok(Vec::new()));
    }

    proptest! {
        /// Cells may contain ends of lines, lines may be blank.
        #[test]
        fn rows_have_the_line_of_their_first_cell(
            rows in prop::collection::vec(("[ab\"\n,é]{1,8}", 0usize..3), 1..6),
            end in prop::sample::select(vec!["\n", "\r\n"]),
        ) {
            let mut text = format!("a,b{end}");
            let mut lines = Vec::new();
            for (cell, blank) in &rows {
                text += &end.repeat(*blank);
                lines.push(text.matches('\n').count() + 1);
                text += &format!("\"{}\",x{end}", cell.replace('"', "\"\""));
            }
            let found = csv_rows("s.csv", &text).unwrap();
            let read = |row: &Value| match (cell(&row.entries().unwrap()[0]), &row.origin) {
                (Kind::Text(text), Origin::File { line, .. }) => (text.clone(), *line),
                other => panic!("{other:?}"),
            };
            let expected = rows.iter().map(|(cell, _)| cell.trim().to_owned()).zip(lines);
            prop_assert_eq!(found.iter().map(read).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        }

        #[test]
        fn no_text_panics(text in "[a\",\r\n\\[\u{feff}é ]{0,30}") {
            let _ = csv_rows("s.csv", &text);
        }
    }
}
