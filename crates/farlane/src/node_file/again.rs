//! What a running node takes from its file when it reads it again.

use super::{Word, Words, key_of, mistakes};
use crate::Cli;
use crate::log::Level;
use clap::CommandFactory;
use report::Failure;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::path::PathBuf;
use switch::congestion::Rate;

/// Options that a running node can change. Also `trace`, which can be left out.
const CHANGEABLE: [&str; 2] = ["log-level", "rate-limit"];

/// The file of a node, and the options that it had when the node started.
#[derive(Clone, Debug)]
pub struct NodeFile {
    /// The file.
    pub path: PathBuf,
    pub(super) role: String,
    pub(super) words: Vec<Word>,
}

/// What a running node takes from its file.
#[derive(Debug)]
pub struct Changes {
    /// Least severe events of the log.
    pub log_level: Level,
    /// Limit of the total output of all links.
    pub rate_limit: Option<Rate>,
    /// Whether to record the trace of the start; `None`: the node has another one, or none.
    pub traces: Option<bool>,
    /// Keys that take effect at the next start, each with its place.
    pub later: Vec<String>,
}

impl NodeFile {
    /// Reads the file again. The values of keys that take effect at the next start are not checked:
    /// that needs more of the system than the sandbox leaves to a node.
    ///
    /// # Errors
    /// All mistakes in keys, and in values that a running node can change.
    pub fn read_again(&self) -> Result<Changes, Failure> {
        let Words { role, words, start, mistakes } = Words::read(&self.path)?;
        let failed = |error: keys::KeyError| Failure(error.to_string());
        if role != self.role {
            return Err(failed(start.fail(format!("role: a {} node runs", self.role))));
        }
        let is_changeable = |word: &&Word| CHANGEABLE.contains(&&*word.option);
        let changed = words.iter().filter(is_changeable).cloned().collect();
        let parse = |arguments| alone(&self.role).try_get_matches_from(arguments);
        let values = mistakes::parsed(changed, &start, mistakes, parse).map_err(failed)?;
        Ok(Changes {
            log_level: *values.get_one("log_level").expect("a default"),
            rate_limit: values.get_one("rate_limit").copied(),
            traces: self.traces(&words),
            later: self.later(&words),
        })
    }

    fn traces(&self, words: &[Word]) -> Option<bool> {
        let (earlier, now) = (of(&self.words, "trace"), of(words, "trace"));
        (!earlier.is_empty() && (now.is_empty() || now == earlier)).then_some(!now.is_empty())
    }

    fn later(&self, words: &[Word]) -> Vec<String> {
        let names = self.words.iter().chain(words).map(|word| &*word.option);
        let is_later = |name: &&str| match *name {
            "trace" => self.traces(words).is_none(),
            name => !CHANGEABLE.contains(&name),
        };
        let names: BTreeSet<_> = names.filter(is_later).collect();
        let differs = |name: &&str| of(&self.words, name) != of(words, name);
        let message = |name| {
            let text = format!("{}: takes effect at the next start", key_of(name));
            match words.iter().find(|word| word.option == name) {
                Some(word) => word.origin.fail(text).to_string(),
                None => format!("{}: {text}", self.path.display()),
            }
        };
        names.into_iter().filter(differs).map(message).collect()
    }
}

/// The values of an option.
fn of<'a>(words: &'a [Word], name: &str) -> Vec<Option<&'a OsStr>> {
    let words = words.iter().filter(|word| word.option == name);
    words.map(|word| word.value.as_deref()).collect()
}

/// The command of a role, without required options.
fn alone(role: &str) -> clap::Command {
    let program = Cli::command();
    let command = program.find_subcommand(role).expect("a command").clone();
    let command = command.mut_args(|option| option.required(false)).no_binary_name(true);
    let groups: Vec<_> = command.get_groups().map(|group| group.get_id().clone()).collect();
    let relax = |command: clap::Command, id| command.mut_group(id, |group| group.required(false));
    groups.into_iter().fold(command, relax)
}
