//! Faults of simulated drives, and what the workload of the host reports.

use crate::simulation::worlds::*;

/// Random reads and writes for 100 ms, with faults of the drive.
fn faulty(faults: &[&str], runtime: u64, rate: u64) -> Config {
    let (runtime, rate) = (Some(Duration::from_ms(runtime)), Some(rate * 4096));
    let work = Fio { runtime, time_based: true, rate, ..fio(Rw::RandRw, 4096, 4) };
    let mut config = Config::nvme_tsn_tcp(Workload::Fio(work), Rate::G1);
    switch(&mut config).ports[0].drive.faults =
        faults.iter().map(|text| text.parse().expect("a fault")).collect();
    config
}

#[test]
fn failed_accesses_fail_transfers_and_late_ones_take_longer() {
    let report = run(&faulty(&["error=media,at=10ms,count=5", "late=7ms,count=1"], 100, 4_000));
    let host = &report.hosts[0];
    assert_eq!((host.failures, host.mismatches), (5, 0));
    assert!(host.latency.longest() > Duration::from_ms(7), "{}", host.latency.longest());
}

/// Commands behind the lost completion are hidden, so all outstanding commands fail.
#[test]
fn a_lost_completion_makes_the_driver_reset_the_drive() {
    let report = run(&faulty(&["lost-completion,at=10ms"], 18_000, 100));
    let host = &report.hosts[0];
    assert!((1..=4).contains(&host.failures), "{}", host.failures);
    assert_eq!(host.mismatches, 0);
    assert!(host.commands > 50, "work goes on: {}", host.commands);
}

#[test]
fn verification_finds_poisoned_data() {
    let mut config = faulty(&["poison,at=10ms,count=3"], 100, 4_000);
    jobs(&mut config).rw = Rw::RandRead;
    let host = &run(&config).hosts[0];
    assert_eq!(host.failures, 0);
    assert!((1..=3).contains(&host.mismatches), "{}", host.mismatches);
}
