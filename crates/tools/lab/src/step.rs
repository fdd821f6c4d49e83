//! The lab's actions as shell lines. The same lines are run, printed by `--dry-run`, and written to
//! the journal.

use std::fmt;

/// A shell line, and the line that undoes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Step {
    /// The shell line.
    pub line: String,
    /// Line that undoes this step; `None` if the undo of another step suffices. The line succeeds
    /// if there is nothing to undo.
    pub undo: Option<String>,
    /// The way in which the line ends.
    pub end: End,
}

/// How a line ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum End {
    /// The line ends by itself.
    Itself,
    /// The lab ends the line. The standard error of the program goes to the file `log` in the lab's
    /// folder. The next line waits until the file contains the text `ready`.
    Lab {
        /// Name of the file.
        log: &'static str,
        /// Text of the program when it is ready.
        ready: &'static str,
    },
}

/// Steps, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Steps(pub Vec<Step>);

impl Steps {
    /// Adds a line that another undo reverts, such as the deletion of its namespace.
    pub fn run(&mut self, line: impl fmt::Display) {
        self.0.push(Step { line: line.to_string(), undo: None, end: End::Itself });
    }

    /// Adds a line, and the line that undoes it.
    pub fn undone(&mut self, line: impl fmt::Display, undo: impl fmt::Display) {
        let (line, undo) = (line.to_string(), Some(undo.to_string()));
        self.0.push(Step { line, undo, end: End::Itself });
    }

    /// Adds a program that runs as long as the lab.
    pub fn keep(&mut self, line: impl fmt::Display, log: &'static str, ready: &'static str) {
        self.0.push(Step { line: line.to_string(), undo: None, end: End::Lab { log, ready } });
    }
}
