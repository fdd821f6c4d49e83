//! Links of several connections: `--queues-per-link`.

use crate::cli::keys::Keys;
use crate::cli::survival::undisturbed;
use crate::support::cutter::{Cutter, Path};
use crate::support::program::{
    device, document, fails, farlane, is_refused, is_wrong_usage, scratch, text,
};
use crate::support::{BLOCK, Drive, HostNode, Process, pattern, wait_until};
use serde_json::Value;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, channel};
use std::thread;

/// Options of a device with three connections of two queue pairs each.
const DEVICE: [&str; 4] = ["--queues", "6", "--queues-per-link", "2"];

/// Returns the arguments of a load on the node at `address`, with further options.
fn load<'a>(address: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let always = ["io", "--connect", address, "--numjobs", "5", "--iodepth", "4", "--json"];
    [&always[..], more].concat()
}

/// Checks that each of five jobs has transferred `transfers` times, and that no read was wrong.
#[track_caller]
fn all_jobs_ran(result: &Value, transfers: u64) {
    let section = &result["sections"][0];
    let jobs = section["jobs"].as_array().expect("jobs").iter();
    let count = |number: u64| -> u64 {
        let own = jobs.clone().filter(|row| row["job"] == number && row["op"] != "verify");
        own.map(|row| row["n"].as_u64().expect("a count")).sum()
    };
    assert_eq!([0, 1, 2, 3, 4].map(count), [transfers; 5], "{section}");
    assert_eq!(
        (&section["mismatches"], &section["all"]["n"]),
        (&0.into(), &(5 * transfers).into())
    );
}

/// Waits for a line of the log; threads print in any order.
#[track_caller]
fn appears(node: &Process, part: &str) {
    wait_until(part, || node.stderr.text().contains(part));
}

#[test]
fn jobs_of_all_connections_share_the_data_of_a_drive() {
    let (mut node, address) = device("ram=16M", &DEVICE);
    let writes = ["--rw", "write", "--size", "256k", "--randseed", "9", "--verify"];
    let several = [&writes[..], &["--destructive", "--yes", "--queues-per-link", "2"]].concat();
    all_jobs_ran(&document(&load(&address, &several)), 64);
    for number in 1..3 {
        appears(&node, &format!("connection {number}: host"));
    }
    // One connection carries all queue pairs of a host that does not divide them.
    let reads = ["--rw", "write", "--size", "256k", "--randseed", "9", "--verify_only"];
    all_jobs_ran(&document(&load(&address, &reads)), 64);
    assert_eq!(node.stderr.text().matches("connection 1: host").count(), 2, "up and down once");
    // Queue pairs of the last connection.
    all_jobs_ran(
        &document(&load(&address, &[&reads[..], &["--queues-per-link", "2"]].concat())),
        64,
    );
    assert!(node.interrupt().success());
}

#[test]
fn guest_uses_a_divided_drive_over_one_connection() {
    let (node, address) = device("ram=16M", &DEVICE);
    let address: SocketAddr = address.parse().expect("an address");
    let host = HostNode::start(&scratch("connections-guest"), "host", &[address], &[]);
    let mut drive = Drive::attach_to(&host.socket(0), false);
    drive.write(3, &pattern(1, BLOCK));
    assert_eq!(drive.read(3, 1), pattern(1, BLOCK));
    drop(drive);
    host.stop();
    assert!(!node.stderr.text().contains("connection 1"));
}

/// Every connection passes the cuts, under TLS.
#[test]
fn cuts_of_all_connections_cost_no_transfer() {
    let keys = Keys::new("connections-cut", &["device", "host"]);
    keys.peers("device", "host-a {host} use");
    keys.peers("host", "store {device} serve");
    let (node, address) = keys.device("device", &DEVICE);
    let cutter = Cutter::start(address.parse().expect("an address"));
    let address = cutter.address().to_string();
    let work = ["--rw", "randrw", "--verify", "--destructive", "--yes", "--queues-per-link", "2"];
    let time = ["--runtime", "10", "--time_based"];
    let arguments = keys.with("host", &load(&address, &[&work[..], &time].concat()));
    let mut load = Process::start(&mut farlane(&arguments), "load", &keys.folder);
    // More than what starts the drive: all connections are up on both nodes.
    cutter.carries(1 << 20);
    // One connection may carry much before another one is back: each is waited for.
    let every = |event: &str, count: usize| {
        wait_until(event, || {
            let log = node.stderr.text();
            let own_count = |number: u8| {
                let own = |line: &&str| line.starts_with(&format!("connection {number}: "));
                log.lines().filter(own).filter(|line| line.contains(event)).count()
            };
            log.matches(event).count() >= 3 * count
                && own_count(1) >= count
                && own_count(2) >= count
        });
    };
    for (number, how) in [Path::Reset, Path::Silent].repeat(3).into_iter().enumerate() {
        cutter.set(how);
        every("interrupted", number + 1);
        cutter.set(Path::Open);
        every("resumed", number + 1);
    }
    let result = undisturbed(&mut load);
    let jobs = result["sections"][0]["jobs"].as_array().expect("jobs").len();
    assert_eq!(jobs, 15, "reads, writes and comparisons of five jobs");
}

/// Each connection has two paths, each of which is lost once.
#[test]
fn another_path_takes_over_on_every_connection() {
    let (node, address) = device("ram=16M", &DEVICE);
    let cutters = [0, 1].map(|_| Cutter::start(address.parse().expect("an address")));
    let [a, b] = cutters.each_ref().map(Cutter::address);
    let both = format!("{a},{b}");
    let work = ["--rw", "randrw", "--verify", "--destructive", "--yes", "--queues-per-link", "2"];
    let time = ["--runtime", "6", "--time_based"];
    let arguments = load(&both, &[&work[..], &time].concat());
    let folder = scratch("connections-paths");
    let mut load = Process::start(&mut farlane(&arguments), "load", &folder);
    let logged = |part: &str, count: usize| {
        wait_until(part, || node.stderr.text().matches(part).count() >= count);
    };
    logged("further path up", 3);
    for (lost, how) in [Path::Silent, Path::Reset].into_iter().enumerate() {
        cutters[lost].set(how);
        logged("path lost", 3 * (lost + 1));
        cutters[1 - lost].carries(1 << 16);
        cutters[lost].set(Path::Open);
        logged("further path up", 3 * (lost + 2));
    }
    undisturbed(&mut load);
    assert!(!node.stderr.text().contains("interrupted"), "{}", node.stderr.text());
}

/// A relay to `target`, and the clients that connect to it.
fn relay(target: SocketAddr) -> io::Result<(SocketAddr, Receiver<TcpStream>)> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let (address, (sender, clients)) = (listener.local_addr()?, channel());
    thread::spawn(move || -> io::Result<()> {
        loop {
            let (client, server) = (listener.accept()?.0, TcpStream::connect(target)?);
            for (from, to) in [(&client, &server), (&server, &client)] {
                let (mut from, mut to) = (from.try_clone()?, to.try_clone()?);
                thread::spawn(move || {
                    let mut bytes = [0; 4096];
                    while let Ok(length @ 1..) = from.read(&mut bytes) {
                        to.write_all(&bytes[..length])?;
                    }
                    to.shutdown(Shutdown::Both)
                });
            }
            sender.send(client).map_err(io::Error::other)?;
        }
    });
    Ok((address, clients))
}

#[test]
fn loss_of_a_further_connection_ends_the_link() {
    let (node, address) = device("ram=16M", &DEVICE);
    let (relay, clients) = relay(address.parse().expect("an address")).expect("a relay");
    let address = relay.to_string();
    let options = ["--rw", "randread", "--runtime", "60", "--time_based", "--survive", "0"];
    let arguments = load(&address, &[&options[..], &["--queues-per-link", "2"]].concat());
    let folder = scratch("connections-lost");
    let mut load = Process::start(&mut farlane(&arguments), "load", &folder);
    let [_first, further, _last] = [0; 3].map(|_| clients.recv().expect("a connection"));
    (1..3).for_each(|number| appears(&node, &format!("connection {number}: host")));
    further.shutdown(Shutdown::Both).expect("a connection");
    // The first connection and the other further one.
    (0..2).for_each(|_| drop(node.line("detached: another connection of the link has ended")));
    assert_eq!(load.wait().code(), Some(1));
    let log = node.stderr.text();
    assert!(log.contains("detached: the connection was closed"), "{log}");
}

#[test]
fn host_and_device_need_the_same_queue_pairs_per_connection() {
    let (_divided, divided) = device("ram=1M", &DEVICE);
    let (_plain, plain) = device("ram=1M", &[]);
    let same = "start both with the same --queues-per-link";
    for (address, theirs) in [(divided, "the far side 2"), (plain, "one connection per link")] {
        let io = load(&address, &["--rw", "read", "--queues-per-link", "3", "--wait", "1s"]);
        fails(&io, &["3 queue pairs per connection", theirs, same]);
    }
}

#[test]
fn drives_that_threads_cannot_share_are_refused() {
    let image = text(&scratch("connections-file").join("image"));
    let file = format!("file={image},size=1M");
    let device = ["device", "--listen", "127.0.0.1:0"];
    let serves = |more: &[&'static str]| [&device[..], more].concat();
    let files = [&device[..], &["--namespace", &file], &DEVICE].concat();
    fails(&files, &["several threads serve only namespaces in RAM"]);
    is_wrong_usage(&serves(&["--drive", "/nonexistent", "--queues-per-link", "1"]));
    let many = serves(&["--namespace", "ram=1M", "--queues", "65", "--queues-per-link", "1"]);
    is_refused(&many, &["needs 65 connections: expected at most 64"]);
    let two = ["--listen", "127.0.0.1:0", "--namespace", "ram=1M", "--queues-per-link", "1"];
    is_refused(&serves(&two), &["expected one --listen"]);
    let goes_on = ["--rw", "read", "--queues-per-link", "1", "--on-error", "continue"];
    is_refused(&load("127.0.0.1:9", &goes_on), &["--on-error continue"]);
}
