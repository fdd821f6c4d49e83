//! Text that another process writes, kept in a file and waited for with a deadline.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

/// A growing text, filled by a thread until its source ends.
pub struct Transcript {
    path: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    text: Mutex<Text>,
    grown: Condvar,
}

#[derive(Default)]
struct Text {
    so_far: String,
    ended: bool,
}

impl Transcript {
    /// Copies `source` into memory and into the file `path` until it ends.
    pub fn of(mut source: impl Read + Send + 'static, path: &Path) -> Self {
        let mut file = File::create(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let shared = Arc::new(Shared::default());
        let filled = Arc::clone(&shared);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let read = source.read(&mut buffer).unwrap_or(0);
                let _ = file.write_all(&buffer[..read]);
                let mut text = filled.text.lock().unwrap();
                text.so_far
                    .push_str(&String::from_utf8_lossy(&buffer[..read]));
                text.ended = read == 0;
                filled.grown.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self {
            path: path.to_owned(),
            shared,
        }
    }

    /// The text so far.
    pub fn text(&self) -> String {
        self.shared.text.lock().unwrap().so_far.clone()
    }

    /// The first line that contains `part`, as soon as it is complete.
    pub fn wait_for(&self, part: &str, limit: Duration) -> Result<String, String> {
        self.wait_after(0, part, limit)
    }

    /// As [`Self::wait_for`], looking only at what comes after the first
    /// `offset` bytes.
    pub fn wait_after(&self, offset: usize, part: &str, limit: Duration) -> Result<String, String> {
        let deadline = Instant::now() + limit;
        let mut text = self.shared.text.lock().unwrap();
        loop {
            let complete = text.so_far.rfind('\n').map_or(0, |end| end + 1);
            let lines = text.so_far.get(offset..complete).unwrap_or("").lines();
            if let Some(line) = lines.into_iter().find(|line| line.contains(part)) {
                return Ok(line.to_owned());
            }
            let left = deadline.saturating_duration_since(Instant::now());
            if text.ended || left.is_zero() {
                let why = if text.ended { "ended" } else { "had" };
                return Err(format!(
                    "{} {why} without “{part}” within {limit:?}",
                    self.path.display()
                ));
            }
            text = self.shared.grown.wait_timeout(text, left).unwrap().0;
        }
    }

    /// Waits until the source ended.
    pub fn wait_for_end(&self, limit: Duration) {
        let text = self.shared.text.lock().unwrap();
        drop(
            self.shared
                .grown
                .wait_timeout_while(text, limit, |text| !text.ended),
        );
    }

    /// Prints the last lines, for a test that failed.
    pub fn print_tail(&self, lines: usize) {
        let text = self.text();
        let count = text.lines().count();
        eprintln!("--- the end of {}:", self.path.display());
        for line in text.lines().skip(count.saturating_sub(lines)) {
            eprintln!("{}", line.trim_end());
        }
    }
}
