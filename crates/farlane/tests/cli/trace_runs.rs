//! `farlane trace`: TLPs and bytes of commands, queues over time, tables, comparison of two runs.

use crate::cli::record::plan;
use crate::support::parquet;
use crate::support::program::{
    device, fails, is_refused, is_wrong_usage, json, page, prints, scratch, succeeds, text,
};
use serde_json::Value;
use std::path::Path;

/// Simulates a plan with these lines; returns the traces of host and device.
fn simulated(folder: &Path, name: &str, depth: u32, lines: &str) -> [String; 2] {
    let work = format!("[workload]\nrw = \"randread\"\niodepth = {depth}\nsize = \"512KiB\"\n");
    let record = format!("[record]\ntrace = \"{name}.trace\"\n");
    let lines = format!("transport = \"tcp\"\n{lines}{work}{record}");
    prints(&["sim", &plan(folder, &format!("{name}.toml"), &lines)]);
    let host = text(&folder.join(format!("{name}.trace")));
    [host.clone(), format!("{host}.device0")]
}

/// Writes of 64 KiB are larger than a push in front of a doorbell may be.
#[test]
fn a_live_trace_has_the_reasons_why_commands_were_not_pushed() {
    let trace = &text(&scratch("not-pushed").join("run.trace"));
    let (_device, address) = device("ram=1M", &[]);
    let work = ["io", "--connect", &address, "--rw", "write", "--bs", "64k", "--trace", trace];
    succeeds(&[&work[..], &["--destructive", "--yes"]].concat());
    let reasons = &json(&["trace", trace, "--json"])["push"]["not_pushed"];
    let all = serde_json::json!([{"reason": "too much data", "commands": 16}]);
    assert_eq!(*reasons, all);
    let stats = prints(&["trace", trace, "--stats"]);
    assert!(stats.contains("commands not pushed, or in part: 16 too much data"), "{stats}");
}

#[test]
fn queues_and_traffic_add_up() {
    let folder = scratch("queues");
    let [host, device] = simulated(&folder, "run", 4, "");
    let document = json(&["trace", &host, &device, "--json", "--opcode", "read"]);
    let commands = document["commands"].as_array().unwrap();
    assert_eq!(commands.len(), 128);
    for command in commands {
        let steps = command["steps"].as_array().unwrap();
        let down = steps.iter().filter(|step| step["direction"] == "down").count();
        assert_eq!(command["tlps_down"], down);
        assert_eq!(command["tlps_up"], steps.len() - down);
        assert!(command["bytes_up"].as_u64().unwrap() > 4096 + 16 * 12, "{command}");
    }
    let queues = document["queues"].as_array().unwrap();
    let io = queues.iter().find(|queue| queue["queue"] == 1).unwrap();
    let points = io["points"].as_array().unwrap();
    let number = |point: &Value, key: &str| point[key].as_u64().unwrap();
    assert_eq!((number(io, "interval_ns"), &io["depth"]["max"]), (0, &4.into()));
    // At any time, the outstanding commands are the commands that have begun and not ended.
    for point in points {
        let at = number(point, "at_ns");
        let open = commands.iter().filter(|command| {
            let start = number(command, "start_ns");
            start <= at && at < start + number(command, "duration_ns")
        });
        assert_eq!(open.count() as u64, number(point, "outstanding"), "{point}");
    }
    assert_eq!(points.last().unwrap()["outstanding"], 0);
    let stats = prints(&["trace", &host, &device, "--stats"]);
    assert!(stats.contains("TLPs p50 ") && stats.contains("depth p50"), "{stats}");
    let list = prints(&["trace", &host, "--list", "--opcode", "read", "--limit", "1"]);
    assert!(list.lines().any(|line| line.ends_with("TLPs   bytes")), "{list}");
    table(&folder, &[&host, &device], commands);
    let html = text(&folder.join("run.html"));
    prints(&["trace", &host, &device, "--html", &html, "--limit", "0"]);
    let report = page(&html);
    for part in ["Commands outstanding", "Rings of queue 1 of 03:00.0", "TLPs: median / p99"] {
        assert!(report.contains(part), "no {part}");
    }
}

/// Checks that CSV on standard output and Parquet have the figures of the document.
fn table(folder: &Path, files: &[&str], commands: &[Value]) {
    let file = folder.join("run.parquet");
    let more = ["--csv", "-", "--opcode", "read", "--parquet", &text(&file)];
    let out = prints(&[&["trace"], files, &more].concat());
    let rows: Vec<Vec<&str>> = out.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), commands.len() + 1);
    let column = |name: &str| rows[0].iter().position(|column| *column == name).unwrap();
    let (cells, about) = parquet::rows(&file);
    assert_eq!(cells, rows[1..], "empty cells too");
    assert_eq!((&*about["unit.end_ns"], &*about["unit.bytes_up"]), ("ns", "B"));
    for (row, command) in rows[1..].iter().zip(commands) {
        for key in ["number", "duration_ns", "tlps_down", "bytes_up", "cid"] {
            assert_eq!(row[column(key)], command[key].to_string(), "{key}");
        }
        let [drive, opcode, name] = ["drive", "opcode", "command"].map(|key| row[column(key)]);
        assert_eq!((drive, opcode, name), (command["device"].as_str().unwrap(), "0x02", "Read"));
        let [status, bytes] = ["status", "data_bytes"].map(|key| row[column(key)]);
        assert_eq!((status, bytes, row[column("segment_data_sent_ns")]), ("0", "4096", ""));
        let segments: u64 = rows[0]
            .iter()
            .zip(row)
            .filter(|(name, _)| name.starts_with("segment_"))
            .filter_map(|(_, cell)| cell.parse::<u64>().ok())
            .sum();
        assert_eq!(Some(segments), command["duration_ns"].as_u64());
    }
    is_refused(&["trace", files[0], "--csv", "-", "--json"], &["cannot share standard output"]);
    for option in ["--csv", "--parquet"] {
        fails(&["trace", files[0], option, "/nowhere/x"], &["cannot write /nowhere/x"]);
    }
}

#[test]
fn two_runs_are_compared() {
    let folder = scratch("against");
    let base = simulated(&folder, "base", 1, "seed = 1\n");
    let again = simulated(&folder, "again", 1, "seed = 2\n");
    let slower = simulated(&folder, "slower", 1, "seed = 2\nhost.interrupt = \"50us\"\n");
    let against = |a: &[String; 2], b: &[String], more: &[&str]| -> Vec<String> {
        let words = ["trace", &a[0], &a[1], "--against"].map(str::to_owned);
        words
            .into_iter()
            .chain(b.iter().cloned())
            .chain(more.iter().map(|w| (*w).to_owned()))
            .collect()
    };
    let joined = |words: &[String]| words.iter().map(String::as_str).collect::<Vec<_>>().join("\n");
    let shown = |words: Vec<String>| prints(&joined(&words).split('\n').collect::<Vec<_>>());
    let same = shown(against(&again, &base, &[]));
    assert!(same.starts_with("Nothing differs significantly in "), "{same}");
    let text = shown(against(&slower, &base, &[]));
    let first = text.lines().next().unwrap();
    assert!(
        first.starts_with("Read 4 KiB takes ") && first.contains(" us longer in A than in B"),
        "{text}"
    );
    assert!(
        first.contains("most of all in 'MSI-X to head doorbell: host software': +9.870 us"),
        "{text}"
    );
    let words = against(&slower, &base[..1], &["--json", "--opcode", "read"]);
    let document = json(&joined(&words).split('\n').collect::<Vec<_>>());
    assert_eq!((&document["places"], &document["a"]["selected"]), (&false.into(), &128.into()));
    let measures = document["types"][0]["measures"].as_array().unwrap();
    let head = measures.iter().find(|one| one["name"] == "MSI-X to head doorbell: host software");
    let head = head.unwrap();
    assert_eq!((&head["difference"], &head["significant"]), (&9870.into(), &true.into()));
    assert!(measures.iter().all(|one| one["measure"] != "stage"));
    let html = crate::support::program::text(&folder.join("runs.html"));
    shown(against(&slower, &base, &["--html", &html]));
    let report = page(&html);
    for part in ["two runs compared", "What it waits for", "Where the time passes", "Too few"] {
        assert!(report.contains(part), "no {part}");
    }
    let parts = ["of a host node", "of a device node", "traces of the same nodes"];
    fails(&["trace", &base[0], "--against", &again[1]], &parts);
    is_wrong_usage(&["trace", &base[0], "--against"]);
    is_wrong_usage(&["trace", &base[0], "--list", "--against", &again[0]]);
}

#[test]
fn comparison_of_simulation_and_live_run_lists_differences() {
    let folder = scratch("against-live");
    let live = text(&folder.join("live.trace"));
    succeeds(&["demo", "--count", "100", "--trace", &live]);
    let device = format!("{live}.device0");
    let compared = |push: &str| {
        let lines = format!("host.push = \"{push}\"\n");
        let [host, drive] = simulated(&folder, push, 1, &lines);
        json(&["trace", &host, &drive, "--json", "--against", &live, &device])["unlike"].clone()
    };
    let kinds = |unlike: Value| -> Vec<String> {
        let sentences = unlike.as_array().unwrap().iter().map(|one| one.as_str().unwrap());
        sentences.map(|one| one.split(':').next().unwrap().to_owned()).collect()
    };
    let simulated = "A is a simulation and B a recording of live nodes";
    let in_drive = "Only B has times of the controller and the media";
    assert_eq!(kinds(compared("all")), [simulated, in_drive]);
    assert_eq!(kinds(compared("off")), [simulated, "Only B pushes", in_drive]);
}
