//! After Ctrl-C, simulations and measurements print the finished results.

use crate::support::program::{node, parsed};
use crate::support::wait_until;
use serde_json::Value;

/// Returns the path of a plan without hosts that ends after `runtime`. 1000 s take longer than any
/// test.
fn plan(folder: &tempfile::TempDir, runtime: &str) -> String {
    let path = folder.path().join("p.toml");
    let text = format!(
        "runtime = \"{runtime}\"\n[limits]\ntime = \"2000s\"\n[nodes.a]\n[nodes.b]\n[bridges.x]\n\
         [traffic.t]\nfrom = \"a\"\nto = \"b\"\ninterval = \"20us\"\ndeadline = \"1ms\"\n"
    );
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

/// Runs the program, and sends SIGINT when the program handles the signal. Returns standard output.
fn interrupted(arguments: &[&str]) -> String {
    let mut process = node(arguments);
    let status = format!("/proc/{}/status", process.pid().as_raw_nonzero());
    let caught = || {
        let status = std::fs::read_to_string(&status).unwrap();
        let mask = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).unwrap().trim();
        // The lowest bit is signal 1, so SIGINT (2) is the next bit.
        u64::from_str_radix(mask, 16).unwrap() & 1 << 1 != 0
    };
    wait_until("it handles SIGINT", caught);
    let status = process.interrupt();
    assert_eq!(status.code(), Some(130), "{arguments:?}: {}", process.stderr.text());
    process.stdout.text()
}

fn json(arguments: &[&str]) -> Value {
    let document = parsed(&interrupted(&[arguments, &["--json"]].concat()));
    assert_eq!(document["interrupted"], true, "{document}");
    document
}

const MARK: &str = "Interrupted: this is what was finished.";

#[test]
fn a_simulation_prints_what_happened_until_then() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&folder, "1000s");
    let document = json(&["sim", &plan]);
    assert!(document["streams"][0]["listeners"][0]["arrived"].as_u64() > Some(0), "{document}");
    let page = folder.path().join("p.html").display().to_string();
    let text = interrupted(&["sim", &plan, "--html", &page]);
    assert!(text.contains(MARK) && text.contains("stream, times in us"), "{text}");
    assert!(std::fs::read_to_string(page).unwrap().contains(MARK));
    // Runs with further seeds that were not finished are left out.
    assert_eq!(json(&["sim", &plan, "--runs", "3"])["runs"], Value::Null);
    // Trials that were not finished are left out too.
    assert_eq!(json(&["sim", &plan, "--phases", "3"])["phases"], Value::Null);
}

/// The first combination ends before the signal; the other one never ends.
#[test]
fn a_sweep_prints_the_combinations_that_were_finished() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan(&folder, "1ms");
    let sweep = ["sim", &plan, "--sweep", "runtime=100us,1000s"];
    let document = json(&sweep);
    let combinations = document["combinations"].as_array().unwrap();
    assert_eq!(combinations.len(), 1, "{document}");
    assert_eq!(combinations[0]["set"]["runtime"], "100us");
    let page = folder.path().join("p.html").display().to_string();
    let text = interrupted(&[&sweep[..], &["--html", &page]].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines.len() == 4 && lines[1].contains("100us") && lines[3] == MARK, "{text}");
    assert!(std::fs::read_to_string(page).unwrap().contains(MARK));
    // A combination counts only after all its phases have ended.
    let document = json(&[&sweep[..], &["--phases", "2"]].concat());
    assert!(document["combinations"].as_array().unwrap().len() <= 1, "{document}");
}

/// A thousand rounds take longer than any test.
#[test]
fn a_benchmark_prints_the_rounds_that_were_finished() {
    let few = ["--rounds", "1000", "--quick", "--mps", "256", "--rw", "randread"];
    for path in [&["--path", "direct"][..], &["--aggregation", "per-tlp", "--transport", "tcp"]] {
        let bench = [&["bench", "--iodepth", "1"], &few[..], path].concat();
        assert!(json(&bench)["runs"].is_array());
        let text = interrupted(&bench);
        assert!(text.starts_with("floor ") && text.trim_end().ends_with(MARK), "{text}");
    }
    let efficiency = ["bench", "efficiency", "--rounds", "1000", "--quick"];
    assert!(json(&efficiency)["runs"].is_array());
    let runs = json(&["bench", "congestion"])["runs"].as_array().unwrap().len();
    assert!(runs < 20, "{runs}");
}
