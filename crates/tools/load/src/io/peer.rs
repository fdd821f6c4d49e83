//! CPU time of the process at the other end, if it runs on this machine and is visible.

use linux::proc_stat::behind_name;
use live::net::Address;
use std::fs;
use std::net::SocketAddr;
use wire::Duration;

/// Nanoseconds of a tick of /proc/PID/stat: `USER_HZ` is 100 (include/asm-generic/param.h).
const TICK_NS: u64 = 10_000_000;
/// `TCP_LISTEN` of include/net/tcp_states.h, as in /proc/net/tcp.
const LISTENING: &str = "0A";

/// A process.
#[derive(Clone, Copy, Debug)]
pub struct Process {
    pid: u32,
}

impl Process {
    /// Returns the process with this number.
    pub fn new(pid: u32) -> Self {
        Self { pid }
    }

    /// Returns the process that listens at one of these addresses, if the address is a loopback
    /// address of TCP.
    pub fn listening(addresses: &[Address]) -> Option<Self> {
        let loopback = addresses.iter().find_map(|address| match address {
            Address::Tcp(address) if address.ip().is_loopback() => Some(*address),
            _ => None,
        });
        let sockets = sockets(loopback?);
        let processes = fs::read_dir("/proc").ok()?.flatten();
        let mut pids = processes.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.find(|pid| has_one(*pid, &sockets)).map(Self::new)
    }

    /// Returns the CPU time of all threads so far, in steps of 10 ms; `None` if the process has
    /// ended.
    pub fn cpu(self) -> Option<Duration> {
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.pid)).ok()?;
        Some(Duration::from_ns(ticks(&stat)? * TICK_NS))
    }
}

/// Returns utime and stime of /proc/PID/stat (proc_pid_stat(5), fields 14 and 15).
fn ticks(stat: &str) -> Option<u64> {
    let mut fields = behind_name(stat)?.skip(14 - 3);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

/// Returns the names of the sockets that listen at this port (proc_net_tcp(5)).
fn sockets(address: SocketAddr) -> Vec<String> {
    let all = ["/proc/net/tcp", "/proc/net/tcp6"].map(fs::read_to_string);
    let port = format!(":{:04X}", address.port());
    let inode = |line: &str| {
        let fields: Vec<&str> = line.split_whitespace().collect();
        let listens = fields.get(1)?.ends_with(&port) && *fields.get(3)? == LISTENING;
        listens.then(|| format!("socket:[{}]", fields.get(9).unwrap_or(&"")))
    };
    all.iter().flatten().flat_map(|text| text.lines()).filter_map(inode).collect()
}

/// Returns whether a process has one of these sockets.
fn has_one(pid: u32, sockets: &[String]) -> bool {
    let descriptors = fs::read_dir(format!("/proc/{pid}/fd")).into_iter().flatten().flatten();
    let mut names = descriptors.filter_map(|entry| fs::read_link(entry.path()).ok());
    names.any(|name| sockets.iter().any(|socket| name.as_os_str() == socket.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_times_follow_any_process_name() {
        let stat = "7 (a) b (c)) S 1 7 7 0 -1 4194560 2000 0 3 0 12 30 0 0 20 0 1 0 100 9 8";
        assert_eq!(ticks(stat), Some(42));
        assert_eq!(ticks("7 (a) S 1"), None);
        assert!(Process::new(std::process::id()).cpu().is_some());
        assert_eq!(Process::new(u32::MAX).cpu(), None);
    }

    #[test]
    fn listening_process_is_found_by_its_port() {
        let socket = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = Address::Tcp(socket.local_addr().unwrap());
        let found = Process::listening(std::slice::from_ref(&address)).map(|peer| peer.pid);
        assert_eq!(found, Some(std::process::id()));
        drop(socket);
        assert!(Process::listening(&[address]).is_none());
    }
}
