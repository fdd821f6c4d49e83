//! The allowed values of a key, and the error for any other value.

use crate::units::{self, KeyValue, Parsed, Span};
use crate::value::{self, KeyError, Kind, Origin, Value};
use crate::{all, unknown};
use wire::Duration;
use wire::units::{exact, with_unit};

/// A table: groups of keys. Several tables may share a group.
pub type Table = &'static [&'static [Key]];

/// A key.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// Name of the key.
    pub name: &'static str,
    /// Allowed values of the key.
    pub allowed: Allowed,
    /// Transports that use the key; empty for all transports.
    pub with: &'static [&'static str],
}

impl Key {
    /// Creates a key that is used with every transport.
    pub const fn new(name: &'static str, allowed: Allowed) -> Self {
        Self { name, allowed, with: &[] }
    }
}

/// The allowed values of a key. Ranges have a minimum and a maximum.
#[derive(Clone, Copy, Debug)]
pub enum Allowed {
    /// A table.
    Table(Table),
    /// Tables whose names the plan chooses.
    Named(Table),
    /// Values whose names the plan chooses.
    Values(&'static Allowed),
    /// One of these words.
    Word(&'static [&'static str]),
    /// A whole number.
    Number(u64, u64),
    /// A whole number, or `"none"`.
    NumberOrNone(u64, u64),
    /// A power of two in bytes. As usual in PCIe, the value needs no unit.
    Power(u64, u64),
    /// A time.
    Time(Span),
    /// A time. A number without a unit has this unit.
    TimeIn(Span, &'static str),
    /// A size in bytes.
    Bytes(u64, u64),
    /// A rate in bytes per second.
    Rate(u64, u64),
    /// A rate in bytes per second. A size without `/s` is accepted too.
    FioRate(u64, u64),
    /// A size in bytes that meets a condition, which the text describes.
    Size(fn(u64) -> bool, &'static str),
    /// A text that a [`KeyValue`] can parse.
    Form(fn(&str) -> Parsed<()>),
    /// An array of values that the inner [`Allowed`] permits.
    List(&'static Allowed),
    /// A name.
    Text,
    /// A name, or an array of names.
    Names,
    /// A file.
    File,
    /// A file, or an array of files.
    Files,
}

/// Returns the names of a table's keys.
pub fn names(table: Table) -> Vec<&'static str> {
    table.concat().iter().map(|key| key.name).collect()
}

/// Checks all values of the table `root`, each independently.
///
/// # Errors
/// Each key with a value that is not allowed.
pub fn check(root: Table, value: &Value) -> Result<(), KeyError> {
    Allowed::Table(root).check("", "", value)
}

/// Returns the key of a table with the name `key`.
pub fn find(table: Table, key: &str) -> Option<Key> {
    table.iter().copied().flatten().find(|known| known.name == key).copied()
}

fn known(table: Table, name: &str, key: &str) -> Result<Key, String> {
    let kind = if name.is_empty() { "key".into() } else { format!("key of [{name}]") };
    find(table, key).ok_or_else(|| unknown(&kind, key, &names(table)))
}

fn below(name: &str, key: &str) -> String {
    if name.is_empty() { key.to_owned() } else { format!("{name}.{key}") }
}

/// Formats bytes as in plans.
pub fn bytes(size: u64) -> String {
    exact(size, &[("B", 1), ("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30)])
}

/// Formats bytes per second as in plans.
pub fn rate(rate: u64) -> String {
    exact(rate, &[("B/s", 1), ("kB/s", 1_000), ("MB/s", 1_000_000), ("GB/s", 1_000_000_000)])
}

/// Formats a time as in plans.
pub fn time(time: Duration) -> String {
    if time == Duration::ZERO { "0ns".to_owned() } else { time.exact() }
}

impl Allowed {
    /// Checks the value of `key`, whose dotted path is `path`.
    fn check(self, path: &str, key: &str, value: &Value) -> Result<(), KeyError> {
        let fail = |message: String| Err(value.origin.fail(format!("{key}: {message}")));
        let number = |least, most| match value.kind {
            Kind::Integer(number)
                if (least..=most).contains(&u64::try_from(number).unwrap_or(u64::MAX)) =>
            {
                Ok(())
            }
            _ => fail(format!("expected a whole number, {least} to {most}")),
        };
        match self {
            Self::Table(table) => each(value.entries()?, |entry| {
                let key =
                    known(table, path, &entry.key).map_err(|message| entry.origin.fail(message))?;
                key.allowed.check(&below(path, key.name), key.name, &entry.value)
            }),
            Self::Named(table) => each(value.entries()?, |entry| {
                Self::Table(table).check(&below(path, &entry.key), &entry.key, &entry.value)
            }),
            Self::Values(item) => {
                each(value.entries()?, |entry| item.check(path, &entry.key, &entry.value))
            }
            Self::Word(words) => match &value.kind {
                Kind::Text(text) if words.contains(&text.as_str()) => Ok(()),
                Kind::Text(text) => Err(value.origin.fail(unknown(key, text, words))),
                _ => fail(format!("expected one of {}", words.join(", "))),
            },
            Self::Number(least, most) => number(least, most),
            Self::NumberOrNone(least, most) => match &value.kind {
                Kind::Integer(_) => number(least, most),
                Kind::Text(text) if text == "none" => Ok(()),
                _ => fail(format!("\"none\", or {least} to {most}")),
            },
            Self::Power(least, most) => {
                let size = match value.kind {
                    Kind::Integer(size) => number(least, most).map(|()| size as u64),
                    _ => understood(value, key, units::size),
                }?;
                match (least..=most).contains(&size) && size.is_power_of_two() {
                    true => Ok(()),
                    false => fail(format!("a power of two, {least} to {most} bytes")),
                }
            }
            Self::Time(range) => within(value, key, range, Duration::parse, time),
            Self::TimeIn(range, unit) => {
                within(value, key, range, |text| Duration::parse(&with_unit(text, unit)), time)
            }
            Self::Bytes(least, most) => within(value, key, (least, most), units::size, bytes),
            Self::Rate(least, most) => within(value, key, (least, most), units::byte_rate, rate),
            Self::FioRate(least, most) => within(value, key, (least, most), units::fio_rate, rate),
            Self::Size(fits, words) => match fits(understood(value, key, units::size)?) {
                true => Ok(()),
                false => fail(words.to_owned()),
            },
            Self::Form(parse) => understood(value, key, parse),
            Self::List(item) => match &value.kind {
                Kind::List(items) => each(items, |one| item.check(path, key, one)),
                _ => fail("expected an array of texts".to_owned()),
            },
            Self::Names | Self::Files if matches!(value.kind, Kind::List(_)) => {
                Self::List(&Self::Form(String::check)).check(path, key, value)
            }
            Self::Text | Self::Names | Self::File | Self::Files => match &value.kind {
                Kind::Text(text) if text == "-" && matches!(self, Self::File | Self::Files) => {
                    fail("expected a file; only options write to standard output".to_owned())
                }
                Kind::Text(_) => Ok(()),
                _ => fail("expected a text".to_owned()),
            },
        }
    }
}

fn each<T>(items: &[T], check: impl FnMut(&T) -> Result<(), KeyError>) -> Result<(), KeyError> {
    all(items.iter().map(check)).map(drop)
}

/// Checks a number with a unit against a range; `words` formats the bounds.
fn within<T: PartialOrd + Copy>(
    value: &Value,
    key: &str,
    (least, most): (T, T),
    parse: impl Fn(&str) -> Parsed<T>,
    words: impl Fn(T) -> String,
) -> Result<(), KeyError> {
    let found = understood(value, key, parse)?;
    if (least..=most).contains(&found) {
        return Ok(());
    }
    let [least, most, found] = [least, most, found].map(words);
    Err(value.origin.fail(format!("{key}: {least} to {most}; found {found}")))
}

fn understood<T>(
    value: &Value,
    key: &str,
    parse: impl Fn(&str) -> Parsed<T>,
) -> Result<T, KeyError> {
    let (read, found) = match &value.kind {
        Kind::Text(text) => (parse(text), format!("'{text}'")),
        Kind::Integer(number) => (parse(&number.to_string()), format!("{number} without a unit")),
        Kind::List(_) => (Err("a text"), "an array".into()),
        Kind::Table(_) => (Err("a text"), "a table".into()),
        Kind::Boolean(_) => (Err("a text"), "a boolean".into()),
        Kind::Other(name) => (Err("a text"), format!("a {name}")),
    };
    let message = |requested| format!("{key}: expected {requested}; found {found}");
    read.map_err(|requested| value.origin.fail(message(requested)))
}

/// Sets the key of `root` at a dotted path, for an option of the command line.
///
/// # Errors
/// If there is no such table, or the table can have no such key. Options add keys to tables, but no
/// tables with new names.
pub fn set(
    root: Table,
    plan: &mut Value,
    path: &str,
    text: &str,
    option: &str,
) -> Result<(), KeyError> {
    let origin = Origin::Option(format!("{option} {path}={text}"));
    let (mut value, mut allowed, mut name) = (plan, Allowed::Table(root), String::new());
    let mut rest = Some(path);
    while let Some(path) = rest {
        let key = first_key(value, allowed, path);
        rest = path[key.len()..].strip_prefix('.');
        allowed = settable(value, allowed, &name, key).map_err(|message| origin.fail(message))?;
        name = below(&name, key);
        value = value.member(key, &origin)?;
    }
    *value = Value { kind: kind(text, &origin)?, origin };
    Ok(())
}

/// Parses a value that has no quotes: a whole number, an array in TOML's notation, or a text.
///
/// # Errors
/// If an array is not TOML.
pub fn kind(text: &str, origin: &Origin) -> Result<Kind, KeyError> {
    match text.parse() {
        Ok(number) => Ok(Kind::Integer(number)),
        Err(_) if text.starts_with('[') => array(text, origin),
        Err(_) => Ok(Kind::Text(text.to_owned())),
    }
}

fn array(text: &str, origin: &Origin) -> Result<Kind, KeyError> {
    let read = value::parse("", &format!("x = {text}"));
    let read = read.map_err(|error| origin.fail(error.message))?;
    let first = read.entries().ok().and_then(|entries| entries.first());
    let mut kind = first.map(|entry| entry.value.kind.clone());
    if let Some(Kind::List(items)) = &mut kind {
        items.iter_mut().for_each(|item| item.origin = origin.clone());
    }
    kind.ok_or_else(|| origin.fail("expected an array, such as [1, 2]"))
}

/// Returns the first key of a dotted path in a table with the value `value`. Names that a plan
/// chooses may contain dots.
fn first_key<'a>(value: &Value, allowed: Allowed, path: &'a str) -> &'a str {
    let names = match allowed {
        Allowed::Named(_) | Allowed::Values(_) => value.entries().unwrap_or_default(),
        _ => &[],
    };
    let begins = |name: &&str| {
        path.strip_prefix(*name).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    let known = names.iter().map(|entry| entry.key.as_str()).filter(begins).map(str::len).max();
    known.or_else(|| path.find('.')).map_or(path, |end| &path[..end])
}

/// Returns the allowed values of `key` in the table `name`, which has the value `value`.
fn settable(value: &Value, allowed: Allowed, name: &str, key: &str) -> Result<Allowed, String> {
    let inner = match allowed {
        Allowed::Table(table) => return known(table, name, key).map(|key| key.allowed),
        Allowed::Named(table) => Allowed::Table(table),
        Allowed::Values(item) => *item,
        _ => return Err(format!("'{name}' is not a table: it cannot have the key '{key}'")),
    };
    let names = value.entries().unwrap_or_default().iter().map(|entry| entry.key.as_str());
    if names.clone().any(|name| name == key) {
        return Ok(inner);
    }
    let names: Vec<&str> = names.collect();
    Err(match (&names[..], allowed) {
        ([], Allowed::Named(_)) => {
            format!("the plan has no [{name}.{key}], nor any other [{name}.NAME]")
        }
        _ => unknown(&format!("name in [{name}]"), key, &names),
    })
}
