//! Nodes of farlane in separate processes.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::support::Process;
use crate::support::folder::Sockets;
use crate::support::program::farlane;

/// A free port of loopback.
pub const ANY: &str = "127.0.0.1:0";

/// Starts a node.
fn start(folder: &Path, name: &str, arguments: &[&str]) -> Process {
    Process::start(&mut farlane(arguments), name, folder)
}

/// A process that runs `farlane device` or `farlane switch`, and ends when the value is dropped.
pub struct Node {
    /// The process, for its log lines and its end.
    pub process: Process,
    address: SocketAddr,
}

impl Node {
    /// Starts a device node on a free port, and waits until it listens. `name` is the name of its
    /// logs in `folder`. `namespaces` are values of `--namespace`.
    pub fn device(folder: &Path, name: &str, namespaces: &[&str]) -> Self {
        Self::device_at(ANY, folder, name, namespaces, &[])
    }

    /// As [`device`](Self::device), at this address, such as the address of a killed node, and with
    /// further `options`.
    pub fn device_at(
        address: impl Display,
        folder: &Path,
        name: &str,
        namespaces: &[&str],
        options: &[&str],
    ) -> Self {
        let address = address.to_string();
        let mut arguments = vec!["device", "--listen", &address];
        namespaces.iter().for_each(|namespace| arguments.extend(["--namespace", namespace]));
        arguments.extend(options);
        Self::listening(start(folder, name, &arguments))
    }

    /// As [`device_at`](Self::device_at), with the drive in the folder `drive`.
    pub fn drive_at(address: impl Display, folder: &Path, name: &str, drive: &Path) -> Self {
        let drive = drive.to_str().expect("a plain name");
        Self::device_at(address, folder, name, &[], &["--drive", drive])
    }

    /// As [`drive_at`](Self::drive_at), with two controllers, each at its address; returns the
    /// address of the second one too.
    pub fn controllers(
        addresses: [&str; 2],
        folder: &Path,
        name: &str,
        drive: &Path,
        options: &[&str],
    ) -> (Self, SocketAddr) {
        let (drive, [one, two]) = (drive.to_str().expect("a plain name"), addresses);
        let arguments = ["device", "--listen", one, "--listen", two, "--drive", drive];
        let node = Self::listening(start(folder, name, &[&arguments[..], options].concat()));
        let second = node.process.listens().parse().expect("an address");
        (node, second)
    }

    /// Starts a switch node in front of `device` and waits until it listens.
    pub fn switch(folder: &Path, name: &str, device: SocketAddr) -> Self {
        let device = device.to_string();
        Self::listening(start(folder, name, &["switch", "--listen", ANY, "--connect", &device]))
    }

    fn listening(process: Process) -> Self {
        let address = process.listens().parse().expect("an address");
        Self { process, address }
    }

    /// Returns the address at which the node listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends the node in order.
    #[track_caller]
    pub fn stop(mut self) {
        assert!(self.process.interrupt().success());
    }
}

/// A process that runs `farlane host --vfio-user`, and ends when the value is dropped.
pub struct HostNode {
    /// The process, for its log lines and its end.
    pub process: Process,
    sockets: Sockets,
}

impl HostNode {
    /// Starts a host node that connects to these device nodes (or relays), with further `options`.
    /// Waits until it offers their endpoints.
    pub fn start(folder: &Path, name: &str, devices: &[SocketAddr], options: &[&str]) -> Self {
        let sockets = Sockets::new();
        let offered = sockets.folder().to_str().expect("a plain name");
        let devices: Vec<String> = devices.iter().map(ToString::to_string).collect();
        let mut arguments = vec!["host", "--vfio-user", offered];
        devices.iter().for_each(|device| arguments.extend(["--connect", device]));
        arguments.extend(options);
        let process = start(folder, name, &arguments);
        process.line("ready");
        Self { process, sockets }
    }

    /// Returns the vfio-user socket of an endpoint.
    pub fn socket(&self, endpoint: usize) -> PathBuf {
        self.sockets.path(&format!("{endpoint}/cntrl"))
    }

    /// Returns the value of QEMU's `-device`, or the arguments of QMP's `device_add`, for an
    /// endpoint. `more` is an object with further properties, such as a bus.
    pub fn endpoint(&self, endpoint: usize, more: Value) -> Value {
        let mut value = json!({
            "driver": "vfio-user-pci",
            "socket": {"type": "unix", "path": self.socket(endpoint)},
        });
        let more = more.as_object().expect("an object of properties").clone();
        value.as_object_mut().unwrap().extend(more);
        value
    }

    /// Ends the node in order.
    #[track_caller]
    pub fn stop(mut self) {
        assert!(self.process.interrupt().success());
    }
}
