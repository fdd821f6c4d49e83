//! `farlane tsn`: bounds, schedules, admission, and the page of a plan.

use crate::support::program::{document, fails, is_wrong_usage, parsed, plan_of, run};
use serde_json::Value;

/// Runs the command with `--json`; returns its exit status and document.
fn json(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run(&[arguments, &["--json"]].concat());
    (output.status.code(), parsed(&String::from_utf8(output.stdout).unwrap()))
}

#[test]
fn bounds_have_reasons_where_they_are_missing() {
    let bounds = document(&["tsn", "bound", &plan_of("shapers"), "--json"]);
    assert_eq!(bounds["schema"], 1);
    let command = &bounds["commands"][0];
    assert_eq!((&command["host"], &command["kind"]), (&"host".into(), &"read".into()));
    assert!(command["bound_ns"].as_u64() > Some(919_684), "the longest simulated read");
    let [pictures, setpoints, logs] = [0, 1, 2].map(|at| &bounds["streams"][at]);
    assert!(pictures["bound_ns"].as_u64() > Some(786_266), "the longest simulated picture");
    assert_eq!((&pictures["why"], &setpoints["why"]), (&Value::Null, &Value::Null));
    let hop = &setpoints["listeners"][0]["hops"][1];
    assert!(hop["bound_ns"].as_u64() > Some(0) && hop["backlog_bytes"].as_u64() > Some(0));
    assert_eq!(logs["bound_ns"], Value::Null);
    assert!(logs["why"].as_str().unwrap().contains("logs: the intervals of a Poisson process"));
}

#[test]
fn schedules_are_verified_by_bounds_and_simulations() {
    let plan = plan_of("shapers");
    let schedule = ["tsn", "schedule", &plan, "--time", "4s", "--trials", "2", "--deadline"];
    let (status, found) = json(&[&schedule[..], &["read=400us"]].concat());
    assert_eq!((status, &found["feasible"]), (Some(0), &true.into()), "{found}");
    let command = &found["commands"][0];
    let [before, after] = ["before", "after"].map(|key| command[key]["bound_ns"].as_u64().unwrap());
    let simulated = command["after"]["simulated_max_ns"].as_u64().unwrap();
    assert!(before > 900_000 && after <= 400_000 && simulated <= after, "{command}");
    assert!(!found["schedules"].as_array().unwrap().is_empty());
    let (status, missed) = json(&[&schedule[..], &["read=200us"]].concat());
    assert_eq!((status, &missed["feasible"]), (Some(3), &false.into()));
    assert_eq!(missed["missed"][0]["name"], "read of host");
    fails(&[&schedule[..], &["read=10us"]].concat(), &[&plan, "read=10us is too short", "host"]);
    is_wrong_usage(&[&schedule[..], &["erase=10us"]].concat());
    fails(&["tsn", "schedule", &plan_of("tsn-network"), "--deadline", "read=1ms"], &["no host"]);
}

#[test]
fn a_stream_is_admitted_if_all_deadlines_hold() {
    let plan = plan_of("vehicle");
    let add = |stream: &str| json(&["tsn", "admit", &plan, "--add", stream]);
    let (status, fits) =
        add("name=x,from=camera1-1,to=recorder,interval=1ms,length=500B,priority=7,deadline=1ms");
    assert_eq!((status, &fits["admitted"]), (Some(0), &true.into()), "{fits}");
    assert!(fits["stream"]["bound_ns"].as_u64() > Some(10_000));
    let (status, late) =
        add("name=x,from=camera1-1,to=recorder,interval=1ms,length=500B,priority=7,deadline=10us");
    assert_eq!((status, &late["missed"][0]["name"]), (Some(3), &"stream x to recorder".into()));
    is_wrong_usage(&["tsn", "admit", &plan, "--add", "from=camera1-1"]);
    let unknown = ["tsn", "admit", &plan, "--add", "name=x,from=nobody,to=recorder,interval=1ms"];
    fails(&unknown, &["--add", "nobody"]);
}

#[test]
fn a_page_shows_bounds_simulation_and_measurements() {
    let folder = tempfile::tempdir().unwrap();
    let [html, live] = ["page.html", "live.json"].map(|name| folder.path().join(name));
    let [page, measured] = [&html, &live].map(|path| path.display().to_string());
    std::fs::write(&live, r#"{"hosts":[{"host":"host","latency_ns":{"p50":170000,"max":250000}}]}"#)
        .unwrap();
    let report = ["tsn", "report", &plan_of("tsn"), "--html", &page, "--measured", &measured];
    assert!(run(&report).status.success());
    let text = std::fs::read_to_string(&html).unwrap();
    for part in ["commands of host", "measured max", "250 us", "bound", "The longest command"] {
        assert!(text.contains(part), "{part}");
    }
    std::fs::write(&live, "{}").unwrap();
    fails(&report, &[&measured, "no latencies"]);
}
