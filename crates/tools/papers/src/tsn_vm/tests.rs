//! Compares every statement with the model.

use super::*;
use crate::described::every_key_is_described;
use crate::unchanged;

const DOCUMENT: &str = include_str!("../../../../../docs/experiments/tsn-vm.md");

#[test]
fn every_statement_is_as_expected() {
    let published = published();
    let mut failed = Vec::new();
    for part in Part::ALL {
        for (case, section) in simulate(&published, part, &unchanged).expect("it runs") {
            every_key_is_described(&serde_json::json!({ "checks": &case.checks }));
            failed.extend(case.checks.iter().filter(|check| !check.holds).cloned());
            let text = section.text();
            let text = text.trim_end();
            assert!(DOCUMENT.contains(text), "docs/experiments/tsn-vm.md has not\n{text}");
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
