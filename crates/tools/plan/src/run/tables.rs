//! Tables of results as CSV and Parquet, one file per table and format: `results`, `commands`,
//! `stages`, `links`, `streams`, `histograms`. Both worlds write the same tables, so rows of a simulation and
//! of its live run can be joined.
//!
//! Each row begins with the world, the run, its seed and the settings of a sweep. Times are whole
//! nanoseconds.

use super::document::{SimLatency, SimLink, SimReport, SimSegments, Stream, World};
use crate::Planned;
use columns::{Batch, Column, RowFiles, RowTarget, Schema, Targets, Value};
use report::target::Target;
use report::{Failure, Outcome};
use sim::ethernet::FrameStage;
use sim::measure::{CommandRecord, STAGES, Stage};
use stats::Latency;
use std::convert::Infallible;
use std::fs;
use std::path::{Path, PathBuf};
use wire::Instant;

/// Names of the tables.
const NAMES: [&str; 7] =
    ["results", "commands", "stages", "links", "streams", "histograms", "frames"];
/// Name of the plan's file.
pub(super) const PLAN: &str = "plan.toml";

const ORIGIN: [Column; 4] = [
    Column::text("world"),
    Column::unsigned("run", ""),
    Column::unsigned("seed", ""),
    Column::text("set"),
];

/// The columns of a latency; see [`latency`].
const LATENCY: [Column; 8] = [
    Column::unsigned("min_ns", "ns"),
    Column::unsigned("mean_ns", "ns"),
    Column::unsigned("p50_ns", "ns"),
    Column::unsigned("p90_ns", "ns"),
    Column::unsigned("p99_ns", "ns"),
    Column::unsigned("p99_9_ns", "ns"),
    Column::unsigned("max_ns", "ns"),
    Column::unsigned("jitter_ns", "ns"),
];

/// Returns the columns of all parts, one part after the other.
const fn joined<const ALL: usize>(parts: &[&[Column]]) -> [Column; ALL] {
    let mut all = [ORIGIN[0]; ALL];
    let (mut at, mut part) = (0, 0);
    while part < parts.len() {
        let mut column = 0;
        while column < parts[part].len() {
            all[at] = parts[part][column];
            (at, column) = (at + 1, column + 1);
        }
        part += 1;
    }
    assert!(at == ALL, "as many columns as the parts have");
    all
}

/// Returns the columns of the origin followed by the table's `own` columns.
const fn after_origin<const N: usize, const ALL: usize>(own: [Column; N]) -> [Column; ALL] {
    joined(&[&ORIGIN, &own])
}

/// The columns of the stages, in the order of `Stage::ALL`.
const STAGE_COLUMNS: [&str; STAGES] = [
    "host_software_ns",
    "host_memory_ns",
    "pcie_ns",
    "tunnel_queue_ns",
    "tcp_ns",
    "carrier_ns",
    "nic_ns",
    "egress_queue_ns",
    "gate_wait_ns",
    "shaper_wait_ns",
    "preempted_ns",
    "serialisation_ns",
    "propagation_ns",
    "bridge_ns",
    "controller_ns",
    "firmware_ns",
    "media_ns",
    "interrupt_ns",
];

const COMMANDS: [Column; 10 + STAGES] = {
    let mut all = [Column::optional("", "ns"); 10 + STAGES];
    let first: [Column; 10] = after_origin([
        Column::text("host"),
        Column::unsigned("drive", ""),
        Column::unsigned("queue", ""),
        Column::text("operation"),
        Column::unsigned("since_ns", "ns"),
        Column::unsigned("latency_ns", "ns"),
    ]);
    let mut at = 0;
    while at < all.len() {
        match at {
            0..10 => all[at] = first[at],
            _ => all[at].name = STAGE_COLUMNS[at - 10],
        }
        at += 1;
    }
    all
};

const STAGE_TABLE: [Column; 7] =
    after_origin([Column::text("stage"), Column::text("statistic"), Column::unsigned("ns", "ns")]);

const LINKS: [Column; 9] = after_origin([
    Column::text("link"),
    Column::unsigned("utilisation_ppm", "ppm"),
    Column::unsigned("packets", ""),
    Column::unsigned("bytes", "B"),
    Column::unsigned("busy_ns", "ns"),
]);

const STREAMS: [Column; 21] = joined(&[
    &ORIGIN,
    &[
        Column::text("stream"),
        Column::text("listener"),
        Column::unsigned("sent", ""),
        Column::unsigned("arrived", ""),
        Column::unsigned("lost", ""),
        Column::unsigned("late", ""),
        Column::unsigned("duplicates", ""),
        Column::unsigned("overtaken", ""),
        Column::unsigned("backlog_bytes", "B"),
    ],
    &LATENCY,
]);

/// Columns of a host, or of a stream at a listener.
pub(super) const RESULTS: [Column; 23] = joined(&[
    &ORIGIN,
    &[
        Column::text("digest"),
        Column::text("kind"),
        Column::text("name"),
        Column::text("listener"),
        Column::unsigned("n", ""),
    ],
    &LATENCY,
    &[
        Column::optional("bytes", "B"),
        Column::optional("span_ns", "ns"),
        Column::optional("iops", "1/s"),
        Column::optional("failures", ""),
        Column::optional("lost", ""),
        Column::optional("late", ""),
    ],
]);

const HISTOGRAMS: [Column; 9] = after_origin([
    Column::text("kind"),
    Column::text("name"),
    Column::unsigned("least_ns", "ns"),
    Column::unsigned("largest_ns", "ns"),
    Column::unsigned("count", ""),
]);

/// Columns of a frame: `FrameStage::ALL` behind the other ones.
const FRAMES: [Column; 9 + FrameStage::COUNT] = after_origin([
    Column::text("stream"),
    Column::text("listener"),
    Column::unsigned("number", ""),
    Column::unsigned("sent_ns", "ns"),
    Column::unsigned("latency_ns", "ns"),
    Column::unsigned("nic_ns", "ns"),
    Column::unsigned("queue_ns", "ns"),
    Column::unsigned("gate_ns", "ns"),
    Column::unsigned("shaper_ns", "ns"),
    Column::unsigned("preempted_ns", "ns"),
    Column::unsigned("serialisation_ns", "ns"),
    Column::unsigned("propagation_ns", "ns"),
    Column::unsigned("bridge_ns", "ns"),
]);

/// Numbers of a frame: its own, sent, latency, stages.
pub(super) const FRAME_NUMBERS: usize = 3 + FrameStage::COUNT;

/// The folders of `--csv` and `--parquet`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TableFolders {
    /// Folder of the CSV files.
    pub csv: Option<PathBuf>,
    /// Folder of the Parquet files.
    pub parquet: Option<PathBuf>,
    /// Whether there is a table of all frames of streams.
    pub frames: bool,
}

/// The run to which a row belongs.
#[derive(Clone, Copy, Debug)]
pub struct RowOrigin<'a> {
    /// World of the run.
    pub world: World,
    /// Number of the run, from 0. With `--phases` the number of the trial.
    pub run: u64,
    /// Seed of the run.
    pub seed: u64,
    /// Settings of a combination of a sweep, such as `link.rate=1G drive.mps=256`; else empty.
    pub set: &'a str,
}

/// A finished command.
#[derive(Clone, Copy, Debug)]
pub struct CommandRow<'a> {
    /// Name of the host.
    pub host: &'a str,
    /// Number of the drive at the host, from 0.
    pub drive: u64,
    /// Number of the submission queue.
    pub queue: u64,
    /// The operation, such as `read`.
    pub operation: &'a str,
    /// Time at which the application submitted the command, from the beginning of the run.
    pub since_ns: u64,
    /// Time until the application had the result.
    pub latency_ns: u64,
    /// Time in each stage, in the order of `Stage::ALL`; `None` if it was not measured.
    pub stages: [Option<u64>; STAGES],
}

/// The tables of one program run. Another thread writes each table, so rows wait only for a slow
/// disk.
#[derive(Debug)]
pub struct Tables {
    results: RowTarget,
    commands: RowTarget,
    stages: RowTarget,
    links: RowTarget,
    streams: RowTarget,
    histograms: RowTarget,
    frames: Option<RowTarget>,
}

impl TableFolders {
    /// Returns the requested folders.
    pub fn all(&self) -> impl Iterator<Item = &Path> {
        self.csv.iter().chain(&self.parquet).map(PathBuf::as_path)
    }

    /// Creates the requested folders. A folder may exist if it is empty.
    ///
    /// # Errors
    /// One line that names the folder.
    pub fn create(&self) -> Outcome {
        let is_free = |folder: &Path| {
            fs::create_dir_all(folder)?;
            Ok::<bool, std::io::Error>(fs::read_dir(folder)?.next().is_none())
        };
        self.all().try_for_each(|folder| match is_free(folder) {
            Ok(true) => Ok(()),
            Ok(false) => Err(Failure(format!(
                "folder {} is not empty: remove its files, or name another folder",
                folder.display()
            ))),
            Err(error) => Err(Failure(format!("cannot create {}: {error}", folder.display()))),
        })
    }

    /// Creates the requested folders with the text of the plan, and begins the tables; `None` if no
    /// folder is requested.
    ///
    /// # Errors
    /// One line that names a folder with other files, or a file that cannot be written.
    pub fn begin(&self, plan: &str) -> Result<Option<Tables>, Failure> {
        self.create()?;
        for folder in self.all() {
            let path = folder.join(PLAN);
            let failed = |error| Failure(format!("cannot write {}: {error}", path.display()));
            fs::write(&path, plan).map_err(failed)?;
        }
        Tables::create(self)
    }
}

impl Tables {
    /// Begins all files in the requested folders, which exist; `None` if there are no folders.
    ///
    /// # Errors
    /// One line that names a file.
    pub fn create(folders: &TableFolders) -> Result<Option<Self>, Failure> {
        if folders.all().next().is_none() {
            return Ok(None);
        }
        let file = |folder: &Option<PathBuf>, name: &str, ending: &str| {
            let path = folder.as_ref()?.join(name).with_extension(ending);
            Some(Target::File(path))
        };
        let table = |name: &str, schema| {
            let csv = file(&folders.csv, name, "csv");
            let parquet = file(&folders.parquet, name, "parquet");
            let targets = Targets { csv: csv.as_ref(), parquet: parquet.as_ref() };
            let files = RowFiles::create(targets, schema)?.expect("a folder");
            Ok::<_, Failure>(RowTarget::Files(files))
        };
        Self::of(folders.frames, table).map(Some)
    }

    /// Begins tables in memory; with a table of frames if `frames`.
    pub(super) fn in_memory(frames: bool) -> Self {
        let table = |_: &str, schema| Ok::<_, Infallible>(RowTarget::Memory(Batch::new(schema)));
        let Ok(tables) = Self::of(frames, table);
        tables
    }

    fn of<E>(
        frames: bool,
        table: impl Fn(&str, Schema) -> Result<RowTarget, E>,
    ) -> Result<Self, E> {
        let [results, commands, stages, links, streams, histograms, all_frames] = NAMES;
        Ok(Self {
            results: table(results, &RESULTS)?,
            commands: table(commands, &COMMANDS)?,
            stages: table(stages, &STAGE_TABLE)?,
            links: table(links, &LINKS)?,
            streams: table(streams, &STREAMS)?,
            histograms: table(histograms, &HISTOGRAMS)?,
            frames: frames.then(|| table(all_frames, &FRAMES)).transpose()?,
        })
    }

    fn into_targets(self) -> impl Iterator<Item = (&'static str, RowTarget)> {
        let all =
            [self.results, self.commands, self.stages, self.links, self.streams, self.histograms];
        NAMES.into_iter().zip(all.into_iter().chain(self.frames))
    }

    /// Returns the tables in memory with their names.
    pub(super) fn into_batches(self) -> Vec<(&'static str, Batch)> {
        let batch = |(name, target)| match target {
            RowTarget::Memory(batch) => Some((name, batch)),
            RowTarget::Files(_) => None,
        };
        self.into_targets().filter_map(batch).collect()
    }

    /// Adds a command.
    pub fn command(&mut self, origin: &RowOrigin<'_>, row: &CommandRow<'_>) {
        let mut cells = [Value::Optional(None); 10 + STAGES];
        cells[..4].copy_from_slice(&start(origin));
        cells[4..10].copy_from_slice(&[
            Value::Text(row.host),
            Value::Unsigned(row.drive),
            Value::Unsigned(row.queue),
            Value::Text(row.operation),
            Value::Unsigned(row.since_ns),
            Value::Unsigned(row.latency_ns),
        ]);
        for (cell, ns) in cells[10..].iter_mut().zip(row.stages) {
            *cell = Value::Optional(ns);
        }
        self.commands.push(Instant::ZERO, &cells);
    }

    /// Adds the commands of a run; those of a simulation with their times by stage.
    pub fn commands(
        &mut self,
        origin: &RowOrigin<'_>,
        planned: &Planned,
        commands: &[CommandRecord],
    ) {
        for command in commands {
            let stage = |stage| command.breakdown.get(stage).as_ns();
            let host = planned.hosts.get(usize::from(command.host));
            let row = CommandRow {
                host: host.map_or("", String::as_str),
                drive: command.drive.into(),
                queue: command.queue.into(),
                operation: command.op.name(),
                since_ns: command.since.as_ns(),
                latency_ns: (command.until - command.since).as_ns(),
                stages: Stage::ALL.map(|one| (origin.world == World::Sim).then(|| stage(one))),
            };
            self.command(origin, &row);
        }
    }

    /// Adds the mean, the median and the 99th percentile of each stage.
    pub fn stages(&mut self, origin: &RowOrigin<'_>, segments: &SimSegments) {
        let SimSegments { mean, median, p99, .. } = segments;
        for (statistic, parts) in [("mean", mean), ("median", median), ("p99", p99)] {
            for part in parts {
                let texts = [&*part.segment, statistic].map(Value::Text);
                push(&mut self.stages, origin, &texts, &[part.ns]);
            }
        }
    }

    /// Adds one direction of a link.
    pub fn link(&mut self, origin: &RowOrigin<'_>, link: &SimLink) {
        let numbers = [link.utilisation_ppm, link.packets, link.bytes, link.busy_ns];
        push(&mut self.links, origin, &[Value::Text(&link.link)], &numbers);
    }

    /// Adds a stream, a row for each listener.
    pub fn stream(&mut self, origin: &RowOrigin<'_>, stream: &Stream) {
        for own in &stream.listeners {
            let counts = [own.arrived, own.lost, own.late, own.duplicates, own.overtaken];
            let times = latency(&own.latency_ns);
            let numbers = [&[stream.sent], &counts[..], &[stream.backlog_bytes], &times].concat();
            let names = [&stream.name, &own.station].map(|name| Value::Text(name));
            push(&mut self.streams, origin, &names, &numbers);
        }
    }

    /// Adds a frame, if there is a table of frames.
    pub(super) fn frame(
        &mut self,
        origin: &RowOrigin<'_>,
        names: [&str; 2],
        numbers: &[u64; FRAME_NUMBERS],
    ) {
        let Some(frames) = &mut self.frames else { return };
        push(frames, origin, &names.map(Value::Text), numbers);
    }

    /// Adds the distribution of a latency. `kind` is `host` or `stream`, `name` its name. A row
    /// counts the samples from `least_ns` to `largest_ns`, which have the same three significant
    /// digits.
    pub fn histogram(&mut self, origin: &RowOrigin<'_>, (kind, name): (&str, &str), all: &Latency) {
        for (least, largest, count) in all.bins().used() {
            let texts = [kind, name].map(Value::Text);
            push(&mut self.histograms, origin, &texts, &[least, largest, count]);
        }
    }

    /// Adds everything of a simulation but its commands.
    pub fn document(&mut self, origin: &RowOrigin<'_>, document: &SimReport) {
        results(origin, document, |row| self.results.push(Instant::ZERO, row));
        document.segments.iter().for_each(|segments| self.stages(origin, segments));
        document.links.iter().for_each(|link| self.link(origin, link));
        document.streams.iter().for_each(|stream| self.stream(origin, stream));
        let hosts = document.measured.hosts.iter().map(|(name, all)| ("host", name, all));
        hosts.for_each(|(kind, name, all)| self.histogram(origin, (kind, name), all));
        let streams = document.stream_rows().into_iter().zip(&document.measured.streams);
        for ((name, ..), all) in streams {
            self.histogram(origin, ("stream", &name), all);
        }
    }

    /// Ends the files. `plan` is the text of the plan, for the metadata of Parquet files.
    ///
    /// # Errors
    /// One line that names the files that are incomplete.
    pub fn finish(self, plan: &str) -> Outcome {
        let metadata = [
            ("farlane.version", env!("CARGO_PKG_VERSION").to_owned()),
            ("farlane.plan", plan.to_owned()),
        ];
        let ended = |(_, target)| match target {
            RowTarget::Files(files) => files.finish(&metadata),
            RowTarget::Memory(_) => Ok(()),
        };
        let failed: Vec<String> =
            self.into_targets().filter_map(|table| ended(table).err()).map(|why| why.0).collect();
        if failed.is_empty() { Ok(()) } else { Err(Failure(failed.join("; "))) }
    }
}

/// Makes the rows of the hosts and streams of a simulation.
pub(super) fn results(
    origin: &RowOrigin<'_>,
    document: &SimReport,
    mut push: impl FnMut(&[Value<'_>]),
) {
    let mut row = |texts: [&str; 3], ns: &SimLatency, own: [Option<u64>; 6]| {
        let texts = [document.digest.as_str()].into_iter().chain(texts).map(Value::Text);
        let times = [ns.n].into_iter().chain(latency(ns)).map(Value::Unsigned);
        let cells = start(origin).into_iter().chain(texts).chain(times);
        push(&cells.chain(own.map(Value::Optional)).collect::<Vec<_>>());
    };
    for host in &document.hosts {
        let failures = host.failures + host.mismatches;
        let own = [host.bytes, host.span_ns, host.iops, failures].map(Some);
        let [bytes, span, iops, failures] = own;
        row(["host", &host.host, ""], &host.latency_ns, [bytes, span, iops, failures, None, None]);
    }
    for (_, stream, own) in document.stream_rows() {
        let counts = [None, None, None, None, Some(own.lost), Some(own.late)];
        row(["stream", &stream.name, &own.station], &own.latency_ns, counts);
    }
}

/// Returns the values of [`LATENCY`].
fn latency(ns: &SimLatency) -> [u64; LATENCY.len()] {
    [ns.min, ns.mean, ns.p50, ns.p90, ns.p99, ns.p99_9, ns.max, ns.jitter]
}

fn start<'a>(origin: &RowOrigin<'a>) -> [Value<'a>; 4] {
    let RowOrigin { world, run, seed, set } = *origin;
    [Value::Text(world.name()), Value::Unsigned(run), Value::Unsigned(seed), Value::Text(set)]
}

fn push(file: &mut RowTarget, origin: &RowOrigin<'_>, texts: &[Value<'_>], numbers: &[u64]) {
    let numbers: Vec<_> = numbers.iter().map(|number| Value::Unsigned(*number)).collect();
    file.push(Instant::ZERO, &[&start(origin)[..], texts, &numbers].concat());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_stage_has_its_column() {
        let names = Stage::ALL.map(|stage| format!("{}_ns", stage.name()));
        assert_eq!(names.each_ref().map(String::as_str), STAGE_COLUMNS);
        let names = FrameStage::ALL.map(|stage| format!("{}_ns", stage.name()));
        assert_eq!(names.each_ref().map(String::as_str), FRAMES.map(|column| column.name)[9..]);
    }
}
