//! `farlane status` and `farlane top`: the state of running nodes.

use super::json;
use crate::key_args::KeyArgs;
use crate::observe_args::folders;
use crate::output::{note, wrong_usage};
use credentials::Credentials;
use live::status::{CommandStatus, DriveStatus, EndpointStatus, LinkState, LinkStatus};
use observe::client::{fetch, fetch_by_tls};
use observe::document::{NodeDocument, NodeState, Rates, StatusDocument};
use report::Align::{Left, Right};
use report::{Column, Failure, Outcome, Table, span};
use std::io::{self, ErrorKind, IsTerminal};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::sleep;
use std::time::Duration as Span;
use wire::Duration;

/// Show the state of running nodes: links, drives, counters, rates
#[derive(clap::Args, Debug)]
#[command(after_help = "Examples:\n  \
    farlane status\n  \
    farlane status /run/farlane/device-1234.sock --json\n  \
    farlane status 192.0.2.7:9464 --key ops.key --peers ops.peers\n\n\
    Control sockets belong to the user of the node; --control-group admits a group.")]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,
    /// Interval of the rates. A number alone is in seconds
    #[arg(long, value_name = "TIME", default_value = "1s", value_parser = span::seconds)]
    interval: Duration,
    /// Print one JSON document instead of text; docs/json.md describes it
    #[arg(long)]
    json: bool,
}

/// Show the state of running nodes again and again, until Ctrl-C
#[derive(clap::Args, Debug)]
pub struct TopArgs {
    #[command(flatten)]
    source: SourceArgs,
    /// Time between two screens. A number alone is in seconds
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = span::seconds)]
    interval: Duration,
    /// Number of screens; 0: no end
    #[arg(long, value_name = "COUNT", default_value_t = 0)]
    count: u64,
}

/// Where the state comes from.
#[derive(clap::Args, Debug)]
struct SourceArgs {
    /// Control socket of a node, or with --key the address of its --metrics, HOST:PORT. By default all
    /// in $RUNTIME_DIRECTORY, /run/farlane and $XDG_RUNTIME_DIR/farlane
    #[arg(value_name = "SOCKET")]
    socket: Option<PathBuf>,
    #[command(flatten)]
    keys: KeyArgs,
}

/// Runs `farlane status`.
pub fn run(args: &Args) -> Outcome {
    let keys = args.source.keys.credentials()?;
    let before = nodes(&args.source, &keys)?;
    sleep(Span::from_nanos(args.interval.as_ns()));
    let nodes = with_rates(nodes(&args.source, &keys)?, &before);
    match args.json {
        true => println!("{}", json(&StatusDocument { nodes, schema: 1 })),
        false => print!("{}", text(&nodes)),
    }
    Ok(())
}

/// Runs `farlane top`.
pub fn top(args: &TopArgs) -> Outcome {
    let keys = args.source.keys.credentials()?;
    let mut before = nodes(&args.source, &keys)?;
    let clear = if io::stdout().is_terminal() { "\x1b[H\x1b[J" } else { "" };
    for _ in 0..if args.count == 0 { u64::MAX } else { args.count } {
        sleep(Span::from_nanos(args.interval.as_ns()));
        let nodes = with_rates(nodes(&args.source, &keys)?, &before);
        print!("{clear}{}", text(&nodes));
        crate::output::finish().map_err(Failure)?;
        before = nodes;
    }
    Ok(())
}

fn with_rates(mut nodes: Vec<NodeDocument>, before: &[NodeDocument]) -> Vec<NodeDocument> {
    for node in &mut nodes {
        let earlier = before.iter().find(|earlier| earlier.socket == node.socket);
        node.rates = earlier.map(|earlier| node.rates_since(earlier)).unwrap_or_default();
    }
    nodes
}

/// The nodes with this socket, or with a socket in the default folders. Fails if no node answers.
fn nodes(
    source: &SourceArgs,
    keys: &Option<Arc<Credentials>>,
) -> Result<Vec<NodeDocument>, Failure> {
    let fail = |path: &Path, error: io::Error| Failure(format!("{}: {error}", path.display()));
    match (&source.socket, keys) {
        (Some(address), Some(keys)) => {
            let node = fetch_by_tls(&address.to_string_lossy(), keys);
            return Ok(vec![node.map_err(|error| fail(address, error))?]);
        }
        (Some(path), None) => {
            return Ok(vec![fetch(path).map_err(|error| fail(path, error))?]);
        }
        (None, Some(_)) => wrong_usage("--key needs the address of a node: HOST:PORT"),
        (None, None) => {}
    }
    let mut found = Vec::new();
    for path in sockets() {
        match fetch(&path) {
            Ok(node) => found.push(node),
            // The process was killed, and only the file is left.
            Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
                let _ = std::fs::remove_file(&path);
            }
            Err(error) => note(fail(&path, error)),
        }
    }
    if found.is_empty() {
        let folders: Vec<_> = folders().iter().map(|one| one.display().to_string()).collect();
        return Err(Failure(format!("no node answers in {}", folders.join(" or "))));
    }
    Ok(found)
}

/// The sockets in the default folders, and in the folders of units below them.
fn sockets() -> Vec<PathBuf> {
    let entries = |folder: PathBuf| {
        let entries = std::fs::read_dir(folder).into_iter().flatten();
        entries.filter_map(|entry| Some(entry.ok()?.path()))
    };
    let of_units = folders().into_iter().flat_map(entries).filter(|path| path.is_dir());
    let paths = folders().into_iter().chain(of_units).flat_map(entries);
    let is_socket = |path: &PathBuf| path.extension().is_some_and(|kind| kind == "sock");
    let mut sockets: Vec<_> = paths.filter(is_socket).collect();
    sockets.sort();
    sockets.dedup();
    sockets
}

/// A node with its tables.
fn text(nodes: &[NodeDocument]) -> String {
    nodes.iter().map(node_text).collect::<Vec<_>>().join("\n")
}

fn node_text(node: &NodeDocument) -> String {
    let state = match node.state {
        NodeState::Starting => "waits for its links",
        NodeState::Serving => "serves",
        NodeState::Silent => "does not answer in time",
    };
    let NodeDocument { role, version, pid, socket, limits, .. } = node;
    let uptime = seconds(node.uptime_ns);
    let mut text = format!("{role} {version}, process {pid}, {state}, up {uptime}: {socket}\n");
    text += &format!("  limits: payload {} bytes", limits.max_payload_bytes);
    text += &format!(", interrupted links {}", seconds(limits.survive_ns));
    if let Some(rate) = limits.rate_limit_bits_per_s {
        text += &format!(", {} Mb/s", rate as f64 / 1e6);
    }
    text += "\n";
    let status = &node.status;
    status.drive.iter().for_each(|drive| text += &drive_text(drive));
    let rates = |link: &LinkStatus| {
        let found = node.rates.iter().find(|rates| rates.link == link.name);
        found.cloned().unwrap_or_default()
    };
    let links: Vec<_> = status.links.iter().map(|link| (link.clone(), rates(link))).collect();
    text += &Table::from_rows(&LINKS, links.iter()).text();
    let commands = status
        .links
        .iter()
        .flat_map(|link| link.commands.iter().map(|times| (link.name.clone(), times.clone())));
    let commands: Vec<_> = commands.filter(|(_, times)| times.count() > 0).collect();
    if !commands.is_empty() {
        text += &Table::from_rows(&COMMANDS, commands.iter()).text();
    }
    if !status.endpoints.is_empty() {
        text += &Table::from_rows(&ENDPOINTS, status.endpoints.iter()).text();
    }
    if let Some(push) = &status.push {
        let not_pushed: Vec<_> =
            push.not_pushed.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
        if !not_pushed.is_empty() {
            text += &format!("  commands not pushed, or in part: {}\n", not_pushed.join(", "));
        }
    }
    text
}

fn drive_text(drive: &DriveStatus) -> String {
    let size = drive.namespaces.iter().map(|namespace| namespace.size_bytes).sum();
    let health = match drive.critical_warning {
        0 => "healthy".to_owned(),
        warning => format!("critical warning {warning:#04x}"),
    };
    let DriveStatus { serial, namespaces, generation, .. } = drive;
    let errors = drive.counters.get("media_errors").copied().unwrap_or(0);
    format!(
        "  drive {serial}, namespaces: {}, {}, generation {generation}, {health}, media errors: \
         {errors}\n",
        namespaces.len(),
        span::size(size)
    )
}

const LINKS: [Column<(LinkStatus, Rates)>; 10] = [
    ("link", Left, |(link, _)| link.name.clone()),
    ("state", Left, |(link, _)| state(link.state).to_owned()),
    ("since", Right, |(link, _)| link.since_ns.map_or("-".to_owned(), seconds)),
    ("far side", Left, |(link, _)| far_side(link)),
    ("round trip", Right, |(link, _)| {
        link.round_trip_ns.map_or("-".to_owned(), |time| report::time(time as f64))
    }),
    ("commands/s", Right, |(_, rates)| format!("{:.0}", rates.commands_per_s)),
    ("sent MB/s", Right, |(_, rates)| format!("{:.1}", rates.sent_bytes_per_s / 1e6)),
    ("received MB/s", Right, |(_, rates)| format!("{:.1}", rates.received_bytes_per_s / 1e6)),
    ("waits for credits", Right, |(link, _)| {
        link.credits.map_or("-".to_owned(), |credits| credits.stalls.to_string())
    }),
    ("errors", Right, |(link, _)| {
        link.errors.values().chain(link.endpoint_errors.values()).sum::<u64>().to_string()
    }),
];

const COMMANDS: [Column<(String, CommandStatus)>; 6] = [
    ("link", Left, |(link, _)| link.clone()),
    ("commands", Left, |(_, times)| times.kind.clone()),
    ("number", Right, |(_, times)| times.count().to_string()),
    ("mean us", Right, |(_, times)| {
        format!("{:.1}", times.sum_ns as f64 / 1e3 / times.count().max(1) as f64)
    }),
    ("50 % within us", Right, |(_, times)| quantile(times, 0.5)),
    ("99 % within us", Right, |(_, times)| quantile(times, 0.99)),
];

const ENDPOINTS: [Column<EndpointStatus>; 5] = [
    ("endpoint", Right, |endpoint| endpoint.number.to_string()),
    ("port", Right, |endpoint| endpoint.port.to_string()),
    ("VMM", Left, |endpoint| if endpoint.used { "connected" } else { "none" }.to_owned()),
    ("DMA faults", Right, |endpoint| endpoint.dma_faults.to_string()),
    ("description", Left, |endpoint| endpoint.description.clone()),
];

fn state(state: LinkState) -> &'static str {
    match state {
        LinkState::Down => "down",
        LinkState::Interrupted => "interrupted",
        LinkState::Up => "up",
    }
}

fn far_side(link: &LinkStatus) -> String {
    let Some(peer) = &link.peer else { return "-".to_owned() };
    match (&peer.name, &peer.fingerprint) {
        (Some(name), Some(fingerprint)) => format!("{} {name} ({fingerprint})", peer.address),
        _ => peer.address.clone(),
    }
}

/// The bound that a share of the commands did not exceed.
fn quantile(times: &CommandStatus, share: f64) -> String {
    times.quantile_us(share).map_or(">1000000".to_owned(), |bound| bound.to_string())
}

/// A time of at least a second in its two largest units.
fn seconds(ns: u64) -> String {
    let whole = ns / 1_000_000_000;
    let (days, hours, minutes) = (whole / 86_400, whole / 3600 % 24, whole / 60 % 60);
    match (days, hours, minutes) {
        (0, 0, 0) => format!("{} s", whole % 60),
        (0, 0, _) => format!("{minutes} min {} s", whole % 60),
        (0, _, _) => format!("{hours} h {minutes} min"),
        _ => format!("{days} d {hours} h"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_their_two_largest_units() {
        let cases = [(0, "0 s"), (61, "1 min 1 s"), (7260, "2 h 1 min"), (90_000, "1 d 1 h")];
        cases.iter().for_each(|(time, text)| assert_eq!(seconds(*time * 1_000_000_000), *text));
    }
}
