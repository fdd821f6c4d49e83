//! Limits and contradictions cause errors that name them.

use crate::simulation::worlds::*;
use sim::kernel::{LimitReached, Limits};
use sim::workload::BootError;

fn small() -> Config {
    Config::nvme_tsn_direct(Workload::Fio(fio(Rw::Read, 4096, 2)))
}

fn error(config: &Config) -> Error {
    match World::new(config) {
        Ok(mut world) => world.run().expect_err("a limit"),
        Err(error) => error,
    }
}

#[test]
fn event_limit_ends_the_run() {
    let plan = Config { limits: Limits { events: 1000, ..Limits::default() }, ..small() };
    let got = error(&plan);
    assert!(matches!(got, Error::Limit(LimitReached::Events { limit: 1000, .. })), "{got}");
}

#[test]
fn time_limit_ends_the_run() {
    let limit = Instant::from_ns(200_000);
    let plan = Config { limits: Limits { time: limit, ..Limits::default() }, ..small() };
    let got = error(&plan);
    assert!(matches!(&got, Error::Limit(LimitReached::Time { limit: at, .. }) if *at == limit));
    assert!(got.to_string().contains("200.000us"), "{got}");
}

#[test]
fn workloads_that_do_not_fit() {
    let base = fio(Rw::Read, 4096, 2);
    for (work, word) in [
        (Fio { bs: 1000, ..base.clone() }, "bs"),
        (Fio { size: 1 << 30, ..base.clone() }, "size"),
        (Fio { iodepth: 0, ..base.clone() }, "iodepth"),
        (Fio { size: 4096, ..base.clone() }, "iodepth"),
        (Fio { bs: 1 << 20, iodepth: 512, size: 512 << 20, ..base }, "queue"),
    ] {
        let got = error(&Config::nvme_tsn_direct(Workload::Fio(work)));
        let Error::Boot { host: 0, error: BootError::Workload(reason) } = got else {
            panic!("{got}")
        };
        assert!(reason.contains(word), "{reason}");
    }
}

#[test]
fn buffers_that_do_not_fit() {
    let work = Fio { numjobs: 8, ..fio(Rw::Read, 4096, 32) };
    let mut plan = Config::nvme_tsn_direct(Workload::Fio(work));
    // Buffers of 8 x 32 x 4 KiB use all memory, and queues need more.
    plan.hosts[0].root.memory = 1 << 20;
    assert_eq!(error(&plan), Error::Boot { host: 0, error: BootError::Memory });
}

#[test]
fn plans_that_contradict_themselves() {
    let mut none = small();
    none.hosts.clear();
    assert!(matches!(error(&none), Error::Config(_)));
    let mut drive = small();
    if let Attached::Direct(drive) = &mut drive.hosts[0].attached {
        drive.read_request = 100;
    }
    assert!(error(&drive).to_string().contains("read_request"));
    let nowhere = Config::nvme_tsn_tunnel(small().hosts[0].workload.clone(), tcp([0, 1]));
    assert!(error(&nowhere).to_string().contains("stations"));
}

#[test]
fn a_cut_cable_ends_in_an_error_and_not_in_silence() {
    let mut plan = Config::nvme_tsn_tcp(small().hosts[0].workload.clone(), Rate::G1);
    for faults in &mut plan.network.cables[0].faults {
        faults.cuts = vec![(Instant::ZERO, Instant::from_ns(u64::MAX / 2000))];
    }
    plan.limits.time = ms(500);
    assert!(matches!(error(&plan), Error::Limit(LimitReached::Time { .. })));
}

/// A cut in the middle of the workload lasts longer than the loss limit. Both ends report the loss,
/// commands fail, nothing panics. The workload cannot finish, so the limit of time ends the
/// simulation with an error that names the drive.
#[test]
fn a_link_lost_for_good_is_reported() {
    let plan = |runtime: u64| {
        let work = Fio {
            runtime: Some(Duration::from_ms(runtime)),
            time_based: true,
            ..fio(Rw::RandRw, 4096, 8)
        };
        let mut plan = Config::nvme_tsn_tcp(Workload::Fio(work), Rate::G1);
        switch(&mut plan).survive = Duration::ZERO;
        for faults in &mut plan.network.cables[0].faults {
            faults.cuts = vec![(Instant::from_ns(8_000_000), Instant::from_ns(5_000_000_000))];
        }
        plan.limits.time = ms(1_500);
        plan
    };
    let (mut world, seen) = watched(&plan(1_000));
    let error = world.run().expect_err("the drive is gone");
    let Error::DriveLost { limit: LimitReached::Time { .. }, host: 0, drive: 0, since } = error
    else {
        panic!("{error}")
    };
    assert!((800_000_000..820_000_000).contains(&since.as_ns()), "{since}");
    assert!(error.to_string().contains("drive 0 of host 0 has been unreachable"), "{error}");
    let downs = seen.0.borrow().links.iter().filter(|(.., up)| !up).count();
    assert_eq!(downs, 2, "both ends lost the link");
    assert!(world.tlps_in_flight() < 300, "{}", world.tlps_in_flight());
    let report = run(&plan(20));
    assert_eq!(report.hosts[0].failures, 8, "all that were in flight");
    assert!(report.hosts[0].commands > 50 && report.hosts[0].mismatches == 0);
}
