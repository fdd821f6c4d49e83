//! The tables of the simulations of a run, a sweep or phases.
//!
//! Simulations run in parallel. Each writes its commands into a file of its own, the *part*. When
//! all have ended, the tables are written from parts and documents in the order of the simulations,
//! and the parts are removed. Memory is bounded for any number of commands, unless tables and parts
//! are in memory.

use super::document::SimReport;
use super::part_file::{MemoryParts, PartFile};
use super::tables::{CommandRow, FRAME_NUMBERS, PLAN, RowOrigin, TableFolders, Tables};
use crate::Planned;
use columns::Batch;
use report::{Failure, Outcome};
use sim::ethernet::traffic::StreamId;
use sim::ethernet::{Frame, FrameStage};
use sim::measure::{CommandRecord, Observer, Op, STAGES};
use std::collections::BTreeMap;
use std::fs;
use std::io::{self, BufRead, Read, Write};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use wire::Instant;

/// Name of the folder of the parts.
const PARTS: &str = "parts";
/// Numbers of a command in a part: host, drive, queue, operation, begin and latency in ns, then the
/// stages in ns, each with eight bytes, least significant byte first.
const NUMBERS: usize = 6 + STAGES;
const BYTES: u64 = 8 * NUMBERS as u64;
/// Ending of the parts of frames: stream and listener, then the numbers of the table.
const FRAMES: &str = "frames";

/// The tables of the simulations of one call. The first error of a file is kept until
/// [`finish`](Self::finish), so results can be printed before.
#[derive(Debug)]
pub struct RunTables {
    folders: TableFolders,
    parts: PathBuf,
    /// Instead of files.
    memory: Option<Memory>,
    /// Text of the plan.
    plan: String,
    /// Whether the tables are written.
    is_written: AtomicBool,
    failure: Mutex<Option<Failure>>,
}

/// Parts and tables in memory.
#[derive(Debug, Default)]
struct Memory {
    parts: MemoryParts,
    tables: Mutex<Vec<(&'static str, Batch)>>,
}

/// A simulation in the tables.
pub(super) struct Simulated<'a> {
    /// Number of the simulation's part.
    pub part: usize,
    pub run: u64,
    pub set: &'a str,
    pub planned: &'a Planned,
    pub document: &'a SimReport,
}

impl RunTables {
    /// Creates the folders, with the text of the plan; `None` if no folder is requested.
    ///
    /// # Errors
    /// One line that names a folder with other files, or a folder that cannot be written.
    pub fn create(folders: TableFolders, plan: &str) -> Result<Option<Self>, Failure> {
        let Some(parts) = folders.all().next().map(|folder| folder.join(PARTS)) else {
            return Ok(None);
        };
        folders.create()?;
        let failed = |error| Failure(format!("cannot write {}: {error}", parts.display()));
        fs::create_dir_all(&parts).map_err(failed)?;
        for folder in folders.all() {
            fs::write(folder.join(PLAN), plan).map_err(failed)?;
        }
        let (plan, is_written, failure) =
            (plan.to_owned(), AtomicBool::new(false), Mutex::default());
        let memory = None;
        Ok(Some(Self { folders, parts, memory, plan, is_written, failure }))
    }

    /// Begins tables in memory; with a table of frames if `frames`.
    pub fn in_memory(frames: bool) -> Self {
        Self {
            folders: TableFolders { frames, ..TableFolders::default() },
            parts: PathBuf::new(),
            memory: Some(Memory::default()),
            plan: String::new(),
            is_written: AtomicBool::new(false),
            failure: Mutex::default(),
        }
    }

    /// Returns the tables in memory with their names; none before a run has ended.
    pub fn into_batches(mut self) -> Vec<(&'static str, Batch)> {
        let memory = self.memory.take().unwrap_or_default();
        memory.tables.into_inner().expect("no writer panics")
    }

    fn part(&self, number: usize) -> PathBuf {
        self.parts.join(number.to_string())
    }

    /// Begins a part.
    pub(super) fn begin(&self, number: usize) -> Part {
        let parts = self.memory.as_ref().map(|memory| &memory.parts);
        let file = |path: PathBuf| PartFile::create(path, parts);
        let frames = self.part(number).with_extension(FRAMES);
        Part {
            commands: file(self.part(number)),
            frames: self.folders.frames.then(|| file(frames)),
        }
    }

    fn open(&self, part: PathBuf) -> io::Result<Box<dyn BufRead>> {
        PartFile::open(part, self.memory.as_ref().map(|memory| &memory.parts))
    }

    /// Writes the tables of runs or trials that have no settings. Runs without a document have not
    /// ended.
    pub(super) fn write_runs(&self, plans: &[Planned], documents: &[Option<SimReport>]) {
        let all = plans.iter().zip(documents).enumerate();
        let all = all.filter_map(|(part, (planned, document))| {
            let document = document.as_ref()?;
            Some(Simulated { part, run: part as u64, set: "", planned, document })
        });
        self.write(all);
    }

    /// Writes the tables of these simulations.
    pub(super) fn write<'a>(&self, all: impl IntoIterator<Item = Simulated<'a>>) {
        let written = self.write_all(all);
        self.is_written.store(true, Ordering::Relaxed);
        *self.failure.lock().expect("no writer panics") = written.err();
    }

    fn write_all<'a>(&self, all: impl IntoIterator<Item = Simulated<'a>>) -> Outcome {
        let tables = match self.memory {
            Some(_) => Some(Tables::in_memory(self.folders.frames)),
            None => Tables::create(&self.folders)?,
        };
        let Some(mut tables) = tables else { return Ok(()) };
        let mut incomplete = Ok(());
        for Simulated { part, run, set, planned, document } in all {
            let origin = RowOrigin { world: document.world, run, seed: document.seed, set };
            let measured = &document.measured;
            let copied = match &measured.part_failed {
                Some(error) => Err(io::Error::other(error.clone())),
                None => self
                    .commands(part, measured.commands, (planned, &origin), &mut tables)
                    .and_then(|()| self.frames(part, (planned, &origin), &mut tables)),
            };
            if let Err(error) = copied {
                let path = self.part(part);
                incomplete = Err(Failure(format!("cannot write {}: {error}", path.display())));
            }
            tables.document(&origin, document);
        }
        if let Some(memory) = &self.memory {
            *memory.tables.lock().expect("no writer panics") = tables.into_batches();
            return incomplete;
        }
        tables.finish(&self.plan).and(incomplete)
    }

    /// Copies the commands of a part.
    fn commands(
        &self,
        part: usize,
        count: u64,
        (planned, origin): (&Planned, &RowOrigin<'_>),
        tables: &mut Tables,
    ) -> io::Result<()> {
        let mut file = self.open(self.part(part))?;
        let mut bytes = [0; BYTES as usize];
        for _ in 0..count {
            file.read_exact(&mut bytes)?;
            let mut numbers = [0; NUMBERS];
            for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
                *number = u64::from_le_bytes(*bytes);
            }
            let [host, drive, queue, operation, since_ns, latency_ns, ref stages @ ..] = numbers;
            let host = planned.hosts.get(host as usize).map_or("", String::as_str);
            let operation = u8::try_from(operation).ok().and_then(Op::from_number);
            let operation = operation.map_or("", Op::name);
            let mut row = CommandRow {
                host,
                drive,
                queue,
                operation,
                since_ns,
                latency_ns,
                stages: [None; _],
            };
            row.stages.iter_mut().zip(stages).for_each(|(stage, ns)| *stage = Some(*ns));
            tables.command(origin, &row);
        }
        Ok(())
    }

    /// Copies the frames of a part, if there are any.
    fn frames(
        &self,
        part: usize,
        (planned, origin): (&Planned, &RowOrigin<'_>),
        tables: &mut Tables,
    ) -> io::Result<()> {
        if !self.folders.frames {
            return Ok(());
        }
        let mut file = self.open(self.part(part).with_extension(FRAMES))?;
        let mut bytes = [0; 8 * (2 + FRAME_NUMBERS)];
        let streams: BTreeMap<u64, &str> =
            planned.streams.iter().map(|(name, id)| (id.first_frame(), name.as_str())).collect();
        while !file.fill_buf()?.is_empty() {
            file.read_exact(&mut bytes)?;
            let numbers = bytes.as_chunks().0.iter().map(|bytes| u64::from_le_bytes(*bytes));
            let numbers: Vec<u64> = numbers.collect();
            let stream = streams.get(&numbers[0]).copied().unwrap_or("");
            let station = planned.stations.get(numbers[1] as usize).map_or("", String::as_str);
            let own = numbers[2..].first_chunk().expect("as many");
            tables.frame(origin, [stream, station], own);
        }
        Ok(())
    }

    /// Returns the first error of a file.
    ///
    /// # Errors
    /// One line that names the file.
    pub fn finish(&self) -> Outcome {
        self.failure.lock().expect("no writer panics").take().map_or(Ok(()), Err)
    }
}

impl Drop for RunTables {
    fn drop(&mut self) {
        let is_written = self.is_written.load(Ordering::Relaxed);
        if self.parts.as_os_str().is_empty() {
            return;
        }
        // An error leaves files behind, which do no harm.
        let _ = fs::remove_dir_all(&self.parts);
        for folder in self.folders.all().filter(|_| !is_written) {
            let _ = fs::remove_file(folder.join(PLAN)).and_then(|()| fs::remove_dir(folder));
        }
    }
}

/// A part that is being written. After the first error the simulation continues without it.
#[derive(Debug)]
pub(super) struct Part {
    commands: io::Result<PartFile>,
    frames: Option<io::Result<PartFile>>,
}

impl Part {
    /// Ends the part. Returns the reason why the part is incomplete.
    pub fn finish(&mut self) -> Option<String> {
        let files = std::iter::once(&mut self.commands).chain(&mut self.frames);
        let failed = |file: &mut io::Result<PartFile>| match file {
            Ok(file) => file.flush().err().map(|error| error.to_string()),
            Err(error) => Some(error.to_string()),
        };
        files.filter_map(failed).next()
    }
}

impl Observer for Part {
    fn arrival(&mut self, at: Instant, station: usize, frame: &Frame) {
        let (Some(Ok(file)), Some(stream)) = (&mut self.frames, StreamId::of_frame(frame.id))
        else {
            return;
        };
        let (latency, first) = (&frame.latency, stream.first_frame());
        let times = [latency.created().as_ns(), at.since(latency.created()).as_ns()];
        let stages = FrameStage::ALL.map(|stage| latency.spent(stage).as_ns());
        let numbers = [first, station as u64, frame.id - first].into_iter().chain(times);
        let bytes: Vec<u8> = numbers.chain(stages).flat_map(u64::to_le_bytes).collect();
        if let Err(error) = file.write_all(&bytes) {
            self.frames = Some(Err(error));
        }
    }

    fn command(&mut self, record: &CommandRecord) {
        let Ok(file) = &mut self.commands else { return };
        let mut bytes = [0; BYTES as usize];
        let span = record.until.since(record.since);
        let start = [
            record.host.into(),
            record.drive.into(),
            record.queue.into(),
            record.op as u64,
            record.since.as_ns(),
            span.as_ns(),
        ];
        let stages = super::simulate::breakdown_in_ns(&record.breakdown);
        let places = bytes.as_chunks_mut().0.iter_mut();
        for (place, number) in places.zip(start.into_iter().chain(stages)) {
            *place = u64::to_le_bytes(number);
        }
        if let Err(error) = file.write_all(&bytes) {
            self.commands = Err(error);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Plan;
    use crate::run::Watch;
    use crate::run::pool::{Extras, run_all};

    #[test]
    /// Tables in memory and in files have the same rows, in the order of the simulations.
    fn tables_in_memory_equal_those_in_files() {
        let text = "[workload]\nrw = \"write\"\nsize = \"64KiB\"\n[drive]\nnode = \"b\"\n[nodes.a]\n[nodes.b]\n\
                    [bridges.s]\n[traffic.t]\nfrom = \"a\"\nto = \"b\"\ninterval = \"1ms\"\n";
        let planned = Plan::parse("plan.toml", text).and_then(|plan| plan.build()).unwrap();
        let plans = [1, 2].map(|seed| planned.clone().with_seed(seed));
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("csv");
        let folders = TableFolders { csv: Some(csv.clone()), parquet: None, frames: true };
        let files = RunTables::create(folders, text).unwrap().expect("a folder");
        let memory = RunTables::in_memory(true);
        for tables in [&files, &memory] {
            let extras = Extras { tables: Some(tables), ..Extras::default() };
            let watch = Watch { is_stopped: &|| false, progress: &|_| {} };
            let documents = run_all("", &plans, &extras, &watch);
            tables.write_runs(&plans, &documents.unwrap_or_else(|_| panic!("it runs")));
            tables.finish().unwrap();
        }
        let batches = memory.into_batches();
        assert_eq!(batches.len(), 7);
        for (name, batch) in batches {
            let mut bytes = Vec::new();
            columns::Csv::new(&mut bytes, batch.schema()).unwrap().write(&batch).unwrap();
            let written = fs::read(csv.join(name).with_extension("csv")).unwrap();
            assert!(batch.rows() > 0 && bytes == written, "{name}");
        }
        let commands = fs::read_to_string(csv.join("commands.csv")).unwrap();
        assert_eq!(commands.matches(",write,").count(), 2 * 16);
    }

    #[test]
    fn each_arrival_of_a_frame_is_a_row() {
        let folder = tempfile::tempdir().unwrap();
        let csv = folder.path().join("csv");
        let folders = TableFolders { csv: Some(csv.clone()), parquet: None, frames: true };
        let text = "runtime = \"3ms\"\n[nodes.a]\n[nodes.b]\n[nodes.c]\n[bridges.s]\n[traffic.t]\n\
                    from = \"a\"\nto = [\"b\", \"c\"]\ninterval = \"1ms\"\n";
        let plans = [Plan::parse("plan.toml", text).and_then(|plan| plan.build()).unwrap()];
        let tables = RunTables::create(folders, text).unwrap().expect("a folder");
        let extras = Extras { tables: Some(&tables), ..Extras::default() };
        let watch = Watch { is_stopped: &|| false, progress: &|_| {} };
        let documents = run_all("", &plans, &extras, &watch).unwrap_or_else(|_| panic!("it runs"));
        tables.write_runs(&plans, &documents);
        tables.finish().unwrap();
        let frames = fs::read_to_string(csv.join("frames.csv")).unwrap();
        let rows: Vec<Vec<&str>> = frames.lines().map(|line| line.split(',').collect()).collect();
        assert_eq!(rows.len(), 1 + 6);
        let latency = documents[0].as_ref().unwrap().streams[0].listeners[1].latency_ns.max;
        let last = rows.last().unwrap();
        assert_eq!(last[4..8], ["t", "c", "2", "2000000"]);
        assert_eq!(last[8].parse::<u64>().unwrap(), latency);
        let stages = last[9..].iter().map(|ns| ns.parse::<u64>().unwrap()).sum::<u64>();
        assert!(latency.abs_diff(stages) <= 8, "rounding of eight stages: {last:?}");
    }
}
