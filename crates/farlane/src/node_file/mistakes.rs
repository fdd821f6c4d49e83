//! Parses the arguments of a file, and reports errors of clap at the places of the keys.

use super::{Word, key_of};
use clap::error::{ContextKind, ContextValue, Error, ErrorKind};
use keys::{KeyError, Mistakes, Origin};
use std::error::Error as _;
use std::ffi::OsString;

/// Parses `words` as arguments with `parse`. `start` is the place of missing keys.
///
/// clap stops at its first mistake. The wrong argument is then left out and the rest is parsed
/// again, to find all mistakes.
///
/// # Errors
/// The given `mistakes`, and all that clap finds.
pub(super) fn parsed<T>(
    mut words: Vec<Word>,
    start: &Origin,
    mut mistakes: Mistakes,
    parse: impl Fn(Vec<OsString>) -> Result<T, Error>,
) -> Result<T, KeyError> {
    let parsed = loop {
        let error = match parse(words.iter().map(Word::argument).collect()) {
            Ok(parsed) => break Some(parsed),
            Err(error) => error,
        };
        let missing = error.kind() == ErrorKind::MissingRequiredArgument;
        // What is missing may have been left out.
        if missing && !mistakes.is_empty() {
            break None;
        }
        let wrong = find(&error, &words).map(|at| words.remove(at));
        let origin = wrong.as_ref().map_or(start, |word| &word.origin);
        mistakes.note(origin.fail(message(&error)));
        if wrong.is_none() {
            break None;
        }
    };
    mistakes.or(parsed).map(|parsed| parsed.expect("a value or a mistake"))
}

/// The texts of a part of an error.
fn texts(error: &Error, kind: ContextKind) -> Vec<&str> {
    match error.get(kind) {
        Some(ContextValue::String(text)) => vec![text],
        Some(ContextValue::Strings(texts)) => texts.iter().map(String::as_str).collect(),
        _ => Vec::new(),
    }
}

/// The keys of the options that clap names, such as `--mps <BYTES>`.
fn keys_in(options: &str) -> Vec<String> {
    let names = options.split("--").skip(1);
    names.map(|rest| key_of(rest.split([' ', '=', '|', '>']).next().unwrap_or(rest))).collect()
}

/// The wrong argument; `None` for missing ones.
fn find(error: &Error, words: &[Word]) -> Option<usize> {
    if error.kind() == ErrorKind::MissingRequiredArgument {
        return None;
    }
    let options = texts(error, ContextKind::InvalidArg);
    let key = keys_in(options.first()?).pop()?;
    let value = texts(error, ContextKind::InvalidValue).first().copied();
    let mut named = words.iter().enumerate().filter(|(_, word)| key_of(&word.option) == key);
    let first = named.clone().next();
    let equal = named.find(|(_, word)| word.value.as_ref().and_then(|text| text.to_str()) == value);
    // One of several values in a text has no equal.
    equal.or(first).map(|(at, _)| at)
}

fn message(error: &Error) -> String {
    let options = texts(error, ContextKind::InvalidArg);
    let names: Vec<_> = options.iter().map(|options| keys_in(options).join(" or ")).collect();
    let key = names.join(", ");
    let value = texts(error, ContextKind::InvalidValue).join(" ");
    let allowed = texts(error, ContextKind::ValidValue);
    match error.kind() {
        ErrorKind::MissingRequiredArgument => format!("missing keys: {key}"),
        ErrorKind::ArgumentConflict => {
            let others = texts(error, ContextKind::PriorArg);
            let others: Vec<_> = others.iter().flat_map(|options| keys_in(options)).collect();
            format!("{key}: cannot be used with {}", others.join(", "))
        }
        ErrorKind::InvalidValue if !allowed.is_empty() => {
            format!("{key}: {}", keys::unknown("value", &value, &allowed))
        }
        _ => match error.source().map(ToString::to_string) {
            Some(why) if why.contains(&format!("'{value}'")) => format!("{key}: {why}"),
            Some(why) => format!("{key}: invalid value '{value}': {why}"),
            None => format!("{key}: invalid value '{value}'"),
        },
    }
}
