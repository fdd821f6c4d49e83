//! A journal of the actions to undo. Each action is written to disk before it happens. The next lab
//! undoes the actions that an earlier lab left, even if the earlier lab was killed.

use linux::proc_stat::behind_name;
use report::Failure;
use rustix::fs::{FlockOperation, flock};
use std::fmt::Write as _;
use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Read, Write};
use std::path::{Path, PathBuf};

/// An action that undoes a change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Undo {
    /// Run a shell line.
    Line(String),
    /// Kill a process.
    Kill(Process),
}

/// A process, identified by its number and its start, because numbers are used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Process {
    /// Number of the process.
    pub pid: u32,
    /// Start of the process in ticks since the boot of the machine (proc(5), /proc/PID/stat, field
    /// 22).
    pub start: u64,
}

impl Process {
    /// Returns the process with this number; `None` if there is none.
    pub fn find(pid: u32) -> Option<Self> {
        let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
        let mut fields = behind_name(&stat)?;
        // Field 3. A zombie process has ended.
        let state = fields.next()?;
        let start = fields.nth(22 - 4)?.parse().ok()?;
        (state != "Z").then_some(Self { pid, start })
    }

    /// Returns whether the process still runs.
    pub fn runs(self) -> bool {
        Self::find(self.pid) == Some(self)
    }
}

/// The journal of a lab. It is locked while the lab runs.
#[derive(Debug)]
pub struct Journal {
    file: File,
    folder: PathBuf,
}

impl Journal {
    /// Opens the journal in a lab's folder. Returns the actions that an earlier lab has left to
    /// undo, latest first.
    ///
    /// # Errors
    /// Another lab with this name runs, or the file cannot be created or read.
    pub fn open(folder: &Path) -> Result<(Self, Vec<Undo>), Failure> {
        let path = folder.join("journal");
        let about = |error: std::io::Error| match error.kind() {
            ErrorKind::PermissionDenied => Failure(format!(
                "{}: permission denied: the lab has to run as root",
                path.display()
            )),
            _ => Failure(format!("{}: {error}", path.display())),
        };
        fs::create_dir_all(folder).map_err(about)?;
        let mut options = OpenOptions::new();
        let mut file = options.read(true).append(true).create(true).open(&path).map_err(about)?;
        flock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| match error {
            rustix::io::Errno::WOULDBLOCK => {
                Failure(format!("a lab of this name is running: {} is locked", path.display()))
            }
            other => about(other.into()),
        })?;
        let mut text = String::new();
        file.read_to_string(&mut text).map_err(about)?;
        let left = parse(&text).map_err(|why| Failure(format!("{}: {why}", path.display())))?;
        Ok((Self { file, folder: folder.to_owned() }, left))
    }

    /// Adds an action to undo.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn add(&mut self, undo: &Undo) -> std::io::Result<()> {
        self.file.write_all(line(undo).as_bytes())?;
        self.file.sync_data()
    }

    /// Removes the lab's files after everything was undone.
    ///
    /// # Errors
    /// Errors of the folder.
    pub fn clear(&mut self) -> std::io::Result<()> {
        self.file.set_len(0)?;
        for entry in fs::read_dir(&self.folder)? {
            let path = entry?.path();
            match path.is_dir() {
                true => fs::remove_dir_all(path)?,
                false if path.ends_with("journal") => {}
                false => fs::remove_file(path)?,
            }
        }
        Ok(())
    }
}

fn line(undo: &Undo) -> String {
    let mut text = String::new();
    match undo {
        Undo::Line(line) => writeln!(text, "run {line}"),
        Undo::Kill(Process { pid, start }) => writeln!(text, "kill {pid} {start}"),
    }
    .expect("a String takes all");
    text
}

/// Parses a journal, latest action first. An incomplete last line is ignored, because its action
/// did not happen.
fn parse(text: &str) -> Result<Vec<Undo>, String> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    let undo = |(number, line): (usize, &str)| {
        let wrong = || format!("line {number}: '{line}': 'run LINE' or 'kill PID START'");
        match line.split_once(' ').ok_or_else(wrong)? {
            ("run", line) => Ok(Undo::Line(line.to_owned())),
            ("kill", process) => {
                let (pid, start) = process.split_once(' ').ok_or_else(wrong)?;
                let pid = pid.parse().map_err(|_| wrong())?;
                let start = start.parse().map_err(|_| wrong())?;
                Ok(Undo::Kill(Process { pid, start }))
            }
            _ => Err(wrong()),
        }
    };
    let lines = whole.lines().filter(|line| !line.is_empty());
    let mut all: Vec<Undo> = (1..).zip(lines).map(undo).collect::<Result<_, _>>()?;
    all.reverse();
    Ok(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_is_read_in_reverse_order() {
        let undo =
            [Undo::Line("ip netns delete a".into()), Undo::Kill(Process { pid: 12, start: 3456 })];
        let text: String = undo.iter().map(line).collect();
        assert_eq!(text, "run ip netns delete a\nkill 12 3456\n");
        let [first, second] = undo;
        assert_eq!(parse(&text), Ok(vec![second, first.clone()]));
        assert_eq!(parse("run ip netns delete a\nkill 1"), Ok(vec![first]), "cut off");
        assert_eq!(parse(""), Ok(Vec::new()));
        let wrong = parse("kill x 3\n").unwrap_err();
        assert!(wrong.contains("line 1: 'kill x 3'"), "{wrong}");
    }

    #[test]
    fn process_is_identified_by_pid_and_start_time() {
        let own = Process::find(std::process::id()).unwrap();
        assert!(own.runs());
        assert!(!Process { start: own.start + 1, ..own }.runs(), "another of the same number");
        assert_eq!(Process::find(0), None);
    }

    #[test]
    fn lab_name_is_locked_and_leftovers_are_found_by_the_next_lab() {
        let folder = tempfile::tempdir().unwrap();
        let (mut first, left) = Journal::open(folder.path()).unwrap();
        assert_eq!(left, Vec::new());
        let undo = Undo::Line("true".into());
        first.add(&undo).unwrap();
        let busy = Journal::open(folder.path()).unwrap_err();
        assert!(busy.0.contains("is running"), "{busy:?}");
        drop(first);
        let (mut second, left) = Journal::open(folder.path()).unwrap();
        assert_eq!(left, [undo]);
        fs::write(folder.path().join("talk.json"), "{}").unwrap();
        second.clear().unwrap();
        drop(second);
        assert_eq!(Journal::open(folder.path()).unwrap().1, Vec::new());
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "the journal alone");
    }
}
