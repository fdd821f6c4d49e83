//! Evaluations 1 and 2: throughput with and without aggregation, by number of SSDs, and by rate
//! limit with one SSD.

use super::setup::{self, LINE, POLICIES, Setup};
use crate::{Lab, Runs, Section, Simulation};
use report::Align::{Left, Right};
use report::{Axis, Column, Failure, Plot, Scale, Table};
use schemars::JsonSchema;
use serde::Serialize;

/// Numbers of SSDs in the RAID0.
const SSDS: [u16; 4] = [1, 2, 3, 4];
/// Rate limits in Gb/s.
const LIMITS: [u64; 6] = [1, 2, 4, 5, 6, 10];
/// Bytes of one sequential transfer. They are fewer than the paper's 64 MB to save time. The effect
/// of start and end is within 2 %.
pub const BYTES: usize = 4_096_000;
/// TLPs per frame above which TLPs count as aggregated: one of fifty shares a frame.
pub const AGGREGATED: f64 = 1.02;

/// The evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sweep {
    /// Evaluation 1.
    Ssds,
    /// Evaluation 2.
    Limits,
}

/// A point on one of the curves.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct CurvePoint {
    /// `read` or `write`.
    pub rw: &'static str,
    /// Number of SSDs in the RAID 0.
    pub ssds: u16,
    /// Rate limit in Gb/s.
    pub limit_gbps: f64,
    /// Throughput with aggregation, in 10^6 bytes per second.
    pub on_mb_per_s: f64,
    /// Throughput without aggregation, in 10^6 bytes per second.
    pub off_mb_per_s: f64,
    /// Gain of aggregation, in per cent.
    pub gain_percent: f64,
    /// TLPs per frame with aggregation, in the direction of the data.
    pub tlps_per_frame: f64,
}

impl CurvePoint {
    /// Returns whether TLPs share frames.
    pub fn is_aggregated(&self) -> bool {
        self.tlps_per_frame >= AGGREGATED
    }
}

/// Returns the points that read, or that write.
pub fn with_rw<'a>(points: &'a [CurvePoint], rw: &'a str) -> impl Iterator<Item = &'a CurvePoint> {
    points.iter().filter(move |point| point.rw == rw)
}

/// Returns the largest gain of aggregation.
pub fn most(points: &[CurvePoint], rw: &str) -> f64 {
    with_rw(points, rw).map(|point| point.gain_percent).fold(0.0, f64::max)
}

impl Sweep {
    fn places(self) -> Vec<(u16, u64)> {
        match self {
            Self::Ssds => SSDS.map(|ssds| (ssds, LINE)).to_vec(),
            Self::Limits => LIMITS.map(|limit| (1, limit * 1_000_000_000)).to_vec(),
        }
    }

    /// Simulates every point with and without aggregation, in a laboratory.
    ///
    /// # Errors
    /// If a simulation fails.
    pub fn simulate(self, lab: Lab) -> Result<Vec<CurvePoint>, Failure> {
        let mut runs = Runs::default();
        let mut cases = Vec::new();
        for (rw, write) in [("read", false), ("write", true)] {
            for (ssds, limit) in self.places() {
                for (policy, with) in POLICIES.into_iter().zip(["on", "off"]) {
                    let setup = Setup { limit, ..Setup::new(policy, ssds) };
                    let config = setup.config(setup::transfer(write, BYTES));
                    let (name, rows) = match self {
                        Self::Ssds => (
                            format!("{rw}_{ssds}_ssds_{with}"),
                            vec![format!("gain_{rw}_ssds"), "onset_ssds".to_owned()],
                        ),
                        Self::Limits => (
                            format!("{rw}_{}_gbps_{with}", limit / 1_000_000_000),
                            vec![format!("gain_{rw}_rate")],
                        ),
                    };
                    runs.add(name.clone(), lab(Simulation { name, rows, config })?);
                }
                cases.push((rw, write, ssds, limit));
            }
        }
        let reports = runs.run()?;
        let point = |((rw, write, ssds, limit), pair): (_, &[sim::world::Report])| {
            let [on_mb_per_s, off_mb_per_s] = [0, 1].map(|at| setup::throughput(&pair[at]));
            let gain_percent = setup::gain(on_mb_per_s, off_mb_per_s);
            let tlps_per_frame = setup::tlps_per_frame(&pair[0], write);
            let place =
                CurvePoint { rw, ssds, limit_gbps: limit as f64 / 1e9, ..CurvePoint::default() };
            CurvePoint { on_mb_per_s, off_mb_per_s, gain_percent, tlps_per_frame, ..place }
        };
        Ok(cases.into_iter().zip(reports.chunks(2)).map(point).collect())
    }

    /// Returns the points as tables and plots.
    pub fn section(self, points: &[CurvePoint]) -> Section {
        let (title, x): (_, Column<CurvePoint>) = match self {
            Self::Ssds => (
                "Evaluation 1: throughput against the number of SSDs",
                ("SSDs", Left, |point| point.ssds.to_string()),
            ),
            Self::Limits => (
                "Evaluation 2: throughput against the rate limit, one SSD",
                ("Gb/s", Left, |point| point.limit_gbps.to_string()),
            ),
        };
        let columns: [Column<CurvePoint>; 5] = [
            x,
            ("with, MB/s", Right, |point| format!("{:.1}", point.on_mb_per_s)),
            ("without, MB/s", Right, |point| format!("{:.1}", point.off_mb_per_s)),
            ("gain", Right, |point| format!("{:+.1} %", point.gain_percent + 0.0)),
            ("TLPs a frame, with", Right, |point| format!("{:.2}", point.tlps_per_frame)),
        ];
        let both = ["read", "write"];
        let table = |rw: &str| (rw.to_owned(), Table::from_rows(&columns, with_rw(points, rw)));
        let note = "Without aggregation a frame carries one TLP. The paper shows these curves as \
                    pictures; of their figures only the gains, the saturation and where \
                    aggregation begins are in words.";
        Section {
            title: title.into(),
            tables: both.map(table).into(),
            notes: vec![note.into()],
            plots: both.map(|rw| self.plot(rw, points)).into(),
        }
    }

    fn plot(self, rw: &str, points: &[CurvePoint]) -> Plot {
        type X = fn(&CurvePoint) -> f64;
        let (label, against, range, x): (_, _, _, X) = match self {
            Self::Ssds => {
                ("SSDs in the RAID0", "the number of SSDs", (1.0, 4.0), |point| point.ssds.into())
            }
            Self::Limits => {
                ("rate limit, Gb/s", "the rate limit", (0.0, 10.0), |point| point.limit_gbps)
            }
        };
        let axis = |label, range| Axis::new(label, Scale::Whole, |v| format!("{v:.0}"), range);
        let top = with_rw(points, rw).map(|point| point.on_mb_per_s).fold(0.0, f64::max);
        let y = axis("throughput, MB/s", (0.0, top * 1.1));
        let title = format!("{rw}: throughput against {against}");
        let mut plot = Plot::new(&title, axis(label, range), y);
        plot.line(
            "with aggregation",
            with_rw(points, rw).map(|point| (x(point), point.on_mb_per_s)),
        );
        plot.line("without", with_rw(points, rw).map(|point| (x(point), point.off_mb_per_s)));
        plot
    }
}
