//! Options and functions that device, switch and host nodes share.

use crate::gate_args::GateArgs;
use crate::key_args::KeyArgs;
use crate::node_file::NodeFile;
use crate::output::{note, wrong_usage};
use clap::Args;
use live::net::{Address, CarrierListener, Marking, Peer, Protection, ReservedAddress};
pub use live::random_number as instance;
use live::{NodeSettings, Report, Waiting};
use report::span;
use report::{Failure, Outcome};
use std::io::{self, ErrorKind};
use switch::aggregate::Policy;
use switch::congestion::{self, Rate};
use wire::Duration;
use wire::frame::Paths;

/// Options of every node.
#[derive(Args, Clone, Debug)]
pub struct NodeArgs {
    /// Keys of this node and its peers.
    #[command(flatten)]
    pub keys: KeyArgs,
    /// Poll for input this long before sleeping: lower latency, higher CPU load. A number alone is
    /// in microseconds
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span::microseconds)]
    pub spin: Duration,
    /// Largest payload of a TLP (Max_Payload_Size), a power of two from 128 to 4096
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = parse_mps)]
    pub mps: u16,
    /// When TLPs leave in a frame: adaptive, per-tlp or wait=TIME, above 0 up to 10ms.
    /// docs/guide/aggregation.md describes the policies
    #[arg(long, value_name = "POLICY", default_value_t = Policy::Adaptive)]
    pub aggregation: Policy,
    /// Congestion control of raw Ethernet: none, swift, swift=TIME (target round trip, with a unit,
    /// such as 25us) or rate=RATE (such as 5G). TCP uses the control of the kernel
    #[arg(long, value_name = "CONTROL", default_value_t = congestion::Config::None)]
    pub congestion: congestion::Config,
    /// Limit of the rate of frames in bits per second, such as 5G, shared evenly by all links. Headers
    /// of TCP, IP and Ethernet do not count
    #[arg(long, value_name = "RATE")]
    pub rate_limit: Option<Rate>,
    /// How long a link stays up without a connection and then goes on over the next one; 0: not at
    /// all. The shorter time of both ends counts. A number alone is in seconds
    #[arg(long, value_name = "TIME", default_value = "10s", value_parser = survive)]
    pub survive: Duration,
    /// How a host uses two paths of `--connect A,B`: active (one carries the link, and the other one
    /// takes over) or both (each carries everything, and the first copy counts)
    #[arg(long, value_name = "HOW", default_value = "active", value_parser = paths)]
    pub paths: Paths,
    /// Priority of packets that links send, 0 to 7 (SO_PRIORITY); 7 needs CAP_NET_ADMIN
    #[arg(long, value_name = "PRIORITY", value_parser = clap::value_parser!(u8).range(0..=7))]
    pub priority: Option<u8>,
    /// Differentiated Services code point of packets that TCP links send, 0 to 63
    #[arg(long, value_name = "DSCP", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub dscp: Option<u8>,
    /// The gate in front of the line.
    #[command(flatten)]
    pub gate: GateArgs,
    /// The file that has the options.
    #[arg(skip)]
    pub file: Option<NodeFile>,
}

impl NodeArgs {
    /// The addresses of the peers. Fails as [`far_side`].
    pub fn peers(&self, texts: &[String]) -> Result<Vec<Peer>, Failure> {
        let peers: Vec<Peer> = texts
            .iter()
            .map(|text| far_side(text, self.keys.protection()))
            .collect::<Result<_, _>>()?;
        if self.survive == Duration::ZERO && peers.iter().any(|peer| peer.paths().count() > 1) {
            wrong_usage("two paths need --survive above 0")
        }
        Ok(peers)
    }

    /// Checks each file that the options name, and the permission for the priority.
    pub fn checks(&self) -> Vec<Outcome> {
        let marking = self.ungated().marking.check().map_err(Failure::from);
        let mut checks = self.keys.checks();
        checks.extend([marking, self.gate.check()]);
        checks
    }

    /// The settings without a gate in front of the line.
    pub fn ungated(&self) -> NodeSettings {
        NodeSettings {
            waiting: waiting(self.spin),
            max_payload: self.mps,
            aggregation: self.aggregation,
            congestion: self.congestion,
            rate_limit: self.rate_limit,
            survive: self.survive,
            paths: self.paths,
            connection: None,
            marking: Marking { priority: self.priority, dscp: self.dscp },
            gate: None,
            credentials: None,
        }
    }

    /// The settings; reads the key and the peers. Fails if the process may not use this priority, or as [`GateArgs::gate`] and
    /// [`KeyArgs::credentials`].
    pub fn settings(&self) -> Result<NodeSettings, Failure> {
        let settings = self.ungated();
        settings.marking.check()?;
        let gate = self.gate.gate(self.priority.unwrap_or(0))?;
        Ok(NodeSettings { gate, credentials: self.keys.credentials()?, ..settings })
    }

    /// The settings with the largest payload that fits the frames of all `addresses`; prints a note if
    /// the payload is smaller than `--mps`. Fails as [`settings`](Self::settings), or if an interface
    /// is missing or carries no TLPs.
    pub fn settings_for<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a Address>,
    ) -> Result<NodeSettings, Failure> {
        let mut fitting = self.ungated();
        if let Some(narrowed) = fitting.fit(addresses)? {
            note(narrowed);
        }
        Ok(NodeSettings { max_payload: fitting.max_payload, ..self.settings()? })
    }
}

/// Ends the process unless a switch can have this number of links.
pub fn check_links(peers: &[Peer]) {
    let links = peers.len();
    if !(1..=32).contains(&links) {
        wrong_usage(format!("--connect is given {links} times: expected 1 to 32 links"))
    }
}

/// Resolves the address of a peer: [`Peer::find`].
pub fn far_side(text: &str, protection: Protection) -> Result<Peer, Failure> {
    Peer::find(text, protection).map_err(no_address)
}

/// Resolves the addresses of `--listen`: [`listening`]. Ends the process if there are more than two.
pub fn listening_on(texts: &[String], protection: Protection) -> Result<Vec<Address>, Failure> {
    let most = switch::tunnel::MAX_PATHS;
    if texts.len() > most {
        wrong_usage(format!("--listen has {} addresses: expected at most {most}", texts.len()))
    }
    texts.iter().map(|text| listening(text, protection)).collect()
}

/// Begins to listen on reserved addresses; returns the first listener apart.
pub fn listeners(
    reserved: Vec<ReservedAddress>,
) -> io::Result<(CarrierListener, Vec<CarrierListener>)> {
    let all = reserved.into_iter().map(ReservedAddress::listen).collect::<io::Result<Vec<_>>>()?;
    let mut all = all.into_iter();
    Ok((all.next().expect("--listen has a default"), all.collect()))
}

/// Resolves an address to listen on: [`Address::to_listen`].
pub fn listening(text: &str, protection: Protection) -> Result<Address, Failure> {
    Address::to_listen(text, protection).map_err(no_address)
}

/// Ends the process if the address is invalid or needs `--key` or `--insecure`.
fn no_address(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::PermissionDenied => wrong_usage(error),
        _ => error.into(),
    }
}

/// The waiting mode that polls for `spin` before it blocks.
pub fn waiting(spin: Duration) -> Waiting {
    match spin {
        Duration::ZERO => Waiting::Block,
        spin => Waiting::Spin(spin),
    }
}

/// Parses how two paths are used.
fn paths(text: &str) -> Result<Paths, String> {
    match text {
        "active" => Ok(Paths::Active),
        "both" => Ok(Paths::Both),
        _ => Err(format!("invalid value '{text}': expected active or both")),
    }
}

/// Parses a time of survival: 0, or 1 ms to 1 h.
fn survive(text: &str) -> Result<Duration, String> {
    let time = span::seconds(text)?;
    let allowed = Duration::from_ms(1)..=Duration::from_ms(3_600_000);
    if time == Duration::ZERO || allowed.contains(&time) {
        Ok(time)
    } else {
        Err(format!("invalid time '{text}': expected 0, or 1ms to 3600s"))
    }
}

/// Parses Max_Payload_Size or Max_Read_Request_Size in bytes. The error lists the allowed values.
pub fn parse_mps(text: &str) -> Result<u16, String> {
    match span::bytes_in(text, 128..=4096) {
        Ok(mps @ (128 | 256 | 512 | 1024 | 2048 | 4096)) => Ok(mps),
        _ => Err(format!("invalid size '{text}': expected 128, 256, 512, 1024, 2048 or 4096")),
    }
}

/// Raises the limit of descriptors of this process to its maximum: a VMM passes one descriptor per
/// interrupt vector and endpoint.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, ..limit };
    // After a failure the node rejects only clients that need more descriptors.
    let _ = setrlimit(Resource::Nofile, most);
}

/// A group of hosts, in a sentence.
pub fn group_name(group: u16) -> String {
    match group {
        0 => "any group".to_owned(),
        group => format!("group {group}"),
    }
}

/// Writes counters to the log; `name` begins each line.
pub fn print_report(name: &str, report: &Report) {
    report.iter().for_each(|line| tracing::info!("{name}{line}"));
}
