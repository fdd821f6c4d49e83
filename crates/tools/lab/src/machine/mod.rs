//! What the machine is and what is in force on it, as the kernel says. The files of `/proc` and
//! `/sys` are read here; what they say is read by functions without I/O.

pub mod control;
pub mod system;
pub mod threads;
pub mod tools;

use latency_linux::Setting;
use std::path::Path;

/// The machine and its threads as rows of the table of settings.
pub fn settings() -> Vec<Setting> {
    let mut settings = system::system().settings();
    settings.extend(threads::settings(&threads::threads()));
    settings
}

fn found(name: &str, value: impl Into<String>, note: &str) -> Setting {
    Setting { name: name.to_owned(), value: value.into(), in_force: true, note: note.to_owned() }
}

/// A file without the spaces around its text; empty if it cannot be read.
fn text(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).map_or(String::new(), |text| text.trim().to_owned())
}

/// The names in a folder, in order; none if it cannot be read.
fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
