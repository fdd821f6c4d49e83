//! `farlane trace`: shows and converts the traces of a run.

use super::{Failure, Outcome};
use crate::output::{self, assign_stdout};
use analysis::trace::{Opcode, Selection, Span, parse_time};
use analysis::trace_report::against::Comparison;
use analysis::trace_report::{Key, Report, Request, View};
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use columns::Targets;
use report::target::Target;
use serde::Serialize;
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use wire::Bdf;

/// Show what nodes recorded: commands, TLPs, latencies and their parts
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane demo --trace run.trace\n  \
    farlane trace run.trace run.trace.device0 --opcode read --limit 1\n  \
    farlane trace run.trace --list --from 20ms --to 30ms\n  \
    farlane trace run.trace --list --sort duration --slower-than 100us\n  \
    farlane trace run.trace run.trace.device0 --stats --json\n  \
    farlane trace run.trace run.trace.device0 --command 7 --svg read.svg\n  \
    farlane trace run.trace run.trace.device0 --html report.html\n  \
    farlane trace run.trace run.trace.device0 --perfetto run.json --limit 0\n  \
    farlane trace run.trace --pcapng run.pcapng --limit 0\n  \
    farlane trace run.trace run.trace.device0 --csv - --limit 0\n  \
    farlane trace run.trace run.trace.device0 --against old.trace old.trace.device0\n\n\
    All times are on one clock: that of the node nearest to the host, from its start.\n\
    The TLPs shown are those of this node.\n\
    docs/trace.md describes the files, docs/json.md the document.")]
pub struct Args {
    /// Traces of the nodes of one run, one of them a host
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
    /// Compare FILE with these traces of another run, the base. The selection applies to both runs
    #[arg(
        long,
        value_name = "FILE",
        num_args = 1..,
        conflicts_with_all = [
            "list", "stats", "sort", "limit", "unfold", "svg", "perfetto", "pcapng", "csv",
            "parquet",
        ],
    )]
    against: Vec<PathBuf>,
    /// Select commands by their numbers in --list: N, N..M (M included) or N+COUNT
    #[arg(long, value_name = "RANGE")]
    command: Option<Span>,
    /// Select commands of this drive, bb:dd.f
    #[arg(long, value_name = "BDF", value_parser = parse_bdf)]
    drive: Option<Bdf>,
    /// Select commands of this submission queue; 0 is the admin queue
    #[arg(long, value_name = "QID")]
    queue: Option<u16>,
    /// Select commands with this command identifier
    #[arg(long, value_name = "CID")]
    cid: Option<u16>,
    /// Select commands with this opcode or name, such as 0x02, read, write-zeroes or identify
    #[arg(long, value_name = "OPCODE")]
    opcode: Option<Opcode>,
    /// Select commands that access these logical blocks: N, N..M or N+COUNT
    #[arg(long, value_name = "RANGE")]
    lba: Option<Span>,
    /// Select commands with a TLP that accesses these bus addresses: N, N..M or N+COUNT
    #[arg(long, value_name = "RANGE")]
    address: Option<Span>,
    /// Select commands with a TLP that has this tag
    #[arg(long, value_name = "TAG")]
    tag: Option<u16>,
    /// Select commands that end at this time or later, such as 20ms
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    from: Option<u64>,
    /// Select commands that begin at this time or earlier, such as 30ms
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    to: Option<u64>,
    /// Select commands that take longer than this from doorbell to doorbell, such as 100us
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    slower_than: Option<u64>,
    /// Select commands that failed or have no completion
    #[arg(long)]
    failed: bool,
    /// Order of the commands
    #[arg(long, value_name = "KEY", default_value = "end", value_parser = sort_key())]
    sort: Key,
    /// Print one line per command instead of its TLPs
    #[arg(long)]
    list: bool,
    /// Print latencies, TLPs and bytes by type of command, and depths of queues, instead of
    /// commands
    #[arg(long, conflicts_with = "list")]
    stats: bool,
    /// Number of commands to show [default: 4; with --list or --json 1000]
    #[arg(long, value_name = "COUNT")]
    limit: Option<usize>,
    /// Print every TLP. By default, only the first and the last of a run of equal TLPs are printed
    #[arg(long)]
    unfold: bool,
    /// Draw the first shown command as a sequence diagram. FILE - is standard output, instead of
    /// the text, here and for --perfetto, --pcapng, --csv, --parquet and --html
    #[arg(long, value_name = "FILE")]
    svg: Option<Target>,
    /// Write the selected commands for Perfetto, as Chrome trace events
    #[arg(long, value_name = "FILE")]
    perfetto: Option<Target>,
    /// Write for Wireshark the TLPs of the selected commands and the TLPs outside of I/O commands
    #[arg(long, value_name = "FILE")]
    pcapng: Option<Target>,
    /// Write one line of CSV per selected command: times, segments, stages, TLPs, bytes
    #[arg(long, value_name = "FILE")]
    csv: Option<Target>,
    /// Write one row of Apache Parquet per selected command, with the columns of --csv
    #[arg(long, value_name = "FILE")]
    parquet: Option<Target>,
    /// Write an HTML page with tables, distributions, and sequence diagrams of the median and the
    /// slowest command
    #[arg(long, value_name = "FILE")]
    html: Option<Target>,
    /// Print one JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
}

fn parse_bdf(text: &str) -> Result<Bdf, String> {
    let parts = || {
        let (bus, rest) = text.split_once(':')?;
        let (device, function) = rest.split_once('.')?;
        let number = |text, most| u8::from_str_radix(text, 16).ok().filter(|n| *n <= most);
        Some(Bdf::new(number(bus, 255)?, number(device, 31)?, number(function, 7)?))
    };
    parts().ok_or_else(|| format!("invalid function '{text}': expected bb:dd.f, such as 01:00.0"))
}

impl Args {
    fn selection(&self) -> Selection {
        Selection {
            command: self.command.clone(),
            drive: self.drive,
            queue: self.queue,
            cid: self.cid,
            opcode: self.opcode.clone(),
            lba: self.lba.clone(),
            address: self.address.clone(),
            tag: self.tag,
            from_ns: self.from,
            to_ns: self.to,
            slower_than_ns: self.slower_than,
            failed: self.failed,
        }
    }

    fn limit(&self) -> usize {
        if self.svg.is_some() && self.limit.is_none() {
            return 1;
        }
        let many = self.list || self.json;
        self.limit.unwrap_or(match (self.stats, many) {
            (true, _) => 0,
            (false, true) => 1000,
            (false, false) => 4,
        })
    }
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let targets = [
        ("--svg", args.svg.as_ref()),
        ("--perfetto", args.perfetto.as_ref()),
        ("--pcapng", args.pcapng.as_ref()),
        ("--csv", args.csv.as_ref()),
        ("--parquet", args.parquet.as_ref()),
        ("--html", args.html.as_ref()),
    ];
    assign_stdout(args.json, &targets);
    if !args.against.is_empty() {
        return against(args);
    }
    let mut report = Report::new(&Request {
        files: &args.files,
        selection: args.selection(),
        sort: args.sort,
        limit: args.limit(),
        perfetto: args.perfetto.as_ref(),
        pcapng: args.pcapng.as_ref(),
        rows: Targets { csv: args.csv.as_ref(), parquet: args.parquet.as_ref() },
        ranked: args.html.is_some(),
    })?;
    if let Some(target) = &args.svg {
        target.write(&report.sequence()?)?;
    }
    if let Some(target) = &args.html {
        target.write(&report.page()?)?;
    }
    if args.json {
        return write(&report.document());
    }
    if output::is_suppressed() {
        return Ok(());
    }
    let Args { list, stats, unfold, sort, .. } = *args;
    let mut out = BufWriter::new(std::io::stdout().lock());
    match report.text(View { list, stats, unfold, sort }, &mut out) {
        // A closed pipe is no failure.
        Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => Ok(()),
        done => Ok(done?),
    }
}

/// Compares two runs.
fn against(args: &Args) -> Outcome {
    let comparison = Comparison::new([&args.files, &args.against], &args.selection())?;
    if let Some(target) = &args.html {
        target.write(&comparison.page())?;
    }
    if args.json {
        return write(&comparison.document());
    }
    print!("{}", comparison.text());
    Ok(())
}

/// Writes a document to stdout. Fails if stdout is closed or full.
fn write(document: &impl Serialize) -> Outcome {
    let mut out = BufWriter::new(std::io::stdout().lock());
    serde_json::to_writer_pretty(&mut out, document).map_err(|e| Failure(e.to_string()))?;
    writeln!(out)?;
    Ok(out.flush()?)
}

/// The parser of `--sort`; help texts describe the order of each key.
fn sort_key() -> impl TypedValueParser<Value = Key> {
    let values = Key::ALL.map(|key| PossibleValue::new(key.name()).help(key.order()));
    PossibleValuesParser::new(values)
        .map(|name| *Key::ALL.iter().find(|key| key.name() == name).expect("a possible value"))
}
