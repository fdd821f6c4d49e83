//! A program that the lab started, or that an earlier one has left.

use super::journal::Process;
use super::site::last_line;
use latency_linux::Operator;
use report::{Failure, Outcome};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::OwnedFd;
use rustix::process::{Pid, PidfdFlags, Signal, pidfd_open, pidfd_send_signal};
use std::fs;
use std::os::unix::process::ExitStatusExt;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

/// How long a program may take to end in order.
const PATIENCE: Duration = Duration::from_secs(10);
/// Between two looks at a file into which a program writes.
const LOOK: Duration = Duration::from_millis(20);
/// The longest wait between two looks at requests to stop.
const NAP: Duration = Duration::from_millis(200);

/// A program, which ends with its owner.
#[derive(Debug)]
pub struct Child {
    process: std::process::Child,
    /// Readable when it has ended.
    end: OwnedFd,
    output: PathBuf,
    errors: PathBuf,
}

impl Child {
    /// A program that was started, and the files of its standard output and standard error.
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

    /// What it printed.
    ///
    /// # Errors
    /// As the file's.
    pub fn output(&self) -> std::io::Result<String> {
        fs::read_to_string(&self.output)
    }

    /// Waits until it has said this text.
    ///
    /// # Errors
    /// It ended, with its last words; it took longer than `limit`; the lab is to stop.
    pub fn wait_for(&self, text: &str, limit: Duration, operator: &dyn Operator) -> Outcome {
        let deadline = Instant::now() + limit;
        loop {
            // Asked before the file is read: a program that has ended has written everything.
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

    /// Waits for its end; with a request to stop it is asked to end (SIGINT).
    ///
    /// # Errors
    /// It failed, with its last words, or a signal ended it; it took longer than `limit`.
    pub fn finish(&mut self, limit: Duration, operator: &dyn Operator) -> Outcome {
        let since = Instant::now();
        self.finish_or(Signal::TERM, limit, operator)?;
        match since.elapsed() < limit || operator.has_stopped() {
            true => Ok(()),
            false => Err(Failure(format!("not finished within {} s", limit.as_secs()))),
        }
    }

    /// The same, but beyond `limit` it is asked to end.
    ///
    /// # Errors
    /// It failed, with its last words, or a signal ended it.
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

    /// Asks it to end, and waits; if it does not end in time, SIGKILL ends it.
    ///
    /// # Errors
    /// It failed, with its last words.
    pub fn end(&mut self, signal: Signal) -> Outcome {
        let _ = pidfd_send_signal(&self.end, signal);
        if !ends(&self.end, None, PATIENCE) {
            let _ = pidfd_send_signal(&self.end, Signal::KILL);
        }
        self.end_of_process()
    }

    /// If it has failed: why.
    ///
    /// # Errors
    /// As `waitpid(2)`.
    pub fn failed(&mut self) -> std::io::Result<Option<String>> {
        let status = self.process.try_wait()?.filter(|status| !status.success());
        Ok(status.map(|status| self.why(status)))
    }

    /// If it has ended: why.
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

    /// The signal that ended it, or its last words.
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

/// Waits so long for the end of a process; whether it has ended. A request to stop that comes
/// meanwhile ends the wait.
fn ends(process: &OwnedFd, operator: Option<&dyn Operator>, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    let operator = operator.filter(|operator| !operator.has_stopped());
    loop {
        let left = deadline.saturating_duration_since(Instant::now());
        let mut source = [PollFd::new(process, PollFlags::IN)];
        // A signal interrupts it. One that came right before is seen after the nap.
        let _ = poll(&mut source, Some(&Timespec::try_from(left.min(NAP)).unwrap_or_default()));
        if source[0].revents().contains(PollFlags::IN) {
            return true;
        }
        if left.is_zero() || operator.is_some_and(Operator::has_stopped) {
            return false;
        }
    }
}

/// Ends a process that an earlier lab has left, if it is still the same.
pub fn end_left(process: Process) {
    let pid = i32::try_from(process.pid).ok().and_then(Pid::from_raw);
    let Some(Ok(fd)) = pid.map(|pid| pidfd_open(pid, PidfdFlags::empty())) else { return };
    // Asked behind the descriptor: from here on the number cannot become another process's.
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

    /// A shell at work on this, and the folder of its files.
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

    /// poll(2) is interrupted by every signal with a handler. The signal goes to this thread
    /// first (linux/kernel/signal.c, `complete_signal`).
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
