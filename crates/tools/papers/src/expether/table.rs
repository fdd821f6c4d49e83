//! Comparison of the published figures with the simulated ones, and checks of the paper's
//! statements without figures.

use super::Published;
use super::setup::{self, LINE, POLICIES, Setup};
use super::sweep::{CurvePoint, most, with_rw};
use crate::{Figure, Lab, Runs, Section, Simulation, percent};
use report::Align::{Left, Right};
use report::{self, Column, Failure};
use schemars::JsonSchema;
use serde::Serialize;

/// Number of SSDs of the 64 MB transfers. Ethernet is the bottleneck.
const MANY: u16 = 4;
/// Bytes of a large transfer. "64MB" is 64 times 10^6 bytes: at 982 MB/s it takes 65180 us.
const LARGE: usize = 64_000_000;

/// Mean times of evaluation 3 in microseconds: with and without aggregation.
#[derive(Clone, Copy, Debug)]
pub struct Latencies {
    pub(super) read_4k: [f64; 2],
    pub(super) write_4k: [f64; 2],
    pub(super) read_64m: [f64; 2],
    pub(super) write_64m: [f64; 2],
    /// TLPs per frame of the 64 MB read and write with aggregation.
    pub(super) frames: [f64; 2],
}

impl Latencies {
    /// Runs evaluation 3 in a laboratory.
    pub fn simulate(lab: Lab) -> Result<Self, Failure> {
        let mut runs = Runs::default();
        let large = |rw, write| (rw, MANY, setup::transfer(write, LARGE));
        let small = |rw, write| (rw, 1, setup::small(write));
        // The long runs are first, so that parallel runs end together.
        for (load, ssds, workload) in [
            large("64m_read", false),
            large("64m_write", true),
            small("4k_read", false),
            small("4k_write", true),
        ] {
            for (policy, with) in POLICIES.into_iter().zip(["on", "off"]) {
                let name = format!("fio_{load}_{with}");
                let config = Setup::new(policy, ssds).config(workload.clone());
                let saturation = (name == "fio_64m_read_on").then(|| "saturation_read".to_owned());
                let rows = [name.clone()].into_iter().chain(saturation).collect();
                runs.add(name.clone(), lab(Simulation { name, rows, config })?);
            }
        }
        let reports = runs.run()?;
        let pair = |at: usize| [at, at + 1].map(|at| setup::latency(&reports[at]));
        let frames = [(0, false), (2, true)];
        Ok(Self {
            read_64m: pair(0),
            write_64m: pair(2),
            read_4k: pair(4),
            write_4k: pair(6),
            frames: frames.map(|(at, write)| setup::tlps_per_frame(&reports[at], write)),
        })
    }
}

/// A statement of the aggregation paper without a figure.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Statement {
    /// The statement, close to the words of the paper.
    pub statement: &'static str,
    /// The simulated figures.
    pub simulated: String,
    /// Whether the simulation agrees.
    pub holds: bool,
}

/// Published figures and statements, compared with the simulation.
#[derive(Clone, Debug)]
pub struct Table {
    /// The published figures, in the order of the evaluations.
    pub rows: Vec<Figure>,
    /// The statements without figures.
    pub statements: Vec<Statement>,
}

const CALIBRATED: &str = "chose the bytes of encapsulation a frame and a TLP, with its other half";
const FOLLOWS: &str = "follows from the two 64 MB reads, which chose the encapsulation";
const SSD: &str = "chose the rate of an SSD, with the 5 Gb/s of evaluation 2: the same load";
const PREDICTED: &str = "predicted";
const DRIVE: &str = "chose the drive's and the host's time for a command";

impl Table {
    /// Computes the table from the three evaluations.
    pub fn new(
        published: &Published,
        ssds: &[CurvePoint],
        limits: &[CurvePoint],
        times: &Latencies,
    ) -> Self {
        let mut rows = Vec::new();
        let mut row = |figure: &str, simulated: f64, calibrated, note| {
            let known = published.figure(figure);
            let unit = ["MB/s", "%", "SSDs", "us"].into_iter().find(|unit| *unit == known.unit);
            let name = (figure.to_owned(), unit.expect("a known unit"));
            rows.push(Figure::new(name, (known.value, simulated), (calibrated, note)));
        };
        row("saturation_read", saturation(times), true, FOLLOWS);
        row("gain_read_ssds", most(ssds, "read"), true, FOLLOWS);
        row("gain_write_ssds", most(ssds, "write"), false, PREDICTED);
        let onset = with_rw(ssds, "read").find(|point| point.is_aggregated());
        row("onset_ssds", onset.map_or(0.0, |point| point.ssds.into()), true, SSD);
        row("gain_read_rate", most(limits, "read"), true, FOLLOWS);
        row("gain_write_rate", most(limits, "write"), false, PREDICTED);
        row("fio_4k_read_on", times.read_4k[0], false, PREDICTED);
        row("fio_4k_read_off", times.read_4k[1], true, DRIVE);
        row("fio_4k_write_on", times.write_4k[0], false, PREDICTED);
        row("fio_4k_write_off", times.write_4k[1], true, DRIVE);
        row("fio_64m_read_on", times.read_64m[0], true, CALIBRATED);
        row("fio_64m_read_off", times.read_64m[1], true, CALIBRATED);
        row("fio_64m_write_on", times.write_64m[0], false, PREDICTED);
        row("fio_64m_write_off", times.write_64m[1], false, PREDICTED);
        Self { rows, statements: statements(ssds, limits, times) }
    }

    /// Returns the table for a terminal and a page.
    pub fn section(&self, published: &Published) -> Section {
        let names = [("figure", Left), ("unit", Left), ("published", Right)];
        let more = [("simulated", Right), ("error", Right), ("", Left), ("source", Left)];
        let mut table = report::Table::new(&[&names[..], &more].concat());
        for row in &self.rows {
            let value = |value: f64| match row.unit {
                "us" if value < 1000.0 => format!("{value:.2}"),
                "%" => format!("{value:.1}"),
                _ => format!("{value:.0}"),
            };
            let error = match row.unit {
                "%" => format!("{:+.1} points", row.simulated - row.published),
                _ => percent(row.error_percent),
            };
            let (figure, mark) = (row.figure.clone(), if row.calibrated { "c" } else { "" });
            let (unit, source) = (row.unit.to_owned(), published.figure(&figure).source.clone());
            let (then, now) = (value(row.published), value(row.simulated));
            table.row(vec![figure, unit, then, now, error, mark.to_owned(), source]);
        }
        let checks: [Column<Statement>; 3] = [
            ("the paper", Left, |one| one.statement.to_owned()),
            ("simulated", Left, |one| one.simulated.clone()),
            ("", Left, |one| if one.holds { "holds" } else { "DOES NOT HOLD" }.to_owned()),
        ];
        let checks = report::Table::from_rows(&checks, &self.statements);
        Section {
            title: "Published and simulated".into(),
            tables: vec![(String::new(), table), ("Said in words".to_owned(), checks)],
            notes: NOTES.map(str::to_owned).into(),
            plots: Vec::new(),
        }
    }
}

const NOTES: [&str; 2] = [
    "c: calibrated, a parameter was chosen by it, or it follows from such a row by arithmetic; \
     everything else is predicted. Two bytes counts, a frame and a TLP, were chosen by the two 64 MB \
     reads; the drive's time for a command by the 4 KB read and write without aggregation; the rate \
     of an SSD by where aggregation begins.",
    "Gains are the largest of the curves below, as the paper gives them (\"up to\"). Throughput is \
     10^6 bytes a second.",
];

/// Returns the throughput of the 64 MB read in MB/s, one decimal.
fn saturation(times: &Latencies) -> f64 {
    (LARGE as f64 / times.read_64m[0] * 10.0).round() / 10.0
}

fn statements(ssds: &[CurvePoint], limits: &[CurvePoint], times: &Latencies) -> Vec<Statement> {
    let mut all = Vec::new();
    let mut state = |statement, simulated: String, holds| {
        all.push(Statement { statement, simulated, holds });
    };
    let onset =
        |rw| with_rw(ssds, rw).find(|point| point.is_aggregated()).map_or(0, |point| point.ssds);
    let onsets = ["read", "write"].map(onset);
    state(
        "TLPs were started to be aggregated when #SSDs was two",
        format!("from {} SSDs on in reads, {} in writes", onsets[0], onsets[1]),
        onsets == [2, 2],
    );
    let begin = |rw| {
        let aggregated = with_rw(limits, rw).filter(|point| point.is_aggregated());
        aggregated.map(|point| point.limit_gbps).fold(0.0, f64::max)
    };
    let begins = ["read", "write"].map(begin);
    state(
        "limiting Ethernet below 5 Gb/s had TLPs be aggregated",
        format!("from {} Gb/s down in reads, {} in writes", begins[0], begins[1]),
        begins == [5.0, 5.0],
    );
    let full = LINE as f64 / 1e9;
    let at_full: Vec<f64> =
        limits.iter().filter(|it| it.limit_gbps == full).map(|it| it.gain_percent).collect();
    state(
        "no improvement when Ethernet bandwidth was 10 Gb/s (one SSD)",
        format!("{:+.1} % read, {:+.1} % write", at_full[0] + 0.0, at_full[1] + 0.0),
        at_full.iter().all(|gain| gain.abs() < 1.0),
    );
    let added = [times.read_4k, times.write_4k].map(|[on, off]| on - off);
    state(
        "4 KB: no degradation",
        format!("{:+.2} us read, {:+.2} us write", added[0] + 0.0, added[1] + 0.0),
        added.iter().all(|added| *added < 0.05),
    );
    let shorter = [times.read_64m, times.write_64m].map(|[on, off]| (1.0 - on / off) * 100.0);
    state(
        "64 MB: latency improved",
        format!("{:.1} % less read, {:.1} % less write", shorter[0], shorter[1]),
        shorter.iter().all(|less| *less > 20.0),
    );
    let gains = ["read", "write"].map(|rw| most(ssds, rw));
    state(
        "the improvement is better for read",
        format!("{:.1} % read, {:.1} % write", gains[0], gains[1]),
        // The difference must exceed rounding.
        gains[0] > gains[1] + 0.5,
    );
    let frames = times.frames;
    state(
        "... since responses of DMA requests are waited for to send next ones",
        format!("{:.1} TLPs a frame in the 64 MB read, {:.1} in the write", frames[0], frames[1]),
        frames[0] > frames[1],
    );
    all
}
