//! `farlane sim --csv --parquet`, and results over several seeds.

use crate::support::parquet;
use crate::support::program::{document, fails, farlane, parsed, plan_of, run, scratch, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

const TABLES: [&str; 5] = ["commands", "stages", "links", "streams", "histograms"];

/// Returns the heads and the rows of a table without quoted cells.
fn csv(folder: &Path, table: &str) -> (Vec<String>, Vec<Vec<String>>) {
    let text = std::fs::read_to_string(folder.join(table).with_extension("csv")).unwrap();
    let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
    (lines.next().expect("heads"), lines.collect())
}

fn numbers(cells: &[String]) -> Vec<u64> {
    cells.iter().map(|cell| cell.parse().unwrap()).collect()
}

/// Two seeds of a sweep with two combinations.
#[test]
fn tables_have_every_row_of_every_run() {
    let folder = scratch("tables");
    let [csvs, parquets] = ["csv", "parquet"].map(|name| folder.join(name));
    let plan = plan_of("industrial-cell");
    let sweep = ["--sweep", "link.rate=1G,10G", "--runs", "2", "--set", "drive.mps=128"];
    let tables = ["--csv", &text(&csvs), "--parquet", &text(&parquets)];
    let all = document(&[&["sim", &plan, "--json"][..], &sweep, &tables].concat());
    let written = std::fs::read_to_string(csvs.join("plan.toml")).unwrap();
    assert!(
        written.ends_with("\n# --set drive.mps=128") && written == all["plan_text"],
        "{written}"
    );
    for table in TABLES {
        let (heads, rows) = csv(&csvs, table);
        assert_eq!(heads[..4], ["world", "run", "seed", "set"], "{table}");
        let (same, about) = parquet::rows(&parquets.join(table).with_extension("parquet"));
        assert!(!rows.is_empty() && rows == same, "{table}");
        assert_eq!(about["farlane.plan"], written);
        // Combinations follow each other, and in each the runs.
        let mut origins: Vec<_> = rows.iter().map(|row| row[..4].join(" ")).collect();
        origins.dedup();
        let wanted =
            ["0 1 link.rate=1G", "1 2 link.rate=1G", "0 1 link.rate=10G", "1 2 link.rate=10G"];
        assert_eq!(origins, wanted.map(|origin| format!("sim {origin}")), "{table}");
    }
    let (heads, commands) = csv(&csvs, "commands");
    assert_eq!(
        heads[4..11].join(" "),
        "host drive queue operation since_ns latency_ns host_software_ns"
    );
    let mut by_run: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for row in &commands {
        let stages = numbers(&row[10..]);
        assert_eq!(stages.iter().sum::<u64>(), numbers(&row[9..10])[0], "{row:?}");
        by_run.entry(row[1..4].join(" ")).or_default().push(stages.iter().sum());
    }
    let combination = &all["combinations"][1];
    for (run, found) in [("0 1", combination), ("1 2", &combination["runs"][0])] {
        let latencies = &by_run[&format!("{run} link.rate=10G")];
        assert_eq!(found["latency_ns"]["n"], latencies.len());
        assert_eq!(found["latency_ns"]["max"], *latencies.iter().max().unwrap());
    }
    // Links and streams are the document's.
    let of_first = |table| {
        csv(&csvs, table)
            .1
            .into_iter()
            .filter(|row: &Vec<_>| row[1..4].join(" ") == "0 1 link.rate=10G")
    };
    let links: Vec<_> =
        of_first("links").map(|row| (row[4].clone(), numbers(&row[5..])[3])).collect();
    let wanted = combination["links"].as_array().unwrap().iter();
    let wanted = wanted
        .map(|link| (link["link"].as_str().unwrap().to_owned(), link["busy_ns"].as_u64().unwrap()));
    assert_eq!(links, wanted.collect::<Vec<_>>());
    let streams: Vec<_> =
        of_first("streams").map(|row| (row[4].clone(), numbers(&row[6..])[8])).collect();
    let wanted = combination["streams"].as_array().unwrap().iter();
    let wanted = wanted.map(|stream| {
        (
            stream["name"].as_str().unwrap().to_owned(),
            stream["listeners"][0]["latency_ns"]["mean"].as_u64().unwrap(),
        )
    });
    assert_eq!(streams, wanted.collect::<Vec<_>>());
    // The merged percentiles are of the histograms of both seeds.
    let (_, histograms) = csv(&csvs, "histograms");
    let mut bins: BTreeMap<u64, u64> = BTreeMap::new();
    for row in histograms.iter().filter(|row| row[3] == "link.rate=10G" && row[4] == "host") {
        let [_, largest, count] = numbers(&row[6..])[..] else { panic!("{row:?}") };
        *bins.entry(largest).or_default() += count;
    }
    let merged = &combination["over_seeds"]["latency_ns"];
    let n: u64 = bins.values().sum();
    assert_eq!(merged["n"], n);
    let mut below = 0;
    let p99 = bins.iter().find(|(_, count)| {
        below += **count;
        below * 100 >= n * 99
    });
    assert_eq!(merged["p99"], *p99.unwrap().0);
    assert!(!csvs.join("parts").exists());
}

/// The estimates of two seeds: with one degree of freedom, the interval is 12.706 standard errors
/// wide to each side.
#[test]
fn several_seeds_have_mean_and_interval() {
    let all = document(&["sim", &plan_of("industrial-cell"), "--json", "--runs", "2"]);
    let over = &all["over_seeds"];
    let number = |value: &Value| value.as_f64().unwrap();
    for (key, values) in [
        ("mean_latency_ns", [&all["latency_ns"]["mean"], &all["runs"][0]["latency_ns"]["mean"]]),
        ("iops", [&all["iops"], &all["runs"][0]["iops"]]),
    ] {
        let [a, b] = values.map(number);
        let estimate = &over[key];
        let ([low, high], mean) =
            ([0, 1].map(|end| number(&estimate["confidence_95"][end])), (a + b) / 2.0);
        let half = 12.706_205 * (a - b).abs() / 2.0;
        for (found, wanted) in
            [(number(&estimate["mean"]), mean), (low, mean - half), (high, mean + half)]
        {
            assert!((found - wanted).abs() < 0.01, "{key}: {estimate}");
        }
    }
    let streams = over["streams"].as_array().unwrap();
    assert!(streams.len() == 2 && number(&streams[0]["sent"]) > number(&all["streams"][0]["sent"]));
}

#[test]
fn folder_with_files_is_an_error_and_a_failed_run_leaves_none() {
    let folder = scratch("tables-refused");
    let tcp = plan_of("tcp");
    std::fs::write(folder.join("x"), "").unwrap();
    let used = text(&folder);
    for option in ["--csv", "--parquet"] {
        fails(&["sim", &tcp, option, &used], &[&used, "is not empty"]);
        fails(&["sim", &tcp, option, &format!("{used}/x")], &["/x"]);
    }
    let new = folder.join("new");
    let output = run(&["sim", &tcp, "--csv", &text(&new), "--set", "link.propagation=26ms"]);
    assert!(output.status.code() == Some(1) && !new.exists());
}

/// A limit of the size of files has the effect of a full disk.
pub fn with_small_files(arguments: &[&str]) -> Command {
    let program = farlane(arguments);
    let mut shell = Command::new("sh");
    shell.args(["-c", "trap '' XFSZ; ulimit -f 8; exec \"$@\"", "sh"]);
    shell.arg(program.get_program()).args(program.get_args());
    shell
}

#[test]
fn full_disk_fails_after_the_results_are_printed() {
    let folder = scratch("tables-full");
    let tcp = plan_of("tcp");
    let sim = ["sim", &tcp, "--json"];
    let output =
        with_small_files(&[&sim[..], &["--csv", &text(&folder)]].concat()).output().unwrap();
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{errors}");
    let last = errors.lines().last().unwrap();
    assert!(
        last.starts_with("farlane: cannot write ") && last.contains("File too large"),
        "{errors}"
    );
    assert_eq!(parsed(&String::from_utf8(output.stdout).unwrap()), document(&sim));
}
