//! Drives that several hosts name, and reservations.

use super::super::shared::RESERVATIONS;
use super::{Plan, built};
use sim::World;
use wire::nvme::ReservationType;

const VEHICLE: &str = include_str!("../../../../../plans/shared-vehicle.toml");

const TWO: &str = "[hosts.a]\ndrives = [\"d\"]\n[hosts.b]\ndrives = [\"d\"]\n[drives.d]\n\
    node = \"n\"\n[nodes.n]\n[bridges.s]\n[workload]\nrw = \"randrw\"\nsize = \"64KiB\"\n";

#[test]
fn unregistered_computer_of_the_vehicle_cannot_write() {
    let planned = built(VEHICLE);
    assert_eq!(planned.links, ["central@front", "central@rear", "central@cabin"]);
    let [drive] = &planned.config.shared[..] else { panic!("one shared drive") };
    for (controller, host) in drive.controllers.iter().zip(&planned.hosts) {
        assert_eq!(controller.host_identifier, credentials::host_identifier(host));
    }
    let report = World::new(&planned.config).unwrap().run().unwrap();
    let conflicts: Vec<_> = report.hosts.iter().map(|host| host.conflicts).collect();
    assert!(conflicts[..2] == [0, 0] && conflicts[2] > 0, "{conflicts:?}");
    for host in &report.hosts {
        assert!(host.verified > 0 && host.mismatches == 0 && host.failures == host.conflicts);
    }
    // Registered, the cabin writes as well.
    let cabin = "[hosts.cabin]\ndrive_reservation = \"register\"\n";
    let planned = built(&VEHICLE.replace("[hosts.cabin]\n", cabin));
    let report = World::new(&planned.config).unwrap().run().unwrap();
    assert!(report.hosts.iter().all(|host| host.failures == 0));
}

#[test]
fn every_reservation_reaches_the_simulation() {
    let types = [None].into_iter().chain(ReservationType::ALL.map(Some));
    for (word, kind) in RESERVATIONS.iter().zip(types) {
        let planned = built(&TWO.replace("b]\n", &format!("b]\ndrive_reservation = \"{word}\"\n")));
        let registration = planned.config.hosts[1].software.registration.expect(word);
        assert_eq!((registration.nsid, registration.key, registration.kind), (1, 2, kind));
        assert_eq!(planned.config.hosts[0].software.registration, None);
    }
}

#[test]
fn host_whose_blocks_another_host_writes_has_a_remark() {
    let remarks = |text: &str| -> Vec<String> {
        built(text).remarks.iter().map(|remark| remark.sentence()).collect()
    };
    let found = remarks(TWO);
    let wanted = "no read of host a is compared: host b writes the same blocks";
    assert!(found.len() == 2 && found[0] == wanted, "{found:?}");
    let apart = TWO.replace("b]\n", "b]\nworkload = { rw = \"rw\", offset = \"1MiB\" }\n");
    assert!(remarks(&apart).is_empty());
}

#[test]
fn mistakes_of_shared_drives_are_named() {
    let with = |from: &str, to: &str| TWO.replace(from, to);
    let own = "[hosts.b]\ndrive_reservation = \"register\"\ndrives = [\"d\", \"e\"]\n[drives.e]\n\
               node = \"n\"\n";
    for (text, place, message) in [
        (
            with("[hosts.b]\n", "[hosts.b]\ndrive_reservation = \"regster\"\n"),
            "4:21",
            "unknown drive_reservation 'regster'; did you mean 'register'?",
        ),
        (
            with("[hosts.b]\ndrives = [\"d\"]\n", own),
            "4:21",
            "'drive_reservation' applies only to hosts whose drives all have several hosts",
        ),
        (
            with("[hosts.b]\n", "[hosts.b]\ndrive_reservation = \"register\"\n")
                .replace("node = \"n\"", "node = \"n\"\nmedia = \"volatile\""),
            "4:21",
            "'drive_reservation' applies only to drives with media = \"persistent\"",
        ),
        (
            format!(
                "transport = \"direct\"\n{}",
                with("node = \"n\"\n[nodes.n]\n[bridges.s]\n", "")
            ),
            "3:10",
            "drive 'd' has several hosts, which requires a transport with tunnels",
        ),
        (with("[hosts.a]", "[hosts.a]\ncount = 2"), "3:10", "hosts with a 'count' of 1"),
        (with("[drives.d]", "[drives.d]\ncount = 2"), "2:10", "drives with a 'count' of 1"),
        (with("[nodes.n]", "[nodes.n]\ncount = 2"), "2:10", "a node with a 'count' of 1"),
        (
            with("[nodes.n]", "[nodes.m]\n[nodes.n]\nswitch = \"m\""),
            "2:10",
            "nodes without 'switch'",
        ),
        (
            with("[nodes.n]", "[nodes.n]\nkills = [\"1ms..2ms\"]"),
            "8:10",
            "the process of a drive that several hosts name cannot be killed",
        ),
    ] {
        let error = Plan::parse("p.toml", &text).and_then(|plan| plan.build()).err();
        let error = error.expect(message).to_string();
        let place = format!("p.toml:{place}: ");
        assert!(error.starts_with(&place) && error.contains(message), "{error}");
    }
}
