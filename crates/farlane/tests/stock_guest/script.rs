//! Shell scripts for the guest and what comes of them.

use std::fmt::Write;
use std::time::Duration;

/// How long a script may take, and the start of a guest beside other work.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A shell script with its arguments.
pub struct Script {
    /// What to call it.
    pub name: &'static str,
    body: &'static str,
    arguments: Vec<String>,
}

impl Script {
    /// A script and what to call it.
    pub fn new(name: &'static str, body: &'static str) -> Self {
        Self { name, body, arguments: Vec::new() }
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: impl ToString) -> Self {
        self.arguments.push(argument.to_string());
        self
    }

    /// Adds every word as an argument.
    pub fn arguments(self, words: &str) -> Self {
        words.split_whitespace().fold(self, Self::argument)
    }

    /// The whole of it, as the guest's shell gets it.
    pub fn text(&self) -> String {
        let mut text = String::from(include_str!("../../../../tests/guest/scripts/steps.sh"));
        text.push_str("set --");
        for argument in &self.arguments {
            let quoted = argument.replace('\'', r"'\''");
            write!(text, " '{quoted}'").unwrap();
        }
        text.push('\n');
        text.push_str(self.body);
        text.push('\n');
        text
    }
}

/// What a script did.
#[derive(Debug)]
pub struct Output {
    /// All that it printed.
    pub text: String,
    /// Its exit status.
    pub status: i32,
    /// How long it took, seen from outside.
    pub elapsed: Duration,
}

impl Output {
    /// The lines that say how each step went and how long it took.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.text
            .lines()
            .filter_map(|line| line.strip_prefix("@@ "))
            .filter(|line| line.starts_with("ok ") || line.starts_with("failed "))
    }

    /// What it printed between the lines `@@ NAME` and `@@ end`.
    pub fn between(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.text.split_once(&format!("@@ {name}\n"))?;
        Some(rest.split_once("@@ end\n")?.0)
    }
}

/// The script of that name in `tests/guest/scripts`.
macro_rules! script {
    ($name:literal) => {
        $crate::stock_guest::script::Script::new(
            $name,
            include_str!(concat!(
                env!("CARGO_MANIFEST_DIR"),
                "/../../tests/guest/scripts/",
                $name,
                ".sh"
            )),
        )
    };
}
pub(crate) use script;
