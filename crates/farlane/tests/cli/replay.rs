//! Recorded traces, live and simulated, as the workload of a plan.

use crate::cli::record::plan;
use crate::support::program::{fails, json, page, prints, scratch, succeeds, text};
use serde_json::Value;
use std::path::Path;

fn commands(trace: &Path) -> Vec<Value> {
    let document = json(&["trace", &text(trace), "--json", "--limit", "100000"]);
    let all = document["commands"].as_array().unwrap();
    all.iter().filter(|command| command["queue"] != 0).cloned().collect()
}

#[test]
fn a_live_trace_is_replayed() {
    let folder = scratch("live");
    let trace = folder.join("run.trace");
    succeeds(&["demo", "--count", "100", "--trace", &text(&trace)]);
    let live = commands(&trace);
    assert!(live.len() > 400, "{}", live.len());
    let path = plan(&folder, "p.toml", "[workload]\nreplay = \"run.trace\"\n");
    let first = json(&["sim", &path, "--json"]);
    let host = &first["hosts"][0];
    let recorded = &host["recorded"];
    let n = live.len() as u64;
    assert_eq!((host["commands"].as_u64(), host["latency_ns"]["n"].as_u64()), (Some(n), Some(n)));
    assert_eq!((&recorded["commands"], &recorded["left_out"]), (&n.into(), &0.into()));
    assert_eq!((&host["failures"], &host["mismatches"]), (&0.into(), &0.into()));
    let bytes = |command: &Value| command["blocks"].as_u64().unwrap_or(0) * 512;
    assert_eq!(host["bytes"].as_u64(), Some(live.iter().map(bytes).sum()));
    // The document has the latencies of the recording.
    let spans: Vec<u64> = live.iter().filter_map(|c| c["duration_ns"].as_u64()).collect();
    assert_eq!(recorded["latency_ns"]["n"].as_u64(), Some(spans.len() as u64));
    let max = spans.iter().copied().max();
    assert_eq!(recorded["latency_ns"]["max"].as_u64(), max);
    // The last command starts as late as in the recording.
    let start = |command: &Value| command["start_ns"].as_u64().unwrap();
    let [begin, end] = [live.iter().map(start).min(), live.iter().map(start).max()];
    assert!(host["span_ns"].as_u64() > Some(end.unwrap() - begin.unwrap()));

    let shown = prints(&["sim", &path, "--html", &text(&folder.join("r.html"))]);
    assert!(shown.contains(first["digest"].as_str().unwrap()), "the same twice: {shown}");
    assert!(shown.contains("host recorded") && shown.contains("run.trace, seen at the root port"));
    let page = page(folder.join("r.html"));
    assert!(page.contains("<td class=\"l\">host: recorded</td>"));
    assert!(
        page.contains("The median ") && page.contains("The longest observed "),
        "sequence diagrams"
    );
    // The trace of the device node has the same commands.
    let both = "replay = [\"run.trace\", \"run.trace.device0\"]";
    let path = plan(&folder, "both.toml", &format!("[workload]\n{both}\ntiming = \"asap\"\n"));
    let asap = json(&["sim", &path, "--json"]);
    assert_eq!(asap["hosts"][0]["commands"].as_u64(), Some(n));
    assert_ne!(asap["digest"], first["digest"]);
    let alone = ["sim", &path, "--json", "--set"];
    let device = format!("workload.replay={}.device0", text(&trace));
    let device = json(&[&alone[..], &[&device]].concat());
    assert_eq!(device["hosts"][0]["recorded"]["at"], "device port");
    assert_eq!(device["hosts"][0]["commands"].as_u64(), Some(n));
}

/// A recorded simulation is replayed in the same topology. The numbers of commands are equal, and
/// single commands take as long as in the recording.
#[test]
fn a_simulated_trace_is_replayed() {
    let folder = scratch("simulated");
    let recorded = "[record]\ntrace = \"s.trace\"\n";
    for (name, work) in [
        ("one", "dd = \"read\"\ncount = 30\n"),
        ("many", "rw = \"randrw\"\niodepth = 8\nnumjobs = 2\nsize = \"256KiB\"\n"),
    ] {
        let path = plan(&folder, name, &format!("[workload]\n{work}{recorded}"));
        let first = json(&["sim", &path, "--json"]);
        let path = plan(&folder, "again", "[workload]\nreplay = \"s.trace\"\n");
        let again = json(&["sim", &path, "--json"]);
        let [first, again] = [&first, &again].map(|document| &document["hosts"][0]);
        assert_eq!(first["commands"], again["commands"], "{name}");
        assert_eq!(first["bytes"], again["bytes"]);
        assert_eq!((&again["failures"], &again["mismatches"]), (&0.into(), &0.into()));
        let p50 = |host: &Value, key: &str| host[key]["p50"].as_u64().unwrap();
        if name == "one" {
            // The recording leaves out reads of host memory for the push, the acknowledgement of
            // the head doorbell, and rounding.
            let (then, now) = (p50(&again["recorded"], "latency_ns"), p50(again, "root_port_ns"));
            assert!(then.abs_diff(now) < 1_000, "{then} {now}");
        }
    }
}

#[test]
fn invalid_recording_is_named() {
    let folder = scratch("wrong");
    let made = plan(&folder, "made", "[workload]\ndd = \"read\"\n[record]\ntrace = \"s.trace\"\n");
    json(&["sim", &made, "--json"]);
    let whole = std::fs::read(folder.join("s.trace")).unwrap();
    std::fs::write(folder.join("cut.trace"), &whole[..whole.len() - 100]).unwrap();
    std::fs::write(folder.join("no.trace"), "nothing of the kind").unwrap();
    let reads =
        plan(&folder, "reads", "[workload]\nconfigreads = 3\n[record]\ntrace = \"c.trace\"\n");
    json(&["sim", &reads, "--json"]);
    let case = |workload: &str, wanted: &[&str]| {
        let path = plan(&folder, "p.toml", &format!("[workload]\n{workload}\n"));
        fails(&["sim", &path], wanted);
    };
    case("replay = \"none.trace\"", &["p.toml:2:10: replay: ", "none.trace: No such file"]);
    case("replay = \"no.trace\"", &["p.toml:2:10: ", "no.trace: the file is not a farlane trace"]);
    case("replay = \"cut.trace\"", &["cut.trace: cut off in the middle"]);
    case("replay = \"c.trace\"", &["c.trace: no NVMe command in it"]);
    case("replay = []", &["p.toml:2:10: replay: a trace, or several"]);
    case("replay = \"s.trace\"\nbs = \"4KiB\"", &["p.toml:3:1: 'bs' does not apply to replay"]);
    case("replay = \"s.trace\"\ntiming = \"fast\"", &["p.toml:3:10: unknown timing 'fast'"]);
    let small = "replay = \"s.trace\"\n[drive]\nsize = \"64KiB\"";
    case(small, &["p.toml:2:10: replay: drive 0", "409600 bytes", "has 65536", "drive.size"]);
    let other = "replay = [\"s.trace\", \"c.trace\"]";
    case(other, &["p.toml:2:10: replay: ", "are not of one run"]);
}
