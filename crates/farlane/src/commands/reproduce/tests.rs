//! Every published figure has a plan, and the plan the same result.

use super::plans::{Simulations, changed};
use papers::{Simulation, expether, tsn_ports, tsn_vm};
use report::Failure;
use sim::workload::Workload;
use sim::{Config, World};
use wire::Duration;

/// Returns a number that depends on the whole run. The digest of hosts includes serial numbers.
fn result(config: &Config) -> u128 {
    let report = World::new(config).and_then(|mut world| world.run()).expect("it runs");
    report.hosts.first().map_or(report.digest.into(), |host| host.latency.sum_ps())
}

/// Checks that all simulations can be plans, and that the plan of `name` has the same result.
fn all_are_plans(simulations: &[Simulation], name: &str) {
    let planned = |one: &Simulation| changed(one, &[]).expect("a plan");
    simulations.iter().map(planned).for_each(drop);
    let one = simulations.iter().find(|simulation| simulation.name == name).expect("one of them");
    assert_eq!(result(&planned(one)), result(&one.config), "{name}");
}

#[test]
fn every_figure_of_ports_has_a_plan() {
    let (published, kept) = (tsn_ports::published(), Simulations::default());
    for part in tsn_ports::Part::ALL {
        let cases = tsn_ports::simulate(&published, part, &|one| Ok(kept.keep(one)));
        for check in cases.expect("it runs").iter().flat_map(|case| &case.checks) {
            assert!(kept.has(&format!("{}.{}", check.case, check.figure)), "{check:?}");
        }
    }
    all_are_plans(&kept.all(), "preemption_edges.overhead_3");
}

#[test]
fn every_figure_of_virtual_machines_has_a_plan() {
    let (published, kept) = (tsn_vm::published(), Simulations::default());
    let shorter = |simulation| {
        let config = kept.keep(simulation);
        let runtime = config.runtime.map(|runtime| runtime.min(Duration::from_ms(60_000)));
        Ok::<_, Failure>(Config { runtime, ..config })
    };
    for part in tsn_vm::Part::ALL {
        for (case, _) in tsn_vm::simulate(&published, part, &shorter).expect("it runs") {
            for check in &case.checks {
                assert!(kept.has(&format!("{}.{}", check.case, check.figure)), "{check:?}");
            }
        }
    }
    all_are_plans(&kept.all(), "stall.short_longest");
}

#[test]
fn every_figure_of_aggregation_has_a_plan() {
    let (published, kept) = (expether::published(), Simulations::default());
    let shorter = |simulation| {
        let mut config = kept.keep(simulation);
        let Workload::Fio(fio) = &mut config.hosts[0].workload else { unreachable!("as fio") };
        (fio.bs, fio.size) = (4096, 4096);
        Ok::<_, Failure>(config)
    };
    expether::Latencies::simulate(&shorter).expect("it runs");
    for sweep in [expether::Sweep::Ssds, expether::Sweep::Limits] {
        sweep.simulate(&shorter).expect("it runs");
    }
    assert!(published.figures.keys().all(|figure| kept.has(figure)));
    all_are_plans(&kept.all(), "fio_4k_write_on");
}
