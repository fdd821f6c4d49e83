//! Options and files have one grammar of sizes and times (docs/command-line.md).

use super::drive::create;
use crate::support::program::{device, document, is_wrong_usage, plan_of, prints, scratch};

/// Forms of one mebibyte: of fio, QEMU and IEC, and of the program's own output.
const MEBIBYTE: [&str; 5] = ["1048576", "1m", "1MB", "1MiB", "1 MiB"];

#[test]
fn a_size_is_the_same_in_every_command() {
    let folder = scratch("grammar");
    let plan = plan_of("tcp");
    let digest = |size: &str| {
        let (bs, count) = (format!("workload.bs={size}"), "workload.count=2");
        document(&["sim", &plan, "--json", "--set", &bs, "--set", count])["digest"].clone()
    };
    let simulated = digest("1024k");
    for (number, size) in MEBIBYTE.iter().enumerate() {
        let place = folder.join(number.to_string());
        assert!(create(&place, size, &[&format!("size={size}")]).ends_with(" 1 MiB\n"), "{size}");
        let (_device, address) = device(&format!("ram={size}"), &[]);
        let work = ["io", "--connect", &address, "--rw", "read", "--bs", "64 KiB", "--json"];
        let found = document(&[&work[..], &["--size", size]].concat());
        assert_eq!(found["sections"][0]["all"]["bytes"], 1 << 20, "{size}");
        assert_eq!(digest(size), simulated, "{size}");
    }
    is_wrong_usage(&["drive", "create", "x", "--capacity", "1 MX"]);
}

#[test]
fn a_time_is_the_same_in_every_command() {
    let (_device, address) = device("ram=1M", &[]);
    for time in ["100000us", "100ms", "100MSEC", "0.1", "0.1 s"] {
        let work = ["io", "--connect", &address, "--rw", "randread", "--time_based", "--json"];
        let found = document(&[&work[..], &["--runtime", time, "--wait", time]].concat());
        let elapsed = found["sections"][0]["elapsed_ns"].as_u64().unwrap();
        // The last transfer ends a little before or after the time.
        assert!((50_000_000..5_000_000_000).contains(&elapsed), "{time}: {elapsed} ns");
    }
    let spin = ["ping", &address, "--count", "1", "--spin"];
    for time in ["50", "50us", "0.05ms", "0"] {
        prints(&[&spin[..], &[time]].concat());
    }
}
