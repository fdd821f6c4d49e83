//! Every input of every corpus (`fuzz/corpus`), as an ordinary test.

use std::fs;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/corpus");

/// What is in a folder, by name.
fn list(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap_or_else(|why| panic!("{}: {why}", folder.display()));
    let mut paths: Vec<_> = entries.map(|entry| entry.expect("a readable folder").path()).collect();
    paths.sort();
    paths
}

/// Runs the target `name` on its corpus and says how many inputs that has.
pub fn run(name: &str, target: fn(&[u8])) {
    let files = list(&Path::new(FOLDER).join(name));
    assert!(!files.is_empty(), "the corpus of {name} is empty");
    for file in &files {
        let bytes = fs::read(file).unwrap_or_else(|why| panic!("{}: {why}", file.display()));
        let fine = catch_unwind(AssertUnwindSafe(|| target(&bytes))).is_ok();
        assert!(fine, "fuzz target {name} fails with {}", file.display());
    }
    // Also to those who do not look at the output of tests that pass.
    let _ = writeln!(std::io::stderr(), "fuzz target {name}: {} inputs", files.len());
}

#[test]
fn every_corpus_has_a_target_and_every_target_a_corpus() {
    let folders = list(Path::new(FOLDER));
    let corpora: Vec<_> = folders.iter().filter_map(|path| path.file_name()?.to_str()).collect();
    let mut targets = crate::names();
    targets.sort_unstable();
    assert_eq!(corpora, targets);
}
