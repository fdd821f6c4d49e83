//! Networks without hosts: output and errors.

use crate::support::program::{document, parsed, plan_of, run};

fn network() -> String {
    plan_of("tsn-network")
}

fn stdout(arguments: &[&str]) -> String {
    String::from_utf8(run(arguments).stdout).unwrap()
}

#[test]
fn text_document_and_page_have_streams_and_no_tables_of_nvme() {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("p.html").display().to_string();
    let text = stdout(&["sim", &network(), "--html", &page]);
    assert!(text.contains("\n6 of 6 requirements are met\n"), "{text}");
    let [streams, links] = ["stream, times in us", "\nlink "].map(|head| text.find(head).unwrap());
    assert!(streams < links, "{text}");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(page.contains(">longest observed: stream picture<"), "{page}");
    for absent in ["latency in us", "NVMe", "fall off the bus", "NaN", "the application's call"] {
        assert!(!text.contains(absent) && !page.contains(absent), "{absent}");
    }
    let [first, second] = [(); 2].map(|()| document(&["sim", &network(), "--json"]));
    assert_eq!(first, second);
    assert_eq!(first["hosts"].as_array().map(Vec::len), Some(0));
    assert!(first["limits"].is_null() && first["segments"].is_null());
    assert_eq!(first["time_ns"], 100_000_000);
}

#[test]
fn documents_of_streams_without_frames_fit_the_schema() {
    let short = parsed(&stdout(&["sim", &network(), "--json", "--set", "runtime=1us"]));
    let listener = &short["streams"][0]["listeners"][0];
    assert!(listener["arrived"] == 0 && listener["along"].is_object(), "{listener}");
    assert!(listener.get("worst").is_none(), "{listener}");
}

#[test]
fn runs_and_sweeps_show_streams() {
    let text = stdout(&["sim", &network(), "--runs", "2", "--set", "runtime=20ms"]);
    let mut rows = text.lines().skip_while(|row| !row.ends_with("digest  requirements")).skip(1);
    assert!(rows.by_ref().take(2).filter(|row| row.contains("met by ")).count() == 2, "{text}");
    assert!(rows.any(|row| row.starts_with("  stream braking") && row.contains("–")), "{text}");
    let sweep = "bridges.front.ports.rear.queue_frames=1,64";
    let output = run(&["sim", &network(), "--set", "runtime=20ms", "--sweep", sweep]);
    assert_eq!(output.status.code(), Some(3), "a queue of one frame loses some: {output:?}");
    let text = String::from_utf8(output.stdout).unwrap();
    let cells =
        |line: usize| text.lines().nth(line).unwrap().split_whitespace().collect::<Vec<_>>();
    assert_eq!(cells(0)[1..5], ["sent", "lost", "longest", "us"], "{text}");
    assert!(cells(1)[2] != "0" && cells(2)[2] == "0", "{text}");
}

#[test]
fn there_are_no_traces_without_hosts() {
    let output = run(&["sim", &network(), "--trace", "x.trace"]);
    assert_eq!(output.status.code(), Some(1));
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(error.contains("the plan has no host") && error.contains("--pcapng"), "{error}");
}

/// Tables of elimination and policing.
#[test]
fn documents_have_what_nodes_did_with_streams() {
    let redundant = document(&["sim", &plan_of("redundant-drive"), "--json"]);
    let rows = redundant["eliminations"].as_array().expect("a list");
    let [stream, node] = ["stream", "node"].map(|key| rows[2][key].as_str().unwrap());
    assert_eq!((rows.len(), stream, node), (6, "nvme", "right"));
    assert_eq!(
        (rows[2]["eliminates"].as_bool(), rows[0]["eliminates"].as_bool()),
        (Some(true), Some(false))
    );
    assert_eq!(redundant["retransmitted"], 0);
    assert!(redundant["policings"].is_null());
    let policed = document(&["sim", &plan_of("babbling-camera"), "--json"]);
    assert_eq!(policed["policings"][0]["blocked"], "red");
    assert_eq!(policed["streams"][0]["listeners"][0]["duplicates"], 0);
}
