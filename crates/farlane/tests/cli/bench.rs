//! `farlane bench` and its document.

use crate::process::run;
use serde_json::Value;

#[test]
fn the_document_and_the_page_have_every_run() {
    let page = std::path::PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("bench.html");
    let arguments =
        ["bench", "--quick", "--rounds", "1", "--json", "--html", page.to_str().unwrap()];
    let output = run(&arguments);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["schema"], 1);
    crate::json_document::every_key_is_described(&document);
    assert_eq!(document["floor"]["wait"], "spin");
    for figure in ["tcp_pingpong_64b_p50_ns", "tcp_stream_bytes_per_s"] {
        assert!(document["floor"][figure].as_u64().unwrap() > 0, "{figure}");
    }
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 2 * 2 * 8, "two paths, two payload sizes, eight workloads");
    for run in runs {
        assert!(matches!(run["path"].as_str(), Some("direct" | "tunnelled")));
        let number = |name: &str| run[name].as_f64().unwrap_or_else(|| panic!("{name}: {run}"));
        for name in ["mps", "bs", "iodepth", "iops", "bytes_per_s", "p50_ns", "cpu_ns_per_io"] {
            assert!(number(name) > 0.0, "{name}: {run}");
        }
        // Little's law, with the median for the mean: no positive distribution
        // has a median above twice its mean.
        let in_flight = number("iops") * number("p50_ns") / 1e9;
        assert!(in_flight <= number("iodepth") * 2.1, "{run}");
    }
    let html = std::fs::read_to_string(page).unwrap();
    assert_eq!(html.matches("<svg class=\"plot\"").count(), 8);
    assert_eq!(html.matches("<polyline").count(), runs.len());
    assert!(!html.contains("NaN") && !html.contains("src=") && !html.contains("href="));
}
