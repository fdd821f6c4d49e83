//! `farlane drive show`.

use crate::commands::json;
use nvme::state::{History, Namespace, State};
use report::Align::{Left, Right};
use report::{Column, Failure, Outcome, Table, span};
use schemars::JsonSchema;
use serde::Serialize;
use std::path::{Path, PathBuf};
use storage::drive::{DriveFolder, Shown, VERSION};

/// Show the namespaces, names and counters of a drive
///
/// Nothing is changed. For a drive in use, the stored state is shown: counters are stored every ten
/// seconds.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  farlane drive show drive --json")]
pub struct Args {
    /// Folder of the drive
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Print one JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
}

/// Reads a drive without a change. Fails if the drive is damaged or has a newer format.
pub fn shown(path: &Path) -> Result<(Shown, State), Failure> {
    let shown = DriveFolder::show(path)?;
    let folder = path.display();
    if shown.version > VERSION {
        let version = shown.version;
        return Err(Failure(format!(
            "{folder}: unsupported version {version} of the format: expected at most {VERSION}; use a \
             newer farlane"
        )));
    }
    let state = State::decode(&shown.records);
    let state = state.map_err(|why| Failure(format!("{folder}: {why}")))?;
    Ok((shown, state))
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let (shown, state) = shown(&args.folder)?;
    let document = DriveDocument::new(&shown, &state);
    if args.json {
        println!("{}", json(&document));
    } else {
        document.print();
    }
    Ok(())
}

/// A drive in a folder (docs/drive.md).
#[derive(Debug, JsonSchema, Serialize)]
pub struct DriveDocument {
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
    /// Version of the folder's format.
    format: u64,
    /// Whether another process uses the drive. Then the document shows the stored state.
    in_use: bool,
    /// Serial number.
    serial: String,
    /// Model number.
    model: String,
    /// Incarnation (docs/nvme.md) of the contents of all namespaces together: 16 hexadecimal
    /// digits.
    incarnation: String,
    /// Capacity for all namespaces together.
    capacity_bytes: u64,
    /// Capacity that belongs to no namespace.
    unallocated_bytes: u64,
    /// The largest NSID.
    max_namespaces: u32,
    /// The namespaces, by NSID.
    namespaces: Vec<DriveNamespace>,
    /// Counters of the drive.
    health: DriveHealth,
}

/// A namespace of a drive in a folder.
#[derive(Debug, JsonSchema, Serialize)]
struct DriveNamespace {
    /// Namespace identifier.
    nsid: u32,
    /// Size of the namespace.
    bytes: u64,
    /// Size of a logical block.
    block_bytes: u64,
    /// NGUID, 32 hexadecimal digits.
    nguid: String,
    /// EUI-64, 16 hexadecimal digits.
    eui64: String,
    /// UUID, 32 hexadecimal digits.
    uuid: String,
    /// Whether the namespace rejects writes.
    write_protected: bool,
    /// CNTLIDs of the controllers to which the namespace is attached.
    controllers: Vec<u16>,
    /// Name of the file in the folder `contents`.
    contents: String,
}

/// Counters of a drive.
#[derive(Debug, JsonSchema, Serialize)]
struct DriveHealth {
    /// Power cycles.
    power_cycles: u64,
    /// Losses of power while a controller was in use.
    unsafe_shutdowns: u64,
    /// Time with power, in seconds.
    power_on_s: u64,
    /// Bytes that Read commands read.
    bytes_read: u64,
    /// Bytes that Write commands wrote.
    bytes_written: u64,
    /// Media and data integrity errors.
    media_errors: u64,
    /// Entries of the error log so far.
    errors: u64,
    /// Whether a controller is in use, or was at the last loss of power.
    running: bool,
}

impl DriveDocument {
    fn new(shown: &Shown, state: &State) -> Self {
        let drive = &state.drive;
        let row = |(nsid, namespace): (&u32, &Namespace)| DriveNamespace {
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
            health: DriveHealth::new(&state.health),
        }
    }

    fn print(&self) {
        let Self { serial, model, health, .. } = self;
        let state = if self.in_use { ", in use" } else { "" };
        println!("{model}, serial number {serial}{state}");
        let (capacity, left) =
            (span::size(self.capacity_bytes), span::size(self.unallocated_bytes));
        println!("capacity {capacity}, {left} in no namespace; incarnation {}", self.incarnation);
        let table = Table::from_rows(&COLUMNS, &self.namespaces);
        print!("{}", table.text());
        let DriveHealth { power_cycles, unsafe_shutdowns, power_on_s, .. } = health;
        let (read, written) = (health.bytes_read, health.bytes_written);
        println!(
            "{power_cycles} power cycles, {unsafe_shutdowns} unsafe shutdowns, {power_on_s} s \
             powered, {read} bytes read, {written} written, {} media errors",
            health.media_errors
        );
    }
}

impl DriveHealth {
    fn new(history: &History) -> Self {
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

const COLUMNS: [Column<DriveNamespace>; 6] = [
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
