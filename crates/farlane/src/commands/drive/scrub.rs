//! `farlane drive scrub`.

use nvme::state::State;
use report::{Failure, Outcome, span};
use std::ops::Range;
use std::path::PathBuf;
use storage::drive::DriveFolder;
use storage::media::Media;

/// Read all blocks of a drive and verify their checksums
///
/// The drive must not be in use; hosts verify a drive in use by the command Verify. Nothing is
/// repaired. The exit status is 1 if a block does not have its checksum or cannot be read.
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  farlane drive scrub mydrive")]
pub struct Args {
    /// Folder of the drive
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let folder = args.folder.display();
    let (drive, notices) = DriveFolder::open(&args.folder)?;
    notices.iter().for_each(|notice| eprintln!("{folder}: {notice}"));
    let state = State::decode(&drive.records());
    let state = state.map_err(|why| Failure(format!("{folder}: {why}")))?;
    let (mut bad_bytes, mut verified) = (0, 0);
    for (nsid, namespace) in &state.namespaces {
        let mut contents = drive.open_contents(&namespace.contents)?;
        std::iter::from_fn(|| contents.take_notice()).for_each(|notice| eprintln!("{notice}"));
        let size = span::size(contents.size());
        let Some(bad) = contents.verify() else {
            println!("namespace {nsid}: {size}, no checksums");
            continue;
        };
        verified += 1;
        let bytes: u64 = bad.iter().map(|range| range.end - range.start).sum();
        bad_bytes += bytes;
        println!("namespace {nsid}: {size} verified, {bytes} bad bytes");
        bad.iter().for_each(|range| println!("  {}", place(range, namespace)));
        contents.close()?;
    }
    match (bad_bytes, verified) {
        (0, 0) => Err(Failure(format!("{folder}: no namespace has checksums"))),
        (0, _) => Ok(()),
        _ => Err(Failure(format!("{folder}: {bad_bytes} bytes do not have their checksum"))),
    }
}

/// The blocks with a range of bytes of the contents.
fn place(bad: &Range<u64>, namespace: &nvme::state::Namespace) -> String {
    let (first, last) =
        (bad.start >> namespace.block_shift, (bad.end - 1) >> namespace.block_shift);
    let blocks = namespace.blocks;
    if first >= blocks {
        return format!("metadata, or bytes that belong to no block: {}..{}", bad.start, bad.end);
    }
    match first == last {
        true => format!("block {first}"),
        false => format!("blocks {first} to {}", last.min(blocks - 1)),
    }
}
