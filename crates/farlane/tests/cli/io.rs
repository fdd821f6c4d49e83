//! `farlane io`: load on a device node in a process of its own.

use super::transcripts::transcripts;
use crate::support::process::{LIMIT, wait_until};
use crate::support::program::{
    device, document, fails, farlane, is_refused, is_wrong_usage, node, page, parsed, run, scratch,
    succeeds, text,
};
use crate::support::{Process, parquet};
use serde_json::Value;
use std::collections::BTreeSet;
use std::os::unix::fs::FileExt;
use std::path::Path;

/// Returns the arguments of `farlane io` for the node at `address`.
fn io(address: &str, more: &str) -> Vec<String> {
    let words = more.split_whitespace().map(str::to_owned);
    ["io", "--connect", address].map(str::to_owned).into_iter().chain(words).collect()
}

fn words(all: &[String]) -> Vec<&str> {
    all.iter().map(String::as_str).collect()
}

/// Returns the document of a successful run.
#[track_caller]
fn measured(address: &str, more: &str) -> Value {
    document(&words(&io(address, &format!("{more} --json"))))
}

/// Checks that a row has every number, and that its percentiles are in order.
#[track_caller]
fn is_whole(row: &Value) {
    let value = |key: &str| row[key].as_u64().unwrap_or_else(|| panic!("{key}: {row}"));
    let ranks = ["min_ns", "p50_ns", "p90_ns", "p99_ns", "p99_9_ns", "p99_99_ns", "max_ns"];
    let values = ranks.map(value);
    assert!(values[0] > 0 && values.is_sorted(), "{values:?}");
    assert!((value("min_ns")..=value("max_ns")).contains(&value("mean_ns")));
    assert!(row["iops"].as_f64().unwrap() > 0.0);
}

#[test]
fn reads_need_no_permission_and_are_measured() {
    let (_device, address) = device("ram=4M", &["--serial", "IO1"]);
    let csv = scratch("io-reads").join("samples.csv");
    let (text, binary) = (csv.display(), csv.with_extension("parquet"));
    let files = format!("--csv {text} --parquet {}", binary.display());
    let work = "--rw randread --iodepth 4 --numjobs 2 --bs 8k --size 1m";
    let found = measured(&address, &format!("{work} {files}"));
    assert_eq!(
        (&found["ended"], &found["drive"]["serial_number"]),
        (&"done".into(), &"IO1".into())
    );
    let section = &found["sections"][0];
    // Each job transfers 1 MiB, which is 128 transfers of 8 KiB.
    assert_eq!((&section["all"]["n"], &section["all"]["bytes"]), (&256.into(), &(2 << 20).into()));
    let jobs = section["jobs"].as_array().unwrap();
    assert_eq!(jobs.len(), 2);
    jobs.iter().chain([&section["all"]]).for_each(is_whole);
    assert!(!section["timeline"].as_array().unwrap().is_empty());
    let lines = std::fs::read_to_string(&csv).unwrap();
    let mut lines = lines.lines();
    assert_eq!(
        lines.next(),
        Some("section,job,submit_ns,latency_ns,op,offset,bytes,status,target")
    );
    let rows: Vec<Vec<&str>> = lines.map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), 256, "a line a transfer");
    let longest = rows.iter().map(|row| row[3].parse::<u64>().unwrap()).max();
    assert_eq!(longest, section["all"]["max_ns"].as_u64());
    for row in &rows {
        let (job, offset) = (row[1].parse::<u64>().unwrap(), row[5].parse::<u64>().unwrap());
        let part = job << 20;
        assert!((part..part + (1 << 20)).contains(&offset), "each in its part: {row:?}");
        assert_eq!((row[0], row[4], row[6], row[7]), ("randread", "read", "8192", "ok"));
        assert_eq!(row[8], address);
    }
    let (rows_of_parquet, about) = parquet::rows(&csv.with_extension("parquet"));
    assert_eq!(rows_of_parquet, rows, "the same rows");
    let about = |key: &str| about[key].as_str();
    assert_eq!((about("unit.latency_ns"), about("farlane.ended")), ("ns", "done"));
    assert_eq!(about("farlane.targets"), format!("[[\"{address}\",\"IO1\"]]"));
    assert_eq!(about("farlane.randseed"), found["randseed"].to_string());
    let workload: Value = serde_json::from_str(about("farlane.workload")).unwrap();
    assert_eq!(workload[0][1], section["workload"]);
    let ramped = "--rw randread --size 64k --ramp_time 400ms --runtime 50ms --time_based";
    let ramped = measured(&address, ramped);
    let elapsed = ramped["sections"][0]["elapsed_ns"].as_u64().unwrap();
    assert!((50_000_000..400_000_000).contains(&elapsed), "without the ramp: {elapsed} ns");
    let few = measured(&address, "--rw read --size 64k --io_size 1m --number_ios 100 --loops 2");
    assert_eq!(few["sections"][0]["all"]["n"], 200);
    let text = succeeds(&words(&io(&address, "--dd read --count 5")));
    assert!(text.contains("serial number IO1") && text.contains("p99.99"), "{text}");
    let reads = measured(&address, "--configreads 20 --gap 0");
    assert_eq!(reads["sections"][0]["jobs"][0]["n"], 20);
}

#[test]
fn nothing_is_overwritten_without_permission() {
    let (_device, address) = device("ram=1M,block=4096", &[]);
    let says = |more: &str, parts: &[&str]| is_refused(&words(&io(&address, more)), parts);
    says("--rw write", &["the options: write overwrites data", "--destructive"]);
    says("--dd write --destructive", &["not a terminal", "--yes"]);
    is_wrong_usage(&words(&io(&address, "--rw write --yes")));
    let output = run(&words(&io(&address, "--rw write --size 64k --destructive --yes")));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{log}");
    for part in ["serial number FL", "namespace 1, 64 KiB from byte 0 to 65535, LBA 0 to 15"] {
        assert!(log.contains(part), "no '{part}' in {log}");
    }
}

#[test]
fn verify_reads_back_and_compares() {
    let (_device, address) = device("ram=4M", &[]);
    let more = "--rw randrw --bs 16k --iodepth 4 --numjobs 2 --size 512k --verify --destructive";
    let found = measured(&address, &format!("{more} --yes --randseed 5"));
    let section = &found["sections"][0];
    assert_eq!((&section["mismatches"], &section["all"]["n"]), (&0.into(), &64.into()));
    let jobs = section["jobs"].as_array().unwrap();
    let n = |op: &str| -> u64 {
        let rows = jobs.iter().filter(|row| row["op"] == op);
        rows.map(|row| row["n"].as_u64().unwrap()).sum()
    };
    assert!(n("verify") > 0 && n("verify") <= n("write"), "each block once: {jobs:?}");
    assert_eq!(n("read") + n("write"), 64);
    let verified = section["verified_bytes"].as_u64().unwrap();
    assert!(verified >= n("verify") << 14, "{verified}");
}

#[test]
fn verify_finds_a_changed_byte() {
    let folder = scratch("io-verify");
    let image = folder.join("disk.img");
    let (_device, address) = device(&format!("file={},size=1M", image.display()), &[]);
    let work = "--rw write --bs 8k --size 256k --numjobs 2 --randseed 9";
    measured(&address, &format!("{work} --verify --destructive --yes"));
    let again = measured(&address, &format!("{work} --verify_only"));
    assert_eq!(again["sections"][0]["verified_bytes"], 512 << 10);
    let file = std::fs::OpenOptions::new().read(true).write(true).open(&image).unwrap();
    let (at, mut byte) = (300 << 10 | 77, [0]);
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x5a], at).unwrap();
    let output = run(&words(&io(&address, &format!("{work} --verify_only --json"))));
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    assert_eq!(log, "farlane: 1 reads returned other data than were written\n");
    let found = parsed(&String::from_utf8(output.stdout).unwrap());
    let wrong = &found["sections"][0]["wrong"][0];
    // Byte 77 of the block of 512 bytes at 300 KiB. The block is in the part of job 1.
    let place = ["lba", "byte", "offset", "job"].map(|key| wrong[key].as_u64().unwrap());
    assert_eq!(place, [600, 77, at, 1]);
    let bytes = ["expected", "found"].map(|key| wrong[key].as_u64().unwrap() as u8);
    assert_eq!(bytes, [byte[0], byte[0] ^ 0x5a]);
}

fn job_file(folder: &Path, lines: &str) -> String {
    let path = folder.join("jobs.fio");
    std::fs::write(&path, lines).unwrap();
    text(&path)
}

#[test]
fn job_files_run_section_after_section() {
    let folder = scratch("io-file");
    let (_device, address) = device("ram=4M", &[]);
    let file = job_file(
        &folder,
        "[global]\nioengine=libaio\ndirect=1\nbs=4k\nsize=256k\n\
         [fill]\nrw=write\niodepth=8\nverify=crc32c\n[check]\nstonewall\nrw=read\nverify=crc32c\n",
    );
    let found = measured(&address, &format!("{file} --destructive --yes"));
    let sections = found["sections"].as_array().unwrap();
    let names: Vec<_> = sections.iter().map(|section| section["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["fill", "check"]);
    // The second section compares the data that the first section wrote.
    assert_eq!(sections[1]["verified_bytes"], 256 << 10);
    // Blocks that a section without `verify` overwrote are not compared.
    let file = job_file(
        &folder,
        "[global]\nsize=64k\n[fill]\nrw=write\nverify=1\n[over]\nstonewall\nrw=write\nverify=0\n\
         size=16k\n[check]\nstonewall\nrw=read\nverify=1\nsize=64k\n",
    );
    let found = measured(&address, &format!("{file} --destructive --yes"));
    assert_eq!(found["sections"][2]["verified_bytes"], 48 << 10);
    let wrong = job_file(&folder, "[a]\nrw=read\niodepht=2\n");
    let line = format!("{wrong}:3:1: unknown key 'iodepht'; did you mean 'iodepth'?");
    fails(&words(&io(&address, &wrong)), &[&line]);
    is_refused(
        &words(&io(&address, &format!("{wrong} --bs 4k"))),
        &["--bs cannot be used with", &wrong],
    );
    is_refused(&words(&io(&address, "--rw read --bs 4q")), &["--bs 4q: bs: expected a size"]);
    fails(&words(&io(&address, "--rw read --nsid 3")), &["nsid 3: the drive's namespaces are: 1"]);
    fails(&words(&io(&address, "--rw read --size 8m")), &["more than a drive's capacity"]);
    let memory = "--rw read --bs 16m --iodepth 1000";
    fails(&words(&io(&address, memory)), &["iodepth × bs × numjobs", "at most"]);
}

/// Reads the rows of `--csv` for a section on a target. Returns the start of the first transfer and
/// the end of the last one in nanoseconds, and the jobs, each with the MiB of its first byte.
fn spent(csv: &str, section: &str, target: &str) -> (u64, u64, BTreeSet<(u64, u64)>) {
    let rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let rows: Vec<_> = rows.filter(|row| row[0] == section && row[8] == target).collect();
    let number = |row: &[&str], column: usize| row[column].parse::<u64>().unwrap();
    let begin = rows.iter().map(|row| number(row, 2)).min().unwrap();
    let end = rows.iter().map(|row| number(row, 2) + number(row, 3)).max().unwrap();
    (begin, end, rows.iter().map(|row| (number(row, 1), number(row, 5) >> 20)).collect())
}

#[test]
fn sections_without_a_stonewall_run_at_the_same_time() {
    let folder = scratch("io-beside");
    let devices = ["ONE", "TWO"].map(|serial| device("ram=4M", &["--serial", serial]));
    let [one, two] = [&devices[0].1, &devices[1].1];
    let csv = folder.join("samples.csv");
    // The first two sections pause for 5 ms 16 times.
    let file = job_file(
        &folder,
        "[global]\nbs=4k\nsize=64k\nthinktime=5ms\n[fill]\nrw=write\nverify=crc32c\n\
         [look]\nrw=randread\noffset=1m\nsize=1m\nnumber_ios=16\nnumjobs=2\nramp_time=20ms\n\
         [check]\nstonewall\nrw=read\nverify=crc32c\nthinktime=0\n",
    );
    let more = format!("{file} --connect {two} --csv {} --destructive --yes", csv.display());
    let found = measured(one, &more);
    let sections = found["sections"].as_array().unwrap();
    let place = |mismatch: &Value| {
        let name = mismatch["name"].as_str().unwrap().to_owned();
        (name, mismatch["target"].as_u64().unwrap(), mismatch["group"].as_u64().unwrap())
    };
    let wanted = ["fill", "look", "check"].into_iter().zip([0, 0, 1]);
    let wanted = wanted.flat_map(|(name, group)| [0, 1].map(|at| (name.to_owned(), at, group)));
    assert_eq!(sections.iter().map(place).collect::<Vec<_>>(), wanted.collect::<Vec<_>>());
    for section in sections {
        let key = |key: &str| section[key].as_u64().unwrap();
        // Each of the two jobs of `look` does 16 transfers after the ramp. A transfer that was in
        // flight at the end of the ramp may count too.
        let (n, verified) =
            if section["name"] == "look" { (32..=34, 0) } else { (16..=16, 64 << 10) };
        assert!(n.contains(&section["all"]["n"].as_u64().unwrap()), "{}", section["all"]);
        assert_eq!(key("verified_bytes"), verified);
        assert_eq!((key("mismatches"), &section["errors"]), (0, &serde_json::json!([])));
        assert!(section["host_cpu_ns_per_io"].as_f64().unwrap() > 0.0, "{section}");
    }
    let rows = std::fs::read_to_string(&csv).unwrap();
    for target in [one, two] {
        let [fill, look, check] =
            ["fill", "look", "check"].map(|section| spent(&rows, section, target));
        assert!(fill.0 < look.1 && look.0 < fill.1, "at the same time: {fill:?} {look:?}");
        assert!(check.0 > fill.1.max(look.1), "after both: {check:?}");
        assert_eq!(look.2, BTreeSet::from([(0, 1), (1, 2)]), "each in its own part");
    }
    let text = succeeds(&words(&io(one, &format!("{file} --destructive --yes"))));
    assert!(
        text.contains("\nfill (with look): rw write") && text.contains("\ncheck: rw"),
        "{text}"
    );
}

#[test]
fn sections_that_exceed_queue_pairs_or_overlap_are_errors() {
    let folder = scratch("io-unfit");
    let (_device, address) = device("ram=4M", &["--queues", "2"]);
    let says = |lines: &str, line: u32, why: &[&str]| {
        let file = job_file(&folder, lines);
        let begin = format!("farlane: {file}:{line}:1: ");
        let more = format!("{file} --destructive --yes");
        fails(&words(&io(&address, &more)), &[&[&*begin], why].concat());
    };
    let jobs = "[a]\nrw=read\nnumjobs=2\n[b]\nrw=read\n";
    says(jobs, 4, &["[b]: with the sections beside it there are 3 jobs", "the drive has 2"]);
    let both = "[a]\nrw=write\nsize=64k\n[b]\nrw=read\noffset=60k\nsize=64k\nverify=1\n";
    says(both, 4, &["[b] overlaps [a]", "verify", "stonewall"]);
    let apart = both.replace("offset=60k", "offset=64k");
    let file = job_file(&folder, &apart);
    measured(&address, &format!("{file} --destructive --yes"));
    // As in fio, overlapping sections are permitted if no data are compared. Both sections print a
    // line.
    let file = job_file(&folder, "[global]\nrw=write\nsize=64k\n[a]\n[b]\noffset=4k\n");
    let output = run(&words(&io(&address, &format!("{file} --destructive --yes"))));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{log}");
    for part in ["a overwrites data", "b overwrites data", "from byte 4096 to 69631"] {
        assert!(log.contains(part), "no '{part}' in {log}");
    }
}

#[test]
fn busy_drive_and_full_disk_are_errors() {
    let (device, address) = device("ram=1M", &[]);
    let load = node(&words(&io(&address, "--rw randread --runtime 60 --time_based")));
    device.line("attached");
    fails(&words(&io(&address, "--rw read")), &["another host uses this device", &address]);
    drop(load);
    device.line("detached");
    for option in ["--csv", "--parquet"] {
        let output = run(&words(&io(&address, &format!("--rw read {option} /dev/full"))));
        let log = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1));
        assert_eq!(log, "farlane: cannot write /dev/full: No space left on device (os error 28)\n");
        let printed = String::from_utf8(output.stdout).unwrap();
        assert!(printed.contains("p99.99"), "what was measured is printed: {printed}");
    }
}

/// Starts a drive with this namespace, and a run on the drive; waits for the first transfers.
/// Returns the drive's node, the run, and the address of the node.
fn loaded_on(namespace: &str, name: &str, more: &str) -> (Process, Process, String) {
    let csv = scratch(name).join("samples.csv");
    let (device, address) = device(namespace, &["--serial", "GONE"]);
    let more = format!("--json --csv {} {more}", csv.display());
    let load = node(&words(&io(&address, &more)));
    let length = || std::fs::metadata(&csv).map_or(0, |file| file.len());
    wait_until("samples come", || length() > 0);
    (device, load, address)
}

/// As [`loaded_on`], with random reads of a drive in RAM.
fn loaded(name: &str, more: &str) -> (Process, Process, String) {
    loaded_on("ram=1M", name, &format!("--rw randread --iodepth 4 {more}"))
}

/// Returns the document of a run that has ended.
fn printed(load: &Process) -> Value {
    parsed(&load.stdout.text())
}

/// Returns the number of a section's transfers that were lost with their drive.
#[track_caller]
fn lost(section: &Value) -> u64 {
    assert_eq!(section["errors"][0]["cause"], "lost with its drive");
    section["errors"][0]["n"].as_u64().unwrap()
}

#[test]
fn a_drive_that_vanishes_ends_the_run() {
    let (mut device, mut load, _) = loaded("io-vanish", "--runtime 60 --time_based");
    device.kill();
    assert_eq!(load.wait().code(), Some(1));
    load.line("link down");
    load.line("farlane: the drive vanished");
    let found = printed(&load);
    assert_eq!(found["ended"], "stopped");
    let section = &found["sections"][0];
    assert!((1..=4).contains(&lost(section)), "{}", section["errors"]);
    is_whole(&section["all"]);
}

#[test]
fn run_continues_after_drive_returns() {
    let (mut device, mut load, address) =
        loaded("io-back", "--runtime 60 --time_based --on-error continue");
    device.kill();
    load.line("link down");
    let options = ["--namespace", "ram=1M", "--serial", "GONE"];
    let _again = node(&[&["device", "--listen", &address], &options[..]].concat());
    load.line("link up: the drive is attached again with new contents");
    // Ctrl-C ends the run in order.
    assert!(load.interrupt().success());
    let found = printed(&load);
    assert_eq!(found["ended"], "interrupted");
    let lost = lost(&found["sections"][0]);
    assert!((1..=4).contains(&lost), "those under way: {lost}");
}

#[test]
fn data_written_before_outage_are_verified() {
    let namespace = format!("file={},size=1M", scratch("io-data").join("disk.img").display());
    let work =
        "--rw randrw --iodepth 4 --size 64k --runtime 60 --time_based --verify --destructive --yes";
    let more = format!("{work} --on-error continue");
    let (mut device, mut load, address) = loaded_on(&namespace, "io-outage", &more);
    device.kill();
    load.line("link down");
    let options = ["--namespace", &namespace, "--serial", "GONE"];
    let _again = node(&[&["device", "--listen", &address], &options[..]].concat());
    assert_eq!(load.line("link up"), "note: link up: the drive is attached again");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(load.interrupt().success());
    let section = &printed(&load)["sections"][0];
    assert_eq!(
        (&section["mismatches"], section["wrong"].as_array().unwrap().len()),
        (&0.into(), 0)
    );
    assert!(section["verified_bytes"].as_u64().unwrap() > 0 && (1..=4).contains(&lost(section)));
}

#[test]
fn parallel_sections_continue_after_outage() {
    let folder = scratch("io-group");
    let namespace = format!("file={},size=1M", folder.join("disk.img").display());
    let file = job_file(
        &folder,
        "[global]\niodepth=4\nsize=64k\nruntime=60\ntime_based\n\
         [mix]\nrw=randrw\nverify=1\n[look]\nrw=randread\noffset=64k\n",
    );
    let more = format!("{file} --destructive --yes --on-error continue");
    let (mut device, mut load, address) = loaded_on(&namespace, "io-group-rows", &more);
    device.kill();
    load.line("link down");
    let options = ["--namespace", &namespace, "--serial", "GONE"];
    let _again = node(&[&["device", "--listen", &address], &options[..]].concat());
    load.line("link up: the drive is attached again");
    std::thread::sleep(std::time::Duration::from_millis(300));
    assert!(load.interrupt().success());
    let found = printed(&load);
    let [mix, look] = &found["sections"].as_array().unwrap()[..] else { panic!("{found}") };
    assert_eq!((&found["ended"], &mix["mismatches"]), (&"interrupted".into(), &0.into()));
    for section in [mix, look] {
        is_whole(&section["all"]);
        assert!((1..=4).contains(&lost(section)), "those under way: {}", section["errors"]);
        let timeline = section["timeline"].as_array().unwrap();
        assert!(timeline.last().unwrap()["iops"].as_f64().unwrap() > 0.0, "it goes on");
    }
}

#[test]
fn run_ends_if_drive_does_not_return() {
    let more = "--runtime 60 --time_based --on-error continue --reconnect 300ms";
    let (mut device, mut load, _) = loaded("io-away", more);
    device.kill();
    assert_eq!(load.wait().code(), Some(1));
    load.stderr.wait_for("farlane: the drive vanished", LIMIT);
}

#[test]
fn one_of_several_drives_is_chosen() {
    let (_one, one) = device("ram=1M", &["--serial", "ONE"]);
    let (_two, two) = device("ram=1M", &["--serial", "TWO"]);
    let peers = ["--connect", &one, "--connect", &two];
    let switch = node(&[&["switch", "--listen", "127.0.0.1:0"], &peers[..]].concat());
    let address = switch.listens();
    fails(&words(&io(&address, "--rw read")), &["--drive is missing", "0 (", "1 ("]);
    let found = measured(&address, "--rw read --size 64k --drive 1");
    assert_eq!(found["drive"]["serial_number"], "TWO");
    fails(&words(&io(&address, "--rw read --drive 2")), &["--drive 2: the drives behind"]);
}

/// Returns the lines of a text without spaces, and with 0 for each number, because numbers differ
/// from run to run.
pub fn shape(text: &str) -> Vec<String> {
    let word = |word: &str| {
        let digits = |c: char| c.is_ascii_digit() || c == '.';
        let mut out = String::new();
        for c in word.chars().map(|c| if digits(c) { '0' } else { c }) {
            if c != '0' || !out.ends_with('0') {
                out.push(c);
            }
        }
        out
    };
    let line = |line: &str| line.split_whitespace().map(word).collect::<Vec<_>>().join(" ");
    text.trim_end().lines().map(line).collect()
}

#[test]
fn the_page_shows_what_is_printed() {
    let folder = scratch("io-page");
    let page = include_str!("../../../../docs/io.md");
    let file = page.split("```").find(|block| block.starts_with("\n[global]"));
    job_file(&folder, file.expect("a job file"));
    let (_device, address) = device("ram=64M", &["--serial", "FL-EXAMPLE"]);
    let mut commands = 0;
    for (command, shown) in transcripts(page) {
        // Another test runs the commands with sockets.
        if command.contains("--vfio-user") {
            continue;
        }
        let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
        let resolved =
            |word: &&str| if *word == "localhost" { address.clone() } else { (*word).into() };
        let arguments: Vec<String> = arguments.iter().map(resolved).collect();
        let output = farlane(&words(&arguments)).current_dir(&folder).output().unwrap();
        assert!(output.status.success(), "{command}");
        let printed = [output.stderr, output.stdout].concat();
        let printed = String::from_utf8(printed).unwrap();
        assert_eq!(shape(&shown.join("\n")), shape(&printed), "{command}:\n{printed}");
        commands += 1;
    }
    assert_eq!(commands, 3);
}

#[test]
fn a_run_has_a_page_and_a_trace() {
    let folder = scratch("io-html");
    let (_device, address) = device("ram=1M", &[]);
    let [html, trace] = ["io.html", "io.trace"].map(|name| text(&folder.join(name)));
    let more = format!("--rw randread --runtime 300ms --time_based --html {html} --trace {trace}");
    succeeds(&words(&io(&address, &more)));
    let page = page(&html);
    for part in ["farlane io", "p99.99", "IOPS", "Latency along time", "serial number"] {
        assert!(page.contains(part), "no '{part}'");
    }
    let commands = document(&["trace", &trace, "--opcode", "read", "--limit", "1", "--json"]);
    assert_eq!(commands["schema"], 1);
    // The run sends Goodbye and shuts the drive down, although the trace cannot be written.
    let full = format!("--rw read --trace {}", "/dev/full");
    let output = run(&words(&io(&address, &full)));
    assert_eq!(output.status.code(), Some(1));
    let log = String::from_utf8(output.stderr).unwrap();
    assert!(log.contains("/dev/full"), "{log}");
}
