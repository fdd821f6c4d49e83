//! The effect of push in a guest: a drive with push, a drive without push, QEMU's own drive, and a
//! drive behind the kernel's NVMe/TCP target in the guest, in turns.
//!
//! Without the variable `FARLANE_GUEST_ROUNDS`, the test only checks that all drives can be
//! measured. With the variable, the test prints a table:
//!
//! ```text
//! FARLANE_GUEST_ROUNDS=5 cargo test --release --package farlane \
//!     --test main long::push -- --nocapture
//! ```

use crate::stock_guest::guest::Guest;
use crate::stock_guest::workload;
use crate::support::{HostNode, Node, folder};

/// Serial numbers of the drives: two of farlane with their mode of push, QEMU's own, the kernel's
/// target.
const SERIALS: [&str; 4] = ["all", "off", "reference", "kernel"];
const LOADS: [&str; 4] = ["randread", "randwrite", "dd-read", "dd-write"];

/// Returns the times of a load on a drive in microseconds, sorted, from the lines of the script.
fn micros(text: &str, drive: &str, load: &str) -> Vec<f64> {
    let begin = format!("latency {drive} {load} ");
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix(&begin));
    let mut all: Vec<f64> = lines.map(|ns| ns.parse::<f64>().unwrap() / 1e3).collect();
    all.sort_by(f64::total_cmp);
    all
}

#[test]
fn push_in_a_guest_beside_other_drives() {
    let rounds = std::env::var("FARLANE_GUEST_ROUNDS").map_or(1, |text| text.parse().unwrap());
    let folder = folder::kept("push");
    let nodes = ["all", "off"].map(|push| {
        let name = format!("device-{push}");
        let device =
            Node::device_at("127.0.0.1:0", &folder, &name, &["ram=64M"], &["--serial", push]);
        let host = HostNode::start(&folder, push, &[device.address()], &["--push", push]);
        (device, host)
    });
    let disk = folder.join("disk.img");
    folder::empty_disk(&disk, 64 << 20);
    let mut guest = Guest::builder("push/guest")
        .drive(&nodes[0].1, 0)
        .drive(&nodes[1].1, 0)
        .option("-drive", format!("if=none,id=disk,format=raw,file={}", disk.display()))
        .root_port("rp")
        .device("nvme,drive=disk,serial=reference,bus=rp")
        .lab()
        .start();
    guest.run(&workload::kernel_target("kernel"));
    let text = guest.run(&workload::latency(rounds, 3, &SERIALS)).text;
    for serial in SERIALS {
        let columns = LOADS.map(|load| {
            let all = micros(&text, serial, load);
            assert_eq!(all.len(), rounds, "{serial}, {load}");
            assert!(all[0] > 0.0, "{serial}, {load}");
            let [median, most] = [all[rounds / 2], all[rounds - 1]];
            format!("{load} {median:.0} [{:.0} to {most:.0}]", all[0])
        });
        println!("{serial:9} us: {}", columns.join(", "));
    }
    guest.power_off();
    for (device, host) in nodes {
        host.stop();
        device.stop();
    }
}
