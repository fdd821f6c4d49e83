//! A child process of a test: never outlives it, and is waited for with a deadline.

use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Pid, PidfdFlags, Signal, kill_process, pidfd_open};

use crate::transcript::Transcript;

/// A running child with its output in two transcripts.
pub struct Process {
    name: String,
    child: Child,
    /// What it writes to its standard output.
    pub stdout: Transcript,
    /// What it writes to its standard error.
    pub stderr: Transcript,
}

impl Process {
    /// Starts `command`; its output also goes to `NAME.out` and `NAME.err` in `folder`.
    pub fn start(command: &mut Command, name: &str, folder: &Path) -> Self {
        let mut child = command
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{command:?}: {error}"));
        Self {
            stdout: Transcript::of(
                child.stdout.take().unwrap(),
                &folder.join(format!("{name}.out")),
            ),
            stderr: Transcript::of(
                child.stderr.take().unwrap(),
                &folder.join(format!("{name}.err")),
            ),
            name: name.to_owned(),
            child,
        }
    }

    /// A descriptor that becomes readable when the process has ended.
    pub fn end(&self) -> rustix::fd::OwnedFd {
        pidfd_open(self.pid(), PidfdFlags::empty()).expect("pidfd of a child")
    }

    /// Waits until it ends by itself.
    pub fn wait(&mut self, limit: Duration) -> ExitStatus {
        let end = self.end();
        let limit_spec = Timespec::try_from(limit).unwrap();
        let ready = poll(&mut [PollFd::new(&end, PollFlags::IN)], Some(&limit_spec));
        assert_eq!(ready, Ok(1), "{} still runs after {limit:?}", self.name);
        let status = self.child.wait().unwrap();
        self.stdout.wait_for_end(limit);
        self.stderr.wait_for_end(limit);
        status
    }

    /// Whether it has not ended.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().unwrap().is_none()
    }

    /// Ctrl-C, and the wait for its end.
    pub fn interrupt(&mut self, limit: Duration) -> ExitStatus {
        kill_process(self.pid(), Signal::INT).expect("interrupt a child");
        self.wait(limit)
    }

    /// Ends it without any notice, as a crash or a power failure would.
    pub fn kill(&mut self) {
        // It may have ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    fn pid(&self) -> Pid {
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
