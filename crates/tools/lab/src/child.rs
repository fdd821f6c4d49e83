//! A program that the lab started, or that an earlier lab left running.

use super::journal::Process;
use latency_linux::Operator;
use report::{Failure, Outcome, last_line};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// Maximum time for a program to end in order.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time between two reads of a file into which a program writes.
const LOOK: Duration = Duration::from_millis(20);
/// Maximum time between two checks for a request to stop.
const NAP: Duration = Duration::from_millis(200);

/// A program that ends when its owner is dropped.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    /// Descriptor that is readable when the program has ended.
    end: OwnedFd,
    output: PathBuf,
    errors: PathBuf,
}

impl Child {
    /// Wraps a started program, and the files of its standard output and standard error.
    ///
    /// # Errors
    /// As `pidfd_open(2)`.
    pub fn new(
        process: std::process::Child,
        output: PathBuf,
        errors: PathBuf,
    ) -> std::io::Result<Self> {
        let end = pidfd_open(Pid::from_child(&process), PidfdFlags::empty())?;
        Ok(Self { process, end, output, errors })
    }

    /// Returns the program's standard output.
    ///
    /// # Errors
    /// Errors of the file.
    pub fn output(&self) -> std::io::Result<String> {
        fs::read_to_string(&self.output)
    }

    /// Waits until the program has printed this text.
    ///
    /// # Errors
    /// The program ended (with its last line), it took longer than `limit`, or the lab must stop.
    pub fn wait_for(&self, text: &str, limit: Duration, operator: &dyn Operator) -> Outcome {
        let deadline = Instant::now() + limit;
        loop {
            // The order matters: a program that has ended has written everything before the file is
            // read.
            let has_ended = self.ends_within(LOOK, operator);
            let log = self.log();
            if log.contains(text) || self.output().is_ok_and(|output| output.contains(text)) {
                return Ok(());
            }
            if has_ended {
                return Err(Failure(last_line(&log, "it exited and printed nothing")));
            }
            if operator.has_stopped() {
                return Err(Failure("interrupted".into()));
            }
            if Instant::now() > deadline {
                return Err(Failure(format!("not ready within {} s", limit.as_secs())));
            }
        }
    }

    /// Waits for the end of the program. A request to stop sends SIGINT to the program.
    ///
    /// # Errors
    /// The program failed (with its last line), a signal ended it, or it took longer than `limit`.
    pub fn finish(&mut self, limit: Duration, operator: &dyn Operator) -> Outcome {
        let since = Instant::now();
        self.finish_or(Signal::TERM, limit, operator)?;
        match since.elapsed() < limit || operator.has_stopped() {
            true => Ok(()),
            false => Err(Failure(format!("not finished within {} s", limit.as_secs()))),
        }
    }

    /// Waits for the end of the program as [`finish`](Self::finish), but sends it a signal after
    /// `limit`.
    ///
    /// # Errors
    /// The program failed (with its last line), or a signal ended it.
    pub fn finish_or(
        &mut self,
        signal: Signal,
        limit: Duration,
        operator: &dyn Operator,
    ) -> Outcome {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match () {
                () if operator.has_stopped() => return self.end(Signal::INT),
                () if self.ends_within(left, operator) => return self.end_of_process(),
                () if left.is_zero() => return self.end(signal),
                () => {}
            }
        }
    }

    /// Sends a signal to the program and waits for its end. If the program does not end in time, it
    /// is killed by SIGKILL.
    ///
    /// # Errors
    /// The program failed (with its last line).
    pub fn end(&mut self, signal: Signal) -> Outcome {
        let _ = pidfd_send_signal(&self.end, signal);
        if !ends(&self.end, None, PATIENCE) {
            let _ = pidfd_send_signal(&self.end, Signal::KILL);
        }
        self.end_of_process()
    }

    /// Returns the reason if the program has failed.
    ///
    /// # Errors
    /// As `waitpid(2)`.
    pub fn failed(&mut self) -> std::io::Result<Option<String>> {
        let status = self.process.try_wait()?.filter(|status| !status.success());
        Ok(status.map(|status| self.why(status)))
    }

    /// Returns the reason if the program has ended.
    ///
    /// # Errors
    /// As `waitpid(2)`.
    pub fn ended(&mut self) -> std::io::Result<Option<String>> {
        let status = self.process.try_wait()?;
        Ok(status.map(|status| self.why(status)))
    }

    fn end_of_process(&mut self) -> Outcome {
        let status = self.process.wait()?;
        match status.success() {
            true => Ok(()),
            false => Err(Failure(self.why(status))),
        }
    }

    /// Returns the signal that ended the program, or its last line.
    fn why(&self, status: ExitStatus) -> String {
        match status.signal() {
            Some(_) => status.to_string(),
            None => last_line(&self.log(), &status.to_string()),
        }
    }

    fn ends_within(&self, time: Duration, operator: &dyn Operator) -> bool {
        ends(&self.end, Some(operator), time)
    }

    fn log(&self) -> String {
        fs::read_to_string(&self.errors).unwrap_or_default()
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        if let Ok(None) = self.process.try_wait() {
            let _ = self.end(Signal::TERM);
        }
    }
}

/// Waits up to `time` for the end of a process; returns whether it has ended. A request to stop
/// ends the wait.
fn ends(process: &OwnedFd, operator: Option<&dyn Operator>, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    let operator = operator.filter(|operator| !operator.has_stopped());
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut source = [PollFd::new(process, PollFlags::IN)];
        // A signal interrupts the call. A signal just before the call is seen after `NAP`.
        let _ = poll(&mut source, Some(&Timespec::try_from(left.min(NAP)).unwrap_or_default()));
        if source[0].revents().contains(PollFlags::IN) {
            return true;
        }
        if left.is_zero() || operator.is_some_and(Operator::has_stopped) {
            return false;
        }
    }
}

/// Kills a process that an earlier lab left, unless its number belongs to another process now.
pub fn end_left(process: Process) {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let Some(Ok(fd)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return };
    // Checked after opening the descriptor: from here on the number cannot belong to another
    // process.
    if process.runs() && pidfd_send_signal(&fd, Signal::KILL).is_ok() {
        ends(&fd, None, PATIENCE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use signal_hook::consts::{SIGINT, SIGUSR1};
    use std::process::Command;
    use std::sync::Arc;

    /// Starts a shell that runs `line`. Also returns the folder with the files of its output.
    fn shell(line: &str) -> (Child, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let [output, errors] = ["output", "errors"].map(|name| folder.path().join(name));
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdout(fs::File::create(&output).unwrap());
        let process = command.stderr(fs::File::create(&errors).unwrap()).spawn().unwrap();
        (Child::new(process, output, errors).unwrap(), folder)
    }

    /// An operator that stops at a time, or never.
    struct After(Option<Instant>);

    impl Operator for After {
        fn has_stopped(&self) -> bool {
            self.0.is_some_and(|at| Instant::now() >= at)
        }
        fn warn(&self, _: &str) {}
        fn inform(&self, _: &str) {}
    }

    #[test]
    fn a_request_to_stop_ends_the_wait_and_the_program() {
        // As in the program: a child inherits that its parent ignores a signal, but no handler.
        signal_hook::flag::register(SIGINT, Arc::default()).unwrap();
        let (mut child, _folder) = shell("exec sleep 1000");
        let stop = After(Some(Instant::now() + Duration::from_millis(50)));
        let ended = child.finish(Duration::from_secs(60), &stop);
        assert_eq!(ended.unwrap_err().0, "signal: 2 (SIGINT)");
    }

    /// Every signal with a handler interrupts poll(2). The kernel prefers this thread for the
    /// signal (linux/kernel/signal.c, `complete_signal`).
    #[test]
    fn signal_does_not_shorten_the_wait_for_a_program() {
        signal_hook::flag::register(SIGUSR1, Arc::default()).unwrap();
        let thread = rustix::thread::gettid();
        let (mut child, _folder) = shell(&format!(
            "trap 'kill -USR1 {thread}; sleep 0.2; exit 0' TERM; echo ready; \
             while :; do sleep 0.05; done"
        ));
        child.wait_for("ready", Duration::from_secs(60), &After(None)).unwrap();
        child.end(Signal::TERM).expect("not SIGKILL");
    }
}
