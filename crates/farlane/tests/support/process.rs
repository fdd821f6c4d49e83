//! A child process of a test. The child never lives longer than the test, even if the test is
//! killed. Every wait for a child has a time limit.

use std::fmt::Display;
use std::io::Write;
use std::path::Path;
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::support::Transcript;

/// Time limit for a line or for the end of a child on a busy machine.
pub const LIMIT: Duration = Duration::from_secs(60);

/// Waits for a condition without sleeping, because the condition holds soon. Panics after
/// [`LIMIT`].
#[track_caller]
pub fn wait_until(condition: &str, mut done: impl FnMut() -> bool) {
    let deadline = Instant::now() + LIMIT;
    while !done() {
        assert!(Instant::now() < deadline, "{condition}");
        std::thread::yield_now();
    }
}

/// A running child process with its output in two transcripts.
pub struct Process {
    name: String,
    child: Child,
    guard: Guard,
    /// Standard output of the child.
    pub stdout: Transcript,
    /// Standard error of the child.
    pub stderr: Transcript,
}

impl Process {
    /// Starts `command`. The output also goes to `NAME.out` and `NAME.err` in `folder`.
    pub fn start(command: &mut Command, name: &str, folder: &Path) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let log = |kind: &str| folder.join(format!("{name}.{kind}"));
        let stdout = Transcript::new(child.stdout.take().unwrap(), &log("out"));
        let stderr = Transcript::new(child.stderr.take().unwrap(), &log("err"));
        Self { name: name.to_owned(), guard: Guard::new(&child), child, stdout, stderr }
    }

    /// Returns a descriptor that becomes readable when the process ends.
    pub fn end(&self) -> rustix::fd::OwnedFd {
        pidfd_open(self.pid(), PidfdFlags::empty()).expect("pidfd of a child")
    }

    /// Waits for a line of stderr that contains `part`.
    #[track_caller]
    pub fn line(&self, part: &str) -> String {
        self.stderr.wait_for(part, LIMIT)
    }

    /// Returns the next lines of stderr before the line that begins with `text`, and that line.
    #[track_caller]
    pub fn lines_until(&self, text: &str) -> (Vec<String>, String) {
        let mut before = Vec::new();
        loop {
            let line = self.line("");
            if line.starts_with(text) {
                return (before, line);
            }
            before.push(line);
        }
    }

    /// Waits until a node listens, and returns the printed address.
    #[track_caller]
    pub fn listens(&self) -> String {
        let line = self.line("listening on ");
        line.split_once("listening on ").expect("it is in the line").1.to_owned()
    }

    /// Waits until the child ends by itself.
    pub fn wait(&mut self) -> ExitStatus {
        let end = self.end();
        let limit = Timespec::try_from(LIMIT).unwrap();
        let ready = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&limit));
        assert_eq!(ready, Ok(1), "{} still runs after {LIMIT:?}", self.name);
        // The guard is dismissed first. After the wait, another process may have the child's
        // number.
        self.guard.dismiss();
        let status = self.child.wait().unwrap();
        self.stdout.wait_for_end(LIMIT);
        self.stderr.wait_for_end(LIMIT);
        status
    }

    /// Returns whether the child has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Sends a signal to the child.
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("it runs");
    }

    /// Sends SIGINT, as Ctrl-C does, and waits for the end of the child.
    pub fn interrupt(&mut self) -> ExitStatus {
        self.signal(Signal::INT);
        self.wait()
    }

    /// Kills the child without notice, as a crash or a power failure does.
    pub fn kill(&mut self) {
        // The child may have ended already.
        let _ = self.child.kill();
        self.guard.dismiss();
        let _ = self.child.wait();
    }

    /// Returns the child's process number.
    pub fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.kill();
        if std::thread::panicking() {
            self.stdout.print_tail(10);
            self.stderr.print_tail(30);
        }
    }
}

/// A shell that kills a child when its pipe from the test closes. The pipe also closes when the
/// test is killed.
struct Guard {
    shell: Child,
    pipe: Option<ChildStdin>,
}

impl Guard {
    fn new(child: &Child) -> Self {
        let mut shell = Command::new("sh")
            .args(["-c", "read -r dismissed || kill -KILL \"$1\"", "guard"])
            .arg(child.id().to_string())
            .stdin(Stdio::piped())
            .spawn()
            .expect("sh");
        let pipe = shell.stdin.take();
        Self { shell, pipe }
    }

    /// Ends the guard without killing the child.
    fn dismiss(&mut self) {
        if let Some(mut pipe) = self.pipe.take() {
            // The write fails if the guard was killed, which is no problem.
            let _ = pipe.write_all(b"dismissed\n");
            drop(pipe);
            let _ = self.shell.wait();
        }
    }
}

/// Sets a flag on drop, also when the test fails.
pub struct SetOnDrop<'a>(pub &'a AtomicBool);

impl Drop for SetOnDrop<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// Prints that this machine lacks what `test` needs. The line is also visible if the output of
/// tests that pass is hidden.
pub fn cannot(test: &str, why: impl Display) {
    let _ = writeln!(std::io::stderr(), "NOT TESTED: {test}: {why}");
}
