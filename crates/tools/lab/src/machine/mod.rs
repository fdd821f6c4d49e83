//! Properties and settings of the machine, as the kernel reports them. This module reads the files
//! of `/proc` and `/sys`; functions without I/O parse them.

pub mod control;
pub mod system;
pub mod threads;
pub mod tools;

use latency_linux::Setting;
use std::path::Path;

/// Returns machine and threads as rows of the table of settings.
pub fn settings() -> Vec<Setting> {
    let mut settings = system::system().settings();
    settings.extend(threads::settings(&threads::threads()));
    settings
}

fn found(name: &str, value: impl Into<String>, note: &str) -> Setting {
    Setting { name: name.to_owned(), value: value.into(), in_force: true, note: note.to_owned() }
}

/// Reads a file and trims its text; empty if the file cannot be read.
fn text(path: impl AsRef<Path>) -> String {
    std::fs::read_to_string(path).map_or(String::new(), |text| text.trim().to_owned())
}

/// Returns the sorted names in a folder; none if the folder cannot be read.
fn names(folder: impl AsRef<Path>) -> Vec<String> {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let mut names: Vec<String> =
        entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.sort();
    names
}
