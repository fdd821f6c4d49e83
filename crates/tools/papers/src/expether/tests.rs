//! Tests of the paper's figures, with short transfers. The long runs of the table are not part of
//! the tests.

use super::setup::{FRAME_EXTRA, LINE, MPS, POLICIES, TLP_EXTRA, gain, small, transfer};
use super::*;
use crate::Figure;
use crate::described::every_key_is_described;
use sim::World;
use sim::workload::Workload;
use sim::world::Report;
use std::collections::BTreeSet;

const DOCUMENT: &str = include_str!("../../../../../docs/experiments/expether.md");
/// Bytes of a transfer in these tests. Start and end take 4 % of the time.
const BYTES: usize = 2_048_000;

fn report(setup: Setup, workload: Workload) -> Report {
    World::new(&setup.config(workload)).expect("a valid world").run().expect("it ends")
}

fn run(setup: Setup, write: bool) -> Report {
    report(setup, transfer(write, BYTES))
}

/// Returns the bytes on the wire of a frame with `tlps` TLPs with these headers.
fn frame(tlps: usize, header: usize) -> usize {
    let overhead = wire::raw::HEADER + wire::frame::HEADER;
    38 + overhead + FRAME_EXTRA + tlps * (header + MPS + TLP_EXTRA)
}

fn bound(tlps: usize, header: usize) -> f64 {
    LINE as f64 / 8e6 * (tlps * MPS) as f64 / frame(tlps, header) as f64
}

#[test]
fn the_published_figures_agree_with_each_other() {
    let published = published();
    let value = |name: &str| published.figure(name).value;
    let read = 64e6 / value("fio_64m_read_on");
    assert!((read - value("saturation_read")).abs() < 0.5, "64 MB are 64 x 10^6 bytes: {read}");
    let gains = [("read", 41.0), ("write", 38.4)];
    for (rw, expected) in gains {
        let [on, off] = ["on", "off"].map(|with| value(&format!("fio_64m_{rw}_{with}")));
        assert!((gain(off, on) - expected).abs() < 0.5, "{rw}: {}", gain(off, on));
    }
}

/// Only the two calibrated byte counts determine the read, so arithmetic confirms both counts.
#[test]
fn bytes_on_the_wire_explain_the_reads_and_the_difference_to_writes() {
    let published = published();
    let megabytes = |name: &str| 64e6 / published.figure(name).value;
    let within = |figure: &str, bound: f64, percent: f64| {
        let error = 100.0 * (bound / megabytes(figure) - 1.0);
        assert!(error.abs() < percent, "{figure}: {bound:.1}, {error:+.2} %");
    };
    within("fio_64m_read_off", bound(1, 16), 0.5);
    within("fio_64m_read_on", bound(9, 16), 0.8);
    // Completions have headers of 3 double words. This is not calibrated.
    within("fio_64m_write_off", bound(1, 12), 0.5);
    assert!(frame(9, 16) <= 1538 && frame(10, 12) > 1538, "nine of either fit");
}

#[test]
fn four_ssds_fill_the_line_with_and_without() {
    for (write, header) in [(false, 16), (true, 12)] {
        let [on, off] = POLICIES.map(|policy| run(Setup::new(policy, 4), write));
        assert_eq!(setup::tlps_per_frame(&off, write), 1.0);
        let share = |report: &Report, tlps| setup::throughput(report) / bound(tlps, header);
        let (with, without) = (share(&on, 9), share(&off, 1));
        assert!((0.94..1.0).contains(&with), "write {write}: {with}");
        assert!((0.96..1.0).contains(&without), "write {write}: {without}");
        let frames = setup::tlps_per_frame(&on, write);
        assert!((7.0..=9.1).contains(&frames), "write {write}: {frames} TLPs a frame");
    }
}

#[test]
fn aggregation_begins_at_two_ssds_and_at_half_the_rate() {
    for write in [false, true] {
        let frames = |setup: Setup| setup::tlps_per_frame(&run(setup, write), write);
        let one = Setup::new(POLICIES[0], 1);
        assert!(frames(one) < sweep::AGGREGATED, "write {write}");
        assert!(frames(Setup { ssds: 2, ..one }) >= sweep::AGGREGATED, "write {write}");
        assert!(frames(Setup { limit: LINE / 2, ..one }) >= sweep::AGGREGATED, "write {write}");
        assert!(frames(Setup { limit: LINE * 6 / 10, ..one }) < sweep::AGGREGATED);
    }
}

#[test]
fn small_transfers_take_as_long_with_aggregation_as_without() {
    let published = published();
    for (rw, write) in [("read", false), ("write", true)] {
        let latency_ns = |policy| setup::latency(&report(Setup::new(policy, 1), small(write)));
        let [on, off] = POLICIES.map(latency_ns);
        assert!(on <= off + 0.02, "{rw}: {on} with, {off} without");
        let figure = published.figure(&format!("fio_4k_{rw}_off")).value;
        assert!((off / figure - 1.0).abs() < 0.002, "{rw}: calibrated to {figure}, is {off}");
    }
}

/// The axis has only whole numbers of SSDs.
#[test]
fn the_axis_of_ssds_counts_them() {
    let point = |ssds| CurvePoint { rw: "read", ssds, on_mb_per_s: 900.0, ..CurvePoint::default() };
    let section = sweep::Sweep::Ssds.section(&[1, 2, 3, 4].map(point));
    let labels = section.plots[0].x.labels().into_iter().map(|(_, text)| text);
    assert_eq!(labels.collect::<Vec<_>>(), ["1", "2", "3", "4"]);
}

/// docs/experiments/expether.md contains the tables of this run. The time of the run is virtual, so
/// the tables are equal on any machine.
#[test]
fn the_policies_side_by_side_are_those_of_the_document() {
    let cases = ablation::simulate().expect("it runs");
    let [per_tlp, wait, hop, adaptive] = &cases[..] else { panic!("four policies") };
    assert!(per_tlp.read_mb_per_s < hop.read_mb_per_s, "the bridge merges");
    assert!(hop.read_mb_per_s < adaptive.read_mb_per_s, "but keeps more headers");
    assert!(hop.read_tlps_per_frame > 3.0, "{hop:?}");
    assert!(wait.read_4k_us > adaptive.read_4k_us + 1.0, "waiting costs time");
    assert!(wait.write_4k_us > adaptive.write_4k_us + 1.0, "waiting costs time");
    assert!(adaptive.read_4k_us <= per_tlp.read_4k_us + 0.02, "adaptive does not wait");
    assert!(adaptive.write_4k_us <= per_tlp.write_4k_us + 0.02, "adaptive does not wait");
    for text in ablation::section(&cases).table_texts().chain(parameter_section().table_texts()) {
        assert!(DOCUMENT.contains(&text), "docs/experiments/expether.md has not\n{text}");
    }
}

#[test]
fn the_same_run_twice_has_the_same_digest_and_another_policy_another() {
    let digest = |interconnect, policy| {
        let setup = Setup { interconnect, limit: LINE / 4, ..Setup::new(policy, 1) };
        report(setup, transfer(true, BYTES / 16)).digest
    };
    for interconnect in [Interconnect::Cable, Interconnect::Bridge, Interconnect::Hop] {
        let [first, second] = [1, 1].map(|policy| digest(interconnect, POLICIES[policy]));
        assert_eq!(first, second, "{interconnect:?}");
    }
    assert_ne!(digest(Interconnect::Bridge, POLICIES[1]), digest(Interconnect::Hop, POLICIES[1]));
    assert_ne!(digest(Interconnect::Cable, POLICIES[0]), digest(Interconnect::Cable, POLICIES[1]));
}

/// The table with short runs in place of the long ones: every figure has its row and its mark.
#[test]
fn every_published_figure_has_its_row() {
    let published = published();
    let point = |rw, ssds, limit_gbps, gain_percent, tlps_per_frame| {
        let throughput =
            CurvePoint { on_mb_per_s: 2.0, off_mb_per_s: 1.0, ..CurvePoint::default() };
        CurvePoint { rw, ssds, limit_gbps, gain_percent, tlps_per_frame, ..throughput }
    };
    let curve = |places: &[(u16, f64, f64, f64)]| -> Vec<CurvePoint> {
        let both = ["read", "write"].into_iter();
        both.flat_map(|rw| places.iter().map(move |p| point(rw, p.0, p.1, p.2, p.3))).collect()
    };
    let ssds = curve(&[(1, 10.0, 0.0, 1.0), (2, 10.0, 3.0, 1.1), (3, 10.0, 40.0, 9.0)]);
    let limits = curve(&[(1, 2.0, 41.5, 9.0), (1, 5.0, 3.0, 1.1), (1, 10.0, 0.0, 1.0)]);
    let times = table::Latencies {
        read_4k: [69.5, 69.5],
        write_4k: [98.2, 98.2],
        read_64m: [65_000.0, 91_000.0],
        write_64m: [65_000.0, 90_000.0],
        frames: [9.0, 8.0],
    };
    let table = Table::new(&published, &ssds, &limits, &times);
    let names: BTreeSet<&str> = table.rows.iter().map(|row| &row.figure[..]).collect();
    let figures: BTreeSet<&str> = published.figures.keys().map(|name| &name[..]).collect();
    assert_eq!(names, figures);
    let predicted = table.rows.iter().filter(|row| !row.calibrated).map(|row| &row.figure[..]);
    assert!(predicted.eq([
        "gain_write_ssds",
        "gain_write_rate",
        "fio_4k_read_on",
        "fio_4k_write_on",
        "fio_64m_write_on",
        "fio_64m_write_off",
    ]));
    assert_eq!(Figure::find(&table.rows, "onset_ssds").simulated, 2.0);
    assert_eq!(Figure::find(&table.rows, "gain_read_ssds").simulated, 40.0);
    assert_eq!(Figure::find(&table.rows, "saturation_read").simulated, 984.6);
    // Both curves have the same gain here, so that one statement fails.
    let broken = |table: &Table| table.statements.iter().filter(|one| !one.holds).count();
    assert_eq!(broken(&table), 1, "{:?}", table.statements);
    let worse = table::Latencies { read_4k: [70.0, 69.5], ..times };
    let table = Table::new(&published, &ssds, &limits, &worse);
    assert_eq!(broken(&table), 2, "4 KB got slower");
    let text = table.section(&published).text();
    assert!(text.contains("DOES NOT HOLD") && text.contains("-1.0 points"), "{text}");
}

/// The parts that take long are not run. Only the keys of their documents are checked.
#[test]
fn keys_of_the_long_parts_are_described() {
    let (statement, assumed) = (Statement::default(), Assumed::default());
    let document = serde_json::json!({
        "rows": [], "statements": [statement], "ssds": [CurvePoint::default()], "limits": [],
        "parameters": parameters(), "ablation": [], "assumed": [assumed],
    });
    every_key_is_described(&document);
}
