//! Error messages for invalid TOML and for unknown names, for the author of the file.

use std::ops::Range;
use toml::de::{DeTable, Error};

/// Returns the place of the mistake in `text`, in bytes, and the message.
pub fn describe(text: &str, error: &Error) -> (usize, String) {
    let span = error.span().unwrap_or(0..0);
    let raw = error.message();
    if raw == "duplicate key" {
        let key = text.get(span.clone()).unwrap_or("").trim_matches(['"', '\'']);
        return (span.start, format!("duplicate key '{key}': the table has it already"));
    }
    let no_value = ["key with no value", "unclosed table"].iter().any(|m| raw.starts_with(m));
    match unquoted(text, &span).filter(|_| !no_value) {
        Some((at, value)) => (at, advice(value, error)),
        None => (span.start, message(error)),
    }
}

fn message(error: &Error) -> String {
    error.message().lines().collect::<Vec<_>>().join(", ")
}

fn is_value(value: &str) -> bool {
    DeTable::parse(&format!("x = {value}")).is_ok()
}

/// Returns advice on how to write an invalid value. Numbers and booleans are not quoted, because
/// they would become texts.
fn advice(value: &str, error: &Error) -> String {
    let small = value.to_ascii_lowercase();
    if ["true", "false"].contains(&small.as_str()) {
        return format!("write {small}, in small letters and without quotes");
    }
    let of_number = |c: char| c.is_ascii_digit() || c.is_whitespace() || "_.+-".contains(c);
    if !value.chars().all(of_number) {
        return format!("write \"{value}\" in quotes: texts and units need them");
    }
    // A valid number was probably written with a single quote, so the parser's message is better.
    if is_value(value) { message(error) } else { format!("invalid number '{value}'") }
}

/// Returns the first value in the line of a mistake that would be valid in quotes, and its place.
fn unquoted<'a>(text: &'a str, span: &Range<usize>) -> Option<(usize, &'a str)> {
    let start = text.get(..span.start)?.rfind('\n').map_or(0, |at| at + 1);
    let line = text[start..].lines().next()?;
    let line = line.split('#').next()?;
    // A line inside an array over several lines has no key.
    let values = line.split_once('=').map_or(line, |(_, values)| values);
    values.split([',', '[', ']']).find_map(|item| {
        let item = item.trim();
        let value = item.trim_matches(['"', '\'']);
        let would_be = !value.is_empty() && !value.contains(['=', '"', '{', '}']);
        let missing = would_be && !is_value(item) && is_value(&format!("\"{value}\""));
        missing.then(|| (item.as_ptr() as usize - text.as_ptr() as usize, value))
    })
}

/// Returns the name nearest to `word`, if one is similar.
fn nearest<'a>(word: &str, names: &[&'a str]) -> Option<&'a str> {
    let ranked = names.iter().map(|name| (strsim::levenshtein(word, name), *name));
    ranked.min().filter(|(far, name)| *far <= (name.len() / 3).max(1)).map(|(_, name)| name)
}

/// Maximum number of listed names: all keys of a table, but not all nodes of a large plan.
const LISTED: usize = 100;

/// Returns the message for a word that is not in `names`.
pub fn unknown(kind: &str, word: &str, names: &[&str]) -> String {
    let hint = match nearest(word, names) {
        Some(name) => format!("; did you mean '{name}'?"),
        None => ".".to_owned(),
    };
    let more = if names.len() > LISTED { ", …" } else { "" };
    let listed = names[..names.len().min(LISTED)].join(", ");
    match names {
        [] => format!("unknown {kind} '{word}': there is none"),
        _ => format!("unknown {kind} '{word}'{hint} There are: {listed}{more}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &str) -> (usize, String) {
        describe(text, &DeTable::parse(text).unwrap_err())
    }

    #[test]
    fn missing_quotes_are_reported_as_missing_quotes() {
        for (text, at, value) in [
            ("rate = 1G", 7, "1G"),
            ("rate = 2.5G # fast", 7, "2.5G"),
            ("[link]\nrate = 10 Gb/s", 14, "10 Gb/s"),
            ("transport = raw", 12, "raw"),
            ("rate = \"1G", 7, "1G"),
            ("rate = 1G\"", 7, "1G"),
            ("cuts = [\"1ms..2ms\", 10ms..12ms]", 20, "10ms..12ms"),
            ("entries = [\n \"S 01 1us\",\n S 02 300us,\n]", 26, "S 02 300us"),
        ] {
            let sentence = format!("write \"{value}\" in quotes: texts and units need them");
            assert_eq!(message(text), (at, sentence), "{text}");
        }
        for (text, expected) in [
            ("a == 3", "extra `=`, expected nothing"),
            ("rate 1G", "key with no value, expected `=`"),
            ("rate =", "string values must be quoted, expected literal string"),
            ("[link", "unclosed table, expected `]`"),
        ] {
            assert_eq!(message(text).1, expected, "{text}");
        }
    }

    #[test]
    fn numbers_and_booleans_need_no_quotes() {
        for (text, at, value) in [
            ("seed = 08", 7, "08"),
            ("runs = 1 2", 7, "1 2"),
            ("size = 1_ # all", 7, "1_"),
            ("gap = +-1", 6, "+-1"),
        ] {
            assert_eq!(message(text), (at, format!("invalid number '{value}'")), "{text}");
        }
        assert!(!message("runs = \"1").1.contains("no number"));
        for (text, value) in [
            ("verify = True", "true"),
            ("verify = FALSE # not", "false"),
            ("verify = \"true", "true"),
        ] {
            let sentence = format!("write {value}, in small letters and without quotes");
            assert_eq!(message(text), (9, sentence), "{text}");
        }
    }

    #[test]
    fn duplicate_keys_are_named() {
        let sentence = |key: &str| format!("duplicate key '{key}': the table has it already");
        for (text, at, key) in [
            ("a = 1\na = 2", 6, "a"),
            ("[x]\nb = 1\n[x]\nc = 1", 11, "x"),
            ("[hosts.one]\n[hosts.\"one\"]", 19, "one"),
            ("a = { b = 1, b = 2 }", 13, "b"),
        ] {
            assert_eq!(message(text), (at, sentence(key)), "{text}");
        }
    }
}
