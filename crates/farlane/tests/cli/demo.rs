//! `farlane demo` and its document.

use crate::support::program::{json, prints};
use serde_json::Value;

fn document(arguments: &[&str]) -> Value {
    json(&[&["demo", "--json", "--count", "100"], arguments].concat())
}

fn kinds(document: &Value) -> Vec<String> {
    let entries = document["topology"].as_array().expect("topology is a list");
    entries.iter().map(|entry| entry["kind"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn document_has_the_keys_that_scripts_use() {
    let document = document(&[]);
    assert_eq!(document["verified_bytes"], 8 << 20);
    for experiment in ["config_read", "read_4k", "write_4k"] {
        for path in ["direct", "tunnelled"] {
            let summary = &document[experiment][path];
            let number = |name: &str| summary[name].as_u64().unwrap_or_else(|| panic!("{name}"));
            assert!(number("n") >= 100, "{experiment} {path}");
            assert!(number("p50_ns") > 0 && number("p50_ns") <= number("p99_ns"));
            assert!(number("p99_ns") <= number("max_ns"));
        }
    }
    let ns = |path: &str| document["config_read"][path]["p50_ns"].as_i64().unwrap();
    assert_eq!(document["t_tunnel_ns"], (ns("tunnelled") - ns("direct")) / 2);
    assert!(document["round_trips"]["read_4k"].as_f64().unwrap() > 0.0);
    assert_eq!(document["trace"]["orphans"], 0, "the analyser explains every packet");
    assert_eq!(kinds(&document), ["root port", "upstream port", "downstream port", "endpoint"]);
    assert!(!document["segments"]["read_4k"].as_array().unwrap().is_empty());
}

/// Returns the numbers of dependent round trips in the median read and in the median write.
fn waits(document: &Value) -> [usize; 2] {
    ["read_4k", "write_4k"].map(|command| {
        let segments = document["segments"][command].as_array().unwrap();
        let name = |segment: &Value| segment["segment"].as_str().unwrap().to_owned();
        segments.iter().filter(|segment| name(segment).ends_with("a round trip")).count()
    })
}

#[test]
fn pushed_commands_take_one_round_trip() {
    let document = document(&["--mps", "128"]);
    let [read, write] = [&document["transactions"][0], &document["transactions"][1]];
    let begin = ["push", "SQ doorbell"];
    let end = ["CQE write", "MSI-X", "CQ doorbell"];
    assert_eq!(steps(read), [&begin[..], &["data write"], &end[..]].concat());
    assert_eq!(steps(write), [&begin[..], &end[..]].concat());
    assert_eq!(write["answered_from_push"]["data"], 4096);
    assert_eq!(waits(&document), [1, 1]);
}

/// Returns the names of a transaction's steps in order. Consecutive equal names appear once.
fn steps(transaction: &Value) -> Vec<String> {
    let list = transaction["steps"].as_array().expect("steps are a list");
    let mut names: Vec<String> =
        list.iter().map(|step| step["step"].as_str().unwrap().to_owned()).collect();
    names.dedup();
    names
}

#[test]
fn transactions_are_in_protocol_order() {
    let document = document(&["--mps", "128", "--push", "off"]);
    let [read, write] = [&document["transactions"][0], &document["transactions"][1]];
    assert_eq!((&read["command"], &write["command"]), (&"read".into(), &"write".into()));
    let begin = ["SQ doorbell", "SQE fetch", "SQE data"];
    let end = ["CQE write", "MSI-X", "CQ doorbell"];
    assert_eq!(steps(read), [&begin[..], &["data write"], &end[..]].concat());
    assert_eq!(steps(write), [&begin[..], &["data read", "data completion"], &end[..]].concat());
    assert_eq!(waits(&document), [2, 3]);
    for transaction in [read, write] {
        let list = transaction["steps"].as_array().unwrap();
        let times: Vec<u64> = list.iter().map(|step| step["t_ns"].as_u64().unwrap()).collect();
        assert!(times[0] == 0 && times.is_sorted());
        let data: u64 = list
            .iter()
            .filter(|step| matches!(step["step"].as_str(), Some("data write" | "data completion")))
            .map(|step| {
                assert!(step["bytes"].as_u64() <= Some(128), "MPS is honoured");
                step["bytes"].as_u64().unwrap()
            })
            .sum();
        assert_eq!(data, 4096);
        let first = &list[0];
        assert_eq!((&first["direction"], &first["tlp"]), (&"down".into(), &"MWr32".into()));
        assert!(first["tag"].is_null() && list[1]["tag"].is_u64());
    }
}

#[test]
fn two_devices_and_a_cascade_are_found_and_verified() {
    let two = document(&["--devices", "2"]);
    assert_eq!(two["verified_bytes"], 16 << 20);
    let count = |document: &Value, kind: &str| {
        kinds(document).iter().filter(|found| *found == kind).count()
    };
    assert_eq!((count(&two, "endpoint"), count(&two, "upstream port")), (2, 1));
    let cascade = document(&["--cascade"]);
    assert_eq!((count(&cascade, "endpoint"), count(&cascade, "upstream port")), (1, 2));
    assert_eq!(cascade["verified_bytes"], 8 << 20);
}

#[test]
fn text_has_all_sections_and_no_escape_codes() {
    let text = prints(&["demo", "--count", "100"]);
    let sentence = "1 dependent round trip of the network, with --push all";
    for part in ["Topology", "bytes written, read back", "MsgD", "T_tunnel", sentence] {
        assert!(text.contains(part), "no {part} in {text}");
    }
    assert!(!text.contains('\x1b'));
}
