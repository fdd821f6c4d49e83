//! Random commands against a simple model of the contents of namespaces and the statuses of
//! commands: media, memory and records are slow and fail, in virtual time.
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
