//! `farlane status`, `farlane top` and `--metrics`.

use crate::cli::keys::Keys;
use crate::support::process::wait_until;
use crate::support::program::{
    fails, farlane, is_refused, json, node, prints, scratch, succeeds, text,
};
use crate::support::{ANY, Node, Process};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixListener;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The answer to a request, with its head.
fn answer(mut stream: impl Read + Write, request: &str) -> String {
    write!(stream, "{request}").expect("a request");
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).expect("an answer");
    String::from_utf8_lossy(&answer).into_owned()
}

fn scrape(address: &str) -> String {
    let stream = TcpStream::connect(address).expect("the metrics");
    stream.set_read_timeout(Some(Duration::from_secs(60))).expect("a socket");
    let answer = answer(stream, "GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head");
    assert!(head.contains("application/openmetrics-text") && body.ends_with("# EOF\n"), "{answer}");
    body.to_owned()
}

/// The value of a series.
fn value(metrics: &str, series: &str) -> f64 {
    let line = metrics.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{series}: {metrics}")).parse().expect("a number")
}

/// The address of the metrics of a node, by the number of lines that it prints before.
fn metrics_of(node: &Process) -> String {
    let line = node.line("metrics on http://");
    let address = line.split("http://").nth(1).and_then(|rest| rest.strip_suffix("/metrics"));
    address.expect("an address").to_owned()
}

#[test]
fn status_shows_links_drives_and_endpoints() {
    let folder = scratch("status");
    let [device, host] = ["d.sock", "h.sock"].map(|name| text(&folder.join(name)));
    let drive = Node::device_at(ANY, &folder, "device", &["ram=1M"], &["--control", &device]);
    let (far, sockets) = (drive.address().to_string(), text(&folder.join("sockets")));
    let io = ["io", "--connect", &far, "--rw", "read", "--size", "64k", "--bs", "4k"];
    succeeds(&io);
    let arguments =
        ["host", "--connect", &far, "--vfio-user", &sockets, "--control", &host, "--group", "7"];
    let node = Process::start(&mut farlane(&arguments), "host", &folder);
    node.line("ready");

    let document = json(&["status", &device, "--interval", "50ms", "--json"]);
    let found = &document["nodes"][0];
    assert_eq!((&found["role"], &found["state"]), (&"device".into(), &"serving".into()));
    let link = &found["links"][0];
    assert_eq!((&link["name"], &link["state"]), (&"uplink".into(), &"up".into()));
    assert_eq!(link["traffic"]["connections"], 2);
    let reads = &link["commands"][0];
    assert_eq!(reads["kind"], "read");
    let bins = reads["bins"].as_array().expect("bins");
    assert_eq!(bins.iter().filter_map(|bin| bin.as_u64()).sum::<u64>(), 16);
    assert_eq!(found["drive"]["namespaces"][0]["size_bytes"], 1 << 20);
    assert_eq!(found["drive"]["counters"]["reads"], 16);
    assert_eq!(found["rates"][0]["link"], "uplink");

    let document = json(&["status", &host, "--interval", "50ms", "--json"]);
    let found = &document["nodes"][0];
    assert_eq!((&found["role"], &found["endpoints"][0]["used"]), (&"host".into(), &false.into()));
    assert_eq!(found["links"][0]["peer"]["address"], far);

    let shown = prints(&["top", &host, "--interval", "10ms", "--count", "2"]);
    assert_eq!(shown.matches("host 0.1.0, process ").count(), 2, "{shown}");
    assert_eq!(shown.matches("port 0  up ").count(), 2, "{shown}");
    drop(drive);
    node.line("link interrupted");
    let shown = prints(&["status", &host, "--interval", "10ms"]);
    assert!(shown.contains("port 0  interrupted "), "{shown}");
}

#[test]
fn metrics_have_bounded_series_and_a_slow_reader_costs_itself() {
    let folder = scratch("metrics");
    let options = ["--control", "off", "--metrics", ANY];
    let arguments = ["device", "--listen", ANY, "--namespace", "ram=1M"];
    let arguments = [&arguments[..], &options].concat();
    let node = Process::start(&mut farlane(&arguments), "device", &folder);
    let metrics = metrics_of(&node);
    let far = node.listens();
    let names = |text: &str| {
        let series = text.lines().filter_map(|line| line.rsplit_once(' ').map(|(name, _)| name));
        series.map(str::to_owned).collect::<Vec<_>>()
    };
    let far = far.to_string();
    let io = ["io", "--connect", &far, "--rw", "write", "--size", "64k", "--bs", "4k"];
    succeeds(&[&io[..], &["--destructive", "--yes"]].concat());
    let before = scrape(&metrics);
    let count = "farlane_command_duration_seconds_count{link=\"uplink\",kind=\"write\"}";
    assert_eq!(value(&before, count), 16.0);
    assert_eq!(value(&before, "farlane_drive_written_bytes_total"), 65_536.0);
    assert_eq!(value(&before, "farlane_link_connections_total{link=\"uplink\"}"), 1.0);

    // Readers that do not read, writers that do not write, and what is no HTTP.
    let silent: Vec<_> =
        (0..8).map(|_| TcpStream::connect(&metrics).expect("a connection")).collect();
    let mut lazy = TcpStream::connect(&metrics).expect("a connection");
    lazy.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("a request");
    let garbage = answer(TcpStream::connect(&metrics).expect("a connection"), "\0\0\r\n\r\n");
    assert!(garbage.starts_with("HTTP/1.1 400 "), "{garbage}");
    let other =
        answer(TcpStream::connect(&metrics).expect("a connection"), "POST / HTTP/1.1\r\n\r\n");
    assert!(other.starts_with("HTTP/1.1 404 "), "{other}");
    for _ in 0..50 {
        let stranger = TcpStream::connect(&far).expect("a connection");
        let _ = (&stranger).write_all(b"GET / HTTP/1.1\r\n\r\n");
    }
    let rejected = "farlane_rejected_peers_total{link=\"uplink\"}";
    let mut after = String::new();
    wait_until("strangers are counted", || {
        after = scrape(&metrics);
        value(&after, rejected) == 50.0
    });
    assert_eq!(names(&before), names(&after));
    // The node closes connections without a request after 5 s.
    silent.into_iter().for_each(|mut stream| assert_eq!(stream.read(&mut [0]).unwrap_or(0), 0));
}

/// Starts a device node with this control socket, and waits until it listens.
fn controlled(folder: &Path, options: &[&str]) -> Process {
    let arguments = [&["device", "--listen", ANY, "--namespace", "ram=1M"], options].concat();
    let mut command = farlane(&arguments);
    let node = Process::start(command.env("RUNTIME_DIRECTORY", folder), "device", folder);
    node.line("listening on ");
    node
}

#[test]
fn stale_sockets_are_replaced_and_live_ones_are_not() {
    let folder = scratch("control");
    let socket = text(&folder.join("own/node.sock"));
    drop(controlled(&folder, &["--control", &socket]));
    assert!(Path::new(&socket).exists(), "a killed node leaves its socket");
    fails(&["status", &socket], &["Connection refused"]);
    let group = Command::new("id").arg("-gn").output().expect("it runs").stdout;
    let group = String::from_utf8_lossy(&group).trim().to_owned();
    let options = ["--control", &*socket, "--control-group", &group];
    let mut node = controlled(&folder, &options);
    let mode = |path: &str| std::fs::metadata(path).expect("a socket").permissions().mode() & 0o777;
    assert_eq!(mode(&socket), 0o660);
    let second = ["device", "--listen", ANY, "--namespace", "ram=1M", "--control", &socket];
    fails(&second, &["node.sock: another server is listening here"]);
    assert!(prints(&["status", &socket, "--interval", "1ms"]).contains("serves"));
    assert!(node.interrupt().success() && !Path::new(&socket).exists());

    let other = folder.join("other.sock");
    let _listener = UnixListener::bind(&other).expect("a socket");
    drop(_listener);
    let mut node = controlled(&folder, &[]);
    let default = text(&folder.join(format!("device-{}.sock", node.pid().as_raw_pid())));
    assert_eq!(mode(&default), 0o600);
    let mut command = farlane(&["status", "--interval", "1ms"]);
    let shown = command.env("RUNTIME_DIRECTORY", &folder).output().expect("it runs");
    let shown = String::from_utf8_lossy(&shown.stdout).into_owned();
    assert!(shown.contains(&default) && !other.exists(), "{shown}");
    assert!(node.interrupt().success() && !Path::new(&default).exists());
}

#[test]
fn metrics_stay_on_this_machine() {
    let device = ["device", "--listen", ANY, "--namespace", "ram=1M", "--control", "off"];
    let refuses = |address: &str, parts: &[&str]| {
        is_refused(&[&device[..], &["--metrics", address]].concat(), parts);
    };
    refuses("0.0.0.0:0", &["--metrics 0.0.0.0:0: expected a loopback address, or --key"]);
    refuses("localhost", &["expected HOST:PORT"]);
}

#[test]
fn state_crosses_the_network_only_with_a_key_that_may_read_it() {
    let keys = Keys::new("status-keys", &["device", "ops", "host", "stranger"]);
    keys.peers("device", "ops {ops} status\nhost {host} use,probe");
    for name in ["ops", "host", "stranger"] {
        keys.peers(name, "device {device} serve");
    }
    let device = ["device", "--listen", ANY, "--namespace", "ram=1M", "--control", "off"];
    let device = node(&keys.with("device", &[&device[..], &["--metrics", "0.0.0.0:0"]].concat()));
    let line = device.line("metrics on https://0.0.0.0:");
    let port = line.rsplit(':').next().and_then(|rest| rest.strip_suffix("/metrics"));
    let address = format!("127.0.0.1:{}", port.expect("a port"));
    device.listens();
    let status = ["status", &address, "--interval", "1ms"];
    let shown = prints(&keys.with("ops", &status));
    assert!(shown.contains("device 0.1.0, process ") && shown.contains("serves"), "{shown}");
    for name in ["host", "stranger"] {
        fails(&keys.with(name, &status), &[&address, "received fatal alert"]);
    }
    let plain = answer(TcpStream::connect(&address).expect("a connection"), "GET /status\r\n\r\n");
    assert!(!plain.contains("device"), "{plain}");
    // A key that loses the right reads nothing more.
    keys.peers("device", "host {host} use,probe\nops {ops} probe");
    device.line("read the file of peers again");
    fails(&keys.with("ops", &status), &["received fatal alert"]);
}
