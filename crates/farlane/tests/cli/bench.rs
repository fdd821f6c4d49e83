//! `farlane bench` and its document.

use crate::support::program::{
    document, is_refused, is_wrong_usage, page, parsed, run, scratch, succeeds, text,
};
use serde_json::Value;

#[test]
fn congestion_is_reproducible_and_within_limits() {
    let first = document(&["bench", "congestion", "--json"]);
    let runs = first["runs"].as_array().unwrap();
    let selected = |scenario: &str, congestion: &str| -> Vec<&Value> {
        let matches = |run: &&Value| run["scenario"] == scenario && run["congestion"] == congestion;
        runs.iter().filter(matches).collect()
    };
    let fair = selected("fairness", "swift=25us");
    assert_eq!(fair.len(), 6);
    assert!(fair.iter().all(|run| run["jain"].as_f64().unwrap() >= 0.95));
    let steps = selected("step", "swift=25us");
    assert!(steps.iter().all(|run| run["back_us"].as_f64().unwrap() <= 200.0));
    let loss = selected("loss", "swift=25us");
    let rate = |run: &Value| run["bits_per_s"].as_f64().unwrap();
    assert!(rate(loss[1]) >= 0.9 * rate(loss[0]), "0.1 % of loss");
    assert!((rate(selected("rate", "rate=5G")[0]) / 5e9 - 1.0).abs() < 0.01);
    assert_eq!(selected("nvme", "swift=40us").len(), 2);
    // Another run prints the same rows, because virtual time is equal on any machine.
    let table = succeeds(&["bench", "congestion"]);
    assert_eq!(table.lines().count(), runs.len() + 2);
    for (run, row) in runs.iter().zip(table.lines().skip(2)) {
        let wait = format!(" {:.1} us |", run["wait_max_us"].as_f64().unwrap());
        let figures = [format!(" {:.2} |", rate(run) / 1e9), wait];
        assert!(figures.iter().all(|figure| row.contains(figure)), "{run}, and again: {row}");
    }
    let page = include_str!("../../../../docs/experiments/congestion.md");
    assert!(page.contains(&table), "the page has another table than is printed:\n{table}");
}

#[test]
fn the_document_and_the_page_have_every_run() {
    let path = &text(&scratch("bench").join("page.html"));
    let document = document(&["bench", "--quick", "--rounds", "1", "--json", "--html", path]);
    assert_eq!(document["floor"]["wait"], "spin");
    for figure in
        ["tcp_pingpong_64b_p50_ns", "tcp_stream_bytes_per_s", "tcp_stream_copied_bytes_per_s"]
    {
        assert!(document["floor"][figure].as_u64().unwrap() > 0, "{figure}");
    }
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3 * 2 * 8, "three ways, two payload sizes, eight workloads");
    for push in ["off", "all"] {
        let pushed = |run: &&Value| run["path"] == "tunnelled" && run["push"] == push;
        assert_eq!(runs.iter().filter(pushed).count(), 2 * 8, "{push}");
    }
    for run in runs {
        assert!(matches!(run["path"].as_str(), Some("direct" | "tunnelled")));
        let number = |name: &str| run[name].as_f64().unwrap_or_else(|| panic!("{name}: {run}"));
        for name in ["mps", "bs", "iodepth", "iops", "bytes_per_s", "p50_ns", "cpu_ns_per_io"] {
            assert!(number(name) > 0.0, "{name}: {run}");
        }
        // Little's law, with the median instead of the mean: the median of a positive distribution
        // is at most twice its mean.
        let in_flight = number("iops") * number("p50_ns") / 1e9;
        assert!(in_flight <= number("iodepth") * 2.1, "{run}");
    }
    let html = page(path);
    assert_eq!(html.matches("<svg class=\"plot\"").count(), 8);
    assert_eq!(html.matches("<polyline").count(), runs.len());
}

/// Returns the number of combinations of link and transport that this machine permits.
fn ways() -> usize {
    // Raw Ethernet and limited cables need network namespaces.
    if live::net::Namespace::new().is_ok() { 4 } else { 1 }
}

fn ablation(more: &[&str]) -> Value {
    let arguments = ["bench", "--aggregation", "per-tlp,adaptive", "--quick", "--rounds", "1"];
    let output = run(&[&arguments, more, &["--json"]].concat());
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{log}");
    assert_eq!(log.contains("not measured"), ways() == 1, "{log}");
    parsed(&String::from_utf8(output.stdout).unwrap())
}

#[test]
fn policies_are_compared_on_every_way() {
    let path = &text(&scratch("ablation").join("page.html"));
    let document = ablation(&["--iodepth", "8", "--html", path]);
    let runs = document["runs"].as_array().unwrap();
    assert_eq!(runs.len(), ways() * 2 * 2, "policies, read and write");
    let links = ["loopback", "veth 100 Mb/s"];
    for run in runs {
        assert!(links.contains(&run["link"].as_str().unwrap()), "{run}");
        assert!(["tcp", "raw"].contains(&run["transport"].as_str().unwrap()), "{run}");
        assert!(run["bytes_per_s"].as_f64().unwrap() > 0.0 && run["mps"] == 128, "{run}");
        let shared = run["tlps_per_frame"].as_f64().unwrap();
        assert_eq!(shared == 1.0, run["aggregation"] == "per-tlp", "{run}");
        // An Ethernet frame has room for ten writes, or for eleven completions.
        assert!(run["transport"] == "tcp" || shared < 12.0, "{run}");
    }
    let gains = document["gains"].as_array().unwrap();
    assert_eq!(gains.len(), ways() * 2, "adaptive, read and write");
    for gain in gains {
        let counted = gain["link"] != "loopback";
        assert_eq!(gain["most_percent"].is_number(), counted, "{gain}");
        assert_eq!(gain["reached_percent"].is_number(), counted, "{gain}");
    }
    let checked = document["link_check"].as_array().unwrap();
    assert_eq!(checked.len(), if ways() > 1 { 4 } else { 0 });
    let html = page(path);
    assert_eq!(html.matches("<svg class=\"plot\"").count(), ways() * 2);
    assert_eq!(html.matches("<polyline").count(), runs.len());
}

#[test]
fn latencies_of_policies_are_compared_in_pairs() {
    let document = ablation(&["--transport", "tcp", "--rw", "randread"]);
    let pairs = document["latencies"].as_array().unwrap();
    assert_eq!(pairs.len(), if ways() > 1 { 2 } else { 1 }, "a pair of arms a link");
    for pair in pairs {
        assert_eq!(pair["pairs"], 20);
        let number = |name: &str| pair[name].as_f64().unwrap_or_else(|| panic!("{name}: {pair}"));
        assert!(number("p50_per_tlp_ns") > 0.0 && number("p50_adaptive_ns") > 0.0);
        let spread = ["change_percent_q1", "change_percent", "change_percent_q3"].map(number);
        assert!(spread.is_sorted(), "{pair}");
    }
}

#[test]
fn workloads_without_match_are_wrong_usage() {
    for (more, says) in [
        (&["--mps", "128,256"][..], "expected one size"),
        (&["--mps", "2048"][..], "up to 1024"),
        (&["--rw", "read", "--iodepth", "1"][..], "no workload matches"),
    ] {
        is_refused(&[&["bench", "--aggregation", "adaptive"], more].concat(), &[says]);
    }
    for wrong in [&["--aggregation", "never"][..], &["--transport", "raw"][..]] {
        is_wrong_usage(&[&["bench"], wrong].concat());
    }
}

#[test]
fn efficiency_compares_both_paths_in_one_run() {
    let path = &text(&scratch("efficiency").join("page.html"));
    let short = ["bench", "efficiency", "--rounds", "3", "--runtime", "20ms", "--iodepth", "8"];
    let document = document(&[&short[..], &["--json", "--html", path]].concat());
    let runs = document["runs"].as_array().unwrap();
    let mixes: Vec<_> = runs.iter().map(|run| (run["rw"].as_str(), &run["rwmixread"])).collect();
    let names = ["randread", "randrw", "randwrite", "read", "rw", "write"];
    assert!(mixes.iter().map(|(rw, _)| rw.unwrap()).eq(names), "{mixes:?}");
    assert!(mixes.iter().map(|(_, reads)| reads.as_u64().unwrap()).eq([100, 70, 0, 100, 70, 0]));
    for run in runs {
        assert!(run["bs"] == 4096 && run["iodepth"] == 8 && run["rounds"] == 3, "{run}");
        for path in ["direct", "tunnelled"] {
            let figures = run[path].as_object().unwrap();
            assert!(figures.values().all(is_spread), "{path}: {run}");
            let median = |name: &str| figures[name]["median"].as_f64().unwrap();
            let positive = ["iops", "host_cpu_ns_per_io", "cpu_ns_per_io", "mean_ns", "p99_ns"];
            assert!(positive.into_iter().all(|name| median(name) > 0.0), "{path}: {run}");
            assert!(median("consistency") >= 1.0, "{path}: {run}");
            // Little's law, with room for rounding.
            assert!(median("iops") * median("mean_ns") / 1e9 <= 8.1, "{path}: {run}");
        }
        assert!(run["tunnelled"]["device_cpu_ns_per_io"]["min"].as_f64().unwrap() > 0.0, "{run}");
        let ratio = run["ratio"].as_object().unwrap();
        assert!(ratio.values().all(|ratio| is_spread(ratio) && ratio["min"] != 0.0), "{run}");
    }
    let html = page(path);
    assert_eq!(html.matches("<svg class=\"plot\"").count(), 5 + runs.len());
    assert_eq!(html.matches("<polyline").count(), 2 * runs.len());
    let table = succeeds(&[&short[..], &["--push", "off", "--mps", "256", "--spin", "0"]].concat());
    assert!(table.starts_with("MPS 256, push off, spin 0 ns; medians of 3 rounds"), "{table}");
    for row in ["direct", "tunnelled", "ratio"] {
        let is_row =
            |line: &&str| line.contains("4 KiB QD8 ") && line.contains(&format!(" {row} "));
        assert_eq!(table.lines().filter(is_row).count(), 6, "{row}: {table}");
    }
    is_wrong_usage(&["bench", "efficiency", "--iodepth", "33"]);
}

/// Returns whether a figure has its minimum, median and maximum in order.
fn is_spread(figure: &Value) -> bool {
    ["min", "median", "max"].map(|name| figure[name].as_f64().unwrap()).is_sorted()
}
