//! Network namespaces (network_namespaces(7)) for tests and measurements. The kernel removes a
//! namespace when nothing uses it.

use crate::about;
use nix::sched::{CloneFlags, setns, unshare};
use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::process::Command;

/// Bytes on the wire of each Ethernet frame in addition to its header and payload (IEEE 802.3, 3.1.1
/// and 4.4.2): preamble and start of frame 8, FCS 4, gap 12.
pub const WIRE: usize = 24;
/// Length in bytes of the smallest frame, from destination address to payload (IEEE 802.3, 3.2.7).
pub const SMALLEST_FRAME: usize = 60;
/// Maximum bytes in the queue of [`Namespace::limit`]. Senders stop earlier because of the socket's
/// buffer and TCP's small queues.
const QUEUE: u32 = 1 << 20;

/// A network namespace without a name.
#[derive(Debug)]
pub struct Namespace(File);

impl Namespace {
    /// A new namespace. It has only a loopback interface, which is down.
    ///
    /// # Errors
    /// A sentence, for example that CAP_SYS_ADMIN is missing.
    pub fn new() -> io::Result<Self> {
        let own = Self::current()?;
        let context = "cannot make a network namespace (needs CAP_SYS_ADMIN)";
        unshare(CloneFlags::CLONE_NEWNET).map_err(|error| about(context, error.into()))?;
        let made = Self::current();
        own.join()?;
        made
    }

    /// The namespace of this thread.
    ///
    /// # Errors
    /// As `open(2)`.
    pub fn current() -> io::Result<Self> {
        File::open("/proc/thread-self/ns/net").map(Self)
    }

    fn join(&self) -> io::Result<()> {
        Ok(setns(&self.0, CloneFlags::CLONE_NEWNET)?)
    }

    /// Runs `work` in this namespace. Sockets, threads and processes that `work` creates stay in
    /// the namespace.
    ///
    /// # Errors
    /// If this thread may not enter the namespace.
    ///
    /// # Panics
    /// If this thread may not return to its namespace.
    pub fn enter<T>(&self, work: impl FnOnce() -> T) -> io::Result<T> {
        /// Returns to the old namespace, also when `work` panics.
        struct Back(Namespace);
        impl Drop for Back {
            fn drop(&mut self) {
                self.0.join().expect("the namespace it came from");
            }
        }
        let back = Back(Self::current()?);
        self.join()?;
        let result = work();
        drop(back);
        Ok(result)
    }

    /// Runs a command line, such as `ip link set lo up`, in this namespace, and waits for its end.
    /// Returns the standard output. Words are separated at white space, without quoting.
    ///
    /// # Errors
    /// A sentence with the command line and the cause, such as its error output.
    pub fn run(&self, line: &str) -> io::Result<String> {
        let failed = |why: String| io::Error::other(format!("`{line}`: {why}"));
        let mut words = line.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or_default());
        command.args(words);
        let output = self.enter(|| command.output())?.map_err(|error| failed(error.to_string()))?;
        if !output.status.success() {
            let stderr = String::from_utf8_lossy(&output.stderr);
            return Err(failed(stderr.trim().replace('\n', "; ")));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    /// Creates a veth pair, `near` in this namespace and `far` in `other`, and sets both ends up.
    /// Segmentation offload is off, so that frames are as on a wire.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn cable(&self, near: &str, other: &Self, far: &str) -> io::Result<()> {
        // `ip` opens the descriptor of this process by its path.
        let target = format!("/proc/{}/fd/{}", std::process::id(), other.0.as_raw_fd());
        self.run(&format!(
            "ip link add {near} gso_max_segs 1 type veth peer name {far} gso_max_segs 1 netns {target}"
        ))?;
        self.run(&format!("ip link set {near} up"))?;
        other.run(&format!("ip link set {far} up")).map(|_| ())
    }

    /// Limits the rate at which an interface sends, in bits per second of wire, by a token bucket
    /// (tc-tbf(8)) of `burst` bytes that also counts preamble, FCS and gap.
    ///
    /// # Errors
    /// As [`run`](Self::run).
    pub fn limit(&self, interface: &str, bits_per_second: u64, burst: usize) -> io::Result<()> {
        let least = SMALLEST_FRAME + WIRE;
        self.run(&format!(
            "tc qdisc add dev {interface} root tbf rate {bits_per_second}bit burst {burst} \
             limit {QUEUE} overhead {WIRE} mpu {least}"
        ))?;
        Ok(())
    }
}
