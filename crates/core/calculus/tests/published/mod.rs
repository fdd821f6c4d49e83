//! Bounds that other tools publish, in `bounds.json` with their sources.

use farlane_calculus::{Bound, Method, Outputs, bounds, format};
use serde_json::Value;

/// The method and outputs of a key: `FIFO tfa aggregate`, with `backlog` behind it or not.
fn choice(words: &[&str]) -> (Method, Outputs) {
    let method = Method::ALL.into_iter().find(|it| it.name() == words[1]).expect("a method");
    let outputs = match words[2] {
        "aggregate" => Outputs::Aggregate,
        "flow" => Outputs::Flow,
        other => panic!("{other}"),
    };
    (method, outputs)
}

#[test]
fn published_bounds_are_met_exactly() {
    let cases: Value = serde_json::from_str(include_str!("bounds.json")).expect("valid JSON");
    let mut values = 0;
    for case in cases.as_array().expect("an array") {
        for (key, flows) in case["bounds"].as_object().expect("an object") {
            let words: Vec<_> = key.split(' ').collect();
            let (method, outputs) = choice(&words);
            let mut network = case["network"].clone();
            network["network"]["multiplexing"] = words[0].into();
            let file = format::parse(&network.to_string()).expect("a network");
            let found = bounds(&file.network, method, outputs).expect("bounds");
            for (flow, value) in flows.as_object().expect("an object") {
                let index: usize = flow[1..].parse().expect("a number");
                let bound = match words.get(3) {
                    Some(_) => {
                        let path = file.flows[index].paths[0].iter();
                        path.map(|&at| found.servers[at].backlog.clone()).max().expect("a server")
                    }
                    None => found.paths[index].delay.clone(),
                };
                let expected: Bound = value
                    .as_str()
                    .filter(|it| *it != "infinite")
                    .map(|it| it.parse().expect("a fraction"));
                assert_eq!(bound, expected, "{flow}, {key}, {}", case["source"]);
                values += 1;
            }
        }
    }
    assert!(values > 200, "{values} values");
}

/// The demo of Saihu 411841c with the bounds of its `demo_report.md`, in microseconds.
#[test]
fn demo_of_saihu_has_the_bounds_of_its_report() {
    let demo: Value = serde_json::from_str(include_str!("demo.json")).expect("valid JSON");
    let delays = |options: &[&str], method| {
        let mut demo = demo.clone();
        demo["network"]["analysis_option"] = options.into();
        let file = format::parse(&demo.to_string()).expect("a network");
        let found = bounds(&file.network, method, Outputs::Flow).expect("bounds");
        let us = |bound: &Bound| {
            let seconds = bound.as_ref().expect("a bound");
            format!("{:.3}", farlane_calculus::to_f64(&(seconds / &file.time.size)))
        };
        found.paths.iter().map(|path| us(&path.delay)).collect::<Vec<_>>()
    };
    assert_eq!(delays(&[], Method::Tfa), ["100.125", "80.125", "50.125"], "panco TFA");
    assert_eq!(delays(&["IS"], Method::Tfa), ["99.324", "79.322", "49.324"], "xTFA");
    // The report has 80.050, 80.070 and 50.070: panco reads 8 decimals of a second from lp_solve.
    assert_eq!(delays(&[], Method::Plp), ["80.050", "80.075", "50.075"], "panco PLP");
}
