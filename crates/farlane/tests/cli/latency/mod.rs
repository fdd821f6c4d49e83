//! Talker and listener of `farlane latency`. No test checks how long anything took, because times
//! depend on the machine.

mod clocks;
mod files;
mod marks;
mod refusals;
mod repeat;
mod way;

use crate::support::program::{farlane, parsed, succeeds};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read};
use std::net::{SocketAddr, UdpSocket};
use std::process::Child;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// A listener, which is killed on drop.
struct Listener {
    child: Child,
    errors: BufReader<std::process::ChildStderr>,
    address: String,
}

impl Listener {
    fn start(address: &str, options: &[&str]) -> Self {
        let arguments = [&["latency", "listen", address, "--json"], options].concat();
        let mut child = farlane(&arguments).spawn().unwrap();
        let mut errors = BufReader::new(child.stderr.take().unwrap());
        let mut address = String::new();
        // Lines about refused settings come before the address.
        while !address.starts_with("listening on ") {
            address.clear();
            assert!(errors.read_line(&mut address).unwrap() > 0, "the listener ended early");
        }
        let address = address.trim_end().replace("listening on ", "");
        Self { child, errors, address }
    }

    fn udp(options: &[&str]) -> Self {
        Self::start("127.0.0.1:0", options)
    }

    /// Waits until the listener ends, and returns its document.
    fn report(mut self) -> Value {
        let (mut out, mut errors) = (String::new(), String::new());
        self.child.stdout.take().unwrap().read_to_string(&mut out).unwrap();
        self.errors.read_to_string(&mut errors).unwrap();
        assert!(self.child.wait().unwrap().success(), "{errors}");
        parsed(&out)
    }

    /// Waits until the listener fails, and returns its standard error.
    fn fails(mut self) -> String {
        let mut errors = String::new();
        self.errors.read_to_string(&mut errors).unwrap();
        assert_eq!(self.child.wait().unwrap().code(), Some(1), "{errors}");
        errors
    }

    fn interrupt(&self) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn talk(address: &str, options: &[&str]) -> Value {
    let arguments = ["latency", "talk", address, "--json", "--interval", "2ms"];
    parsed(&succeeds(&[&arguments[..], options].concat()))
}

/// Returns a segment of a document.
pub fn segment<'a>(document: &'a Value, name: &str) -> &'a Value {
    let all = document["segments"].as_array().unwrap();
    all.iter()
        .find(|segment| segment["segment"] == name)
        .unwrap_or_else(|| panic!("no {name}: {document}"))
}

fn kinds(document: &Value) -> Vec<&str> {
    let all = document["findings"].as_array().unwrap();
    all.iter().map(|finding| finding["kind"].as_str().unwrap()).collect()
}

/// A relay of datagrams to a listener.
struct Relay {
    address: SocketAddr,
    ended: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Relay {
    /// Starts a relay to `target`. `pass` receives each datagram, with a number from 1 if it is a
    /// data frame, and the socket to the listener. `pass` sends the datagrams that the relay
    /// forwards.
    fn start(
        target: &str,
        mut pass: impl FnMut(Option<u64>, &[u8], &UdpSocket) + Send + 'static,
    ) -> Self {
        let [near, far] = [(); 2].map(|()| UdpSocket::bind("127.0.0.1:0").unwrap());
        far.connect(target).unwrap();
        near.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
        let address = near.local_addr().unwrap();
        let ended = Arc::<AtomicBool>::default();
        let own = ended.clone();
        let thread = std::thread::spawn(move || {
            let (mut buffer, mut number) = ([0; 2048], 0);
            while !own.load(Ordering::Relaxed) {
                let Ok((bytes, _)) = near.recv_from(&mut buffer) else { continue };
                // Kind 0 is data. Only data frames are counted.
                let is_data = buffer[5] == 0;
                number += u64::from(is_data);
                pass(is_data.then_some(number), &buffer[..bytes], &far);
            }
        });
        Self { address, ended, thread: Some(thread) }
    }
}

impl Drop for Relay {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        self.thread.take().unwrap().join().unwrap();
    }
}
