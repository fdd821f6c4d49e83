//! `farlane ping`: measures the round trips of a link and of configuration reads.

use super::{Failure, Outcome, json};
use crate::link_end::LinkEnd;
use crate::node::NodeArgs;
use crate::output::note;
use bytes::Bytes;
use report::Align::{Left, Right};
use report::latency::{Latency, Summary};
use report::span::micros;
use report::{Column, Table};
use schemars::JsonSchema;
use serde::Serialize;
use wire::frame::Role;
use wire::tlp::{ConfigKind, ConfigRequest, Packet, Tlp};
use wire::{Bdf, Tag};

/// Measure round trips to a node: of the link, and of configuration reads
#[derive(clap::Args, Debug)]
#[command(after_help = "Example:\n  farlane ping localhost --count 1000 --json\n\n\
    For configuration reads, ping takes the place of the host for a moment. While a host is\n\
    attached, only the link is measured, and a note on stderr reports it.")]
pub struct Args {
    /// Node: HOST[:PORT] or raw:INTERFACE,MAC
    #[arg(value_name = "ADDRESS")]
    address: String,
    /// Round trips of each kind, 1 to 1000000
    #[arg(long, value_name = "COUNT", default_value_t = 100, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    count: u32,
    /// Print one JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    node: NodeArgs,
}

/// The round trip to a node. `n` is `--count` in both measurements. A configuration read needs the
/// place of the host: if another host uses the device, one line on stderr reports it, and the exit
/// status is still 0.
#[derive(JsonSchema, Serialize)]
pub struct PingDocument {
    /// Round trip of a configuration read of the vendor and device ID (type 0, register 0), answered
    /// by the function behind the link; null if another host uses the device.
    config_read: Option<Summary>,
    /// Round trip of an echo frame, answered by the node itself.
    link: Summary,
    /// Version of the document: 1.
    #[schemars(extend("const" = 1))]
    schema: u32,
}

/// Runs the command.
pub fn run(args: &Args) -> Outcome {
    let mut end = LinkEnd::connect(&args.address, &args.node, Role::Probe)?;
    let link = measure(&mut end, args.count, echo)?;
    end.close()?;
    // A probe carries no TLPs. A configuration read needs the place of the host.
    let config = match LinkEnd::connect(&args.address, &args.node, Role::Host) {
        Ok(mut end) => {
            let summary = measure(&mut end, args.count, config_read)?;
            end.close()?;
            Ok(summary)
        }
        Err(failure) => Err(failure),
    };
    if args.json {
        let config_read = config.as_ref().ok().copied();
        println!("{}", json(&PingDocument { config_read, link, schema: 1 }));
    } else {
        let rows = [("link", Some(link)), ("configuration read", config.as_ref().ok().copied())];
        let rows = rows.map(|(name, summary)| summary.map(|summary| (name, summary)));
        let table = Table::from_rows(&COLUMNS, rows.iter().flatten());
        print!("{}", table.fixed(&[20, 8, 12, 12, 12]));
    }
    if let Err(failure) = config {
        note(format_args!("no configuration reads: {failure}"));
    }
    Ok(())
}

const COLUMNS: [Column<(&str, Summary)>; 5] = [
    ("round trip", Left, |(name, _)| (*name).to_owned()),
    ("n", Right, |(_, summary)| summary.n.to_string()),
    ("p50 us", Right, |(_, summary)| micros(summary.p50_ns)),
    ("p99 us", Right, |(_, summary)| micros(summary.p99_ns)),
    ("max us", Right, |(_, summary)| micros(summary.max_ns)),
];

fn echo(end: &mut LinkEnd, number: u32) {
    end.tunnel.echo(u64::from(number));
}

fn config_read(end: &mut LinkEnd, number: u32) {
    let request = ConfigRequest {
        kind: ConfigKind::Type0,
        requester: Bdf::default(),
        tag: Tag::truncate(number as u16),
        target: Bdf::new(1, 0, 0),
        register: 0,
        first_be: 0xf,
    };
    end.tunnel.push(Tlp::new(Packet::ConfigRead(request), Bytes::new()));
}

fn measure(end: &mut LinkEnd, count: u32, ask: fn(&mut LinkEnd, u32)) -> Result<Summary, Failure> {
    let warm_up = count / 10 + 1;
    let mut times = Latency::default();
    for number in 0..warm_up + count {
        let start = end.clock.now();
        ask(end, number);
        let last_answer = end.answer()?;
        if number >= warm_up {
            times.record(last_answer - start);
        }
    }
    Ok(Summary::from(&times))
}
