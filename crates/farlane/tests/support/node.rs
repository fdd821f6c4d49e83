//! farlane's own processes: nodes.

use std::fmt::Display;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use crate::support::folder::Sockets;
use crate::support::process::Process;

/// Any free port of loopback.
pub const ANY: &str = "127.0.0.1:0";

/// Starts a node with these `arguments`, and an `option` for each of `values`.
fn start(
    folder: &Path,
    name: &str,
    arguments: &[&str],
    option: &str,
    values: impl Iterator<Item = String>,
) -> Process {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farlane"));
    command.args(arguments);
    values.for_each(|value| _ = command.arg(option).arg(value));
    Process::start(&mut command, name, folder)
}

/// A process that runs `farlane device` or `farlane switch`; ends with its owner.
pub struct Node {
    /// The process, to look at what it says or to end it.
    pub process: Process,
    address: SocketAddr,
}

impl Node {
    /// Starts a device node on any free port and waits until it listens. `name` tells its logs in
    /// `folder` from those of others; each of `namespaces` is a value of `--namespace`.
    pub fn device(folder: &Path, name: &str, namespaces: &[&str]) -> Self {
        Self::device_at(ANY, folder, name, namespaces, &[])
    }

    /// Starts one on that address, for instance that of one which was killed, with
    /// further `options`.
    pub fn device_at(
        address: impl Display,
        folder: &Path,
        name: &str,
        namespaces: &[&str],
        options: &[&str],
    ) -> Self {
        let address = address.to_string();
        let arguments = [&["device", "--listen", &address], options].concat();
        let namespaces = namespaces.iter().map(ToString::to_string);
        Self::listening(start(folder, name, &arguments, "--namespace", namespaces))
    }

    /// Starts a switch node in front of `devices` and waits until it listens.
    pub fn switch(folder: &Path, name: &str, devices: &[SocketAddr]) -> Self {
        let devices = devices.iter().map(ToString::to_string);
        let arguments = ["switch", "--listen", ANY];
        Self::listening(start(folder, name, &arguments, "--connect", devices))
    }

    fn listening(process: Process) -> Self {
        let address = process.listens().parse().expect("an address");
        Self { process, address }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it in good order.
    #[track_caller]
    pub fn stop(mut self) {
        assert!(self.process.interrupt().success());
    }
}

/// A process that runs `farlane host --vfio-user`; ends with its owner.
pub struct HostNode {
    /// The process, to look at what it says or to end it.
    pub process: Process,
    sockets: Sockets,
}

impl HostNode {
    /// Starts one that connects to these device nodes (or relays), with further
    /// `options`, and waits until it offers their endpoints.
    pub fn start(folder: &Path, name: &str, devices: &[SocketAddr], options: &[&str]) -> Self {
        let sockets = Sockets::new();
        let offered = sockets.folder().to_str().expect("a plain name");
        let arguments = [&["host", "--vfio-user", offered], options].concat();
        let devices = devices.iter().map(ToString::to_string);
        let process = start(folder, name, &arguments, "--connect", devices);
        process.line("ready");
        Self { process, sockets }
    }

    /// The vfio-user socket of endpoint N.
    pub fn socket(&self, endpoint: usize) -> PathBuf {
        self.sockets.path(&format!("{endpoint}/cntrl"))
    }

    /// The value of QEMU's `-device`, or the arguments of QMP's `device_add`, for
    /// endpoint N; `more` is an object of further properties, such as a bus.
    pub fn endpoint(&self, endpoint: usize, more: Value) -> Value {
        let mut value = json!({
            "driver": "vfio-user-pci",
            "socket": {"type": "unix", "path": self.socket(endpoint)},
        });
        let more = more.as_object().expect("an object of properties").clone();
        value.as_object_mut().unwrap().extend(more);
        value
    }

    /// Ends it in good order.
    #[track_caller]
    pub fn stop(mut self) {
        assert!(self.process.interrupt().success());
    }
}
