//! The file of a node, such as `/etc/farlane/store.toml`: the options of `farlane device`, `switch`
//! or `host` as TOML (docs/node-file.md).
//!
//! The file becomes arguments of these commands, so clap parses and checks it. Mistakes are reported
//! at their places in the file.

mod again;
mod mistakes;

pub use again::{Changes, NodeFile};

use crate::{Cli, Command, namespace};
use clap::{Arg, ArgAction, CommandFactory, Parser};
use keys::{Entry, KeyError, Kind, Mistakes, Origin, Value};
use report::Failure;
use std::any::TypeId;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// The commands that a file can start.
const ROLES: [&str; 3] = ["device", "switch", "host"];

/// Options with another name in files: as in plans, a key with several values is a plural.
const PLURALS: [(&str, &str); 2] = [("namespace", "namespaces"), ("fault", "faults")];

/// An argument of the command, and its place in the file.
#[derive(Clone, Debug)]
struct Word {
    origin: Origin,
    /// Name of the option, without `--`.
    option: String,
    /// The value; `None` for a flag.
    value: Option<OsString>,
}

impl Word {
    fn argument(&self) -> OsString {
        let mut argument = OsString::from(format!("--{}", self.option));
        if let Some(value) = &self.value {
            argument.push("=");
            argument.push(value);
        }
        argument
    }
}

/// Reads the file of a node. The command has the file in its options.
///
/// # Errors
/// All mistakes in the file, one per line, each with its place.
pub fn read(path: &Path) -> Result<Command, Failure> {
    let Words { role, words, start, mistakes } = Words::read(path)?;
    let parse = |arguments| {
        let program = ["farlane", &role].map(OsString::from);
        Cli::try_parse_from(program.into_iter().chain(arguments)).map(|cli| cli.command)
    };
    let parsed = mistakes::parsed(words.clone(), &start, mistakes, parse);
    let mut command = parsed.map_err(|error| Failure(error.to_string()))?;
    let node = match &mut command {
        Command::Device(args) => &mut args.node,
        Command::Switch(args) => &mut args.node,
        Command::Host(args) => &mut args.node,
        _ => unreachable!("a file has the role of a node"),
    };
    node.file = Some(NodeFile { path: path.to_owned(), role, words });
    Ok(command)
}

/// What a file says: its role, and its keys as arguments of this command.
struct Words {
    role: String,
    words: Vec<Word>,
    /// The place of missing keys.
    start: Origin,
    mistakes: Mistakes,
}

impl Words {
    fn read(path: &Path) -> Result<Self, Failure> {
        let file = path.display().to_string();
        let text =
            std::fs::read_to_string(path).map_err(|error| Failure(format!("{file}: {error}")))?;
        let value = keys::parse(&file, &text);
        let words = value.and_then(|value| words(&value));
        words.map_err(|error| Failure(error.to_string()))
    }
}

fn words(file: &Value) -> Result<Words, KeyError> {
    let entries = file.entries()?;
    let expected = "expected \"device\", \"switch\" or \"host\"";
    let role = entries.iter().find(|entry| entry.key == "role");
    let role = role.ok_or_else(|| file.origin.fail(format!("missing key 'role': {expected}")))?;
    let role = match &role.value.kind {
        Kind::Text(name) if ROLES.contains(&name.as_str()) => name,
        Kind::Text(name) => {
            return Err(role.value.origin.fail(keys::unknown("role", name, &ROLES)));
        }
        _ => return Err(role.value.origin.fail(format!("role: {expected}"))),
    };
    let program = Cli::command();
    let options = program.find_subcommand(role).expect("a command");
    let options: Vec<&Arg> =
        options.get_arguments().filter(|option| option.get_long().is_some()).collect();
    let mut names: Vec<String> = options.iter().map(|option| key_of(long(option))).collect();
    names.sort_unstable();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut mistakes = Mistakes::default();
    let mut words = Vec::new();
    for entry in entries.iter().filter(|entry| entry.key != "role") {
        let found = match options.iter().find(|option| key_of(long(option)) == entry.key) {
            Some(option) => translated(option, entry),
            None => vec![Err(entry.origin.fail(keys::unknown("key", &entry.key, &names)))],
        };
        words.extend(found.into_iter().filter_map(|word| mistakes.keep(word)));
    }
    Ok(Words { role: role.clone(), words, start: file.origin.clone(), mistakes })
}

fn long(option: &Arg) -> &str {
    option.get_long().expect("a long option")
}

/// The key of an option.
fn key_of(option: &str) -> String {
    let plural = PLURALS.iter().find(|(one, _)| *one == option);
    plural.map_or_else(|| option.replace('-', "_"), |(_, key)| (*key).to_owned())
}

/// The arguments of a key.
fn translated(option: &Arg, entry: &Entry) -> Vec<Result<Word, KeyError>> {
    let word = |value: &Value, text: Option<OsString>| Word {
        origin: value.origin.clone(),
        option: long(option).to_owned(),
        value: text,
    };
    let with_text = |value| Ok(word(value, Some(text(option, entry, value)?)));
    match (option.get_action(), &entry.value.kind) {
        (ArgAction::SetTrue, Kind::Boolean(true)) => vec![Ok(word(&entry.value, None))],
        (ArgAction::SetTrue, Kind::Boolean(false)) => Vec::new(),
        (ArgAction::SetTrue, _) => {
            let message = format!("{}: expected true or false", entry.key);
            vec![Err(entry.value.origin.fail(message))]
        }
        (ArgAction::Append, Kind::List(values)) => values.iter().map(with_text).collect(),
        _ => vec![with_text(&entry.value)],
    }
}

/// The value of an option as on the command line. Relative paths become relative to the folder of
/// the file.
fn text(option: &Arg, entry: &Entry, value: &Value) -> Result<OsString, KeyError> {
    let is_namespace = long(option) == "namespace";
    // The file of a trace stands in front of its settings.
    let is_path =
        option.get_value_parser().type_id() == TypeId::of::<PathBuf>() || long(option) == "trace";
    let expected = match &value.kind {
        Kind::Table(entries) if is_namespace => return namespace_text(value, entries),
        _ if is_namespace => "tables [[namespaces]]",
        Kind::Text(text) if is_path => return Ok(value.origin.path(text).into()),
        Kind::Text(text) => return Ok(text.into()),
        Kind::Integer(number) => return Ok(number.to_string().into()),
        Kind::List(_) => "one value",
        _ => "a text or a number",
    };
    Err(value.origin.fail(format!("{}: expected {expected}", entry.key)))
}

/// A table of `[[namespaces]]` as a value of `--namespace`.
fn namespace_text(table: &Value, entries: &[Entry]) -> Result<OsString, KeyError> {
    let names = namespace::KEYS.map(|option| option.replace(['-', '.'], "_"));
    let names = names.each_ref().map(String::as_str);
    let part = |entry: &Entry| {
        let (name, value) = (entry.key.as_str(), &entry.value);
        let fail = |expected: &str| Err(value.origin.fail(format!("{name}: expected {expected}")));
        let Some(at) = names.iter().position(|known| *known == name) else {
            let message = keys::unknown("key of [[namespaces]]", name, &names);
            return Err(entry.origin.fail(message));
        };
        let option = namespace::KEYS[at];
        let text = match &value.kind {
            Kind::Boolean(flag) if namespace::FLAGS.contains(&option) => {
                return Ok(flag.then(|| format!("{option}=on")));
            }
            _ if namespace::FLAGS.contains(&option) => return fail("true or false"),
            Kind::Text(path) if option == "file" => value.origin.path(path).display().to_string(),
            Kind::Text(text) => text.clone(),
            Kind::Integer(number) => number.to_string(),
            _ => return fail("a text or a number"),
        };
        // The option has commas between its parts.
        if text.contains(',') {
            fail("a text without commas")
        } else {
            Ok(Some(format!("{option}={text}")))
        }
    };
    let parts = keys::all(entries.iter().map(part))?;
    if parts.is_empty() {
        return Err(table.origin.fail("namespaces: expected the key file or ram"));
    }
    Ok(parts.into_iter().flatten().collect::<Vec<_>>().join(",").into())
}
