//! Compares every case with its figures.

use super::*;
use crate::described::every_key_is_described;
use crate::unchanged;

const DOCUMENT: &str = include_str!("../../../../../docs/experiments/tsn-ports.md");

#[test]
fn every_case_is_as_expected() {
    let published = published();
    let mut failed = Vec::new();
    for part in Part::ALL {
        let cases = simulate(&published, part, &unchanged).expect("it runs");
        let checks = cases.iter().flat_map(|case| case.checks.iter());
        failed.extend(checks.filter(|check| !check.holds).cloned());
        for section in sections(&cases) {
            let text = section.text();
            let text = text.trim_end();
            assert!(DOCUMENT.contains(text), "docs/experiments/tsn-ports.md has not\n{text}");
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
}

/// The published shapers are wider than the traffic, so strict priority has the same result.
#[test]
fn strict_priority_alone_gives_the_table_of_the_medium_network() {
    let lab = CaseLab::new(&unchanged, "medium");
    let plain = medium::unshaped(lab).expect("it runs");
    assert_eq!(medium::credit_based(lab).expect("it runs"), plain);
    assert_eq!(medium::asynchronous(lab).expect("it runs"), plain);
}

#[test]
fn every_case_of_the_data_is_simulated() {
    let published = published();
    let data: Vec<&str> = published.cases.iter().map(|case| &case.name[..]).collect();
    let cases: Vec<&str> = CASES.iter().map(|(_, name, _)| *name).collect();
    assert_eq!(data, cases);
}

#[test]
fn keys_of_the_document_are_described() {
    let check = Check {
        case: String::new(),
        figure: String::new(),
        unit: String::new(),
        basis: Basis::Hand,
        rule: Rule::Equal,
        expected: 1.0,
        percent: 0.0,
        simulated: 1.0,
        holds: true,
    };
    every_key_is_described(&serde_json::json!({ "checks": [check] }));
}

#[test]
fn rules_compare() {
    let figure = |rule, percent| Figure {
        name: String::new(),
        unit: String::new(),
        basis: Basis::Hand,
        value: 100.0,
        rule,
        percent,
        how: String::new(),
    };
    let holds = |rule, percent| {
        [94.0, 95.0, 100.0, 105.0, 106.0].map(|simulated| figure(rule, percent).holds(simulated))
    };
    assert_eq!(holds(Rule::Equal, 0.0), [false, false, true, false, false]);
    assert_eq!(holds(Rule::Equal, 5.0), [false, true, true, true, false]);
    assert_eq!(holds(Rule::AtMost, 5.0), [true, true, true, true, false]);
    assert_eq!(holds(Rule::AtLeast, 0.0), [false, false, true, true, true]);
}
