//! `farlane sim`: plans that come with the program, its document, sweeps.

use crate::json_document::every_key_is_described;
use crate::process::{one_line, run};
use serde_json::Value;

const PLANS: [&str; 8] =
    ["direct", "tcp", "tsn", "zonal-vehicle", "industrial-cell", "scale-out", "incast", "handover"];

fn path(name: &str) -> String {
    format!("{}/../../plans/{name}.toml", env!("CARGO_MANIFEST_DIR"))
}

fn document(arguments: &[&str]) -> Value {
    let output = run(arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}

/// What holds in every plan.
fn check(document: &Value) {
    let number = |value: &Value| value.as_u64().expect("a whole number");
    assert_eq!(document["schema"], 1);
    assert!(number(&document["latency_ns"]["n"]) > 0);
    for host in document["hosts"].as_array().unwrap() {
        assert_eq!((number(&host["mismatches"]), number(&host["failures"])), (0, 0));
    }
    for column in ["mean", "median", "p99"] {
        let parts = document["segments"][column].as_array().expect("a list");
        let sum: u64 = parts.iter().map(|part| number(&part["ns"])).sum();
        assert_eq!(sum, number(&document["segments"]["total_ns"][column]), "{column}");
        assert!(sum > 0);
    }
    for link in document["links"].as_array().unwrap() {
        assert!(number(&link["utilisation_ppm"]) <= 1_000_000, "{link}");
    }
}

#[test]
fn every_plan_gives_the_same_twice() {
    for name in PLANS {
        let path = path(name);
        let [first, second] = [(); 2].map(|()| document(&["sim", &path, "--json"]));
        assert_eq!(first, second, "{name}");
        check(&first);
        every_key_is_described(&first);
    }
}

#[test]
fn the_mean_of_one_command_at_a_time_is_the_sum_of_its_segments() {
    let document = document(&["sim", &path("tcp"), "--json"]);
    assert_eq!(document["segments"]["total_ns"]["mean"], document["latency_ns"]["mean"]);
    assert_eq!(document["hosts"][0]["root_port_ns"]["n"], 100);
}

#[test]
fn seeds_differ_and_runs_have_each_their_own() {
    let path = path("industrial-cell");
    let all = document(&["sim", &path, "--json", "--runs", "3"]);
    every_key_is_described(&all);
    let runs = all["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let third = document(&["sim", &path, "--json", "--seed", "3"]);
    assert_eq!(runs[1]["digest"], third["digest"]);
    assert_eq!(runs[1]["latency_ns"], third["latency_ns"]);
    assert_ne!(all["digest"], third["digest"]);
}

#[test]
fn a_sweep_tries_every_combination() {
    let page = concat!(env!("CARGO_TARGET_TMPDIR"), "/sweep.html");
    let plan = path("tcp");
    let sweep = ["--sweep", "link.rate=1G,10G", "--sweep", "drive.mps=128,256,512"];
    let arguments = [&["sim", &plan, "--json", "--html", page][..], &sweep].concat();
    let all = document(&arguments);
    every_key_is_described(&all);
    let points = all.as_array().unwrap();
    let set: Vec<String> = points
        .iter()
        .map(|point| format!("{} {}", point["set"]["link.rate"], point["set"]["drive.mps"]))
        .collect();
    assert_eq!(set[0], "\"1G\" \"128\"");
    assert_eq!(set[5], "\"10G\" \"512\"");
    let mean = |at: usize| points[at]["latency_ns"]["mean"].as_u64().unwrap();
    assert!((0..3).all(|at| mean(at + 3) < mean(at)), "10G is faster");
    let single = document(&["sim", &plan, "--json", "--set", "link.rate=10G"]);
    assert_eq!(points[4]["digest"], single["digest"], "256 is the default");
    let html = std::fs::read_to_string(page).unwrap();
    assert!(html.contains("link.rate") && html.contains("<polyline"));
    let output = run(&["sim", &plan, "--sweep", "workload.iodpeth=1,2"]);
    assert_eq!(output.status.code(), Some(1));
    let line = one_line(&output);
    assert!(line.contains("--sweep workload.iodpeth=1: unknown key of [workload]"), "{line}");
    assert!(line.contains("did you mean 'iodepth'?"), "{line}");
}

#[test]
fn tables_say_what_the_document_says() {
    let plan = path("tcp");
    let output = run(&["sim", &plan]);
    let text = String::from_utf8(output.stdout).unwrap();
    let document = document(&["sim", &plan, "--json"]);
    for part in ["host application", "Where the time of a command goes", "TLPs/frame", "total"] {
        assert!(text.contains(part), "no '{part}' in:\n{text}");
    }
    assert!(text.contains(document["digest"].as_str().unwrap()));
    assert!(output.stderr.is_empty(), "no progress in a pipe");
}

#[test]
fn what_is_no_plan_has_one_line() {
    let output = run(&["sim", "/nonexistent/plan.toml"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(one_line(&output).contains("/nonexistent/plan.toml: No such file"));
}

/// Where several drives send to one host, the bridge before it has something
/// to merge; it keeps more headers than a node that merges itself.
#[test]
fn bridges_merge_what_waits_if_the_plan_says_so() {
    let plan = path("incast");
    let rest = ["--set", "transport=raw", "--sweep", "aggregation=per-tlp,hop,adaptive", "--json"];
    let points = document(&[&["sim", &plan][..], &rest].concat());
    let rate = |at: usize| {
        check(&points[at]);
        points[at]["bytes_per_s"].as_u64().unwrap()
    };
    assert!(rate(0) < rate(1) && rate(1) < rate(2), "{} {} {}", rate(0), rate(1), rate(2));
    let output = run(&["sim", &plan, "--set", "aggregation=hop"]);
    assert_eq!(output.status.code(), Some(1));
    assert!(one_line(&output).contains("it needs a bridge and transport = \"raw\""));
}
