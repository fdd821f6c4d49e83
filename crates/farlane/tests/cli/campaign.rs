//! `farlane campaign`. The tests of `plan::campaign` run more seeds.

use crate::support::program::{document, is_wrong_usage, succeeds};

#[test]
fn campaign_prints_its_report_and_the_plan_of_a_seed() {
    let report = document(&["campaign", "--seeds", "1..8", "--json"]);
    assert_eq!((&report["seeds"], &report["interrupted"]), (&8.into(), &false.into()), "{report}");
    let digest = report["digest"].as_str().unwrap();
    let text = succeeds(&["campaign", "--seeds", "1..8"]);
    assert!(text.contains(digest) && text.contains("replay-full"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("seed-8.toml");
    std::fs::write(&plan, succeeds(&["campaign", "--seeds", "8..8", "--plan"])).unwrap();
    document(&["sim", &plan.display().to_string(), "--json"]);
}

#[test]
fn seeds_out_of_order_are_refused() {
    let message = is_wrong_usage(&["campaign", "--seeds", "5..4"]);
    assert!(message.contains("expected FIRST..LAST"), "{message}");
}

mod long {
    use crate::support::program::document;

    #[test]
    fn ten_thousand_seeds_keep_all_laws_and_reach_all_conditions() {
        // 250 seeds at a time are within the time limit of a command.
        for first in (1..=10_000).step_by(250) {
            let seeds = format!("{first}..{}", first + 249);
            let report = document(&["campaign", "--seeds", &seeds, "--json"]);
            assert_eq!(report["seeds"], 250, "{report}");
            eprintln!("{report}");
        }
    }
}
