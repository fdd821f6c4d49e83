//! Every case against its figures.

use super::*;
use crate::described::every_key_is_described;

#[test]
fn every_case_is_as_expected() {
    let published = published();
    let mut failed = Vec::new();
    for part in Part::ALL {
        for case in simulate(&published, part).expect("it runs") {
            failed.extend(case.checks.into_iter().filter(|check| !check.holds));
        }
    }
    assert!(failed.is_empty(), "{failed:#?}");
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
    let held = |rule, percent| {
        [94.0, 95.0, 100.0, 105.0, 106.0].map(|simulated| figure(rule, percent).holds(simulated))
    };
    assert_eq!(held(Rule::Equal, 0.0), [false, false, true, false, false]);
    assert_eq!(held(Rule::Equal, 5.0), [false, true, true, true, false]);
    assert_eq!(held(Rule::AtMost, 5.0), [true, true, true, true, false]);
    assert_eq!(held(Rule::AtLeast, 0.0), [false, false, true, true, true]);
}
