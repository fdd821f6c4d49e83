//! The results as text.

use super::compare;
use super::document::{
    IoCause, IoDocument, IoDrive, IoMismatch, IoOutage, IoSection, IoTarget, IoTransfers,
};
use report::Align::{Left, Right};
use report::span::micros;
use report::{Column, Table};

/// Prints the results of every section.
pub fn text(document: &IoDocument) {
    for line in drives(document) {
        println!("{line}");
    }
    for section in &document.sections {
        println!("\n{}", title(document, section));
        print!("{}", table(section).text());
        for IoCause { cause, n } in &section.errors {
            println!("  failed: {n} ({cause})");
        }
        for line in outages(section) {
            println!("  {line}");
        }
        if section.verified_bytes > 0 {
            let IoSection { verified_bytes, mismatches, .. } = section;
            println!("  verified: {verified_bytes} bytes, {mismatches} reads with wrong data");
        }
        for wrong in &section.wrong {
            println!("  {}", sentence(wrong));
        }
        let more = section.mismatches - section.wrong.len() as u64;
        if more > 0 {
            println!("  and {more} more");
        }
    }
    for (name, table) in compare::tables(document) {
        println!("\n{name}, compared");
        print!("{}", table.text());
    }
}

/// Formats one line per drive, with the target's name for several targets or a server.
pub fn drives(document: &IoDocument) -> Vec<String> {
    let several = document.targets.len() > 1;
    let line = |target: &IoTarget| {
        let IoDrive { function, serial_number, .. } = &target.drive;
        let drive = format!("drive {function}, serial number {serial_number}");
        match (target.doorbells, target.completions) {
            (Some(doorbells), Some(completions)) => {
                let name = &target.name;
                format!("{name}: {drive}; doorbells {doorbells}, completions {completions}")
            }
            _ if several => format!("{}: {drive}", target.name),
            _ => drive,
        }
    };
    document.targets.iter().map(line).collect()
}

/// Formats the heading of a section.
pub fn title(document: &IoDocument, section: &IoSection) -> String {
    let seconds = section.elapsed_ns as f64 / 1e9;
    let parameters = section.workload.as_ref().map(ToString::to_string).unwrap_or_default();
    let cpu = match (section.host_cpu_ns_per_io, section.peer_cpu_ns_per_io) {
        (0.0, _) => String::new(),
        (ns, None) => format!(", {:.2} us of CPU time per transfer", ns / 1e3),
        (ns, Some(peer)) => {
            let [ours, theirs] = [ns, peer].map(|ns| ns / 1e3);
            format!(", {ours:.2} us of CPU time per transfer, {theirs:.2} us on the other side")
        }
    };
    let name = compare::name(document, section);
    let others = document.concurrent(section).join(", ");
    let others = if others.is_empty() { others } else { format!(" (with {others})") };
    format!("{name}{others}: {parameters}{seconds:.3} s{cpu}")
}

/// Formats place and value of a wrong byte as a sentence.
pub fn sentence(wrong: &IoMismatch) -> String {
    let IoMismatch { job, lba, byte, expected, found, .. } = *wrong;
    format!(
        "wrong: LBA {lba}, byte {byte} of the block: {found:#04x}, and {expected:#04x} was \
         written (job {job})"
    )
}

/// Formats the number of outages, and one line per outage.
pub fn outages(section: &IoSection) -> Vec<String> {
    let line = |outage: &IoOutage| {
        let [start, length] = [outage.start_ns, outage.length_ns].map(|ns| ns as f64 / 1e9);
        format!("outage at {start:.3} s for {length:.3} s, lost transfers: {}", outage.lost)
    };
    let count = section.outages.len();
    let head = (count > 0).then(|| format!("outages: {count}"));
    let listed = section.outages.iter().take(LISTED).map(line);
    let more = (count > LISTED).then(|| format!("and {} more", count - LISTED));
    head.into_iter().chain(listed).chain(more).collect()
}

/// Returns a table with one row per job and kind, and a row for all if there are several. The
/// column of lost transfers is left out if no transfer was lost.
pub fn table(section: &IoSection) -> Table {
    let all = (section.jobs.len() > 1).then_some(&section.all);
    let lost = section.jobs.iter().any(|row| row.lost > 0);
    let columns = COLUMNS.iter().filter(|(name, ..)| lost || *name != LOST).copied();
    Table::from_rows(&columns.collect::<Vec<_>>(), section.jobs.iter().chain(all))
}

/// Largest number of outages in the text; the document has all.
const LISTED: usize = 16;
/// The column of lost transfers.
const LOST: &str = "lost";

const COLUMNS: [Column<IoTransfers>; 14] = [
    ("job", Left, |row| row.job.map_or("all".to_owned(), |job| job.to_string())),
    ("op", Left, |row| if row.job.is_some() { row.op.to_owned() } else { String::new() }),
    ("n", Right, |row| row.n.to_string()),
    (LOST, Right, |row| row.lost.to_string()),
    ("IOPS", Right, |row| format!("{:.0}", row.iops)),
    ("MB/s", Right, |row| format!("{:.1}", row.bytes_per_s / 1e6)),
    ("min us", Right, |row| micros(row.min_ns)),
    ("mean", Right, |row| micros(row.mean_ns)),
    ("p50", Right, |row| micros(row.p50_ns)),
    ("p90", Right, |row| micros(row.p90_ns)),
    ("p99", Right, |row| micros(row.p99_ns)),
    ("p99.9", Right, |row| micros(row.p99_9_ns)),
    ("p99.99", Right, |row| micros(row.p99_99_ns)),
    ("max", Right, |row| micros(row.max_ns)),
];
