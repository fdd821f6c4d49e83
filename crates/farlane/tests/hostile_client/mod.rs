//! A hostile and a working vfio-user client of one `farlane host`, each with its own drive. The
//! working client must not be disturbed.

mod files;
mod fuse;
mod interrupts;
mod messages;
mod pages;
mod sockets;

use crate::support::{HostNode, Node, SetOnDrop, folder, wait_until, work};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// A host node with two drives.
struct Nodes {
    devices: [Node; 2],
    host: HostNode,
    /// Number of rounds of the working client.
    rounds: Arc<AtomicU64>,
}

impl Nodes {
    fn start(name: &str) -> Self {
        let folder = folder::kept(name);
        let devices = ["working", "hostile"].map(|name| Node::device(&folder, name, &["ram=16M"]));
        let addresses = devices.each_ref().map(Node::address);
        let host = HostNode::start(&folder, "host", &addresses, &["--mmap-doorbells"]);
        Self { devices, host, rounds: Arc::default() }
    }

    /// Returns the socket for the hostile client.
    fn socket(&self) -> PathBuf {
        self.host.socket(1)
    }

    /// Runs `hostile` while a working client writes and reads the first drive without a pause, and
    /// for some rounds after `hostile`. Checks that the node lost neither a link nor the working
    /// client.
    fn beside_a_working_client(&mut self, hostile: impl FnOnce(&mut HostNode)) {
        let (stop, socket) = (AtomicBool::new(false), self.host.socket(0));
        let (stop, host, done) = (&stop, &mut self.host, &self.rounds);
        std::thread::scope(|threads| {
            let working = threads.spawn(move || {
                let mut after = 0;
                work(&socket, |rounds| {
                    done.store(rounds, Ordering::Relaxed);
                    after += u64::from(stop.load(Ordering::Relaxed));
                    after < 20
                });
            });
            let stopping = SetOnDrop(stop);
            hostile(host);
            drop(stopping);
            working.join().expect("the working client");
        });
        let log = self.host.process.stderr.text();
        assert!(!log.contains("link down"), "a link was lost: {log}");
        assert!(!log.contains("endpoint 0: VMM gone: the client took"), "{log}");
    }

    fn stop(self) {
        self.host.stop();
        for device in self.devices {
            device.stop();
        }
    }
}

/// Waits until the working client has completed `more` further rounds.
#[track_caller]
fn is_undisturbed(rounds: &AtomicU64, more: u64) {
    let before = rounds.load(Ordering::Relaxed);
    let done = || rounds.load(Ordering::Relaxed) >= before + more;
    wait_until("the working client is held up", done);
}
