//! Tests of the NVMe/TSN paper's figures, of the tables in the documents, and of the results of the
//! sweeps.

use super::*;
use crate::described::every_key_is_described;
use crate::nvme_tsn::depth::Depth;
use crate::nvme_tsn::push::AddedTime;
use crate::nvme_tsn::requests::{Requests, RequestsSetting};
use crate::nvme_tsn::tsn_read::{TsnRead, TsnReadCase};
use crate::{Figure, Section};

const DOCUMENT: &str = include_str!("../../../../../docs/experiments/nvme-tsn.md");

#[test]
fn the_published_figures_agree_with_each_other() {
    let published = published();
    let average = |topology| published.config_read_ns.at(topology).average;
    for topology in Topology::ALL {
        let samples = &published.config_read_ns.at(topology).samples;
        assert_eq!(samples.len(), 5);
        let mean = samples.iter().sum::<u64>() / 5;
        assert!(mean.abs_diff(average(topology)) <= 2, "{topology:?}: {mean}");
    }
    let half = |topology| (average(topology) - average(Topology::Direct)) / 2;
    assert_eq!(half(Topology::Tcp), published.t_tunnel_ns.tcp);
    assert_eq!(half(Topology::Tsn), published.t_tunnel_ns.tsn);
}

#[test]
fn the_topologies_differ_in_the_transport_alone() {
    let parameters = parameters();
    for one in &parameters {
        if let Some(direct) = &one.direct {
            assert_eq!(Some(direct), one.tcp.as_ref(), "{}", one.parameter);
        }
    }
    let differing = parameters.iter().filter(|one| one.tcp != one.tsn);
    let names: Vec<&str> = differing.map(|one| one.parameter).collect();
    assert_eq!(names, ["nodes, transmit, ns", "nodes, receive, ns", "802.1Q tags"]);
}

/// The time is virtual, so the text is equal on any machine.
#[test]
fn the_tables_are_those_of_the_document() {
    let published = published();
    let tables = tables(&published, &crate::unchanged).expect("it runs");
    let section = tables.section(&published);
    for text in section.table_texts() {
        assert!(DOCUMENT.contains(&text), "docs/experiments/nvme-tsn.md has not\n{text}");
    }
    let notes = Section { title: String::new(), tables: Vec::new(), ..section.clone() }.text();
    for note in notes.split("\n\n") {
        assert!(DOCUMENT.contains(note.trim()), "docs/experiments/nvme-tsn.md has not\n{note}");
    }
    let parameters = parameter_section().table_texts().next().expect("a table");
    assert!(DOCUMENT.contains(&parameters), "docs/experiments/nvme-tsn.md has not\n{parameters}");
    aims(&tables);
}

/// Checks the errors of predictions, and that calibrated figures are reached.
fn aims(tables: &Tables) {
    let within = |figure: &str, percent: f64| {
        let row = Figure::find(&tables.rows, figure);
        assert!(!row.calibrated && row.error_percent.abs() <= percent, "{row:?}");
    };
    within("read_4k_tcp", 2.0);
    within("write_4k_tcp", 8.0);
    within("write_4k_tsn", 8.0);
    for row in tables.rows.iter().filter(|row| row.calibrated) {
        assert!(row.error_percent.abs() <= 0.2, "{row:?}");
    }
    let calibrated = tables.rows.iter().filter(|row| row.calibrated).map(|row| &row.figure[..]);
    assert!(calibrated.eq([
        "config_read_direct",
        "config_read_tcp",
        "config_read_tsn",
        "t_tunnel_tcp",
        "t_tunnel_tsn",
        "read_4k_direct",
        "write_4k_direct",
    ]));
    let open = Figure::find(&tables.rows, "read_4k_tsn");
    assert!(!open.calibrated && open.error_percent < -15.0, "explained by now? {open:?}");
}

#[test]
fn faster_networks_are_faster_and_pipelines_remain() {
    let speeds = speeds::simulate().expect("it runs");
    let speeds_of = |topology: &str| -> Vec<&Speed> {
        speeds.iter().filter(|speed| speed.topology == topology).collect()
    };
    for topology in ["tcp", "tsn"] {
        let tunnels = speeds_of(topology);
        assert_eq!(tunnels.len(), 5);
        for pair in tunnels.windows(2) {
            assert!(pair[1].t_tunnel_ns < pair[0].t_tunnel_ns, "{pair:?}");
            assert!(pair[1].read_4k_us < pair[0].read_4k_us, "{pair:?}");
            assert!(pair[1].write_4k_us < pair[0].write_4k_us, "{pair:?}");
        }
        assert!(speeds_of("direct")[0].read_4k_us < tunnels[4].read_4k_us);
    }
    let text = speeds::section(&speeds).table_texts().next().expect("a table");
    assert!(DOCUMENT.contains(&text), "docs/experiments/nvme-tsn.md has not\n{text}");
}

#[test]
fn with_push_the_tunnel_adds_little_more_than_the_least() {
    let rows = push::simulate().expect("it runs");
    let section = push::section(&rows);
    for text in section.table_texts() {
        assert!(DOCUMENT.contains(&text), "docs/experiments/nvme-tsn.md has not\n{text}");
    }
    for row in &rows {
        for AddedTime { plain_us, push_us, least_us, within_goal } in [row.read, row.write] {
            assert!(push_us < plain_us, "{row:?}");
            // Frames may leave with only one TLP. Such a frame of 90 bytes takes 0.72 us at 1 Gb/s.
            assert!(least_us <= push_us && push_us < least_us + 6.0 * 0.72, "{row:?}");
            assert_eq!(within_goal, push_us <= 10.0);
        }
    }
    let at_10 = rows.iter().find(|row| (row.topology, &row.rate[..]) == ("tcp", "10G"));
    let at_10 = at_10.expect("a row");
    assert!(at_10.read.push_us < 8.5 && at_10.write.push_us < 10.0, "{at_10:?}");
    every_key_is_described(&serde_json::json!({ "push": rows }));
}

#[test]
fn the_goal_of_remote_storage_is_cited() {
    let goal = push::goal();
    assert_eq!((goal.goal_us.value, goal.prototype_us.value), (10, 8));
    assert!(goal.author == "J Metz" && goal.publisher == "SNIA" && !goal.goal_us.source.is_empty());
}

fn requests_row(
    mps: usize,
    mrrs: usize,
    reads_in_flight: usize,
    write_4k_us: f64,
) -> RequestsSetting {
    RequestsSetting { mps, mrrs, reads_in_flight, write_4k_us, write_bytes_per_s: None }
}

#[test]
fn the_recommendation_is_the_least_that_is_as_good_as_the_best() {
    let rows = [
        requests_row(128, 4096, 8, 100.0),
        requests_row(256, 512, 8, 100.9),
        requests_row(128, 512, 8, 101.1),
        requests_row(256, 2048, 2, 100.5),
    ];
    let best = requests::recommend(&rows, 137.0);
    assert_eq!((best.mps, best.mrrs, best.reads_in_flight), (256, 512, 8));
    assert_eq!(best.as_published_us, 137.0);
}

/// The parts that take long are not run. Only the keys of their documents are checked.
#[test]
fn keys_of_the_sweeps_are_described() {
    let depth =
        Depth { direct_ns_per_io: 1, tcp_ns_per_io: 2, tsn_ns_per_io: 4, ..Depth::default() };
    assert_eq!((depth.tunnel(), depth.tsn()), (1, 2));
    let rows = vec![RequestsSetting::default()];
    let requests = Requests { rows, ..Requests::default() };
    let tsn_read = TsnRead { published_us: 0.0, cases: vec![TsnReadCase::default()] };
    let document =
        serde_json::json!({ "tsn_read": tsn_read, "depth": [depth], "requests": requests });
    every_key_is_described(&document);
}
