//! The plans about redundancy and policing, with and without these functions.

use super::*;
use crate::simulate::handled;
use sim::world::Report;
use std::path::Path;

/// Builds and runs a plan of `plans/` with some keys changed.
fn run(name: &str, settings: &[(&str, &str)]) -> (Planned, Report) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../../../plans/{name}.toml"));
    let mut plan = Plan::read(&file).unwrap();
    for (key, value) in settings {
        plan = plan.with(key, value, "--set").unwrap();
    }
    let planned = plan.build().unwrap();
    let report = sim::World::new(&planned.config).unwrap().run().unwrap();
    (planned, report)
}

fn elimination(planned: &Planned, report: &Report, place: [&str; 2]) -> handled::Elimination {
    let named = |words: &str| planned.link_name(words);
    let (rows, _) = handled::rows(report, &planned.identified, &named);
    let found = rows.into_iter().find(|row| [row.stream.as_str(), row.node.as_str()] == place);
    found.unwrap_or_else(|| panic!("a row of {place:?}"))
}

/// Returns the longest latency of the first host in ns.
fn worst(report: &Report) -> u64 {
    report.hosts[0].latency.summary().max_ns
}

/// The bridge fails at 3 ms permanently. The deadline of 400 us holds for every command.
#[test]
fn commands_continue_after_the_loss_of_a_bridge() {
    let (planned, report) = run("redundant-drive", &[]);
    assert_eq!((report.hosts[0].failures, report.hosts[0].mismatches), (0, 0));
    assert!(report.hosts[0].commands > 100);
    assert!(worst(&report) < 400_000, "{}", worst(&report));
    assert_eq!(report.retransmitted, 0);
    for place in [["nvme", "right"], ["nvme back", "left"]] {
        let row = elimination(&planned, &report, place);
        assert!(row.discarded > 0 && row.passed > 2 * row.discarded, "{row:?}");
        assert_eq!((row.rogue, row.out_of_order, row.tagless, row.resets), (0, 0, 0, 0));
        assert!(row.latent_errors > 0, "the dead path is told");
    }
    // With both bridges there are no latent errors, and one copy per frame.
    let (planned, report) = run("redundant-drive", &[("bridges.upper.outages", "[]")]);
    let row = elimination(&planned, &report, ["nvme", "right"]);
    assert_eq!((row.latent_errors, row.passed.abs_diff(row.discarded) < 8), (0, true), "{row:?}");
}

/// Every transport is identified, and its copies are eliminated.
#[test]
fn every_tunnel_has_two_paths() {
    let raw = [("transport", "raw"), ("link.vlan", "1")];
    let ends = [("streams.nvme.eliminate", "[\"host\", \"device\"]")];
    let priority = [("streams.nvme.identification", "priority"), ("streams.nvme.priority", "5")];
    let ip = [("streams.nvme.identification", "ip")];
    let variants: [&[(&str, &str)]; 4] = [&raw, &ends, &priority, &ip];
    for settings in variants {
        let (planned, report) = run("redundant-drive", settings);
        let node = if settings == ends { "device" } else { "right" };
        let row = elimination(&planned, &report, ["nvme", node]);
        assert!(row.discarded > 100 && row.latent_errors > 0, "{settings:?}: {row:?}");
        let host = &report.hosts[0];
        assert_eq!((host.failures, host.mismatches, report.retransmitted), (0, 0, 0));
        assert!(worst(&report) < 400_000, "{settings:?}");
    }
}

/// With one path, commands wait until the end.
#[test]
fn drive_is_lost_when_its_only_path_fails() {
    let settings = [
        ("streams.nvme.paths", "[\"left > upper > right\"]"),
        ("streams.nvme.eliminate", "[\"host\", \"device\"]"),
        ("limits.time", "20ms"),
    ];
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plans/redundant-drive.toml");
    let mut plan = Plan::read(&file).unwrap();
    for (key, value) in settings {
        plan = plan.with(key, value, "--set").unwrap();
    }
    let planned = plan.build().unwrap();
    let error = sim::World::new(&planned.config).unwrap().run().map(drop).unwrap_err();
    assert!(error.to_string().contains("the limit of 20000.000us of virtual time"), "{error}");
}

#[test]
fn policed_camera_does_not_change_drive_latency() {
    let quiet = worst(&run("babbling-camera", &[("traffic.babble.start", "1s")]).1);
    let (planned, report) = run("babbling-camera", &[]);
    assert_eq!(report.hosts[0].failures, 0);
    // At most the frames that passed before the stream was blocked: two frames of 1522 bytes with
    // preamble and gap at 1 Gb/s.
    assert!(worst(&report) <= quiet + 2 * 12_336, "{} beside {quiet}", worst(&report));
    let named = |words: &str| planned.link_name(words);
    let (_, rows) = handled::rows(&report, &planned.identified, &named);
    let [row] = &rows[..] else { panic!("one filter: {rows:?}") };
    assert_eq!(
        (row.stream.as_str(), row.node.as_str(), row.blocked.as_deref()),
        ("camera", "switch", Some("red"))
    );
    let at = row.blocked_at_ns.expect("it was blocked");
    assert!((3_000_000..3_100_000).contains(&at), "{at}");
    assert_eq!(row.matching, row.passed + row.red);
    // Without the filter the deadline is missed.
    let (_, unpoliced) = run("babbling-camera", &[("streams.camera.police", "[]")]);
    assert!(worst(&unpoliced) > 2 * worst(&report), "{} us", worst(&unpoliced) / 1_000);
    // If the stream is limited to its rate instead of blocked, stream and drive continue.
    let (_, cut) = run("babbling-camera", &[("filters.camera.block_red", "off")]);
    assert!(worst(&cut) < 400_000, "{}", worst(&cut));
    assert!(cut.streams[0].arrived() > report.streams[0].arrived());
}

/// Reordering makes TCP retransmit segments that were not lost. This costs less than a loss.
#[test]
fn tcp_under_elimination_is_reordered() {
    let p99 = |report: &Report| report.hosts[0].latency.summary().p99_ns;
    let (planned, reordered) = run("reordered-tcp", &[]);
    let row = elimination(&planned, &reordered, ["nvme back", "left"]);
    assert!(row.out_of_order > 0 && row.rogue == 0, "{row:?}");
    assert_eq!(row.lost - row.lost_before_first, 0, "nothing is lost");
    assert!(reordered.retransmitted > 0);
    let (_, whole) = run("reordered-tcp", &[("cables.upper-right.loss", "0%")]);
    assert_eq!(whole.retransmitted, 0);
    let one = [
        ("streams.nvme.paths", "[\"left > upper > right\"]"),
        ("streams.nvme.eliminate", "[\"host\", \"device\"]"),
    ];
    let (_, lossy) = run("reordered-tcp", &one);
    let [whole, reordered, lossy] = [whole, reordered, lossy].map(|report| p99(&report));
    assert!(whole < reordered && reordered < lossy, "{whole} {reordered} {lossy}");
    // The late copy arrives 60 us after the first.
    assert!(reordered < whole + 100_000 && lossy > whole + 500_000, "{reordered} {lossy}");
}

#[test]
fn remarks_name_the_clause() {
    let remark = |name: &str, settings: &[(&str, &str)], has: &str| {
        let sentences: Vec<String> =
            run(name, settings).0.remarks.iter().map(Remark::sentence).collect();
        assert!(sentences.iter().any(|text| text.contains(has)), "{has}: {sentences:?}");
    };
    // The lower path is 1990 ns longer: its last cable takes 2 us, each other cable 10 ns. A frame
    // of 64 bytes with preamble and gap takes 672 ns at 1 Gb/s, so two frames fit into 1990 ns.
    remark(
        "redundant-drive",
        &[("streams.nvme.history", "2")],
        "stream nvme at right: the copy on the slowest path comes 1990ns behind that on the \
         fastest, 2 frames later, but the history has 2 numbers: copies are rogue and discarded, \
         also those that no other path brings (802.1CB-2017, 7.4.3.4)",
    );
    remark(
        "babbling-camera",
        &[],
        "stream camera at switch: its frames need 1074.5 Mb/s, the meter lets 110.0 Mb/s through \
         (802.1Q-2022, 8.6.5.5)",
    );
    remark(
        "babbling-camera",
        &[("filters.camera.burst", "1KiB")],
        "stream camera at switch: its frames have up to 1522 bytes, more than the burst of 1024 \
         bytes of the meter: those are always red (802.1Q-2022, 8.6.5.5)",
    );
    remark(
        "babbling-camera",
        &[("filters.camera.entries", "[\"open 70us\"]")],
        "70us (stream gate of camera), 80us (stream picture)",
    );
    remark(
        "redundant-drive",
        &[
            ("streams.nvme.paths", "[\"left > upper > right\"]"),
            ("streams.nvme.eliminate", "[\"device\"]"),
            ("bridges.upper.outages", "[]"),
        ],
        "the cable between lower and right is not in the tree of cables and no stream has a path over it: it \
         carries nothing",
    );
}

/// Host and drive have two ports each. The cut of a cable of the drive costs nothing.
#[test]
fn two_ports_survive_the_cut_of_one() {
    let raw = [("transport", "raw"), ("link.vlan", "1")];
    for settings in [&[][..], &raw] {
        let (planned, report) = run("dual-homed-drive", settings);
        let network = &planned.config.network;
        let ports: Vec<_> = network.stations.iter().map(|station| station.ports.len()).collect();
        assert_eq!(ports, [2, 2, 1]);
        let host = &report.hosts[0];
        assert_eq!((host.failures, host.mismatches, report.retransmitted), (0, 0, 0));
        assert!(host.commands > 100 && worst(&report) < 400_000, "{}", worst(&report));
        for place in [["nvme", "drive"], ["nvme back", "host"]] {
            let row = elimination(&planned, &report, place);
            assert!(row.discarded > 0 && row.passed > row.discarded, "{row:?}");
            assert_eq!((row.rogue, row.tagless), (0, 0), "{row:?}");
        }
    }
}

/// Without elimination the protocols above discard the copies themselves: every byte is right, and
/// what they acknowledge twice costs time only.
#[test]
fn copies_that_nobody_eliminates_change_no_byte() {
    let raw = [("transport", "raw"), ("link.vlan", "1")];
    let both = [("streams.nvme.eliminate", "[]"), ("cables.upper-drive.cuts", "[]")];
    // The lower path is slower by more than the distance of two frames, so frames are overtaken.
    let slow = [("cables.lower-drive.propagation", "60us")];
    for (settings, transport) in [(&[][..], "tcp"), (&raw[..], "raw")] {
        let all = [&both[..], &slow, settings].concat();
        let keys: Vec<_> = all.into_iter().filter(|(key, _)| !key.ends_with("history")).collect();
        let file =
            Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../plans/dual-homed-drive.toml");
        let text = std::fs::read_to_string(&file).unwrap().replace("history = 64\n", "");
        let mut plan = Plan::parse("p.toml", &text).unwrap();
        for (key, value) in keys {
            plan = plan.with(key, value, "--set").unwrap();
        }
        let report = sim::World::new(&plan.build().unwrap().config).unwrap().run().unwrap();
        let host = &report.hosts[0];
        assert_eq!((host.failures, host.mismatches), (0, 0), "{transport}");
        assert!(host.commands > 50, "{transport}: {}", host.commands);
    }
}
