//! What device nodes, switch nodes and host nodes share.

use crate::commands::Failure;
use crate::namespace::Namespace;
use crate::span;
use clap::Args;
use live::net::{Address, Peer, RawSettings, largest_payload};
use live::{NvmeDrive, Poller, Report, Waiting};
use nvme::{Config, Controller};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io;
use switch::aggregate::Policy;
use switch::congestion::{self, Rate};
use switch::tunnel::Settings;
use wire::Duration;
use wire::frame::Role;

/// Options of every node.
#[derive(Args, Clone, Debug)]
pub struct NodeArgs {
    /// Allow addresses other than loopback: links are neither authenticated
    /// nor encrypted
    #[arg(long)]
    pub insecure: bool,
    /// Look for input this long before sleeping: lower latency for a busy core.
    /// Such as 50us; a number alone is microseconds
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span::microseconds)]
    pub spin: Duration,
    /// Largest TLP payload, 128 to 4096 bytes
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = parse_mps)]
    pub mps: u16,
    /// When TLPs leave this node: adaptive (whatever waits shares a frame as
    /// soon as the network takes one), per-tlp (one TLP a frame and segment) or
    /// wait=TIME (a frame leaves full or TIME after its first TLP, such as
    /// wait=1us)
    #[arg(long, value_name = "POLICY", default_value_t = Policy::Adaptive)]
    pub aggregation: Policy,
    /// What lets frames go on raw Ethernet: none (the windows alone),
    /// swift=TIME (aims at this round trip, such as 25us, the same for all who
    /// share a link: then they share it evenly), swift (aims above the least
    /// round trip seen: whoever comes later gets more) or rate=RATE. TCP has a
    /// control of its own
    #[arg(long, value_name = "CONTROL", default_value_t = congestion::Config::None)]
    pub congestion: congestion::Config,
    /// Send at most this many bits of frames a second to all links together,
    /// which share them evenly in bytes: such as 5G or 250M. The headers of
    /// TCP, IP and Ethernet do not count
    #[arg(long, value_name = "RATE")]
    pub rate_limit: Option<Rate>,
}

impl NodeArgs {
    /// Where far sides are.
    ///
    /// # Errors
    /// As [`Peer::find`].
    pub fn peers(&self, texts: &[String]) -> io::Result<Vec<Peer>> {
        texts.iter().map(|text| Peer::find(text, self.insecure)).collect()
    }

    /// The largest payload asked for that fits the frames of all of
    /// `addresses`.
    ///
    /// # Errors
    /// If an interface has gone, or carries no TLPs.
    pub fn payload_for<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a Address>,
    ) -> Result<u16, Failure> {
        let mut payload = self.mps;
        for address in addresses {
            if let Address::Raw(station) = address {
                payload = payload.min(largest_payload(station)?);
            }
        }
        Ok(payload)
    }

    /// The same with the largest payload that fits; says so if it is not what
    /// was asked for.
    ///
    /// # Errors
    /// As [`payload_for`](Self::payload_for).
    pub fn fitted<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a Address>,
    ) -> Result<Self, Failure> {
        let mps = self.payload_for(addresses)?;
        if mps < self.mps {
            eprintln!("--mps {mps}: frames of raw Ethernet carry no larger payload here");
        }
        Ok(Self { mps, ..self.clone() })
    }

    /// The settings of links over raw Ethernet.
    pub fn raw(&self) -> RawSettings {
        RawSettings { congestion: self.congestion, ..RawSettings::default() }
    }

    /// A poller that waits as asked.
    ///
    /// # Errors
    /// If the kernel gives none.
    pub fn poller(&self) -> io::Result<Poller> {
        Poller::new(waiting(self.spin))
    }

    /// The limit of what the node sends. Timers come late, above all without
    /// `--spin`: what was missed in up to four frames is made up for.
    pub fn limit(&self) -> Option<Rate> {
        self.rate_limit.map(|rate| Rate { burst: 4, ..rate })
    }

    /// The settings of a link end.
    pub fn tunnel(&self, role: Role) -> Settings {
        let (max_payload, aggregation) = (self.mps, self.aggregation);
        Settings { max_payload, aggregation, ..Settings::new(role, instance()) }
    }
}

/// How a node waits that looks for input for `spin` before it sleeps.
pub fn waiting(spin: Duration) -> Waiting {
    match spin {
        Duration::ZERO => Waiting::Block,
        spin => Waiting::Spin(spin),
    }
}

/// A Max_Payload_Size: 128 to 4096.
///
/// # Errors
/// The values that are allowed.
pub fn parse_mps(text: &str) -> Result<u16, String> {
    match text.parse() {
        Ok(mps @ (128 | 256 | 512 | 1024 | 2048 | 4096)) => Ok(mps),
        _ => Err("128, 256, 512, 1024, 2048 or 4096".into()),
    }
}

/// Downstream ports for that many links.
///
/// # Errors
/// If a switch has not so many.
pub fn port_count(links: usize) -> Result<u8, Failure> {
    let ports = u8::try_from(links).ok().filter(|ports| (1..=32).contains(ports));
    ports.ok_or_else(|| Failure(format!("--connect {links} times: a switch has 1 to 32 links")))
}

/// Lets this process have as many descriptors as it may: a VMM hands over one
/// for every interrupt vector of every endpoint.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, ..limit };
    // Without it a node still serves; a client that needs more is refused.
    let _ = setrlimit(Resource::Nofile, most);
}

/// Counters on stderr, a line each.
pub fn print_report(report: &Report) {
    report.iter().for_each(|(name, counters)| eprintln!("{name}: {counters}"));
}

/// A number that no other process has, most likely.
pub fn instance() -> u64 {
    RandomState::new().build_hasher().finish()
}

/// A drive over `namespaces`. Without a serial number it gets one that stays
/// the same as long as its files, or `place`, do.
///
/// # Errors
/// One line that names the namespace.
pub fn drive(
    namespaces: &[Namespace],
    serial: Option<&str>,
    place: &str,
    max_payload: usize,
) -> Result<NvmeDrive, Failure> {
    let mut configs = Vec::new();
    let mut media = Vec::new();
    for namespace in namespaces {
        let (config, store) = namespace.open()?;
        configs.push(config);
        media.push(store);
    }
    let identity = namespaces.iter().find_map(Namespace::identity);
    let identity = identity.unwrap_or_else(|| place.to_owned());
    let serial =
        serial.map_or_else(|| format!("FL{:016X}", fnv1a(identity.as_bytes())), str::to_owned);
    let mut config = Config::new(serial, configs);
    config.max_payload = max_payload;
    Ok(NvmeDrive::new(Controller::new(wire::Instant::ZERO, config), media))
}

/// 64-bit FNV-1a.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}
