//! Plans that mix mechanisms, in which some bound was once below a simulated latency.

use super::bounds::{exceeded, longer_commands};
use farlane_planning::bound::{Method, bound};
use plan::Plan;
use sim::World;
use std::path::Path;

#[test]
fn no_latency_of_a_mixed_plan_exceeds_its_bound() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/guarantees/mixed");
    let mut plans = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let planned = Plan::read(&path).unwrap().build().unwrap();
        let report = World::new(&planned.config).unwrap().run().unwrap();
        for method in [Method::Tfa, Method::Best] {
            let bounds = bound(&planned, method);
            let (mut wrong, _) = exceeded((&planned, &report), &bounds, false);
            wrong.extend(longer_commands(&planned, &bounds));
            assert!(wrong.is_empty(), "{}, {method:?}: {wrong:?}", path.display());
        }
        plans += 1;
    }
    assert_eq!(plans, 12);
}
