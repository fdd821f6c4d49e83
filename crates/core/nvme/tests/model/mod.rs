//! Random lists of commands against a simple model of what namespaces hold and of what commands may
//! end with: media, memory and records take their time and fail, in virtual time.
//!
//! `PROPTEST_CASES=10000 cargo test --package farlane-nvme --test main model` runs for long.

mod case;
mod commands;
mod contents;
mod driver;
mod judge;
mod power;
mod statuses;
mod world;

use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig {
        max_shrink_iters: 20_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn drive_matches_model(case in case::case()) {
        driver::Driver::new(&case).run(&case);
    }
}
