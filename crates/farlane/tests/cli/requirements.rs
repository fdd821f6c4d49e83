//! Requirements of plans: what the program prints, and its exit status.

use crate::support::program::{plan_of, run};
use serde_json::Value;

/// A plan whose stream `t` offers what `interval` says to a gate that is open half of the time.
fn plan(folder: &tempfile::TempDir, interval: &str) -> String {
    let path = folder.path().join("p.toml");
    let text = format!(
        "transport = \"tsn\"\n[host]\ndeadline = \"10ms\"\n[nodes.device]\n[nodes.sink]\n\
         [drive]\nnode = \"device\"\n[bridges.b]\nschedule = \"s\"\n[schedules.s]\n\
         entries = [\"S 80 250us\", \"S 7f 250us\"]\n[workload]\ndd = \"read\"\ncount = 20\n\
         [traffic.t]\nfrom = \"device\"\nto = \"sink\"\ninterval = \"{interval}\"\npriority = 7\n\
         deadline = \"400us\"\nloss = \"0%\"\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_requirement_that_is_missed_has_an_exit_status_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    for (interval, status, first) in
        [("100us", 0, "3 of 3 requirements are met"), ("20us", 3, "2 of 3 requirements are met")]
    {
        let plan = plan(&folder, interval);
        let output = run(&["sim", &plan]);
        assert_eq!(output.status.code(), Some(status), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        assert_eq!(text.lines().nth(2), Some(first), "{text}");
        let failed = text.lines().find(|line| line.ends_with("FAIL"));
        assert_eq!(failed.is_some(), status == 3, "{text}");
        assert!(failed.is_none_or(|line| line.starts_with("  stream t ")), "{text}");
        let error = String::from_utf8(output.stderr).unwrap();
        let overload = error.contains("class 7 is overloaded from b port 2 to sink: t offer");
        assert_eq!(overload, status == 3, "{error}");
        assert!(!error.contains('\x1b'), "red is for terminals: {error}");

        let page = folder.path().join("p.html").display().to_string();
        let output = run(&["sim", &plan, "--json", "--report", &page, "--runs", "2"]);
        assert_eq!(output.status.code(), Some(status));
        let document: Value = serde_json::from_slice(&output.stdout).unwrap();
        for rows in [&document["requirements"], &document["runs"][0]["requirements"]] {
            let late: Vec<_> = rows.as_array().unwrap().iter().map(|row| &row["late"]).collect();
            assert_eq!(late.iter().filter(|late| **late != 0).count(), usize::from(status == 3));
        }
        assert_eq!(document["overloads"].is_array(), status == 3);
        let page = std::fs::read_to_string(page).unwrap();
        assert_eq!(page.contains("class=\"bad\">class 7 is overloaded"), status == 3);
        assert!(page.contains("<b>3 of 3</b>") || status == 3 && page.contains("<b>2 of 3</b>"));
    }
}

/// Sweeps try what may miss a requirement.
#[test]
fn a_sweep_lists_what_misses_its_requirements() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&folder, "100us");
    let output = run(&["sim", &plan, "--json", "--sweep", "traffic.t.interval=100us,20us"]);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    let documents: Value = serde_json::from_slice(&output.stdout).unwrap();
    let holds = |at: usize| documents[at]["requirements"][1]["holds"].as_bool();
    assert_eq!([holds(0), holds(1)], [Some(true), Some(false)]);
}

/// Plans without requirements stay as they were.
#[test]
fn without_requirements_nothing_is_said_of_them() {
    let output = run(&["sim", &plan_of("tcp")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(!String::from_utf8(output.stdout).unwrap().contains("requirement"));
}
