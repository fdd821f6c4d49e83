//! Running the program, with every wait bounded.

use std::io::{BufRead, BufReader, Read};
use std::process::{Child, Command, ExitStatus, Output, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// No command of these tests takes anything like this long.
const LIMIT: Duration = Duration::from_secs(120);

pub fn farlane(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farlane"));
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs to the end; kills what does not end.
pub fn run(arguments: &[&str]) -> Output {
    let mut child = farlane(arguments).spawn().expect("the program starts");
    let out = drain(child.stdout.take().unwrap());
    let err = drain(child.stderr.take().unwrap());
    let status = wait(&mut child);
    let bytes = |lines: Receiver<Vec<u8>>| lines.recv_timeout(LIMIT).expect("output ends");
    Output { status, stdout: bytes(out), stderr: bytes(err) }
}

fn drain(mut from: impl Read + Send + 'static) -> Receiver<Vec<u8>> {
    let (send, receive) = channel();
    std::thread::spawn(move || {
        let mut all = Vec::new();
        let _ = from.read_to_end(&mut all);
        let _ = send.send(all);
    });
    receive
}

fn wait(child: &mut Child) -> ExitStatus {
    let until = Instant::now() + LIMIT;
    loop {
        if let Some(status) = child.try_wait().expect("a child can be waited for") {
            return status;
        }
        if Instant::now() > until {
            let _ = child.kill();
            panic!("the program did not end within {LIMIT:?}");
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// A node that runs until it is dropped.
pub struct Node {
    child: Child,
    lines: Receiver<String>,
}

impl Node {
    pub fn start(arguments: &[&str]) -> Self {
        let mut child = farlane(arguments).spawn().expect("the program starts");
        let (send, lines) = channel();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        std::thread::spawn(move || {
            stderr.lines().map_while(Result::ok).try_for_each(|line| send.send(line))
        });
        Self { child, lines }
    }

    /// A device node on any free port, and its address.
    pub fn device(namespace: &str) -> (Self, String) {
        let node = Self::start(&["device", "--listen", "127.0.0.1:0", "--namespace", namespace]);
        let address = node.line("listening on ").replace("listening on ", "");
        (node, address)
    }

    /// Waits for a line of stderr that contains `text`.
    #[track_caller]
    pub fn line(&self, text: &str) -> String {
        let until = Instant::now() + LIMIT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.contains(text) => return line,
                Ok(_) => {}
                Err(error) => panic!("no line with '{text}': {error}"),
            }
        }
    }

    /// The lines of stderr before the one that begins with `text`, and that one.
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

    /// Nobody reads its stderr any more: with the next line it is closed.
    pub fn ignore(&mut self) {
        self.lines = channel().1;
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Sends it a signal.
    pub fn signal(&self, signal: rustix::process::Signal) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, signal).expect("it runs");
    }

    /// Ctrl-C, and how it ends.
    pub fn interrupt(&mut self) -> ExitStatus {
        self.signal(rustix::process::Signal::INT);
        wait(&mut self.child)
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The only line of stderr.
#[track_caller]
pub fn one_line(output: &Output) -> String {
    let text = String::from_utf8(output.stderr.clone()).expect("UTF-8");
    assert_eq!(text.lines().count(), 1, "one line of error, not: {text}");
    text.trim_end().to_owned()
}
