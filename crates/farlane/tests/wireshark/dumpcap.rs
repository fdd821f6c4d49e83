//! A capture on loopback by dumpcap, the capture program of Wireshark.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use crate::support::{Process, Tshark};

const LIMIT: Duration = Duration::from_secs(10);

/// A running capture of one TCP port.
pub struct Dumpcap {
    process: Process,
    file: PathBuf,
}

impl Dumpcap {
    /// Starts a capture. The error is the reason why this machine does not permit it.
    pub fn start(folder: &Path, port: u16, file: &Path) -> Result<Self, String> {
        // Checks the permission first. Without permission, the capture would end with a message.
        let probe = Tshark::ready()
            .dumpcap()
            .args(["-i", "lo", "-a", "packets:1", "-a", "duration:1"])
            .args(["-w", "/dev/null"])
            .output()
            .map_err(|error| error.to_string())?;
        if !probe.status.success() {
            return Err(String::from_utf8_lossy(&probe.stderr).trim().to_owned());
        }
        let mut command: Command = Tshark::ready().dumpcap();
        command.args(["-i", "lo", "-B", "64", "-f", &format!("tcp port {port}"), "-w"]).arg(file);
        let process = Process::start(&mut command, "dumpcap", folder);
        process.line("File:");
        Ok(Self { process, file: file.to_owned() })
    }

    /// Ends the capture when its file contains these last bytes. dumpcap would lose packets that it
    /// has not written.
    pub fn stop(mut self, last: &[u8]) {
        let deadline = Instant::now() + LIMIT;
        let written = |file: &Path| {
            let bytes = fs::read(file).unwrap_or_default();
            bytes.windows(last.len()).any(|window| window == last)
        };
        while !written(&self.file) {
            assert!(Instant::now() < deadline, "the capture misses the end of the connection");
            thread::sleep(Duration::from_millis(100));
        }
        assert!(self.process.interrupt().success());
    }
}
