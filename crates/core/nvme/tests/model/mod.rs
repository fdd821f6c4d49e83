//! Compares the results of random commands with a simple model: the contents of namespaces, and the
//! statuses of commands. Media, memory and records are slow and fail, in virtual time.
//!
//! A long run: `PROPTEST_CASES=10000 cargo test --package farlane-nvme --test main model`.

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
