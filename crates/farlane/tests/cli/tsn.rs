//! `farlane tsn`: bounds, schedules, admission, the page of a plan, and files for devices.

use crate::support::program::{document, fails, is_wrong_usage, parsed, plan_of, run};
use serde_json::Value;
use std::path::Path;

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
    let schedule = ["tsn", "schedule", &plan, "--trials", "2", "--deadline"];
    let folder = tempfile::tempdir().unwrap();
    let scheduled = folder.path().join("scheduled.toml").display().to_string();
    let (status, found) =
        json(&[&schedule[..], &["read=400us", "--time", "10m", "--output", &scheduled]].concat());
    assert_eq!((status, &found["feasible"]), (Some(0), &true.into()), "{found}");
    let command = &found["commands"][0];
    let [before, after] = ["before", "after"].map(|key| command[key]["bound_ns"].as_u64().unwrap());
    let simulated = command["after"]["simulated_max_ns"].as_u64().unwrap();
    assert!(before > 900_000 && after <= 400_000 && simulated <= after, "{command}");
    assert!(!found["schedules"].as_array().unwrap().is_empty());
    let bounds = usable(&scheduled, folder.path());
    assert_eq!(bounds["commands"][0]["bound_ns"], after);
    let (status, missed) = json(&[&schedule[..], &["read=200us", "--time", "1s"]].concat());
    assert_eq!((status, &missed["feasible"]), (Some(3), &false.into()));
    assert_eq!(missed["missed"][0]["name"], "read of host");
    let one_entry = ["read=260us", "--time", "10m", "--entries", "1"];
    let (_, missed) = json(&[&schedule[..], &one_entry].concat());
    let mut help = missed["help"].as_array().unwrap().iter();
    let help = help.find(|help| help["what"] == "preemption").unwrap();
    assert_eq!(help["set"][0], "link.express=[3, 7]");
    let short = [&schedule[..], &["read=160us"]].concat();
    fails(&short, &[&plan, "read=160us is too short", "host", "--set 'link.rate=10G'"]);
    is_wrong_usage(&[&schedule[..], &["erase=10us"]].concat());
    fails(&["tsn", "schedule", &plan_of("tsn-network"), "--deadline", "read=1ms"], &["no host"]);
}

/// Simulates, bounds and exports a scheduled plan. Returns the bounds.
fn usable(plan: &str, folder: &Path) -> Value {
    let simulated = document(&["sim", plan, "--json"]);
    for stream in simulated["streams"].as_array().unwrap() {
        assert!(stream["listeners"][0]["arrived"].as_u64() > Some(0), "{stream}");
    }
    let devices = folder.join("devices");
    assert!(run(&["tsn", "export", plan, "--output", devices.to_str().unwrap()]).status.success());
    assert!(std::fs::read_to_string(devices.join("front.sh")).unwrap().contains("taprio"));
    document(&["tsn", "bound", plan, "--json"])
}

#[test]
fn periodic_streams_have_windows_in_a_plan_for_all_commands() {
    let folder = tempfile::tempdir().unwrap();
    let scheduled = folder.path().join("scheduled.toml").display().to_string();
    let plan = plan_of("tsn-network");
    let (status, report) = json(&["tsn", "schedule", &plan, "--output", &scheduled]);
    assert_eq!((status, &report["feasible"]), (Some(0), &true.into()), "{report}");
    let streams = report["streams"].as_array().unwrap();
    assert_eq!(streams.len(), 3);
    for stream in streams {
        assert_eq!(stream["simulated_max_ns"], stream["latency_ns"], "{stream}");
        assert!(stream["latency_ns"].as_u64() <= stream["deadline_ns"].as_u64(), "{stream}");
    }
    usable(&scheduled, folder.path());
    is_wrong_usage(&["tsn", "schedule", &plan, "--clock-error", "1us", "--deadline", "read=1ms"]);
}

/// A stream through the bridge `b`: sender, bytes, interval and deadline.
fn through_bridge(name: &str, [from, length, interval, deadline]: [&str; 4]) -> String {
    format!(
        "[traffic.{name}]\nfrom = \"{from}\"\nto = \"z\"\nlength = \"{length}\"\n\
         interval = \"{interval}\"\ndeadline = \"{deadline}\"\npriority = 7\n"
    )
}

#[test]
fn impossible_periodic_streams_are_refused_with_stream_and_port() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.toml");
    let file = plan.display().to_string();
    let network = "runtime = \"1ms\"\n[link]\nrate = \"100M\"\nvlan = 0\n[bridges.b]\n\
                   [nodes.x]\n[nodes.y]\n[nodes.z]\n[cables.x]\na = \"x\"\nb = \"b\"\n\
                   [cables.y]\na = \"y\"\nb = \"b\"\n[cables.z]\na = \"b\"\nb = \"z\"\n";
    for (one, other, parts) in [
        (["x", "64B", "1001us", "1ms"], ["y", "64B", "1009us", "1ms"], "repeat only after"),
        (["x", "1000B", "1ms", "90us"], ["y", "64B", "1ms", "1ms"], "90us is too short"),
        (["x", "1000B", "100us", "1ms"], ["y", "1000B", "100us", "1ms"], "overloaded"),
    ] {
        let streams = through_bridge("one", one) + &through_bridge("two", other);
        std::fs::write(&plan, format!("{network}{streams}")).unwrap();
        fails(&["tsn", "schedule", &file, "--time", "10m"], &[&file, parts, "stream", "b port 2"]);
    }
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
    let both = "to=recorder,to=computer,interval=1ms,length=500B,priority=7,deadline=1ms";
    let (status, fits) = add(&format!("name=x,from=camera1-1,{both}"));
    assert_eq!((status, &fits["stream"]["listeners"][1]["name"]), (Some(0), &"computer".into()));
    is_wrong_usage(&["tsn", "admit", &plan, "--add", "from=camera1-1"]);
    let unknown = ["tsn", "admit", &plan, "--add", "name=x,from=nobody,to=recorder,interval=1ms"];
    fails(&unknown, &["--add", "nobody"]);
}

#[test]
fn a_page_shows_bounds_simulation_and_measurements() {
    let folder = tempfile::tempdir().unwrap();
    let [html, live] = ["page.html", "live.json"].map(|name| folder.path().join(name));
    let [page, measured] = [&html, &live].map(|path| path.display().to_string());
    std::fs::write(
        &live,
        r#"{"hosts":[{"host":"host","latency_ns":{"p50":170000,"max":250000}}]}"#,
    )
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

#[test]
fn exported_files_are_read_back() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str| folder.path().join(name).display().to_string();
    let devices = file("devices");
    let export = run(&["tsn", "export", &plan_of("tsn-network"), "--output", &devices]);
    let notes = String::from_utf8(export.stderr).unwrap();
    assert!(export.status.success(), "{notes}");
    assert!(notes.contains("front.sh: not set: port to rear: shaper ats of class 4"), "{notes}");
    let script = std::fs::read_to_string(file("devices/front.sh")).unwrap();
    assert!(script.contains("sched-entry H 80 50000 sched-entry R ff 950000"), "{script}");
    let import = |name: &str| run(&["tsn", "import", &file(name), "--bridge", "front"]);
    let part = String::from_utf8(import("devices/front.json").stdout).unwrap();
    for line in ["schedule = \"front-rear\"", "entries = [\"H 80 50us\", \"R ff 950us\"]"] {
        assert!(part.lines().any(|own| own == line), "{part}");
    }
    std::fs::write(file("other.json"), "{\"name\": 1}").unwrap();
    let mistake = ["tsn", "import", &file("other.json"), "--bridge", "front"];
    fails(&mistake, &["other.json: expected the output of tc"]);
    let direct = ["tsn", "export", &plan_of("direct"), "--output", &devices];
    fails(&direct, &["with transport direct there is no network"]);
}
