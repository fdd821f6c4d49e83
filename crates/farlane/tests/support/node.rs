//! farlane's own processes: a device node and a host node.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::folder::Sockets;
use crate::support::process::Process;

/// How long a node may take to start or to end.
const LIMIT: Duration = Duration::from_secs(20);

fn farlane(subcommand: &str) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_farlane"));
    command.arg(subcommand);
    command
}

/// Starts a node that says where it listens.
fn listening(mut command: Command, name: &str, folder: &Path) -> (Process, SocketAddr) {
    let mut process = Process::start(&mut command, name, folder);
    let line = process.stderr.wait_for("listening on ", LIMIT);
    let (_, address) = line.split_once("listening on ").unwrap();
    let address = address.parse().unwrap_or_else(|e| panic!("{line}: {e}"));
    (process, address)
}

/// A process that runs `farlane device`; ends with its owner.
pub struct DeviceNode {
    /// The process, to look at what it says or to end it.
    pub process: Process,
    address: SocketAddr,
}

impl DeviceNode {
    /// Starts one on any free port of loopback and waits until it listens.
    /// `name` tells its logs in `folder` from those of others; each of
    /// `namespaces` is a value of `--namespace`.
    pub fn start(folder: &Path, name: &str, namespaces: &[&str]) -> Self {
        Self::start_with("127.0.0.1:0".parse().unwrap(), folder, name, namespaces, &[])
    }

    /// Starts one on that address, for instance that of one which was killed.
    pub fn start_at(address: SocketAddr, folder: &Path, name: &str, namespaces: &[&str]) -> Self {
        Self::start_with(address, folder, name, namespaces, &[])
    }

    /// Starts one that records what passes, with `--trace` or other `options`.
    pub fn start_with(
        address: SocketAddr,
        folder: &Path,
        name: &str,
        namespaces: &[&str],
        options: &[&str],
    ) -> Self {
        let mut command = farlane("device");
        command.arg("--listen").arg(address.to_string());
        for namespace in namespaces {
            command.arg("--namespace").arg(namespace);
        }
        command.args(options);
        let (process, address) = listening(command, name, folder);
        Self { process, address }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it in good order.
    pub fn stop(mut self) -> ExitStatus {
        self.process.interrupt(LIMIT)
    }
}

/// A process that runs `farlane switch`; ends with its owner.
pub struct SwitchNode {
    /// The process, to look at what it says.
    pub process: Process,
    address: SocketAddr,
}

impl SwitchNode {
    /// Starts one on any free port of loopback, in front of `devices`, and waits
    /// until it listens.
    pub fn start(folder: &Path, name: &str, devices: &[SocketAddr]) -> Self {
        let mut command = farlane("switch");
        command.args(["--listen", "127.0.0.1:0"]);
        for device in devices {
            command.arg("--connect").arg(device.to_string());
        }
        let (process, address) = listening(command, name, folder);
        Self { process, address }
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it in good order.
    pub fn stop(mut self) -> ExitStatus {
        self.process.interrupt(LIMIT)
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
        let mut command = farlane("host");
        for device in devices {
            command.arg("--connect").arg(device.to_string());
        }
        command.arg("--vfio-user").arg(sockets.folder()).args(options);
        let mut process = Process::start(&mut command, name, folder);
        process.stderr.wait_for("ready", LIMIT);
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
    pub fn stop(mut self) -> ExitStatus {
        self.process.interrupt(LIMIT)
    }
}
