//! A small campaign, and laws that are broken on purpose.

use super::fault::Fault;
use super::*;
use crate::Plan;
use bytes::Bytes;
use order::Order;
use sim::World;
use wire::tlp::Tlp;
use wire::{Bdf, Tag};

fn campaign(seeds: RangeInclusive<u64>) -> CampaignReport {
    run(seeds, &Watch { is_stopped: &|| false, progress: &|_| {} })
}

#[test]
fn seeds_keep_all_laws() {
    let report = campaign(1..=200);
    assert!(report.failures.is_empty() && report.seeds == 200, "{}", report.text());
    let acted = report.faults.iter().filter(|row| row.count > 0).count();
    assert!(acted == Kind::ALL.len(), "{}", report.text());
}

/// Seeds that found bugs, of the product or of the simulator.
#[test]
fn former_failures_keep_all_laws() {
    for seed in [503, 2135, 12_995, 19_414, 19_821, 47_026, 81_300] {
        let report = campaign(seed..=seed);
        assert!(report.failures.is_empty(), "{}", report.text());
    }
}

#[test]
fn seeds_have_the_same_digest_again_and_their_plan_has_it_too() {
    let [once, again] = [0, 1].map(|_| campaign(201..=212));
    assert_eq!((&once.digest, once.text()), (&again.digest, again.text()));
    let planned = Plan::parse("plan", &plan(201)).and_then(|plan| plan.build()).unwrap();
    let report = World::new(&planned.config).unwrap().run().unwrap();
    assert_eq!(report.digest, laws::run(&Scenario::new(201)).digest);
}

/// No scenario has poisoned writes, so the root complex must not count one.
#[test]
fn broken_law_is_found_and_its_plan_minimised() {
    let mut scenario = Scenario::new(1);
    let poison = Fault {
        kind: Kind::LateMedia,
        table: "drives.drive1".into(),
        key: "faults",
        value: "poison,at=20ms,count=1".into(),
    };
    scenario.faults.push(poison);
    let broken = laws::run(&scenario).broken.expect("a poisoned write");
    let (least, broken) = minimise::minimise(&scenario, broken);
    let values: Vec<_> = least.faults.iter().map(|fault| fault.value.as_str()).collect();
    assert_eq!(values, ["poison,at=20ms,count=1"], "{broken}");
    assert!(least.most_transfers() < scenario.most_transfers(), "{}", least.text());
}

fn write(address: u64) -> Tlp {
    Tlp::write_bytes(Bdf::new(3, 0, 0), address, &Bytes::from_static(&[7; 16])).unwrap()
}

#[test]
fn writes_that_are_lost_repeated_or_passed_are_found() {
    let read = Tlp::read_bytes(Bdf::new(3, 0, 0), Tag::default(), 0x9000, 64).unwrap();
    let sent = || {
        let mut order = Order::default();
        order.up(0, true, &write(0x1000)).unwrap();
        order.up(0, true, &write(0x2000)).unwrap();
        order.up(0, true, &read).unwrap();
        order
    };
    let mut order = sent();
    order.up(0, false, &write(0x1000)).unwrap();
    assert!(order.up(0, false, &write(0x1000)).unwrap_err().contains("again"));
    assert!(order.up(0, false, &read).unwrap_err().contains("passed"));
    assert!(order.up(0, true, &read).unwrap_err().contains("tag 0"));
    let mut order = sent();
    assert!(order.up(0, false, &write(0x2000)).unwrap_err().contains("passed"));
    // A link that goes down may lose TLPs.
    let mut order = sent();
    order.lossy.insert(0);
    order.up(0, false, &write(0x2000)).unwrap();
    order.up(0, false, &read).unwrap();
}

#[test]
fn unreached_condition_fails_a_large_campaign() {
    let mut report = CampaignReport::new();
    assert_eq!((report.unreached(), report.ended()), (vec![], Ended::Done));
    report.seeds = ENOUGH;
    assert_eq!(report.unreached(), Condition::ALL);
    assert_eq!(report.ended(), Ended::Missed);
}
