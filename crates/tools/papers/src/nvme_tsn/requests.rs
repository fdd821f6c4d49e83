//! The NVMe/TSN paper remarks that MRRS is not tuned for tunnels (section 2). This sweep changes
//! MPS, and size and number of the drive's DMA reads, over TCP at the paper's rate.

use super::{Experiment, RATE, Topology, drive, us};
use crate::{Runs, Section};
use report::Align::{Left, Right};
use report::{Axis, Failure, Plot, Scale, Table};
use schemars::JsonSchema;
use serde::Serialize;
use sim::Config;
use sim::workload::{Fio, Rw, Workload};
use sim::world::Attached;

const PAYLOADS: [usize; 3] = [128, 256, 512];
const READS: [usize; 6] = [128, 256, 512, 1024, 2048, 4096];
const IN_FLIGHT: [usize; 5] = [1, 2, 4, 8, 16];
/// The payload size for which runs with several commands in flight are made too.
const MIDDLE: usize = 256;
/// Number of commands in runs with several in flight, and how many are in flight.
const COMMANDS: u64 = 128;
const IODEPTH: usize = 8;
/// Maximum difference in per cent from the best setting that counts as equal.
const AS_GOOD: f64 = 1.0;

/// A setting of payload and request sizes.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct RequestsSetting {
    /// Max_Payload_Size in bytes.
    pub mps: usize,
    /// Max_Read_Request_Size in bytes. The drive's reads have this size.
    pub mrrs: usize,
    /// DMA reads that the drive keeps in flight.
    pub reads_in_flight: usize,
    /// Mean of 4 KiB writes, one at a time.
    pub write_4k_us: f64,
    /// Bytes per second of 4 KiB writes, eight at a time; null if this was not simulated.
    pub write_bytes_per_s: Option<u64>,
}

/// The smallest setting that is within 1 % of the best.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Recommendation {
    /// Max_Payload_Size in bytes.
    pub mps: usize,
    /// Max_Read_Request_Size in bytes.
    pub mrrs: usize,
    /// DMA reads that the drive keeps in flight.
    pub reads_in_flight: usize,
    /// Mean of 4 KiB writes with this setting.
    pub write_4k_us: f64,
    /// Mean of 4 KiB writes with the NVMe/TSN paper's parameters: completions of 128 bytes, reads
    /// of 256 bytes, two in flight.
    #[serde(rename = "as_in_the_brief_us")]
    pub as_published_us: f64,
}

/// A sweep of payload and request sizes.
#[derive(Clone, Debug, Default, JsonSchema, Serialize)]
pub struct Requests {
    /// The settings.
    pub rows: Vec<RequestsSetting>,
    /// 4 KiB reads by MPS: `[MPS, us]`. The reads in flight do not affect them.
    pub read_4k_us: Vec<(usize, f64)>,
    /// The recommended setting.
    pub recommendation: Recommendation,
}

/// Builds a configuration with this MPS, completions of the same size, and concurrent reads of
/// `mrrs` bytes.
fn tuned(workload: Workload, mps: usize, mrrs: usize, in_flight: usize) -> Config {
    let mut config = Topology::Tcp.config(workload, RATE);
    let host = &mut config.hosts[0];
    host.root.max_payload = mps;
    host.root.completion_size = mps;
    host.software.max_payload = mps;
    host.software.max_read_request = mrrs;
    if let Attached::Switch(switch) = &mut host.attached {
        switch.max_payload = mps;
    }
    let drive = drive(&mut config);
    drive.max_payload = mps;
    drive.read_request = mrrs;
    drive.reads_in_flight = in_flight;
    config
}

/// Simulates every setting.
///
/// # Errors
/// If a simulation fails.
pub fn simulate() -> Result<Requests, Failure> {
    let mut runs = Runs::default();
    let mut cases = Vec::new();
    let deep = Fio { size: 4096 * COMMANDS, ..Fio::new(Rw::Write, 4096, IODEPTH) };
    for mps in PAYLOADS {
        for mrrs in READS {
            for in_flight in IN_FLIGHT {
                let name = format!("MPS {mps}, MRRS {mrrs}, {in_flight} reads in flight");
                let one = tuned(Experiment::Write.workload(), mps, mrrs, in_flight);
                let at = runs.add(name.clone(), one);
                let many = (mps == MIDDLE).then(|| {
                    runs.add(name, tuned(Workload::Fio(deep.clone()), mps, mrrs, in_flight))
                });
                cases.push((mps, mrrs, in_flight, at, many));
            }
        }
    }
    let read = |mps| tuned(Experiment::Read.workload(), mps, 512, 2);
    let reads = PAYLOADS.map(|mps| (mps, runs.add(format!("reads with MPS {mps}"), read(mps))));
    let paper = runs.add("the paper's", Topology::Tcp.config(Experiment::Write.workload(), RATE));
    let reports = runs.run()?;
    type Places = (usize, usize, usize, usize, Option<usize>);
    let row = |(mps, mrrs, reads_in_flight, at, many): Places| {
        let write_4k_us = us(Experiment::Write.mean(&reports[at]));
        let write_bytes_per_s = many.map(|at| reports[at].hosts[0].throughput());
        RequestsSetting { mps, mrrs, reads_in_flight, write_4k_us, write_bytes_per_s }
    };
    let rows: Vec<RequestsSetting> = cases.into_iter().map(row).collect();
    let paper = us(Experiment::Write.mean(&reports[paper]));
    let recommendation = recommend(&rows, paper);
    let read_4k_us = reads.map(|(mps, at)| (mps, us(Experiment::Read.mean(&reports[at])))).into();
    Ok(Requests { rows, read_4k_us, recommendation })
}

/// Selects from all settings within [`AS_GOOD`] of the best: fewest bytes requested at once, then
/// smallest requests, then smallest payload.
pub(super) fn recommend(rows: &[RequestsSetting], as_published_us: f64) -> Recommendation {
    let best = rows.iter().map(|row| row.write_4k_us).fold(f64::INFINITY, f64::min);
    let good = rows.iter().filter(|row| row.write_4k_us <= best * (1.0 + AS_GOOD / 100.0));
    let least = good.min_by_key(|row| (row.mrrs * row.reads_in_flight, row.mps, row.mrrs));
    let &RequestsSetting { mps, mrrs, reads_in_flight, write_4k_us, .. } =
        least.expect("the best is as good as itself");
    Recommendation { mps, mrrs, reads_in_flight, write_4k_us, as_published_us }
}

/// Returns the results as tables, a plot and a recommendation.
pub fn section(requests: &Requests) -> Section {
    let mut tables = Vec::new();
    for mps in PAYLOADS {
        let title = format!("MPS {mps}: 4 KiB write, one at a time, us");
        tables.push((title, table(requests, mps, |row| format!("{:.2}", row.write_4k_us))));
    }
    let title = format!("MPS {MIDDLE}: 4 KiB writes, {IODEPTH} at a time, MB/s");
    let megabytes = |row: &RequestsSetting| {
        let bytes = row.write_bytes_per_s.unwrap_or_default();
        format!("{:.1}", bytes as f64 / 1e6)
    };
    tables.push((title, table(requests, MIDDLE, megabytes)));
    Section {
        title: "MPS, MRRS and reads in flight over TCP at 1 Gb/s".into(),
        tables,
        notes: notes(requests),
        plots: vec![plot(requests)],
    }
}

fn table(requests: &Requests, mps: usize, value: impl Fn(&RequestsSetting) -> String) -> Table {
    let heads = IN_FLIGHT.map(|number| format!("{number} in flight"));
    let heads = heads.iter().map(|head| (&head[..], Right));
    let mut table =
        Table::new(&[("MRRS, bytes", Left)].into_iter().chain(heads).collect::<Vec<_>>());
    for mrrs in READS {
        let rows = requests.rows.iter().filter(|row| row.mps == mps && row.mrrs == mrrs);
        table.row(std::iter::once(mrrs.to_string()).chain(rows.map(&value)).collect());
    }
    table
}

fn notes(requests: &Requests) -> Vec<String> {
    let best = &requests.recommendation;
    let reads = requests.read_4k_us.iter();
    let reads: Vec<String> = reads.map(|(mps, us)| format!("{us:.2} us with MPS {mps}")).collect();
    vec![
        "Here the drive uses all of MRRS and the host's completions all of MPS. The paper's drive \
         asks for 256 bytes, whatever MRRS says, and its host answers with 128."
            .to_owned(),
        format!(
            "Recommended: as many bytes asked for as a command moves. MPS {}, MRRS {} and {} reads \
             in flight are within {AS_GOOD} % of the best: {:.2} us a write where the paper's \
             drive takes {:.2} us.",
            best.mps, best.mrrs, best.reads_in_flight, best.write_4k_us, best.as_published_us
        ),
        format!("MPS changes the 4 KiB read little: {}.", reads.join(", ")),
    ]
}

fn plot(requests: &Requests) -> Plot {
    let range = (128.0, 4096.0);
    let x = Axis::new("MRRS, bytes", Scale::Log, |bytes| format!("{bytes:.0}"), range);
    let most = requests.rows.iter().map(|row| row.write_4k_us).fold(0.0, f64::max);
    let mut y = Axis::times("4 KiB write", 1.0, 2.0);
    (y.scale, y.range) = (Scale::Linear, (0.0, most * 1050.0));
    let mut plot = Plot::new("4 KiB write over TCP against MRRS, MPS 256", x, y);
    plot.names = requests.rows.iter().map(|row| (row.mrrs as f64, row.mrrs.to_string())).collect();
    plot.names.sort_by(|a, b| a.0.total_cmp(&b.0));
    plot.names.dedup();
    for number in IN_FLIGHT {
        let is_shown = |row: &&RequestsSetting| row.mps == 256 && row.reads_in_flight == number;
        let point = |row: &RequestsSetting| (row.mrrs as f64, row.write_4k_us * 1e3);
        let points = requests.rows.iter().filter(is_shown).map(point);
        plot.line(&format!("{number} in flight"), points);
    }
    plot
}
