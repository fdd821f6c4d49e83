//! `farlane drive create`.

use super::namespace::NewNamespace;
use crate::commands::device::parse_serial;
use crate::output::wrong_usage;
use clap::value_parser;
use live::random_number;
use nvme::state::{Drive, MAX_CONTROLLER, Namespace, State};
use report::{Outcome, span};
use std::path::PathBuf;
use storage::drive::{DriveFolder, NewContents};

/// NN, the largest NSID of a drive. Hosts support this usual value.
const MAX_NAMESPACES: u32 = 128;

/// Create a drive in a folder that is missing or empty
///
/// Serial number, NGUID, EUI-64 and UUID are random. They move with the folder.
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane drive create mydrive --capacity 10G\n  \
    farlane drive create mydrive --capacity 1T --namespace size=100G,sparse\n  \
    farlane drive create mydrive --capacity 2G --namespace size=1G --namespace size=1G,block=4096\n\n\
    Serve it with: farlane device --drive mydrive")]
pub struct Args {
    /// Folder of the drive
    #[arg(value_name = "DIR")]
    folder: PathBuf,
    /// Capacity for all namespaces together, such as 10G
    #[arg(long, value_name = "BYTES", value_parser = span::bytes)]
    capacity: u64,
    /// Namespace: size=SIZE[,block=512|4096][,sparse][,checksums=on]; sparse reserves no space.
    /// Repeatable; by default one namespace has the whole capacity
    #[arg(long = "namespace", value_name = "NAMESPACE", conflicts_with = "no_namespaces")]
    namespaces: Vec<NewNamespace>,
    /// Create no namespace
    #[arg(long)]
    no_namespaces: bool,
    /// Attach the namespaces to the controllers 1 to COUNT. Hosts can attach others
    #[arg(long, value_name = "COUNT", default_value_t = 1, value_parser = value_parser!(u16).range(1..=i64::from(MAX_CONTROLLER)))]
    controllers: u16,
    /// Serial number, 1 to 20 ASCII characters; random by default
    #[arg(long, value_name = "TEXT", value_parser = parse_serial)]
    serial: Option<String>,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let new = args.namespaces();
    let mut state = State::new(Drive {
        serial: args.serial.clone().unwrap_or_else(|| format!("FL{:016X}", random_number())),
        model: nvme::MODEL.into(),
        uuid: uuid(),
        incarnation: random_number(),
        capacity: args.capacity,
        max_namespaces: MAX_NAMESPACES,
    });
    let mut contents = Vec::new();
    for (nsid, NewNamespace { size, block, sparse, checksums }) in (1..).zip(new) {
        let namespace = random_namespace(size / u64::from(block), block.ilog2() as u8);
        let name = namespace.contents.clone();
        contents.push(NewContents { name, size, sparse, checksums });
        state.namespaces.insert(nsid, namespace);
        state.attachments.insert(nsid, (1..=args.controllers).collect());
    }
    DriveFolder::create(&args.folder, state.encode(), &contents)?;
    let (folder, serial) = (args.folder.display(), &state.drive.serial);
    println!("{folder}: drive {serial}, {}", span::size(args.capacity));
    Ok(())
}

impl Args {
    fn namespaces(&self) -> Vec<NewNamespace> {
        if self.no_namespaces {
            return Vec::new();
        }
        if self.namespaces.is_empty() {
            let whole =
                NewNamespace { size: self.capacity, block: 512, sparse: false, checksums: false };
            let wrong = |why| wrong_usage(format!("--capacity: {why}"));
            return vec![whole.checked().unwrap_or_else(wrong)];
        }
        if self.namespaces.len() > MAX_NAMESPACES as usize {
            let count = self.namespaces.len();
            wrong_usage(format!(
                "--namespace is given {count} times: expected at most {MAX_NAMESPACES}"
            ))
        }
        let sum = self.namespaces.iter().map(|one| one.size).fold(0, u64::saturating_add);
        if sum > self.capacity {
            let capacity = self.capacity;
            wrong_usage(format!("--capacity {capacity}: the namespaces need {sum} bytes"))
        }
        self.namespaces.clone()
    }
}

/// Returns a namespace with random NGUID, EUI-64 and UUID.
fn random_namespace(blocks: u64, block_shift: u8) -> Namespace {
    let nguid = random_bytes();
    let mut eui64 = random_number().to_be_bytes();
    // A locally administered address of one device (IEEE 802-2014, section 8.2).
    eui64[0] = eui64[0] & !1 | 2;
    let contents = nguid.iter().map(|byte| format!("{byte:02x}")).collect();
    let uuid = uuid();
    Namespace { blocks, block_shift, nguid, eui64, uuid, contents, ..Namespace::default() }
}

fn random_bytes() -> [u8; 16] {
    (u128::from(random_number()) << 64 | u128::from(random_number())).to_be_bytes()
}

/// Returns a random UUID: version 4 (RFC 9562, section 5.4).
fn uuid() -> [u8; 16] {
    let mut uuid = random_bytes();
    uuid[6] = uuid[6] & 0x0f | 0x40;
    uuid[8] = uuid[8] & 0x3f | 0x80;
    uuid
}
