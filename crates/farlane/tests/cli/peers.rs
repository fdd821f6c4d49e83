//! Peers with an older or newer version, and peers with another protocol.

use crate::support::Process;
use crate::support::program::{device, fails, node, ping, run, scratch, text};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::{Duration, Instant};

/// Frame header of a Hello, and the magic number.
const HELLO: &[u8] = b"\x00\x30\x01\x00\0\0\0\0\0\0\0\0FARLANE\0";
/// The part of a host's Hello after the version.
const HOST: &[u8] = b"\x01\x00\x10\x00\x00\x05\x11\x22\x33\x44\x55\x66\x77\x88\
    \x00\x00\x04\x00\x00\x01\x00\x00\x00\x00\x04\x00\x00\x00\x04\x00\x00\x00\x04\x00\x00\x01\x00\x00";

/// Starts a peer that answers every connection with `reply`; returns the address.
fn stranger(reply: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    replies(listener, reply);
    address
}

fn replies(listener: TcpListener, reply: &'static [u8]) {
    std::thread::spawn(move || {
        while let Ok((mut stream, _)) = listener.accept() {
            let _ = stream.write_all(reply);
            let _ = stream.read(&mut [0; 4096]);
        }
    });
}

/// Starts a device of version 1, which sends only its Hello.
fn old_device(listener: TcpListener) {
    replies(listener, b"\x00\x0c\x02\x00\0\0\0\0\0\0\0\0FARLANE\0\x00\x01\x01\x00");
}

/// Returns the bytes that a device node answers to `bytes` until it closes the connection.
fn answer(address: &str, bytes: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(bytes).unwrap();
    let mut reply = Vec::new();
    stream.read_to_end(&mut reply).unwrap();
    reply
}

/// Checks that every command that connects fails with one line that has these parts.
#[track_caller]
fn all_fail(peer: &str, parts: &[&str]) {
    let folder = &text(&scratch("peers"));
    let parts: Vec<&str> = parts.iter().copied().chain([peer]).collect();
    fails(&["host", "--connect", peer, "--vfio-user", folder], &parts);
    fails(&["switch", "--listen", "127.0.0.1:0", "--connect", peer], &parts);
    fails(&["ping", peer], &parts);
    fails(&["move", peer, "--group", "1"], &parts);
    fails(&["io", "--connect", peer, "--rw", "read"], &parts);
}

/// Two peers accept connections: one is silent, the other closes at once.
#[test]
fn foreign_protocol_and_silence_are_distinguished() {
    let accepts = |keep: bool| {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        std::thread::spawn(move || {
            let mut kept = Vec::new();
            while let Ok((mut stream, _)) = listener.accept() {
                // A close with unread bytes would reset the connection.
                let _ = stream.read(&mut [0; 4096]);
                kept.extend(keep.then_some(stream));
            }
        });
        address
    };
    for (keep, says) in [(true, "but no greeting arrived"), (false, "before its greeting")] {
        let (peer, folder) = (&*accepts(keep), &*text(&scratch("greets-not")));
        for arguments in [
            &["ping", peer][..],
            &["move", peer, "--group", "1"],
            &["host", "--connect", peer, "--vfio-user", folder, "--wait", "2"],
            &["io", "--connect", peer, "--rw", "read", "--wait", "2"],
        ] {
            fails(arguments, &[peer, says]);
        }
    }
}

#[test]
fn a_device_of_version_1_is_to_be_upgraded() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let old = listener.local_addr().unwrap().to_string();
    old_device(listener);
    all_fail(&old, &["device uses version 1", "node uses version 2", "upgrade the device node"]);
}

/// A device of version 1 takes the address of a device that hosts and switches use.
#[test]
fn a_device_of_version_1_is_named_when_it_comes_later_too() {
    let (device, address, host) = served([&[], &[]], "downgraded");
    let (other, behind) = crate::support::program::device("ram=1M", &[]);
    let switch = node(&["switch", "--listen", "127.0.0.1:0", "--connect", &behind]);
    switch.line("listening on");
    for (node, address, watcher) in [(device, address, host), (other, behind, switch)] {
        drop(node);
        watcher.line("port 0: link down");
        old_device(TcpListener::bind(&address).unwrap());
        let line = watcher.line("port 0: no link to ");
        assert!(line.contains(&address) && line.contains("upgrade the device node"), "{line}");
    }
}

#[test]
fn node_older_than_peer_reports_upgrade() {
    let newer = stranger(b"\x00\x0c\x01\x00\0\0\0\0\0\0\0\0FARLANE\0\x00\x09\x02\x00");
    all_fail(&newer, &["the device uses version 9", "upgrade this node"]);
    let picky = stranger(b"\x00\x0e\x02\x00\0\0\0\0\0\0\0\0FARLANE\0\x00\x02\x06\x00\x00\x0c");
    all_fail(&picky, &["the device requires entry 12", "upgrade this node"]);
}

#[test]
fn host_of_version_1_gets_reject_in_its_form() {
    let (node, address) = device("ram=1M", &[]);
    let reply = answer(&address, &[HELLO, b"\x00\x01", HOST].concat());
    assert_eq!(reply, b"\x00\x0c\x02\x00\0\0\0\0\0\0\0\0FARLANE\0\x00\x02\x01\x00");
    let line = node.line("rejected 127.0.0.1:");
    assert!(line.contains("the host uses version 1"), "{line}");
    assert!(line.contains("this node uses version 2; upgrade the host node"), "{line}");
}

#[test]
fn unknown_required_entry_is_named_to_the_host() {
    let (node, address) = device("ram=1M", &[]);
    let mut greeting = [HELLO, b"\x00\x02", HOST, b"\x80\x09\x00\x00"].concat();
    greeting[1] += 4;
    let reply = answer(&address, &greeting);
    assert_eq!(reply, b"\x00\x0e\x02\x00\0\0\0\0\0\0\0\0FARLANE\0\x00\x02\x05\x00\x00\x09");
    let line = node.line("rejected 127.0.0.1:");
    assert!(line.contains("requires entry 9") && line.contains("upgrade this node"), "{line}");
}

#[test]
fn first_bytes_of_foreign_protocol_are_quoted() {
    let says = |sent: &str| format!("does not use farlane's protocol: it sent '{sent}…'");
    all_fail(&stranger(b"HTTP/1.1 400 Bad Request\r\n\r\n"), &[&says("HTTP/1.1 400")]);
    all_fail(&stranger(b"SSH-2.0-OpenSSH_9.9\r\n"), &[&says("SSH-2.0-Open")]);
    let (node, address) = device("ram=1M", &[]);
    // The first client waits for an answer, the second one does not.
    answer(&address, b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n");
    node.line(&says("GET / HTTP/1"));
    drop(TcpStream::connect(&address).unwrap().write_all(b"hello\r\n"));
    node.line(&says("hello\\r\\n"));
}

#[test]
fn silent_connections_do_not_block_hosts() {
    let (mut node, address) = device("ram=1M", &[]);
    let silent: Vec<_> = (0..40).map(|_| TcpStream::connect(&address)).collect();
    ping(&address, "10");
    assert_eq!(silent.len(), 40);
    assert!(node.interrupt().success());
    let (_, line) = node.lines_until("uplink: rejected: ");
    let silent = line.strip_prefix("uplink: rejected: without_greeting ");
    let silent: u64 = silent.unwrap_or_else(|| panic!("{line}")).parse().unwrap();
    assert!((24..=40).contains(&silent), "16 wait at the same time: {line}");
}

#[test]
fn a_flood_of_strangers_makes_few_lines_and_is_counted() {
    let (mut node, address) = device("ram=1M", &[]);
    for _ in 0..300 {
        answer(&address, b"GET / HTTP/1.1\r\n\r\n");
    }
    // For the node, these clients differ from the previous ones.
    for number in 0..300 {
        answer(&address, format!("GET /{number} HTTP/1.1\r\n\r\n").as_bytes());
    }
    assert!(node.interrupt().success());
    let (lines, report) = node.lines_until("uplink: rejected: ");
    assert_eq!(report, "uplink: rejected: turned_away 600");
    assert!(lines.len() < 60, "{} lines", lines.len());
    // Each client has a line, or is counted in a line, until the node ends.
    let counts =
        lines.iter().map(|line| match line.split_once(" more rejected peers in the last") {
            Some((count, _)) => count.parse().unwrap(),
            None => u64::from(line.starts_with("rejected ")),
        });
    assert_eq!(counts.sum::<u64>(), 600, "{lines:?}");
}

/// Starts a device node and a host node with the device, with options of both. Returns the device
/// node, its address, and the host node.
fn served(groups: [&[&str]; 2], name: &str) -> (Process, String, Process) {
    let (device, address) = device("ram=1M", groups[0]);
    let folder = text(&scratch(name));
    let arguments = ["host", "--connect", &address, "--vfio-user", &folder];
    let host = node(&[&arguments[..], groups[1]].concat());
    host.line("ready");
    (device, address, host)
}

/// A flood of vfio-user clients also prints few lines.
#[test]
fn a_flood_of_clients_makes_few_lines() {
    let (_device, _, mut host) = served([&[], &[]], "clients");
    let socket = concat!(env!("CARGO_TARGET_TMPDIR"), "/cli/clients/0/cntrl");
    // The flood lasts until a line with the number of suppressed lines is due.
    let (begun, mut clients) = (Instant::now(), 0);
    while clients < 200 || begun.elapsed() < Duration::from_millis(1_500) {
        clients += 1;
        let mut client = std::os::unix::net::UnixStream::connect(socket).unwrap();
        // The server drops a client with an invalid header, or refuses it because the previous
        // client is still connected.
        let _ = client.write_all(&[0xff; 16]);
        let _ = client.read(&mut [0; 16]);
    }
    host.line("more such lines in the last");
    assert!(host.interrupt().success());
    let (lines, _) = host.lines_until("root port: ");
    assert!(lines.len() < 60, "{} lines", lines.len());
}

#[test]
fn a_device_without_a_group_is_not_moved() {
    let (device, address, host) = served([&[], &[]], "fixed");
    fails(&["move", &address, "--group", "7"], &[&address, "not moved", "without --group"]);
    let line = device.line("rejected the move to ");
    assert!(line.contains("group 7") && line.contains("--group"), "{line}");
    // The host of the device stays attached.
    let ping = run(&["ping", &address, "--count", "1"]);
    assert!(String::from_utf8_lossy(&ping.stderr).contains("another host uses this device"));
    drop(host);
    device.line("detached");
    let switch = node(&["switch", "--listen", "127.0.0.1:0", "--connect", &address]);
    let address = switch.listens();
    // A switch node cannot be moved either: its --group applies to links to device nodes.
    let why = "a switch node cannot be moved";
    fails(&["move", &address, "--group", "7"], &[&address, "not moved", why]);
    assert!(switch.line("rejected the move to ").ends_with(why));
}

#[test]
fn a_switch_reaches_device_nodes_of_its_group() {
    let device =
        node(&["device", "--listen", "127.0.0.1:0", "--namespace", "ram=1M", "--group", "2"]);
    let address = device.listens();
    let switch = |group: &[&str]| {
        let start = ["switch", "--listen", "127.0.0.1:0", "--connect", &address];
        node(&[&start[..], group].concat())
    };
    let mut without = switch(&[]);
    without.line("the device belongs to group 2, the host to none; use --group");
    without.interrupt();
    let with = switch(&["--group", "2"]);
    let ping = run(&["ping", &with.listens(), "--count", "1"]);
    assert!(ping.status.success(), "{}", String::from_utf8_lossy(&ping.stderr));
}

#[test]
fn move_reports_groups_and_hosts() {
    let (mut device, address, mut host) = served([&["--group", "0"], &["--group", "1"]], "moves");
    let given = |group: &str| {
        let output = run(&["move", &address, "--group", group]);
        assert!(output.status.success());
        assert!(output.stdout.is_empty());
        String::from_utf8(output.stderr).unwrap()
    };
    let moved = |groups: &str| format!("{address}: moved from {groups}\n");
    assert_eq!(given("1"), moved("any group to group 1; its host stays attached"));
    let line = device.line("moved this device");
    assert!(line.starts_with("127.0.0.1:"), "who asked: {line}");
    assert!(line.ends_with("from any group to group 1"), "{line}");
    let log = given("2");
    let disconnected = moved("group 1 to group 2; its host is detached");
    assert!(log.starts_with(&disconnected), "{log}");
    assert!(log.contains("unmount") && log.contains("no host of group 2 is waiting"), "{log}");
    device.line("moved this device from group 1 to group 2");
    let gone = device.line(" detached: ");
    assert!(gone.ends_with("detached: the device was moved to another group"), "{gone}");
    host.line("port 0: link down");
    host.line(&format!(
        "port 0: no link to {address}: rejected: the device belongs to group 2, the \
                        host to group 1"
    ));
    // The host connects again and again. After the first refusal, the device counts it as waiting.
    device.line("the device belongs to group 2, the host to group 1");
    assert_eq!(given("1"), moved("group 2 to group 1; no host was attached"));
    host.line("port 0: link up");
    // The counters are the sum of both connections.
    assert!(host.interrupt().success());
    assert!(host.line("port 0: traffic: ").contains(", connections 2,"));
    assert!(device.interrupt().success());
    assert!(device.line("uplink: rejected: ").contains(": moves_granted 3, turned_away "));
}
