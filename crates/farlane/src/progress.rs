//! Progress on one line of a terminal; nothing in a pipe.

use crate::output;
use load::Console;
use std::io::{IsTerminal, Write, stderr};

/// A progress line on standard error.
pub struct Progress {
    shown: bool,
    terminal: bool,
}

impl Progress {
    /// An empty line.
    pub fn new() -> Self {
        Self { shown: false, terminal: stderr().is_terminal() }
    }

    /// Replaces the line.
    pub fn show(&mut self, activity: &str) {
        if self.terminal {
            eprint!("\r\x1b[K{activity} …");
            let _ = stderr().flush();
            self.shown = true;
        }
    }

    /// Replaces the line, or clears it.
    pub fn state(&mut self, activity: Option<&str>) {
        match activity {
            Some(activity) => self.show(activity),
            None => self.done(),
        }
    }

    /// Clears the line.
    pub fn done(&mut self) {
        if std::mem::take(&mut self.shown) {
            eprint!("\r\x1b[K");
            let _ = stderr().flush();
        }
    }
}

impl Console for Progress {
    fn progress(&mut self, activity: &str) {
        self.show(activity);
    }

    fn done(&mut self) {
        Self::done(self);
    }

    fn line(&mut self, text: &str) {
        eprintln!("{text}");
    }

    fn note(&mut self, text: &str) {
        output::note(text);
    }

    fn warning(&mut self, text: &str) {
        output::warning(text);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.done();
    }
}
