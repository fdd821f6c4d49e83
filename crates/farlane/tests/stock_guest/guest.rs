//! A stock Debian kernel in a stock QEMU, under software emulation.
//!
//! The guest runs scripts that the test sends over a virtio serial port, and returns their output
//! (`tests/guest/rootfs/init` has the protocol). A file keeps the console of the guest. The test
//! controls QEMU by QMP.

use std::io::{ErrorKind, Read, Write};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::process::Command;
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use analysis::commands::replay::Issued;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use serde_json::json;

use crate::stock_guest::lab;
use crate::stock_guest::qmp::Qmp;
use crate::stock_guest::script::{LIMIT, Output, Script};
use crate::stock_guest::trace;
use crate::stock_guest::workload;
use crate::support::folder::{self, Sockets};
use crate::support::tshark::fetched;
use crate::support::{HostNode, Process, Transcript};

/// The options of a guest that has not started.
pub struct Builder {
    name: String,
    lab: bool,
    memory: Option<String>,
    kernel: Vec<&'static str>,
    qemu: Vec<String>,
}

impl Builder {
    /// Adds an option `-device` with this value, in any notation of QEMU.
    pub fn device(self, value: impl Into<String>) -> Self {
        self.option("-device", value)
    }

    /// Adds endpoint `endpoint` of a host node.
    pub fn drive(self, host: &HostNode, endpoint: usize) -> Self {
        self.device(host.endpoint(endpoint, json!({})).to_string())
    }

    /// Adds an option of QEMU with its value.
    pub fn option(mut self, name: &str, value: impl Into<String>) -> Self {
        self.qemu.extend([name.to_owned(), value.into()]);
        self
    }

    /// Adds a root port with hot-plug. `bus=NAME` puts a drive below it.
    pub fn root_port(self, name: &str) -> Self {
        let slot = 1 + self.qemu.len();
        self.device(format!("pcie-root-port,id={name},chassis={slot},slot={slot}"))
    }

    /// Sets QEMU's backend of the guest's memory, by default `memfd`. A vfio-user server maps this
    /// memory. Without a backend, the server accesses the memory only by messages.
    pub fn memory(mut self, backend: Option<&str>) -> Self {
        self.memory = backend.map(str::to_owned);
        self
    }

    /// Adds the programs for networks and the program under test, and doubles the memory.
    pub fn lab(mut self) -> Self {
        self.lab = true;
        self
    }

    /// Adds a parameter to the kernel's command line.
    pub fn kernel(mut self, parameter: &'static str) -> Self {
        self.kernel.push(parameter);
        self
    }

    /// Starts QEMU and waits until the guest answers.
    pub fn start(self) -> Guest {
        let begun = Instant::now();
        // Fetched once for all guests that start at the same time.
        static FILES: OnceLock<PathBuf> = OnceLock::new();
        let files = FILES.get_or_init(|| fetched(&["guest/fetch", "guest/initramfs"]));
        let (initrd, size) = match self.lab {
            true => (lab::initrd(files), "1G"),
            false => (files.join("initramfs.cpio"), "512M"),
        };
        let folder = folder::kept(&self.name);
        let sockets = Sockets::new();
        let [console, control, qmp] = ["console", "control", "qmp"]
            .map(|name| UnixListener::bind(sockets.path(name)).expect("listen on a Unix socket"));

        let mut command = Command::new(files.join("qemu-system-x86_64"));
        command
            .args(["-nodefaults", "-no-user-config", "-display", "none"])
            .args(["-no-reboot", "-nic", "none", "-accel", "tcg", "-smp", "2"])
            // With a source of random numbers, programs do not wait for them.
            .args(["-cpu", "qemu64,+rdrand"])
            .args(["-m", size, "-run-with", "exit-with-parent=on"]);
        match self.memory {
            Some(kind) => command
                .args(["-object", &format!("memory-backend-{kind},id=mem,size={size},share=on")])
                .args(["-machine", "q35,memory-backend=mem"]),
            None => command.args(["-machine", "q35"]),
        };
        for name in ["console", "control"] {
            let path = sockets.path(name);
            command.arg("-chardev").arg(format!("socket,id={name},path={}", path.display()));
        }
        command
            .args(["-serial", "chardev:console"])
            .arg("-qmp")
            .arg(format!("unix:{}", sockets.path("qmp").display()))
            .args(["-device", "virtio-serial"])
            .args(["-device", "virtserialport,chardev=control,name=farlane.control"])
            .arg("-kernel")
            .arg(files.join("vmlinuz"))
            .arg("-initrd")
            .arg(initrd)
            .args(["-append", &self.kernel.join(" ")])
            .args(&self.qemu);
        let process = Process::start(&mut command, "qemu", &folder);

        let deadline = begun + LIMIT;
        let console = accept(&console, &process, deadline);
        let mut guest = Guest {
            control: accept(&control, &process, deadline),
            qmp: Qmp::greet(accept(&qmp, &process, deadline)),
            console: Transcript::new(console, &folder.join("console.log")),
            process,
            scripts: 0,
            _sockets: sockets,
        };
        guest.run(&Script::new("start", "true"));
        println!("{}: {:.1} s: guest started", self.name, begun.elapsed().as_secs_f64());
        guest
    }
}

/// Parameters of the kernel. The kernel traces every command of the NVMe driver from the first one
/// on.
const KERNEL: [&str; 7] = [
    "console=ttyS0,115200",
    "panic=-1",
    // On a busy machine emulated timers are late, and Linux would disable them as broken.
    "no_timer_check",
    "quiet",
    "loglevel=6",
    "trace_event=nvme:nvme_setup_cmd",
    "trace_buf_size=8M",
];

/// Accepts the connection that QEMU makes at its start.
fn accept(listener: &UnixListener, qemu: &Process, deadline: Instant) -> UnixStream {
    let left = deadline.saturating_duration_since(Instant::now());
    let end = qemu.end();
    let mut sources = [PollFd::new(listener, PollFlags::IN), PollFd::new(&end, PollFlags::IN)];
    let ready = poll(&mut sources, Some(&Timespec::try_from(left).unwrap()));
    assert!(matches!(ready, Ok(1..)), "QEMU did not start: {ready:?}");
    assert!(sources[0].revents().contains(PollFlags::IN), "QEMU ended");
    listener.accept().expect("connection from QEMU").0
}

/// A running guest, which ends when the value is dropped.
pub struct Guest {
    control: UnixStream,
    qmp: Qmp,
    /// Output of the kernel.
    pub console: Transcript,
    process: Process,
    scripts: u32,
    _sockets: Sockets,
}

impl Guest {
    /// Creates the options of a guest with shared memory and without a drive. `name` is the name of
    /// the test.
    pub fn builder(name: &str) -> Builder {
        let (memory, qemu) = (Some("memfd".to_owned()), Vec::new());
        Builder { name: name.to_owned(), lab: false, memory, kernel: KERNEL.to_vec(), qemu }
    }

    /// Runs a script to its end. Panics if the script fails.
    pub fn run(&mut self, script: &Script) -> Output {
        let output = self.try_run(script);
        assert!(output.status == 0, "{}: status {}\n{}", script.name, output.status, output.text);
        output
    }

    /// Runs a script to its end. Panics if this takes longer than [`LIMIT`].
    pub fn try_run(&mut self, script: &Script) -> Output {
        self.scripts += 1;
        let id = format!("{:08x}{:04x}", std::process::id(), self.scripts);
        let text = script.text();
        write!(self.control, "{id} {}\n{text}", text.len()).expect("send a script to the guest");
        let begun = Instant::now();
        let (text, status) = self.receive(&id, begun + LIMIT, script.name);
        let output = Output { text, status, elapsed: begun.elapsed() };
        for step in output.steps() {
            println!("{}: {step}", script.name);
        }
        output
    }

    /// Receives the output and the status of a script.
    fn receive(&mut self, id: &str, deadline: Instant, name: &str) -> (String, i32) {
        let mark = format!("\n{id} ");
        let mut bytes = Vec::new();
        let mut buffer = [0; 65536];
        loop {
            let tail = bytes.len().saturating_sub(mark.len() + 8);
            let tail_text = String::from_utf8_lossy(&bytes[tail..]).into_owned();
            if let Some((_, status)) = tail_text.split_once(&mark)
                && let Some(status) = status.strip_suffix('\n')
            {
                let length = bytes.len() - mark.len() - status.len() - 1;
                let text = String::from_utf8_lossy(&bytes[..length]).into_owned();
                return (text, status.parse().expect("status of a script"));
            }
            let left = deadline.saturating_duration_since(Instant::now());
            let limit = left.max(Duration::from_millis(1));
            self.control.set_read_timeout(Some(limit)).unwrap();
            let why = match self.control.read(&mut buffer) {
                Ok(0) => "the guest has ended".to_owned(),
                Ok(read) if !left.is_zero() => {
                    bytes.extend_from_slice(&buffer[..read]);
                    continue;
                }
                Err(error) if error.kind() != ErrorKind::WouldBlock => error.to_string(),
                _ => "not finished in time".to_owned(),
            };
            panic!("{name}: {why}; so far:\n{}", String::from_utf8_lossy(&bytes));
        }
    }

    /// Runs a QMP command. Panics if the command fails.
    pub fn qmp(&mut self, command: &str, arguments: serde_json::Value) -> serde_json::Value {
        let done = self.qmp.execute(command, arguments);
        done.unwrap_or_else(|error| panic!("QMP {command}: {error}"))
    }

    /// Ends the trace that the kernel began; returns every command that the NVMe driver issued.
    pub fn commands(&mut self) -> Vec<Issued> {
        let output = self.run(&workload::commands());
        let commands = trace::parse(output.between("commands").expect("list of commands"));
        println!("{} commands in {:.1} s", commands.len(), output.elapsed.as_secs_f64());
        commands
    }

    /// Resets the machine as a reboot does, and waits until the guest answers again.
    pub fn reboot(&mut self) {
        self.qmp("set-action", json!({"reboot": "reset"}));
        self.qmp("system_reset", json!({}));
        self.run(&Script::new("reboot", "true"));
    }

    /// Shuts the guest down in order, and waits for the end of QEMU.
    pub fn power_off(mut self) {
        let begun = Instant::now();
        // The first process is Busybox, which has nothing to stop. The kernel shuts the drives
        // down. The answer may get lost, so the test does not wait for it.
        let script = "sync; poweroff -f";
        write!(self.control, "off {}\n{script}", script.len()).expect("send poweroff");
        let status = self.process.wait();
        assert!(status.success(), "QEMU: {status}");
        println!("power off: {:.1} s", begun.elapsed().as_secs_f64());
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.process.kill();
        if std::thread::panicking() {
            self.console.wait_for_end(Duration::from_secs(1));
            self.console.print_tail(40);
        }
    }
}
