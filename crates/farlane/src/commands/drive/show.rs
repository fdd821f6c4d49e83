//! `farlane drive show`.

use crate::commands::json;
use nvme::state::{History, Namespace, State};
use report::Align::{Left, Right};
use report::{Column, Failure, Outcome, Table, span};
use serde::Serialize;
use std::path::PathBuf;
use storage::drive::{DriveFolder, Shown, VERSION};

/// Show a drive: its namespaces, and what it has been through
///
/// Changes nothing. Of a drive that is in use it shows what was stored last: counters are stored
/// every ten seconds.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  farlane drive show drive --json")]
pub struct Args {
    /// The folder
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// One JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let shown = DriveFolder::show(&args.folder)?;
    let folder = args.folder.display();
    if shown.version > VERSION {
        let version = shown.version;
        return Err(Failure(format!(
            "{folder}: its format has version {version}, this program knows {VERSION}"
        )));
    }
    let state = State::decode(&shown.records);
    let document = Document::of(&shown, &state.map_err(|why| Failure(format!("{folder}: {why}")))?);
    if args.json {
        println!("{}", json(&document));
    } else {
        document.print();
    }
    Ok(())
}

/// The document of `--json`.
#[derive(Debug, Serialize)]
struct Document {
    schema: u32,
    format: u64,
    in_use: bool,
    serial: String,
    model: String,
    incarnation: String,
    capacity_bytes: u64,
    unallocated_bytes: u64,
    max_namespaces: u32,
    namespaces: Vec<Row>,
    health: Health,
}

#[derive(Debug, Serialize)]
struct Row {
    nsid: u32,
    bytes: u64,
    block_bytes: u64,
    nguid: String,
    eui64: String,
    uuid: String,
    write_protected: bool,
    controllers: Vec<u16>,
    contents: String,
}

#[derive(Debug, Serialize)]
struct Health {
    power_cycles: u64,
    unsafe_shutdowns: u64,
    power_on_s: u64,
    bytes_read: u64,
    bytes_written: u64,
    media_errors: u64,
    errors: u64,
    running: bool,
}

impl Document {
    fn of(shown: &Shown, state: &State) -> Self {
        let drive = &state.drive;
        let row = |(nsid, namespace): (&u32, &Namespace)| Row {
            nsid: *nsid,
            bytes: namespace.bytes(),
            block_bytes: 1 << namespace.block_shift,
            nguid: hex(&namespace.nguid),
            eui64: hex(&namespace.eui64),
            uuid: hex(&namespace.uuid),
            write_protected: namespace.write_protected,
            controllers: state.attachments.get(nsid).into_iter().flatten().copied().collect(),
            contents: namespace.contents.clone(),
        };
        Self {
            schema: 1,
            format: shown.version,
            in_use: shown.in_use,
            serial: drive.serial.clone(),
            model: drive.model.clone(),
            incarnation: format!("{:016x}", drive.incarnation),
            capacity_bytes: drive.capacity,
            unallocated_bytes: drive.capacity - state.allocated(),
            max_namespaces: drive.max_namespaces,
            namespaces: state.namespaces.iter().map(row).collect(),
            health: Health::of(&state.health),
        }
    }

    fn print(&self) {
        let Self { serial, model, health, .. } = self;
        let state = if self.in_use { ", in use" } else { "" };
        println!("{model}, serial number {serial}{state}");
        let (capacity, left) =
            (span::size(self.capacity_bytes), span::size(self.unallocated_bytes));
        println!("capacity {capacity}, {left} in no namespace; incarnation {}", self.incarnation);
        let table = Table::of(&COLUMNS, &self.namespaces);
        print!("{}", table.text());
        let Health { power_cycles, unsafe_shutdowns, power_on_s, .. } = health;
        let (read, written) = (health.bytes_read, health.bytes_written);
        println!(
            "{power_cycles} power cycles, {unsafe_shutdowns} unsafe shutdowns, {power_on_s} s \
             powered, {read} bytes read, {written} written, {} media errors",
            health.media_errors
        );
    }
}

impl Health {
    fn of(history: &History) -> Self {
        let number = |count: u128| u64::try_from(count).unwrap_or(u64::MAX);
        Self {
            power_cycles: number(history.power_cycles),
            unsafe_shutdowns: number(history.unsafe_shutdowns),
            power_on_s: number(history.power_on_ps / 1_000_000_000_000),
            bytes_read: number(history.units_read.saturating_mul(512)),
            bytes_written: number(history.units_written.saturating_mul(512)),
            media_errors: number(history.media_errors),
            errors: history.errors,
            running: history.running,
        }
    }
}

const COLUMNS: [Column<Row>; 6] = [
    ("NSID", Right, |row| row.nsid.to_string()),
    ("size", Right, |row| span::size(row.bytes)),
    ("block", Right, |row| row.block_bytes.to_string()),
    ("NGUID", Left, |row| row.nguid.clone()),
    ("controllers", Left, |row| {
        row.controllers.iter().map(u16::to_string).collect::<Vec<_>>().join(" ")
    }),
    ("", Left, |row| if row.write_protected { "write protected" } else { "" }.to_owned()),
];

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
