//! All ways of waiting: a host node that sleeps, spins, polls the doorbell page, or does both, on
//! shared cores or on cores of its own. Without the variable `FARLANE_WAITING_READS`, the test only
//! checks that all ways work. With the variable, the test measures, prints a table and compares the
//! ways. The machine must be idle:
//!
//! ```text
//! FARLANE_WAITING_READS=20000 cargo test --release --package farlane \
//!     --test main waiting -- --nocapture
//! ```

use crate::support::{ANY, Drive, HostNode, Node, SetOnDrop, folder};
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

/// Options of the host node, and of the device node, which spins in the same modes.
const MODES: [(&[&str], &[&str]); 4] = [
    (&[], &[]),
    (&["--spin", "50"], &["--spin", "50"]),
    (&["--mmap-doorbells"], &[]),
    (&["--mmap-doorbells", "--spin", "50"], &["--spin", "50"]),
];

/// Confines this thread, and processes that it starts later, to the first `cores` cores of `all`.
fn confine(all: &CpuSet, cores: usize) {
    let mut set = CpuSet::new();
    (0..CpuSet::MAX_CPU)
        .filter(|core| all.is_set(*core))
        .take(cores)
        .for_each(|core| set.set(core));
    sched_setaffinity(None, &set).unwrap();
}

/// Reads one block `count` times; returns the times in microseconds, sorted.
fn reads(host: &HostNode, mapped: bool, count: usize) -> Vec<f64> {
    let mut drive = Drive::attach_to(&host.socket(0), mapped);
    drive.write(0, &[7; 512]);
    let mut spans: Vec<f64> = (0..count)
        .map(|_| {
            let begun = Instant::now();
            assert!(drive.read(0, 1) == [7; 512]);
            begun.elapsed().as_secs_f64() * 1e6
        })
        .collect();
    drive.detach();
    spans.sort_by(f64::total_cmp);
    spans
}

#[test]
fn every_waiting_mode_serves_the_drive() {
    let asked = std::env::var_os("FARLANE_WAITING_READS");
    let measured = asked.is_some();
    let count = asked.map_or(50, |text| text.to_str().unwrap().parse().unwrap());
    let all = sched_getaffinity(None).unwrap();
    let places =
        [("one core", 1, 0), ("two cores", 2, 0), ("two cores, three busy threads beside", 2, 3)];
    for (place, cores, others) in places.into_iter().take(if measured { 3 } else { 1 }) {
        confine(&all, cores);
        let folder = folder::kept("waiting");
        let idle = AtomicBool::new(false);
        let medians = std::thread::scope(|threads| {
            for _ in 0..others {
                threads.spawn(|| {
                    while !idle.load(Ordering::Relaxed) {
                        std::hint::spin_loop();
                    }
                });
            }
            let _idle = SetOnDrop(&idle);
            MODES.map(|(host_options, device_options)| {
                let device = Node::device_at(ANY, &folder, "device", &["ram=16M"], device_options);
                let host = HostNode::start(&folder, "host", &[device.address()], host_options);
                let spans = reads(&host, host_options.contains(&"--mmap-doorbells"), count);
                host.stop();
                device.stop();
                let [p50, p99] = [spans[spans.len() / 2], spans[spans.len() * 99 / 100]];
                let name = host_options.join(" ");
                println!("{place:38} | {name:28} | {p50:8.1} us | {p99:8.1} us");
                p50
            })
        });
        let fastest = medians.iter().copied().fold(f64::MAX, f64::min);
        let starved = medians.iter().any(|p50| *p50 > 10.0 * fastest);
        assert!(!measured || !starved, "{place}: {medians:?} us");
    }
}
