//! Attackers on a device node with keys, while its host works.

use super::Keys;
use crate::support::program::document;
use crate::support::{Process, SetOnDrop};
use bytes::{Buf, Bytes, BytesMut};
use linux::proc_stat::behind_name;
use serde_json::Value;
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};
use wire::frame::Role;

/// A TLS record of a handshake that promises 512 bytes of ClientHello.
const RECORD: [u8; 9] = [22, 3, 1, 2, 0, 1, 0, 1, 252];

/// A connection from an address that the host does not have.
fn connect(address: &str) -> std::io::Result<TcpStream> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    socket.bind(&SocketAddr::from(([127, 66, 6, 6], 0)).into())?;
    socket.connect(&address.parse::<SocketAddr>().unwrap().into())?;
    Ok(socket.into())
}

/// What the attackers did.
#[derive(Default)]
struct Attack {
    end: AtomicBool,
    connections: AtomicU64,
}

impl Attack {
    /// Repeats `one` on new connections until the end.
    fn repeat(&self, address: &str, mut one: impl FnMut(&mut TcpStream)) {
        while !self.end.load(Ordering::Relaxed) {
            if let Ok(mut stream) = connect(address) {
                self.connections.fetch_add(1, Ordering::Relaxed);
                one(&mut stream);
            }
            // Other tests need the processor too.
            thread::sleep(Duration::from_micros(500));
        }
    }

    /// A byte per 100 ms on each of 64 connections.
    fn trickle(&self, address: &str) {
        let open = || connect(address).ok();
        let mut streams: Vec<Option<TcpStream>> = (0..64).map(|_| open()).collect();
        let mut at = 0;
        while !self.end.load(Ordering::Relaxed) {
            for stream in &mut streams {
                let byte = &RECORD[at % RECORD.len()..][..1];
                if stream.as_mut().is_none_or(|stream| stream.write_all(byte).is_err()) {
                    *stream = open();
                }
            }
            at += 1;
            thread::sleep(Duration::from_millis(100));
        }
    }
}

/// The first flight of a client with a valid key, to replay it.
fn first_flight(keys: &Keys) -> Vec<u8> {
    use credentials::{Credentials, Handshake};
    let peers = keys.folder.join("host.peers");
    let credentials = Credentials::load(keys.key("host").as_ref(), &peers, None).unwrap().into();
    let mut client = Handshake::connect(&credentials, None).unwrap();
    let mut bytes = Vec::new();
    while client.tls.wants_write() {
        client.tls.write_tls(&mut bytes).unwrap();
    }
    bytes
}

/// Processor time of a process so far, from `/proc/PID/task/*/stat` (proc_pid_stat(5)), of threads
/// whose name is `thread`.
fn processor_time(node: &Process, thread: &str) -> Duration {
    let mut ticks = 0;
    for task in std::fs::read_dir(format!("/proc/{}/task", node.pid())).unwrap() {
        let stat = std::fs::read_to_string(task.unwrap().path().join("stat")).unwrap_or_default();
        if stat.contains(&format!("({thread})")) {
            let fields = behind_name(&stat).expect("a thread has a name");
            ticks +=
                fields.skip(11).take(2).map(|ticks| ticks.parse::<u64>().unwrap()).sum::<u64>();
        }
    }
    Duration::from_millis(ticks * 10)
}

/// Latencies of a host with a key, in ns: median and 99th percentile.
fn load(keys: &Keys, address: &str, runtime: &str) -> [u64; 2] {
    let io = ["io", "--connect", address, "--rw", "randread", "--time_based", "--json"];
    let document: Value =
        document(&keys.with("host", &[&io[..], &["--runtime", runtime]].concat()));
    let latency = &document["sections"][0]["all"];
    ["p50_ns", "p99_ns"].map(|key| latency[key].as_u64().unwrap_or_else(|| panic!("{document}")))
}

/// A host works for `runtime` while strangers attack; returns its latencies before and meanwhile.
fn attacked(name: &str, runtime: &str) -> [[u64; 2]; 2] {
    let keys = Keys::new(name, &["device", "host"]);
    keys.peers("device", "host-a {host} use");
    keys.peers("host", "store {device} serve");
    let (mut device, address) = keys.device("device", &[]);
    let before = load(&keys, &address, runtime);
    let (flight, attack) = (first_flight(&keys), Attack::default());
    let (during, used, elapsed) = thread::scope(|scope| {
        let (address, attack, flight) = (&*address, &attack, &flight);
        scope.spawn(move || attack.repeat(address, |_| ()));
        scope.spawn(move || attack.trickle(address));
        scope.spawn(move || {
            attack.repeat(address, |stream| {
                let _ = stream.set_read_timeout(Some(Duration::from_millis(20)));
                let _ = stream.write_all(flight).and_then(|()| stream.read(&mut [0; 4096]));
                let _ = stream.write_all(b"\x17\x03\x03\x00\x20 not what the handshake needs ");
            });
        });
        let _end = SetOnDrop(&attack.end);
        let start = Instant::now();
        let strangers = processor_time(&device, "admission");
        let during = load(&keys, address, runtime);
        let used = processor_time(&device, "admission") - strangers;
        attack.end.store(true, Ordering::Relaxed);
        (during, used, start.elapsed())
    });
    let connections = attack.connections.load(Ordering::Relaxed);
    // On a busy machine many connections wait for the kernel's queue.
    assert!(connections > 20, "only {connections} connections");
    let share = used.as_secs_f64() / elapsed.as_secs_f64();
    eprintln!("{connections} connections in {elapsed:?}; a core for strangers: {share:.3}");
    assert!(share <= 0.2, "strangers used {share:.2} of a core");
    let line = text_of_end(&mut device);
    assert!(line.contains("turned_away"), "{line}");
    [before, during]
}

/// The counters of rejected peers at the end of a node.
fn text_of_end(device: &mut Process) -> String {
    assert!(device.interrupt().success());
    device.line("uplink: rejected: ")
}

#[test]
fn strangers_get_a_bounded_share_of_the_processor_and_the_host_works() {
    attacked("keys-hostile", "2");
}

mod long {
    #[test]
    fn host_works_for_a_minute_under_attack() {
        let [before, during] = super::attacked("keys-hostile-long", "60");
        // The attackers and the host share the machine, so the figures are shown, not judged.
        eprintln!("p50 and p99 in ns before {before:?}, under attack {during:?}");
    }
}

/// Sends echoes as fast as the node answers them, until it closes the connection; returns their
/// number.
fn flood_as_probe(stream: &mut TcpStream, end: &AtomicBool) -> u64 {
    use switch::tunnel::{Input, Output, Settings, Tunnel};
    const BURST: u64 = 16;
    stream.set_read_timeout(Some(Duration::from_millis(1))).unwrap();
    let (start, mut sent, mut open) = (Instant::now(), 0, 0);
    let mut tunnel = Tunnel::new(Settings::new(Role::Probe, 1));
    let now = || wire::Instant::ZERO + wire::Duration::from_ns(start.elapsed().as_nanos() as u64);
    tunnel.handle(now(), Input::Connected);
    let (mut waiting, mut buffer) = (BytesMut::new(), [0; 65536]);
    while !end.load(Ordering::Relaxed) {
        if tunnel.is_up() && open == 0 {
            (0..BURST).for_each(|number| tunnel.echo(number));
            open = BURST;
            sent += BURST;
        }
        tunnel.handle(now(), Input::CanTransmit { bytes: 1 << 16 });
        loop {
            match tunnel.poll(now()) {
                Output::Timeout(_) => break,
                Output::Transmit(_, bytes) => waiting.extend_from_slice(&bytes),
                Output::EchoReply(_) => open -= 1,
                _ => {}
            }
        }
        if let Ok(written) = stream.write(&waiting) {
            waiting.advance(written);
        }
        match stream.read(&mut buffer) {
            Ok(read @ 1..) => {
                tunnel.handle(now(), Input::Received(Bytes::copy_from_slice(&buffer[..read])));
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            _ => break,
        }
    }
    sent
}

#[test]
fn probes_and_strangers_without_tls_get_a_bounded_share_of_the_processor() {
    let (device, address) = crate::support::program::device("ram=16M", &[]);
    let sockets = crate::support::program::scratch("hostile-plain");
    let sockets = sockets.to_str().unwrap();
    let host = ["host", "--connect", &address, "--vfio-user", sockets];
    let host = crate::support::program::node(&host);
    host.line("ready");
    let attack = Attack::default();
    let (used, elapsed, echoes) = thread::scope(|scope| {
        let (address, attack) = (&*address, &attack);
        let flood = scope.spawn(move || {
            let mut echoes = 0;
            attack.repeat(address, |stream| echoes += flood_as_probe(stream, &attack.end));
            echoes
        });
        scope.spawn(move || attack.repeat(address, |_| ()));
        let _end = SetOnDrop(&attack.end);
        thread::sleep(Duration::from_millis(200));
        let (start, before) = (Instant::now(), processor_time(&device, "farlane"));
        thread::sleep(Duration::from_secs(2));
        let used = processor_time(&device, "farlane") - before;
        attack.end.store(true, Ordering::Relaxed);
        (used, start.elapsed(), flood.join().unwrap())
    });
    let connections = attack.connections.load(Ordering::Relaxed);
    assert!(connections > 100 && echoes > 100, "{connections} connections, {echoes} echoes");
    let share = used.as_secs_f64() / elapsed.as_secs_f64();
    eprintln!("{connections} connections, {echoes} echoes: {share:.3} of a core");
    assert!(share <= 0.25, "probes and strangers used {share:.2} of a core");
    assert!(!host.stderr.text().contains("link down"), "the host keeps its link");
}
