//! Bad input gets one clear line and the right exit status.

use crate::cli::nodes::nobody;
use crate::support::program::{device, fails, is_refused, is_wrong_usage, scratch, text};
use std::net::TcpListener;

fn device_fails(namespace: &str, parts: &[&str]) {
    fails(&["device", "--listen", "127.0.0.1:0", "--namespace", namespace], parts);
}

#[test]
fn disk_files() {
    let folder = scratch("disks");
    let [missing, odd, full] = ["missing", "odd", "full"].map(|name| text(&folder.join(name)));
    device_fails(&format!("file={missing}"), &[&missing, "cannot open", "No such file"]);
    std::fs::write(&odd, [0; 1000]).unwrap();
    device_fails(&format!("file={odd}"), &[&odd, "1000 bytes", "blocks of 512"]);
    device_fails(&format!("file={odd},size=512"), &[&odd, "it is not shortened"]);
    device_fails(&format!("file={odd},size=4096,ro"), &[&odd, "read-only"]);
    let folder = text(&folder);
    device_fails(&format!("file={folder}"), &[&folder, "directory"]);
    device_fails(&format!("file={full},size=4000000T"), &[&full, "cannot reserve"]);
    assert!(!std::path::Path::new(&full).exists(), "a file that could not be made is gone");
    device_fails("ram=1000", &["ram=1000", "blocks of 512"]);
}

#[test]
fn a_file_belongs_to_one_node() {
    let path = scratch("shared").join("shared.img");
    let namespace = format!("file={},size=1M", path.display());
    let _node = device(&namespace, &[]);
    device_fails(&namespace, &["shared.img", "in use by another process"]);
}

#[test]
fn a_read_only_file_is_refused_for_writing() {
    // Not even root can write to a file of procfs that is read-only.
    device_fails("file=/proc/version", &["/proc/version"]);
}

#[test]
fn addresses() {
    // No name server is needed, because a name with an empty label is invalid.
    fails(&["ping", "a..b:99"], &["'a..b:99'"]);
    is_refused(&["ping", "nonsense:port"], &["'nonsense:port'", "HOST[:PORT]"]);
    let (_node, address) = device("ram=1M", &[]);
    let arguments = ["device", "--listen", &address, "--namespace", "ram=1M"];
    fails(&arguments, &["cannot listen on", &address, "in use"]);
    let arguments = ["device", "--listen", "0.0.0.0:0", "--namespace", "ram=1M"];
    is_refused(&arguments, &["0.0.0.0:0", "--insecure"]);
    is_refused(&["host", "--connect", "192.0.2.1:4420", "--vfio-user", "/tmp/x"], &["--insecure"]);
    is_refused(&["ping", "192.0.2.1:4420"], &["192.0.2.1:4420", "--insecure"]);
}

#[test]
fn a_switch_has_at_most_32_links() {
    for command in ["switch", "host"] {
        let mut arguments = vec![command];
        (0..33).for_each(|_| arguments.extend(["--connect", "127.0.0.1:1"]));
        if command == "host" {
            arguments.extend(["--vfio-user", "/tmp/x"]);
        }
        is_refused(&arguments, &["33", "32 links"]);
    }
}

#[test]
fn connection_refused_is_an_error() {
    let address = nobody();
    let folder = &text(&scratch("nobody"));
    let arguments = ["host", "--connect", &address, "--vfio-user", folder, "--wait", "1"];
    fails(&arguments, &["no link to", &address, "refused"]);
    fails(&["ping", &address], &[&address, "refused"]);
}

/// Returns an address from which no answer comes: the queue of the listener is full, so further
/// connections wait (listen(2)). The address is silent as long as the sockets exist.
fn silent() -> (Vec<std::net::TcpStream>, String) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    rustix::net::listen(&listener, 0).unwrap();
    let address = listener.local_addr().unwrap();
    let soon = std::time::Duration::from_millis(100);
    let connect = |_| std::net::TcpStream::connect_timeout(&address, soon).ok();
    let mut queued: Vec<_> = (0..8).map_while(connect).collect();
    assert!(queued.len() < 8, "the queue is never full");
    // The listener never accepts, and is kept together with the queued connections.
    queued.push(std::net::TcpStream::from(std::os::fd::OwnedFd::from(listener)));
    (queued, address.to_string())
}

#[test]
fn every_silent_address_is_named() {
    let ((_a, one), (_b, two)) = (silent(), silent());
    let folder = &text(&scratch("silent"));
    let peers = ["--connect", &one, "--connect", &two];
    for wait in ["300ms", "1"] {
        let arguments = [&["host", "--vfio-user", folder, "--wait", wait], &peers[..]].concat();
        let both = format!("no link to {one}: no answer, nor to {two}: no answer");
        fails(&arguments, &[&both]);
    }
    fails(&["ping", &one], &[&one, "no answer"]);
}

#[test]
fn wrong_usage_is_status_2() {
    for arguments in [
        &["device"][..],
        &["device", "--namespace", "ram=1M,colour=red"],
        &["device", "--namespace", "ram=lots"],
        &["demo", "--mps", "300"],
        &["demo", "--count", "5"],
        &["fly"],
    ] {
        is_wrong_usage(arguments);
    }
}

#[test]
fn missing_option_is_reported_with_alternatives() {
    for (arguments, all) in [
        (&["device"][..], ["--namespace <NAMESPACE>", "--drive <DIR>"]),
        (&["io", "--rw", "read"], ["--connect <ADDRESS>", "--vfio-user <SOCKET>"]),
        (&["latency", "redirect", "near"], ["SECOND", "--pass"]),
    ] {
        let said = is_wrong_usage(arguments);
        let missing = said.split("Usage:").next().unwrap();
        assert!(all.iter().all(|name| missing.contains(name)), "{said}");
    }
    is_refused(&["io", "--connect", "localhost"], &["--rw, --dd, --configreads", "job file"]);
}

/// clap's tip ` -- --svg` would make a file of a misplaced option.
#[test]
fn unknown_option_is_not_taken_as_file() {
    for arguments in [&["sim", "x.toml", "--svg"][..], &["io", "--connect", "x", "--svg"]] {
        let said = is_wrong_usage(arguments);
        assert!(said.contains("unexpected argument") && !said.contains(" -- "), "{said}");
    }
    let said = is_wrong_usage(&["sim", "x.toml", "--sweap", "x=1"]);
    assert!(said.contains("'--sweep'"), "a name that is near is still told: {said}");
}

#[test]
fn networks_without_bounds() {
    let folder = scratch("networks");
    let [ring, plan, none] =
        ["ring.json", "plan.toml", "none.json"].map(|name| text(&folder.join(name)));
    let network = r#"{"network": {"arrival_curve": {"bursts": [1], "rates": [1]},
        "service_curve": {"latencies": [1], "rates": [4]}},
        "flows": [{"name": "forth", "path": ["a", "b"]}, {"name": "back", "path": ["b", "a"]}],
        "servers": [{"name": "a"}, {"name": "b"}]}"#;
    std::fs::write(&ring, network).unwrap();
    fails(&["tsn", "bound", &ring, "--method", "plp"], &[&ring, "plp requires", "a > b"]);
    is_wrong_usage(&["tsn", "bound", &ring, "--method", "best"]);
    std::fs::write(&ring, network.replace(r#"["b", "a"]"#, r#"["c"]"#)).unwrap();
    fails(&["tsn", "bound", &ring], &[&ring, "flows[1].path[0]", "'c'"]);
    is_wrong_usage(&["tsn", "bound", &plan, "--method", "pmoo"]);
    is_wrong_usage(&["tsn", "bound", &plan, "--outputs", "flow"]);
    fails(&["tsn", "bound", &none], &[&none, "No such file"]);
}
