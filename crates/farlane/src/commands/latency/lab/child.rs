//! A program that the lab started, or that an earlier one has left.

use super::journal::Process;
use super::site::last_line;
use crate::signals::Stop;
use live::Control;
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
    pub fn wait_for(&self, text: &str, limit: Duration, stop: &Stop) -> Outcome {
        let deadline = Instant::now() + limit;
        loop {
            // Asked before the file is read: a program that has ended has written everything.
            let has_ended = self.ends_within(LOOK, stop);
            let said = self.said();
            if said.contains(text) || self.output().is_ok_and(|output| output.contains(text)) {
                return Ok(());
            }
            if has_ended {
                return Err(Failure(last_line(&said, "it ended without a word")));
            }
            if stop.is_set() {
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
    pub fn finish(&mut self, limit: Duration, stop: &Stop) -> Outcome {
        let since = Instant::now();
        self.finish_or(Signal::TERM, limit, stop)?;
        match since.elapsed() < limit || stop.is_set() {
            true => Ok(()),
            false => Err(Failure(format!("not done within {} s", limit.as_secs()))),
        }
    }

    /// The same, but beyond `limit` it is asked to end.
    ///
    /// # Errors
    /// It failed, with its last words, or a signal ended it.
    pub fn finish_or(&mut self, how: Signal, limit: Duration, stop: &Stop) -> Outcome {
        let deadline = Instant::now() + limit;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            match () {
                () if stop.is_set() => return self.end(Signal::INT),
                () if self.ends_within(left, stop) => return self.end_of_process(),
                () if left.is_zero() => return self.end(how),
                () => {}
            }
        }
    }

    /// Asks it to end, and waits; if it does not end in time, SIGKILL ends it.
    ///
    /// # Errors
    /// It failed, with its last words.
    pub fn end(&mut self, how: Signal) -> Outcome {
        let _ = pidfd_send_signal(&self.end, how);
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
            None => last_line(&self.said(), &status.to_string()),
        }
    }

    fn ends_within(&self, time: Duration, stop: &Stop) -> bool {
        ends(&self.end, Some(stop), time)
    }

    fn said(&self) -> String {
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

/// Waits so long for the end of a process, or for a request to stop; whether it has ended.
fn ends(process: &OwnedFd, stop: Option<&Stop>, time: Duration) -> bool {
    let deadline = Instant::now() + time;
    // Once the request is there, it does not wake any more.
    let stop = stop.filter(|stop| !stop.is_set());
    loop {
        let mut sources = vec![PollFd::new(process, PollFlags::IN)];
        sources.extend(stop.map(|stop| PollFd::from_borrowed_fd(stop.fd(), PollFlags::IN)));
        let left = deadline.saturating_duration_since(Instant::now());
        // A signal interrupts it: it waits again for what is left.
        let _ = poll(&mut sources, Some(&Timespec::try_from(left).unwrap_or_default()));
        if sources[0].revents().contains(PollFlags::IN) {
            return true;
        }
        // A request for counters wakes too, until it is taken.
        if left.is_zero() || stop.is_some_and(|stop| stop.request() == Control::Stop) {
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
    use signal_hook::consts::SIGUSR1;
    use std::process::Command;

    /// A shell at work on this, and the folder of its files.
    fn shell(line: &str) -> (Child, tempfile::TempDir) {
        let folder = tempfile::tempdir().unwrap();
        let [output, errors] = ["output", "errors"].map(|name| folder.path().join(name));
        let mut command = Command::new("sh");
        command.args(["-c", line]).stdout(fs::File::create(&output).unwrap());
        let process = command.stderr(fs::File::create(&errors).unwrap()).spawn().unwrap();
        (Child::new(process, output, errors).unwrap(), folder)
    }

    #[test]
    fn a_request_for_counters_is_taken_and_ends_no_wait() {
        let stop = Stop::on_signals().unwrap();
        let (mut child, _folder) = shell("exec sleep 1000");
        signal_hook::low_level::raise(SIGUSR1).unwrap();
        assert!(!ends(&child.end, Some(&stop), Duration::from_millis(1)));
        let mut wake = [PollFd::from_borrowed_fd(stop.fd(), PollFlags::IN)];
        assert_eq!(poll(&mut wake, Some(&Timespec::default())), Ok(0), "it would wake for ever");
        let deadline = Duration::from_secs(60);
        stop.stop();
        assert_eq!(
            child.finish(deadline, &stop).unwrap_err().0,
            "signal: 2 (SIGINT)",
            "a request to stop does"
        );
    }

    /// poll(2) is interrupted by every signal with a handler. The signal goes to this thread
    /// first (linux/kernel/signal.c, `complete_signal`).
    #[test]
    fn a_signal_does_not_end_the_patience_with_a_program() {
        let stop = Stop::on_signals().unwrap();
        let thread = rustix::thread::gettid();
        let (mut child, _folder) = shell(&format!(
            "trap 'kill -USR1 {thread}; sleep 0.2; exit 0' TERM; echo ready; \
             while :; do sleep 0.05; done"
        ));
        child.wait_for("ready", Duration::from_secs(60), &stop).unwrap();
        child.end(Signal::TERM).expect("not SIGKILL");
    }
}
