//! `farlane live`, `compare` and `calibrate`: plans on live nodes.

use crate::support::process::{cannot, wait_until};
use crate::support::program::{
    document, fails, farlane, is_wrong_usage, node, page, parsed, plan_of, run, scratch, text,
};
use live::net::Namespace;
use rustix::process::Signal;
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// A bridge between a host with two drives and their node; every read is compared.
const BRIDGED: &str = r#"
transport = "tcp"
link.rate = "1G"
link.loss = "1%"
drive.preset = "ram"
drive.size = "1MiB"
drives.one = {}
drives.two = {}
nodes.store = {}
bridges.switch = {}
host.deadline = "10s"
[workload]
rw = "randrw"
iodepth = 4
numjobs = 2
size = "512KiB"
[cables.a]
a = "host"
b = "switch"
[cables.b]
a = "switch"
b = "store"
"#;

/// Whether this machine has network namespaces for this test.
fn has_namespaces(test: &str) -> bool {
    Namespace::new().map_err(|why| cannot(test, why)).is_ok()
}

fn written(folder: &Path, plan: &str) -> String {
    let path = folder.join("plan.toml");
    std::fs::write(&path, plan).unwrap();
    text(&path)
}

/// The interfaces of this namespace, and the number of processes that have network namespaces of
/// their own.
fn interfaces() -> Vec<String> {
    let entries = std::fs::read_dir("/sys/class/net").unwrap();
    let mut names: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn plan_with_two_drives_behind_a_bridge_runs_live_with_the_document_of_the_simulation() {
    if !has_namespaces("live") {
        return;
    }
    let folder = scratch("live-bridged");
    let (plan, html) = (written(&folder, BRIDGED), folder.join("live.html"));
    let before = interfaces();
    let arguments = ["live", &plan, "--local", "--verify", "--json", "--html", &text(&html)];
    let live = document(&arguments);
    let sim = document(&["sim", &plan, "--json"]);
    assert_eq!((&live["world"], &sim["world"]), (&"live".into(), &"sim".into()));
    for key in ["commands", "bytes", "mismatches", "failures"] {
        assert_eq!(live["hosts"][0][key], sim["hosts"][0][key], "{key}");
    }
    assert_eq!(live["hosts"][0]["commands"], 256);
    assert!(live["hosts"][0]["verified_blocks"].as_u64() > Some(0));
    let remarks = live["remarks"].to_string();
    assert!(remarks.contains("only simulated: cable host to switch: loss"), "{remarks}");
    assert_eq!(live["requirements"][0]["count"], 256);
    assert_eq!(live["requirements"][0]["holds"], true);
    let names = |document: &Value| -> Vec<Value> {
        document["tunnels"].as_array().unwrap().iter().map(|one| one["tunnel"].clone()).collect()
    };
    assert_eq!(names(&live), names(&sim));
    let page = page(html);
    assert!(page.contains("randrw") && page.contains("only simulated"));
    assert_eq!(interfaces(), before);
}

#[test]
fn drive_behind_a_switch_node_has_the_commands_and_traces_of_the_simulation() {
    if !has_namespaces("a switch node") {
        return;
    }
    let folder = scratch("live-switch");
    let plan = plan_of("switch-node");
    let trace = |world: &str| text(&folder.join(world));
    let run = |world: &str, more: &[&str]| {
        let file = trace(world);
        let own = [world, &plan, "--trace", &file, "--json", "--set", "workload.rw=randrw"];
        document(&[&own[..], &["--set", "workload.size=256KiB"], more].concat())
    };
    let (live, sim) = (run("live", &["--local", "--verify"]), run("sim", &[]));
    for key in ["commands", "bytes", "mismatches", "failures"] {
        assert_eq!(live["hosts"][0][key], sim["hosts"][0][key], "{key}");
    }
    assert_eq!(live["tunnels"][0]["tunnel"], "middle@host down");
    for world in ["live", "sim"] {
        let files = ["", ".switch0", ".device0"].map(|node| trace(world) + node);
        let analysed =
            document(&["trace", &files[0], &files[1], &files[2], "--json", "--opcode", "read"]);
        assert_eq!(analysed["nodes"][2]["parent"], 1, "{world}");
        assert!(analysed.to_string().contains("\"lane\":\"switch\""), "{world}");
    }
}

#[test]
fn cut_cable_loses_the_link_and_its_return_continues_the_workload() {
    if !has_namespaces("a cut cable") {
        return;
    }
    let folder = scratch("live-cut");
    let plan = BRIDGED.replace("host.deadline = \"10s\"\n", "");
    let plan = format!("link.survive = \"0ns\"\n{plan}");
    let plan = plan.replace("b = \"store\"\n", "b = \"store\"\ncuts = [\"100ms..1200ms\"]\n");
    let plan = plan
        .replace("size = \"512KiB\"", "size = \"512KiB\"\nruntime = \"2s\"\ntime_based = \"on\"");
    let plan = written(&folder, &plan);
    let live = document(&["live", &plan, "--local", "--verify", "--json"]);
    let host = &live["hosts"][0];
    assert_eq!(host["mismatches"], 0);
    assert!(host["failures"].as_u64() > Some(0), "{host}");
    // The links are lost after 800 ms.
    assert!(live["latency_ns"]["max"].as_u64() > Some(400_000_000), "{live}");
    // A session that survives costs no command.
    let survives = ["live", &plan, "--local", "--verify", "--json", "--set", "link.survive=10s"];
    let host = &document(&survives)["hosts"][0];
    assert_eq!((&host["failures"], &host["mismatches"]), (&0.into(), &0.into()), "{host}");
    assert!(host["latency_ns"]["max"].as_u64() > Some(400_000_000), "{host}");
    let output = run(&["live", &plan, "--local"]);
    let errors = String::from_utf8(output.stderr).unwrap();
    for part in ["cable switch to store cut", "cable switch to store repaired"] {
        assert!(errors.contains(part), "{errors}");
    }
}

#[test]
fn one_signal_ends_a_host_whose_drive_stays_lost() {
    if !has_namespaces("a drive that stays lost") {
        return;
    }
    let folder = scratch("live-lost");
    let plan = format!("link.survive = \"0ns\"\n{BRIDGED}");
    let plan = plan.replace("iodepth", "runtime = \"100s\"\ntime_based = \"on\"\niodepth");
    let plan = plan.replace("b = \"store\"\n", "b = \"store\"\ncuts = [\"100ms..\"]\n");
    let mut process = node(&["live", &written(&folder, &plan), "--local", "--json"]);
    process.line("cable switch to store cut");
    // The link is lost after 800 ms. Commands to a drive with a link time out after 5 s.
    std::thread::sleep(Duration::from_millis(5_500));
    let since = std::time::Instant::now();
    assert_eq!(process.interrupt().code(), Some(130));
    // A shutdown of the lost drives would time out too.
    assert!(since.elapsed() < Duration::from_secs(5), "{:?}", since.elapsed());
    let live = parsed(&process.stdout.text());
    assert!(live["hosts"][0]["failures"].as_u64() > Some(0), "{live}");
    assert_eq!(live["interrupted"], true);
}

#[test]
fn host_that_fails_keeps_the_results_of_the_other_host() {
    if !has_namespaces("a host that fails") {
        return;
    }
    // The buffers of the second host do not fit, which is found after the start.
    let plan = r#"
transport = "tcp"
drive.preset = "ram"
drive.size = "16MiB"
drives.a = {}
drives.b = {}
nodes.store = {}
bridges.switch = {}
[hosts.one]
drives = ["a"]
workload = { rw = "randread", iodepth = 4, size = "512KiB" }
[hosts.two]
drives = ["b"]
memory = "4MiB"
workload = { rw = "read", bs = "1MiB", iodepth = 8, size = "8MiB" }
"#;
    let folder = scratch("live-failing-host");
    for swapped in [false, true] {
        // The names of the tunnels do not depend on the order of the hosts.
        let plan = match swapped {
            false => plan.to_owned(),
            true => plan.replace("hosts.one", "hosts.zero").replace("hosts.two", "hosts.failing"),
        };
        let output = run(&["live", &written(&folder, &plan), "--local", "--json"]);
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(1), "{errors}");
        let last = errors.lines().last().unwrap();
        assert!(last.starts_with("farlane: host ") && last.contains("too small"), "{errors}");
        let live = parsed(&String::from_utf8(output.stdout).unwrap());
        assert!(live["remarks"].to_string().contains("failed: host "), "{live}");
        let hosts = live["hosts"].as_array().unwrap();
        let commands: Vec<_> = hosts.iter().map(|host| host["commands"].as_u64()).collect();
        assert!(commands.contains(&Some(128)) && commands.contains(&Some(0)), "{live}");
        let frames = |name: &str| {
            let all = live["tunnels"].as_array().unwrap();
            all.iter().find(|one| one["tunnel"] == name)?["frames"].as_u64()
        };
        assert!(frames("a down") > Some(0) && frames("b down").is_none(), "{live}");
    }
}

/// The link to the switch node is lost and comes back, with both drives behind it; the third drive
/// has a link of its own.
#[test]
fn drives_behind_a_lost_switch_node_come_back_together() {
    if !has_namespaces("a cut cable to a switch node") {
        return;
    }
    let folder = scratch("live-switch-cut");
    let plan = "machine = \"farlane\"\nlink.survive = \"0ns\"\n[bridges.br]\n[nodes.far]\n\
                switch = \"middle\"\n[nodes.middle]\n[nodes.near]\n[drives.behind]\nnode = \"far\"\ncount = 2\n\
                [drives.beside]\nnode = \"near\"\n[cables.h]\na = \"host\"\nb = \"br\"\n\
                [cables.m]\na = \"middle\"\nb = \"br\"\ncuts = [\"100ms..1100ms\"]\n\
                [cables.f]\na = \"far\"\nb = \"br\"\n[cables.n]\na = \"near\"\nb = \"br\"\n\
                [workload]\nrw = \"randwrite\"\nnumjobs = 3\nruntime = \"3s\"\n\
                time_based = \"on\"\n";
    let plan = written(&folder, plan);
    let live = document(&["live", &plan, "--local", "--json", "--csv", &text(&folder.join("csv"))]);
    assert!(live["hosts"][0]["failures"].as_u64() >= Some(2), "{}", live["hosts"]);
    let rows = std::fs::read_to_string(folder.join("csv/commands.csv")).unwrap();
    let starts = |drive: &str| -> Vec<u64> {
        let rows = rows.lines().skip(1).map(|row| row.split(',').collect::<Vec<_>>());
        let own = rows.filter(|row| row[5] == drive);
        own.map(|row| row[8].parse().unwrap()).collect()
    };
    let drives = ["0", "1", "2"].map(starts);
    let began = drives.iter().flatten().min().unwrap();
    // The link is lost 800 ms after the cut, and the cable is repaired after 1.1 s.
    let [beside, first, second] = [0, 1, 2].map(|drive: usize| {
        let seconds = |at: &u64| (at - began) as f64 / 1e9;
        assert!(drives[drive].iter().map(seconds).any(|at| at > 2.5), "drive {drive}");
        drives[drive].iter().map(seconds).filter(|at| (0.3..0.8).contains(at)).count()
    });
    assert!(beside > 0 && [first, second] == [0, 0], "{beside}, {first}, {second}");
}

#[test]
fn fault_of_a_drive_fails_the_same_commands_in_both_worlds() {
    if !has_namespaces("faults of a plan") {
        return;
    }
    let folder = scratch("live-faults");
    let plan = "machine = \"farlane\"\n[drive]\nfaults = [\"error=media,lba=16+8\"]\n\
                [workload]\nrw = \"read\"\nsize = \"256KiB\"\nloops = 3\n";
    let plan = written(&folder, plan);
    for transport in ["tcp", "direct"] {
        let set = format!("transport={transport}");
        let csv = text(&folder.join("csv"));
        let _ = std::fs::remove_dir_all(&csv);
        let live = document(&["live", &plan, "--local", "--json", "--csv", &csv, "--set", &set]);
        let sim = document(&["sim", &plan, "--json", "--set", &set]);
        for key in ["commands", "failures", "mismatches"] {
            assert_eq!(live["hosts"][0][key], sim["hosts"][0][key], "{transport} {key}");
        }
        assert_eq!(live["hosts"][0]["failures"], 3, "{transport}: one per loop");
    }
    let rows = std::fs::read_to_string(folder.join("csv/commands.csv")).unwrap();
    assert_eq!(rows.lines().count(), 1 + 3 * 64);
    assert!(rows.lines().nth(1).unwrap().starts_with("live,0,1,,host,0,1,read,"), "{rows}");
}

#[test]
fn killed_run_leaves_nothing_and_the_next_one_starts() {
    if !has_namespaces("a killed run") {
        return;
    }
    let folder = scratch("live-killed");
    let endless = BRIDGED.replace("iodepth", "runtime = \"100s\"\ntime_based = \"on\"\niodepth");
    let plan = written(&folder, &endless);
    let before = interfaces();
    let mut process = node(&["live", &plan, "--local"]);
    let tasks = format!("/proc/{}/task", process.pid().as_raw_nonzero());
    // Main, two device nodes, the host.
    wait_until("the nodes start", || std::fs::read_dir(&tasks).unwrap().count() >= 4);
    process.signal(Signal::KILL);
    process.wait();
    assert_eq!(interfaces(), before);
    let plan = written(&folder, BRIDGED);
    assert_eq!(document(&["live", &plan, "--local", "--json"])["hosts"][0]["failures"], 0);
}

#[test]
fn nodes_of_a_plan_run_one_by_one_without_privileges() {
    let plan = plan_of("live");
    let device = node(&["live", &plan, "--node", "device", "--address", "drive=127.0.0.1:0"]);
    let line = device.line("listening on");
    let address = format!("drive={}", line.rsplit(' ').next().unwrap());
    let host = document(&["live", &plan, "--node", "host", "--address", &address, "--json"]);
    assert_eq!((&host["world"], &host["hosts"][0]["failures"]), (&"live".into(), &0.into()));
    let other = is_wrong_usage(&["live", &plan, "--node", "devise"]);
    assert!(other.contains("--node devise: expected one of device, host"), "{other}");
    let other = is_wrong_usage(&["live", &plan, "--node", "host", "--address", "disk=::1"]);
    assert!(other.contains("expected NAME=ADDRESS, NAME one of drive"), "{other}");
}

#[test]
fn option_without_effect_on_a_node_is_wrong_usage_and_leaves_no_file() {
    let folder = scratch("live-usage");
    let (plan, out) = (plan_of("live"), text(&folder.join("out")));
    let device = ["live", &plan, "--node", "device"];
    for option in [&["--verify"][..], &["--json"], &["--html", &out], &["--csv", &out]] {
        let error = is_wrong_usage(&[&device, option].concat());
        assert_eq!(error, format!("farlane: {} applies only to hosts\n", option[0]));
    }
    let host = ["live", &plan, "--node", "host", "--namespace", "drive:ram=1M"];
    assert!(is_wrong_usage(&host).contains("--namespace applies only to nodes with drives"));
    // The page needs a temporary folder, which is created before the address is checked.
    let mut host = farlane(&["live", &plan, "--node", "host", "--html", &out]);
    host.args(["--address", "disk=::1"]).env("TMPDIR", &folder);
    assert_eq!(host.output().unwrap().status.code(), Some(2));
    assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 0);
}

#[test]
fn plan_for_the_simulator_alone_is_refused_with_the_reason() {
    let folder = scratch("live-refused");
    fails(&["live", &plan_of("tsn-network"), "--local"], &["cannot run live", "it has no host"]);
    fails(&["live", &plan_of("handover"), "--local"], &["moves drives between hosts"]);
    let raw = BRIDGED.replace("\"tcp\"", "\"raw\"");
    let plan = written(&folder, &raw);
    fails(&["live", &plan, "--local"], &["node store has several links: over raw Ethernet"]);
    fails(&["compare", &plan], &["cannot run live"]);
}

#[test]
fn calibration_is_a_file_that_plans_name_and_comparisons_check() {
    if !has_namespaces("a calibration") {
        return;
    }
    let folder = scratch("live-calibration");
    let file = folder.join("machine.toml");
    assert!(run(&["calibrate", &text(&file), "--rounds", "2"]).status.success());
    let calibration = std::fs::read_to_string(&file).unwrap();
    let plan = plan_of("live");
    let named = format!("calibration={}", text(&file));
    let sim = document(&["sim", &plan, "--json", "--set", &named]);
    let free = document(&["sim", &plan, "--json"]);
    assert!(sim["latency_ns"]["p50"].as_u64() > free["latency_ns"]["p50"].as_u64());
    let arguments = ["compare", &plan, "--json", "--set", &named, "--rounds", "2", "--stages"];
    let compared = document(&[&arguments[..], &["--set", "workload.size=1MiB"]].concat());
    let case = &compared["cases"][0];
    let p50 = &case["figures"][0];
    let [live, sim] = ["live", "sim"].map(|world| p50[world].as_f64().unwrap());
    let error = p50["error"]["percent"].as_f64().unwrap();
    assert!(((sim / live - 1.0) * 100.0 - error).abs() < 0.01, "{p50}");
    assert!(p50["error"]["interval"].is_null(), "two rounds have no interval");
    let parts = case["stages"].to_string();
    for part in ["whole command", "stage network", "stage drive"] {
        assert!(parts.contains(part), "{part}: {parts}");
    }
    // The same file from another machine, and a damaged one.
    std::fs::write(&file, calibration.replace("kernel = \"", "kernel = \"other-")).unwrap();
    let one = ["compare", &plan, "--rounds", "1", "--set", &named];
    let errors = String::from_utf8(run(&one).stderr).unwrap();
    assert!(errors.contains("the calibration is of another machine: Linux other-"), "{errors}");
    std::fs::write(&file, &calibration[..calibration.len() - 8]).unwrap();
    fails(&["sim", &plan, "--set", &named], &["machine.toml:"]);
    std::fs::write(&file, format!("{calibration}dance = 1\n")).unwrap();
    fails(&["sim", &plan, "--set", &named], &["machine.toml:", "dance"]);
}

mod long {
    use super::{has_namespaces, plan_of, run, scratch, text};
    use crate::support::program::document;

    /// The cases of docs/guide/compare.md.
    const SWEEPS: [(&str, &[&str]); 4] = [
        ("live", &["workload.iodepth=1,8,32", "host.push=off,all", "drive.mps=256,4096"]),
        ("live", &["workload.rw=randwrite", "workload.iodepth=1,8,32", "host.push=off,all"]),
        ("live", &["workload.bs=128KiB", "workload.iodepth=8", "workload.rw=read,write"]),
        ("switch-node", &["workload.iodepth=1,8,32", "workload.rw=randread,randwrite"]),
    ];

    #[test]
    fn ten_rounds_of_both_worlds_report_the_error_of_each_case() {
        if !has_namespaces("ten rounds of both worlds") {
            return;
        }
        let folder = scratch("live-long");
        let file = text(&folder.join("machine.toml"));
        assert!(run(&["calibrate", &file]).status.success());
        let named = format!("calibration={file}");
        for (name, sweep) in SWEEPS {
            let plan = plan_of(name);
            let mut arguments = vec!["compare", &plan, "--set", &named, "--json"];
            sweep.iter().for_each(|values| arguments.extend(["--sweep", values]));
            let compared = document(&arguments);
            for case in compared["cases"].as_array().unwrap() {
                let p50 = &case["figures"][0];
                assert!(p50["error"]["percent"].is_number(), "{case}");
                assert_eq!(case["failures"], 0, "{case}");
                // The machine's load is unknown, so the figures are shown, not judged.
                eprintln!("{}: {p50}", case["set"]);
            }
        }
    }
}
