//! The results as text.

use super::document::{Cause, Document, RowResult, SectionResult, Wrong};
use report::Align::{Left, Right};
use report::span::micros;
use report::{Column, Table};

/// Prints the results of every section.
pub fn text(document: &Document) {
    let drive = &document.drive;
    println!("drive {}, serial number {}", drive.function, drive.serial_number);
    for section in &document.sections {
        println!("\n{}", title(section));
        print!("{}", table(section).text());
        for Cause { cause, n } in &section.errors {
            println!("  failed: {n} ({cause})");
        }
        if section.verified_bytes > 0 {
            let SectionResult { verified_bytes, mismatches, .. } = section;
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
}

/// The heading of a section.
pub fn title(section: &SectionResult) -> String {
    let seconds = section.elapsed_ns as f64 / 1e9;
    let what = section.workload.as_ref().map(ToString::to_string).unwrap_or_default();
    let cpu = match section.host_cpu_ns_per_io {
        0.0 => String::new(),
        ns => format!(", {:.2} us of CPU time a transfer", ns / 1e3),
    };
    format!("{}: {what}{seconds:.3} s{cpu}", section.name)
}

/// Where wrong data are.
pub fn sentence(wrong: &Wrong) -> String {
    let Wrong { job, lba, byte, expected, found, .. } = *wrong;
    format!(
        "wrong: LBA {lba}, byte {byte} of the block: {found:#04x}, and {expected:#04x} was \
         written (job {job})"
    )
}

/// A row a job and kind, and one for all if there are several.
pub fn table(section: &SectionResult) -> Table {
    let all = (section.jobs.len() > 1).then_some(&section.all);
    Table::of(&COLUMNS, section.jobs.iter().chain(all))
}

const COLUMNS: [Column<RowResult>; 13] = [
    ("job", Left, |row| row.job.map_or("all".to_owned(), |job| job.to_string())),
    ("op", Left, |row| if row.job.is_some() { row.op.to_owned() } else { String::new() }),
    ("n", Right, |row| row.n.to_string()),
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
