//! `farlane io --vfio-user` on farlane's host node, and on a controller that shares no code with
//! farlane.

use super::io::shape;
use super::transcripts::transcripts;
use crate::support::folder::Sockets;
use crate::support::program::{
    document, fails, farlane, is_refused, page, parsed, scratch, succeeds, text,
};
use crate::support::{ANY, HostNode, Node, Process, folder, process::LIMIT};
use serde_json::Value;
use std::path::Path;
use testkit::vfio_user::server::{Kind, NVME, Server};

/// Returns the arguments of `farlane io` for a server.
fn io(socket: &Path, more: &str) -> Vec<String> {
    let words = more.split_whitespace().map(str::to_owned);
    ["io", "--vfio-user", &text(socket)].map(str::to_owned).into_iter().chain(words).collect()
}

fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

#[track_caller]
fn measured(socket: &Path, more: &str) -> Value {
    document(&words(&io(socket, &format!("{more} --json"))))
}

/// Checks that data read back equal the written data. Returns the document.
#[track_caller]
fn verifies(socket: &Path, more: &str) -> Value {
    let work = "--rw randrw --bs 8k --size 256k --verify --destructive --yes";
    let found = measured(socket, &format!("{work} {more}"));
    let section = &found["sections"][0];
    assert_eq!((&section["mismatches"], &section["errors"]), (&0.into(), &Value::Array(vec![])));
    assert!(section["verified_bytes"].as_u64().unwrap() > 0, "{section}");
    found
}

fn ways(found: &Value) -> [&str; 2] {
    let target = &found["targets"][0];
    [&target["doorbells"], &target["completions"]].map(|way| way.as_str().unwrap())
}

#[test]
fn io_drives_own_host_node_in_every_mode() {
    let folder = folder::kept("io-own-host");
    let device = Node::device(&folder, "device", &["ram=16M"]);
    let host = HostNode::start(&folder, "host", &[device.address()], &["--mmap-doorbells"]);
    let socket = host.socket(0);
    let jobs = "--iodepth 4 --numjobs 2";
    assert_eq!(ways(&verifies(&socket, jobs)), ["mapped", "msix"]);
    let polled = verifies(&socket, &format!("{jobs} --completions polled"));
    assert_eq!(ways(&polled), ["mapped", "polled"]);
    let messages = verifies(&socket, &format!("{jobs} --doorbells message"));
    assert_eq!(ways(&messages), ["message", "msix"]);
    assert!(
        measured(&socket, "--rw read --runtime 300ms --time_based")["sections"][0]["peer_cpu_ns_per_io"]
            .as_f64()
            .is_some()
    );
    // The server refuses a second client.
    let busy = io(&socket, "--rw read --runtime 60 --time_based --json");
    let mut busy = Process::start(&mut farlane(&words(&busy)), "busy", &folder);
    host.process.line("endpoint 0: VMM attached");
    std::thread::sleep(std::time::Duration::from_millis(300));
    let says = ["VERSION: the server closed the connection", "it is in use"];
    fails(&words(&io(&socket, "--rw read")), &says);
    assert!(busy.interrupt().success());
    // This host node offers no doorbell page.
    host.stop();
    let host = HostNode::start(&folder, "plain", &[device.address()], &[]);
    let forced = io(&host.socket(0), "--rw read --doorbells mapped");
    fails(&words(&forced), &["0/cntrl: the server offers no page of doorbells to map"]);
    assert_eq!(ways(&measured(&host.socket(0), "--dd read --count 5")), ["message", "msix"]);
    host.stop();
    device.stop();
}

#[test]
fn io_drives_foreign_controller_in_every_mode() {
    let sockets = Sockets::new();
    let socket = sockets.path("other");
    for page in [false, true] {
        let _server = Server::start(&socket, Kind { page, ..NVME });
        let doorbells = if page { "mapped" } else { "message" };
        // Seven jobs and the admin queue need eight MSI-X vectors, which take eight messages.
        // Transfers of 64 KiB need PRP lists.
        let more = "--iodepth 4 --numjobs 7 --bs 64k --size 256k --rw randread";
        let found = measured(&socket, more);
        assert_eq!(found["drive"]["serial_number"], "ANOTHER");
        assert_eq!(found["sections"][0]["all"]["n"], 28);
        assert_eq!(ways(&verifies(&socket, "--iodepth 8 --numjobs 2")), [doorbells, "msix"]);
        let polled = verifies(&socket, "--iodepth 8 --numjobs 2 --completions polled");
        assert_eq!(ways(&polled), [doorbells, "polled"]);
    }
    let _server = Server::start(&socket, Kind { page: true, by_message: true, ..NVME });
    verifies(&socket, "");
    verifies(&socket, "--completions polled");
    let jobs = io(&socket, "--rw read --numjobs 8 --size 64k");
    fails(&words(&jobs), &["numjobs"]);
}

#[test]
fn a_wrong_byte_of_another_controller_is_found() {
    let sockets = Sockets::new();
    let socket = sockets.path("other");
    let _server = Server::start(&socket, Kind { damages: Some(3), ..NVME });
    let more = "--rw write --bs 4k --size 64k --verify --destructive --yes --json";
    let output = farlane(&words(&io(&socket, more))).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let found = parsed(&String::from_utf8(output.stdout).unwrap());
    let wrong = &found["sections"][0]["wrong"][0];
    // The third block that is read back begins at LBA 16. Bit 4 of its byte 7 is flipped.
    let number = |key: &str| wrong[key].as_u64().unwrap();
    assert_eq!(
        (number("lba"), number("byte"), number("expected") ^ number("found")),
        (16, 7, 0x10)
    );
}

#[test]
fn missing_drive_or_server_is_a_one_line_error() {
    let sockets = Sockets::new();
    let [socket, none] = ["other", "none"].map(|name| sockets.path(name));
    let server = Server::start(&socket, Kind { class: [0, 0, 2], ..NVME });
    let read = |socket: &Path| io(socket, "--rw read");
    fails(&words(&read(&socket)), &["other: the server's device has class 02 00 00: no NVMe"]);
    drop(server);
    fails(&words(&read(&none)), &["--vfio-user", "none: No such file or directory"]);
    let trace = io(&none, "--rw read --trace x.trace");
    is_refused(&words(&trace), &["--trace", "--vfio-user"]);
}

#[test]
fn a_server_that_vanishes_is_counted_and_one_that_comes_back_goes_on() {
    let folder = scratch("io-vanish");
    let sockets = Sockets::new();
    let socket = sockets.path("other");
    let leaves = Kind { leaves_after: Some(50), page: true, ..NVME };
    let work = "--rw randwrite --size 64k --runtime 60 --time_based --iodepth 4 --destructive \
        --yes --verify";
    let server = Server::start(&socket, leaves);
    let output = farlane(&words(&io(&socket, work))).output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    let last = log.lines().last().unwrap();
    assert!(
        last.starts_with("farlane: the drive vanished: ") && last.ends_with("4 transfers failed"),
        "{log}"
    );
    assert!(last.contains("other: the server closed the connection"), "{log}");
    drop(server);
    for completions in ["msix", "polled"] {
        // The same socket serves another client at once.
        let _server = Server::start(&socket, leaves);
        let more = format!("{work} --on-error continue --json --completions {completions}");
        let goes_on = io(&socket, &more);
        let mut load = Process::start(&mut farlane(&words(&goes_on)), "load", &folder);
        load.line("link down");
        load.line("link up: the drive is attached again; what was written before is not compared");
        std::thread::sleep(std::time::Duration::from_millis(200));
        assert!(load.interrupt().success());
        let found = parsed(&load.stdout.text());
        let section = &found["sections"][0];
        assert_eq!((&found["ended"], &section["mismatches"]), (&"interrupted".into(), &0.into()));
        assert_eq!(section["errors"][0]["n"], 4, "{completions}");
        assert!(section["all"]["n"].as_u64().unwrap() > 50);
    }
}

#[test]
fn a_server_that_stays_away_ends_the_run() {
    let folder = scratch("io-away");
    let sockets = Sockets::new();
    let socket = sockets.path("other");
    let server = Server::start(&socket, NVME);
    let more = "--rw read --runtime 60 --time_based --on-error continue --reconnect 300ms";
    let mut load = Process::start(&mut farlane(&words(&io(&socket, more))), "load", &folder);
    std::thread::sleep(std::time::Duration::from_millis(300));
    drop(server);
    assert_eq!(load.wait().code(), Some(1));
    load.stderr.wait_for("farlane: the drive vanished", LIMIT);
}

#[test]
fn targets_are_compared_in_one_run() {
    let folder = scratch("io-compare");
    let sockets = Sockets::new();
    let socket = sockets.path("other");
    let _server = Server::start(&socket, NVME);
    let device = Node::device(&folder, "device", &["ram=4M"]);
    let address = device.address().to_string();
    let [html, csv] = ["io.html", "io.csv"].map(|name| text(&folder.join(name)));
    let work = "--rw randrw --size 64k --destructive --yes";
    let more = format!("{work} --connect {address} --html {html} --csv {csv}");
    let output = farlane(&words(&io(&socket, &more))).output().unwrap();
    let [printed, asked] = [output.stdout, output.stderr].map(|o| String::from_utf8(o).unwrap());
    assert!(output.status.success(), "{asked}");
    let overwrites: Vec<&str> = asked.lines().filter(|line| line.contains("overwrites")).collect();
    assert!(overwrites[0].contains(&address) && overwrites[1].contains("serial number ANOTHER"));
    assert_eq!(overwrites.len(), 2);
    let table: Vec<Vec<&str>> = printed
        .lines()
        .skip_while(|line| *line != "randrw, compared")
        .map(|line| line.split_whitespace().collect())
        .collect();
    let name = text(&socket);
    assert_eq!((table[1][0], table[2][0], table[3][0]), ("target", &address[..], &name[..]));
    assert_eq!(table[2][2], "1.00", "the first target's IOPS are the measure");
    assert!(page(&html).contains("randrw, compared"));
    let lines = std::fs::read_to_string(&csv).unwrap();
    let targets: Vec<&str> = lines.lines().skip(1).filter_map(|l| l.rsplit(',').next()).collect();
    // Each target has 64 KiB, which are 16 transfers.
    assert_eq!(targets, [[&*address; 16], [&*name; 16]].concat());
    let found = measured(&socket, &format!("--connect {address} --configreads 5"));
    let targets: Vec<&Value> =
        found["sections"].as_array().unwrap().iter().map(|section| &section["target"]).collect();
    assert_eq!(targets, [&Value::from(0), &1.into()]);
    device.stop();
}

#[test]
fn the_pages_transcripts_through_vfio_user_are_what_is_printed() {
    let folder = folder::kept("io-vfio-page");
    let serial = ["--serial", "FL-EXAMPLE"];
    let device = Node::device_at(ANY, &folder, "device", &["ram=64M"], &serial);
    let host = HostNode::start(&folder, "host", &[device.address()], &["--mmap-doorbells"]);
    let sockets = Sockets::new();
    let other = sockets.path("other");
    let _server = Server::start(&other, Kind { page: true, ..NVME });
    let page = include_str!("../../../../docs/io.md");
    let names = [("/tmp/farlane/0/cntrl", text(&host.socket(0))), ("/tmp/other", text(&other))];
    let mut commands = 0;
    for (command, shown) in transcripts(page) {
        if !command.contains("--vfio-user") {
            continue;
        }
        let put = |line: &str| {
            names.iter().fold(line.to_owned(), |line, (name, path)| line.replace(name, path))
        };
        let command = put(&command);
        let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
        let printed = succeeds(&arguments);
        let shown: Vec<String> = shown.iter().map(|line| put(line)).collect();
        assert_eq!(shape(&shown.join("\n")), shape(&printed), "{command}:\n{printed}");
        commands += 1;
    }
    assert_eq!(commands, 2);
    host.stop();
    device.stop();
}
