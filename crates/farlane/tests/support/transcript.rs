//! Text from another process, which is stored in a file. Every wait for text has a time limit.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

/// A text that a thread extends until its source ends.
pub struct Transcript {
    path: PathBuf,
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    text: Mutex<Text>,
    grown: Condvar,
}

impl Shared {
    /// Locks the text. A panic during a wait does not damage the text.
    fn lock(&self) -> MutexGuard<'_, Text> {
        self.text.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[derive(Default)]
struct Text {
    so_far: String,
    /// Length of the text that [`Transcript::wait_for`] has read.
    seen: usize,
    ended: bool,
}

impl Transcript {
    /// Copies `source` into memory and into the file `path` until it ends.
    pub fn new(mut source: impl Read + Send + 'static, path: &Path) -> Self {
        let mut file = File::create(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let shared = Arc::new(Shared::default());
        let filled = Arc::clone(&shared);
        thread::spawn(move || {
            let mut buffer = [0; 4096];
            loop {
                let read = source.read(&mut buffer).unwrap_or(0);
                let _ = file.write_all(&buffer[..read]);
                let mut text = filled.lock();
                text.so_far.push_str(&String::from_utf8_lossy(&buffer[..read]));
                text.ended = read == 0;
                filled.grown.notify_all();
                if read == 0 {
                    return;
                }
            }
        });
        Self { path: path.to_owned(), shared }
    }

    /// Returns the text so far. Lines of a node's log are without time and level.
    pub fn text(&self) -> String {
        self.shared.lock().so_far.split_inclusive('\n').map(message).collect()
    }

    /// Waits for a line that contains `part`, after the line of the previous wait. Panics if no
    /// such line comes within `limit`, or if the source ends before.
    #[track_caller]
    pub fn wait_for(&self, part: &str, limit: Duration) -> String {
        let deadline = Instant::now() + limit;
        let mut text = self.shared.lock();
        loop {
            while let Some(length) = text.so_far[text.seen..].find('\n') {
                let (from, end) = (text.seen, text.seen + length);
                text.seen = end + 1;
                let line = message(&text.so_far[from..end]);
                if line.contains(part) {
                    return line.trim_end().to_owned();
                }
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let path = self.path.display();
            assert!(!text.ended, "{path} ended without “{part}”");
            assert!(!left.is_zero(), "{path}: no “{part}” within {limit:?}");
            text = match self.shared.grown.wait_timeout(text, left) {
                Ok((text, _)) => text,
                Err(poisoned) => poisoned.into_inner().0,
            };
        }
    }

    /// Waits until the source has ended, at most for `limit`.
    pub fn wait_for_end(&self, limit: Duration) {
        let text = self.shared.lock();
        drop(self.shared.grown.wait_timeout_while(text, limit, |text| !text.ended));
    }

    /// Prints the last lines of the text, for a test that failed.
    pub fn print_tail(&self, lines: usize) {
        let text = self.text();
        let count = text.lines().count();
        eprintln!("--- the end of {}:", self.path.display());
        for line in text.lines().skip(count.saturating_sub(lines)) {
            eprintln!("{}", line.trim_end());
        }
    }
}

/// Returns a line without the time and the level that begin a line of a node's log.
pub fn message(line: &str) -> &str {
    let mut words = line.splitn(3, ' ');
    match (words.next(), words.next(), words.next()) {
        (Some(time), Some("ERROR" | "WARN" | "INFO" | "DEBUG"), Some(message))
            if time.starts_with("20") && time.ends_with('Z') =>
        {
            message
        }
        _ => line,
    }
}
