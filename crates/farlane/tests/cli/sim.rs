//! `farlane sim`: the plans in `plans`, the document, and sweeps.

use crate::support::program::{
    document, fails, is_refused, page, parsed, plan_of as path, prints, run,
};
use serde_json::Value;

const PLANS: [&str; 10] = [
    "direct",
    "tcp",
    "tsn",
    "zonal-vehicle",
    "shared-vehicle",
    "industrial-cell",
    "scale-out",
    "incast",
    "handover",
    "shapers",
];

/// Checks properties that the documents of all plans have.
fn check(document: &Value) {
    let number = |value: &Value| value.as_u64().expect("a whole number");
    assert!(number(&document["latency_ns"]["n"]) > 0);
    for host in document["hosts"].as_array().unwrap() {
        let conflicts = host["reservation_conflicts"].as_u64().unwrap_or(0);
        assert_eq!((number(&host["mismatches"]), number(&host["failures"])), (0, conflicts));
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
    let runs = all["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2);
    let third = document(&["sim", &path, "--json", "--seed", "3"]);
    assert_eq!(runs[1]["digest"], third["digest"]);
    assert_eq!(runs[1]["latency_ns"], third["latency_ns"]);
    assert_ne!(all["digest"], third["digest"]);
}

#[test]
fn a_sweep_tries_every_combination() {
    let html = concat!(env!("CARGO_TARGET_TMPDIR"), "/sweep.html");
    let plan = path("tcp");
    let sweep = ["--sweep", "link.rate=1G,10G", "--sweep", "drive.mps=128,256,512"];
    let arguments = [&["sim", &plan, "--json", "--html", html][..], &sweep].concat();
    let all = document(&arguments);
    assert_eq!((&all["plan"], &all["interrupted"]), (&plan.as_str().into(), &Value::Null));
    let points = all["combinations"].as_array().unwrap();
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
    let html = page(html);
    // Each combination is a row of marks, which no line joins.
    assert!(html.contains(">link.rate=10G, drive.mps=512<") && !html.contains("<polyline"));
    assert!(html.contains("The plan") && html.contains("\n[workload]\n"), "the page has the plan");
    let titles = |name: &str| html.matches(&format!("<title>{name}: ")).count();
    assert_eq!(["mean", "99th percentile", "maximum"].map(titles), [6; 3]);
    let unknown = "--sweep workload.iodpeth=1: unknown key of [workload]";
    let wrong = ["sim", &plan, "--sweep", "workload.iodpeth=1,2"];
    is_refused(&wrong, &[unknown, "did you mean 'iodepth'?"]);
}

#[test]
fn tables_and_document_have_same_figures() {
    let plan = path("tcp");
    // In a pipe there is no progress.
    let text = prints(&["sim", &plan]);
    let document = document(&["sim", &plan, "--json"]);
    for part in ["host application", "Where the time of a command goes", "TLPs/frame", "total"] {
        assert!(text.contains(part), "no '{part}' in:\n{text}");
    }
    assert!(text.contains(document["digest"].as_str().unwrap()));
}

#[test]
fn invalid_plan_is_a_one_line_error() {
    fails(&["sim", "/nonexistent/plan.toml"], &["/nonexistent/plan.toml: No such file"]);
}

/// If several drives send to one host, the bridge in front of the host merges frames. Bridges save
/// fewer headers than nodes with aggregation.
#[test]
fn bridges_merge_waiting_frames_if_configured() {
    let plan = path("incast");
    let rest = ["--set", "transport=raw", "--sweep", "aggregation=per-tlp,hop,adaptive", "--json"];
    let points = &document(&[&["sim", &plan][..], &rest].concat())["combinations"];
    let rate = |at: usize| {
        check(&points[at]);
        points[at]["bytes_per_s"].as_u64().unwrap()
    };
    assert!(rate(0) < rate(1) && rate(1) < rate(2), "{} {} {}", rate(0), rate(1), rate(2));
    let wanted = "it needs a bridge and transport = \"raw\"";
    is_refused(&["sim", &plan, "--set", "aggregation=hop"], &[wanted]);
}

/// A sweep over `push`; text and page show pushed entries too.
#[test]
fn pushed_entries_are_reported() {
    let plan = path("tcp");
    let writes = ["--set", "workload.dd=write", "--set", "workload.count=5"];
    let sweep = ["--json", "--sweep", "host.push=off,entries,all"];
    let rows = &document(&[&["sim", &plan][..], &writes, &sweep].concat())["combinations"];
    let pushed = |row: usize, key: &str| rows[row]["hosts"][0]["pushed"][key].as_u64();
    assert_eq!(pushed(0, "messages"), None);
    // A push has an entry of 64 bytes and 4096 bytes of data. Without push, the drive reads the
    // data in 16 reads of 256 bytes.
    for (row, bytes, hits, misses) in [(1, 64, 1, 16), (2, 64 + 4096, 17, 0)] {
        check(&rows[row]);
        let counted = ["entries", "bytes", "hits", "misses"].map(|key| pushed(row, key));
        assert_eq!(counted, [1, bytes, hits, misses].map(|each| Some(5 * each)), "row {row}");
    }
    assert!(rows[2]["latency_ns"]["p50"].as_u64() < rows[1]["latency_ns"]["p50"].as_u64());
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("p.html").display().to_string();
    let all = ["--set", "host.push=all", "--html", &report];
    let text = prints(&[&["sim", &plan][..], &writes, &all].concat());
    let pushed = "host: 5 of 5 entries pushed, 20800 bytes with their data; 85 reads of drives answered \
                from push, 0 by the host; 0 bytes pushed for nothing";
    assert!(text.contains(pushed), "{text}");
    assert!(page(&report).contains("pushed with doorbells by"));
    is_refused(
        &["sim", &plan, "--set", "host.push=on"],
        &["--set host.push=on: ", "There are: off, entries, all"],
    );
}

/// A plan whose drives are not found prints the exceeded limit before and after the run.
#[test]
fn a_plan_that_fails_prints_its_limits() {
    let output = run(&["sim", &path("tcp"), "--set", "link.propagation=26ms", "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let stderr = String::from_utf8(output.stderr).unwrap();
    let least = "round trip of a configuration read, at the least: 52 ms against 50 ms: BREAKS";
    // The warnings precede the run. The table follows the failure.
    let mut before = stderr.lines().take_while(|line| line.starts_with("warning: "));
    assert!(before.any(|line| line.contains(least)), "{stderr}");
    let last = stderr.lines().last().unwrap();
    assert!(last.ends_with("0 of 1 drives were found"), "{stderr}");
    let document = parsed(&String::from_utf8(output.stdout).unwrap());
    assert_eq!(document["seed"], 1);
    assert!(document["failed"].as_str().unwrap().contains("0 of 1 drives were found"));
    let limits = document["limits"].as_array().unwrap();
    let limit = |name: &str| limits.iter().find(|limit| limit["limit"] == name).unwrap();
    let root = limit("completion timeout of the root port");
    assert_eq!(root["verdict"], "breaks", "{root}");
    assert!(root["first"].as_str().unwrap().ends_with("never answered"), "{root}");
    assert!(root["worst_ns"].as_u64() >= Some(50_000_000), "{root}");
    let least = limit("round trip of a configuration read, at the least");
    assert_eq!((&least["verdict"], &least["planned"]), (&"breaks".into(), &true.into()));
}

/// Hosts that run one after the other share the time, so the sum of their rates is not the total
/// rate.
#[test]
fn rates_of_several_hosts_are_of_their_common_time() {
    let document = document(&["sim", &path("handover"), "--json"]);
    let hosts = document["hosts"].as_array().unwrap();
    let sum = |key: &str| hosts.iter().map(|host| host[key].as_u64().unwrap()).sum::<u64>();
    let rate = document["bytes_per_s"].as_u64().unwrap();
    // The second host begins 190 ms after the end of the first host.
    assert!(rate < sum("bytes_per_s") / 10, "{rate}");
    assert!(rate > sum("bytes") * 4, "within a quarter of a second");
    assert!(document["iops"].as_u64().unwrap() < sum("iops") / 10);
    let alone = hosts[0]["bytes"].as_u64().unwrap() * 1_000_000_000;
    let span = hosts[0]["span_ns"].as_u64().unwrap();
    assert!(hosts[0]["bytes_per_s"].as_u64().unwrap().abs_diff(alone / span) < 1_000);
}

/// The port to the sink has its own gates and queue length. Four frames arrive while its gate is
/// closed. Frames at the other port do not wait.
#[test]
fn gates_and_depth_of_one_port_can_be_swept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("p.toml");
    let text = "transport = \"tsn\"\n[nodes.device]\n[nodes.sink]\n[drive]\nnode = \"device\"\n\
                [bridges.b]\n[bridges.b.ports.sink]\nschedule = \"s\"\n[schedules.s]\n\
                entries = [\"S 7f 250us\", \"S 80 250us\"]\n[schedules.open]\n\
                entries = [\"S ff 500us\"]\n[workload]\ndd = \"read\"\ncount = 20\n[traffic.t]\n\
                from = \"device\"\nto = \"sink\"\ninterval = \"62.5us\"\npriority = 7\n\
                [traffic.other]\nfrom = \"sink\"\nto = \"device\"\ninterval = \"62.5us\"\n\
                priority = 7\n";
    std::fs::write(&path, text).unwrap();
    let plan = path.display().to_string();
    let sweep = |values: &str| {
        let key = format!("bridges.b.ports.sink.{values}");
        let rows = &document(&["sim", &plan, "--json", "--sweep", &key])["combinations"];
        let stream =
            |row: &Value, at: usize, key: &str| row["streams"][at]["listeners"][0][key].clone();
        let max = |row, at| stream(row, at, "latency_ns")["max"].as_u64().unwrap();
        let rows = rows.as_array().unwrap().iter();
        rows.map(|row| (stream(row, 0, "lost").as_u64().unwrap(), max(row, 0), max(row, 1)))
            .collect::<Vec<_>>()
    };
    let [(few, ..), (enough, ..)] = sweep("queue_frames=2,4")[..] else { panic!("two rows") };
    assert!(few > 0 && enough == 0, "{few} and {enough} lost");
    let [(few, ..), (enough, ..)] = sweep("queue_bytes=3044B,6088B")[..] else { panic!("two") };
    assert!(few > 0 && enough == 0, "two and four frames of 1518 bytes: {few}, {enough} lost");
    let [closed, open] = sweep("schedule=s,open")[..] else { panic!("two rows") };
    assert!(closed.1 > 250_000 && open.1 < 100_000, "{closed:?} {open:?}");
    assert!(closed.2 < 100_000, "no gates on the way back: {closed:?}");
}
