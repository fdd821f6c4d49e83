//! Device nodes that are killed and started again.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::support::{ANY, Node};

/// The device node of a drive in a folder, killed again and again.
pub struct Restarts {
    folder: PathBuf,
    drive: PathBuf,
    address: SocketAddr,
    device: Option<Node>,
    kills: usize,
}

impl Restarts {
    /// Starts the node of the drive in the folder `drive`, with its logs in `folder`.
    pub fn start(folder: &Path, drive: &Path) -> Self {
        let device = Node::drive_at(ANY, folder, "device", drive);
        let (folder, drive) = (folder.to_owned(), drive.to_owned());
        Self { folder, drive, address: device.address(), device: Some(device), kills: 0 }
    }

    /// Returns the address at which each process listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets the node run for `time`, kills it, and starts another one `pause` later. The host goes
    /// on.
    pub fn kill(&mut self, time: Duration, pause: Duration) {
        std::thread::sleep(time);
        self.kills += 1;
        let mut device = self.device.take().expect("there is always one");
        device.process.kill();
        std::thread::sleep(pause);
        let name = format!("device-{}", self.kills);
        let device = Node::drive_at(self.address, &self.folder, &name, &self.drive);
        device.process.line("resumed");
        self.device = Some(device);
    }

    /// Ends the last process in order.
    pub fn stop(mut self) {
        self.device.take().expect("there is always one").stop();
    }
}
