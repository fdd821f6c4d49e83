//! A host never reads other data than it wrote: random operations on slots, their clients, links
//! and drives, as in the fuzz target `slot`.

use crate::fabric::world::slot_operations::{Reached, run_operations};
use stats::random::Random;

#[test]
fn a_client_never_reads_other_data_than_it_wrote() {
    let mut all = Reached::default();
    for seed in 0..200 {
        let reached = run_operations(&Random::new(seed).bytes(600));
        all.known += reached.known;
        all.failed += reached.failed;
        all.kept += reached.kept;
        all.renewed += reached.renewed;
    }
    // The operations must reach all of these.
    let Reached { known, failed, kept, renewed } = all;
    assert!(known > 500 && failed > 500 && kept > 100 && renewed > 50, "{all:?}");
}
