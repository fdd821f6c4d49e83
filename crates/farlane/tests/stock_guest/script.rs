//! Shell scripts for the guest, and their results.

use std::fmt::Write;
use std::time::Duration;

/// Maximum time of a script, and of the start of a guest on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(120);

/// A shell script with its arguments.
pub struct Script {
    /// Name of the script in messages.
    pub name: &'static str,
    body: &'static str,
    arguments: Vec<String>,
}

impl Script {
    /// Creates a script without arguments.
    pub fn new(name: &'static str, body: &'static str) -> Self {
        Self { name, body, arguments: Vec::new() }
    }

    /// Adds an argument.
    pub fn argument(mut self, argument: impl ToString) -> Self {
        self.arguments.push(argument.to_string());
        self
    }

    /// Adds every word of a text as an argument.
    pub fn arguments(self, words: &str) -> Self {
        words.split_whitespace().fold(self, Self::argument)
    }

    /// Returns the whole text for the guest's shell.
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

/// The result of a script.
#[derive(Debug)]
pub struct Output {
    /// Standard output and standard error.
    pub text: String,
    /// Exit status.
    pub status: i32,
    /// Duration, measured outside of the guest.
    pub elapsed: Duration,
}

impl Output {
    /// Returns the lines with the result and the duration of each step.
    pub fn steps(&self) -> impl Iterator<Item = &str> {
        self.text
            .lines()
            .filter_map(|line| line.strip_prefix("@@ "))
            .filter(|line| line.starts_with("ok ") || line.starts_with("failed "))
    }

    /// Returns the lines between `@@ NAME` and `@@ end`; `None` if there are none.
    pub fn between(&self, name: &str) -> Option<&str> {
        let (_, rest) = self.text.split_once(&format!("@@ {name}\n"))?;
        Some(rest.split_once("@@ end\n")?.0)
    }
}

/// The script with this name in `tests/guest/scripts`.
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
