//! What device nodes, switch nodes and host nodes share.

use crate::gate_args::GateArgs;
use crate::namespace::Namespace;
use crate::output::{note, wrong_usage};
use clap::Args;
use live::attached::Switch;
use live::links::Links;
use live::net::{Address, LinkSettings, Marking, Peer, RawSettings, Station, largest_payload, mtu};
pub use live::random_number as instance;
use live::{NvmeDrive, Poller, Report, Waiting};
use nvme::{Config, NamespaceConfig, Subsystem};
use report::Failure;
use report::span;
use std::io::{self, ErrorKind};
use storage::media::Media;
use switch::aggregate::Policy;
use switch::congestion::{self, Rate};
use switch::tunnel::Settings;
use wire::Duration;
use wire::frame::Role;

/// Options of every node.
#[derive(Args, Clone, Debug)]
pub struct NodeArgs {
    /// Allow addresses other than loopback: links are neither authenticated nor encrypted
    #[arg(long)]
    pub insecure: bool,
    /// Look for input this long before sleeping: lower latency for a busy core.
    /// Such as 50us; a number alone is microseconds
    #[arg(long, value_name = "TIME", default_value = "0", value_parser = span::microseconds)]
    pub spin: Duration,
    /// Largest TLP payload, 128 to 4096 bytes
    #[arg(long, value_name = "BYTES", default_value_t = 4096, value_parser = parse_mps)]
    pub mps: u16,
    /// When TLPs leave this node: adaptive (whatever waits shares a frame as soon as the network
    /// takes one), per-tlp (one TLP a frame and segment) or wait=TIME (a frame leaves full or TIME
    /// after its first TLP, such as wait=1us)
    #[arg(long, value_name = "POLICY", default_value_t = Policy::Adaptive)]
    pub aggregation: Policy,
    /// What lets frames go on raw Ethernet: none (the windows alone), swift=TIME (aims at this
    /// round trip, such as 25us, the same for all who share a link: then they share it evenly),
    /// swift (aims above the least round trip seen: whoever comes later gets more) or rate=RATE.
    /// TCP has a control of its own
    #[arg(long, value_name = "CONTROL", default_value_t = congestion::Config::None)]
    pub congestion: congestion::Config,
    /// Send at most this many bits of frames a second to all links together, which share them
    /// evenly in bytes: such as 5G or 250M. The headers of TCP, IP and Ethernet do not count
    #[arg(long, value_name = "RATE")]
    pub rate_limit: Option<Rate>,
    /// The priority of what links send, 0 to 7 (SO_PRIORITY): the class of a queueing discipline,
    /// and through the egress-qos-map of a VLAN interface the PCP. 7 needs CAP_NET_ADMIN
    #[arg(long, value_name = "0..7", value_parser = clap::value_parser!(u8).range(0..=7))]
    pub priority: Option<u8>,
    /// The Differentiated Services code point of what links send over TCP, 0 to 63, such as 46
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(0..=63))]
    pub dscp: Option<u8>,
    /// The gate in front of the line.
    #[command(flatten)]
    pub gate: GateArgs,
}

impl NodeArgs {
    /// The addresses of the peers. Fails as [`far_side`].
    pub fn peers(&self, texts: &[String]) -> Result<Vec<Peer>, Failure> {
        texts.iter().map(|text| far_side(text, self.insecure)).collect()
    }

    /// The largest payload asked for that fits the frames of all of `addresses`. Fails if an
    /// interface has gone, or carries no TLPs.
    pub fn payload_for<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a Address>,
    ) -> Result<u16, Failure> {
        let narrowest = narrowest(addresses)?;
        Ok(narrowest.map_or(self.mps, |(payload, _)| payload.min(self.mps)))
    }

    /// The same with the largest payload that fits; says so if it is not what was asked for.
    /// Fails as [`payload_for`](Self::payload_for).
    pub fn with_fitting_payload<'a>(
        &self,
        addresses: impl IntoIterator<Item = &'a Address>,
    ) -> Result<Self, Failure> {
        let mut fitting = self.clone();
        if let Some((payload, station)) = narrowest(addresses)?
            && payload < self.mps
        {
            fitting.mps = payload;
            let (name, mtu) = (&station.interface, mtu(station)?);
            note(format_args!(
                "raw Ethernet on {name} at an MTU of {mtu} carries payloads of at most {payload} \
                 bytes: using Max_Payload_Size {payload}"
            ));
        }
        Ok(fitting)
    }

    /// The settings of connections that carry links. Fails if this process may not mark what it
    /// sends so, or as [`GateArgs::gate`].
    pub fn links(&self) -> Result<LinkSettings, Failure> {
        let marking = Marking { priority: self.priority, dscp: self.dscp };
        marking.check()?;
        let raw = RawSettings { congestion: self.congestion, ..RawSettings::default() };
        let gate = self.gate.gate(self.priority.unwrap_or(0))?;
        Ok(LinkSettings { raw, marking, gate })
    }

    /// A poller that waits as the options say. Fails if the kernel gives none.
    pub fn poller(&self) -> io::Result<Poller> {
        Poller::new(waiting(self.spin))
    }

    /// The rate limit of the node. Timers come late, above all without
    /// `--spin`: what was missed in up to four frames is made up for.
    pub fn limit(&self) -> Option<Rate> {
        self.rate_limit.map(|rate| Rate { burst: 4, ..rate })
    }

    /// A switch with a link to each of `peers`, those of a host of that `group`. Ends the process if
    /// a switch has not so many. Fails as [`links`](Self::links).
    pub fn switch(&self, peers: &[Peer], group: u16, p2p: bool) -> Result<Switch, Failure> {
        let (links, max_payload) = (peers.len(), self.mps.into());
        if !(1..=32).contains(&links) {
            wrong_usage(format!("--connect {links} times: a switch has 1 to 32 links"))
        }
        let tunnel = Settings { group, ..self.tunnel(Role::Host) };
        let upstream = switch::upstream::Settings { ports: links as u8, max_payload, p2p, tunnel };
        Ok(Switch::new(upstream, Links::new(peers).over(self.links()?).limited(self.limit())))
    }

    /// The settings of a link end.
    pub fn tunnel(&self, role: Role) -> Settings {
        let (max_payload, aggregation) = (self.mps, self.aggregation);
        Settings { max_payload, aggregation, ..Settings::new(role, instance()) }
    }
}

/// The largest payload that the frames of all of `addresses` carry, and which
/// of them bounds it; nothing if none is of raw Ethernet.
fn narrowest<'a>(
    addresses: impl IntoIterator<Item = &'a Address>,
) -> Result<Option<(u16, &'a Station)>, Failure> {
    let mut least: Option<(u16, &Station)> = None;
    for address in addresses {
        let Address::Raw(station) = address else { continue };
        let payload = largest_payload(station)?;
        if least.is_none_or(|(so_far, _)| payload < so_far) {
            least = Some((payload, station));
        }
    }
    Ok(least)
}

/// A far side: [`Peer::find`]. Fails if it cannot be found.
pub fn far_side(text: &str, insecure: bool) -> Result<Peer, Failure> {
    Peer::find(text, insecure).map_err(no_address)
}

/// Where to listen: [`Address::to_listen`]. Fails if there is no such place.
pub fn listening(text: &str, insecure: bool) -> Result<Address, Failure> {
    Address::to_listen(text, insecure).map_err(no_address)
}

/// An option with no address in it, or one that needs another option, ends the process.
fn no_address(error: io::Error) -> Failure {
    match error.kind() {
        ErrorKind::InvalidInput | ErrorKind::PermissionDenied => wrong_usage(error),
        _ => error.into(),
    }
}

/// How a node waits that looks for input for `spin` before it sleeps.
pub fn waiting(spin: Duration) -> Waiting {
    match spin {
        Duration::ZERO => Waiting::Block,
        spin => Waiting::Spin(spin),
    }
}

/// A Max_Payload_Size or Max_Read_Request_Size: 128 to 4096. The error lists the values that are allowed.
pub fn parse_mps(text: &str) -> Result<u16, String> {
    match span::bytes_in(text, 128..=4096) {
        Ok(mps @ (128 | 256 | 512 | 1024 | 2048 | 4096)) => Ok(mps),
        _ => Err(format!("'{text}' is not 128, 256, 512, 1024, 2048 or 4096 bytes")),
    }
}

/// Raises this process's limit of descriptors to its maximum: a VMM hands over one
/// for every interrupt vector of every endpoint.
pub fn raise_descriptor_limit() {
    use rustix::process::{Resource, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let most = rustix::process::Rlimit { current: limit.maximum, ..limit };
    // Without it a node still serves; a client that needs more is refused.
    let _ = setrlimit(Resource::Nofile, most);
}

/// A group of hosts, in a sentence.
pub fn group_name(group: u16) -> String {
    match group {
        0 => "any group".to_owned(),
        group => format!("group {group}"),
    }
}

/// Counters on stderr, a line each.
pub fn print_report(report: &Report) {
    report.iter().for_each(|(name, counters)| eprintln!("{name}: {counters}"));
}

/// I/O queue pairs of a drive, unless an option says more.
pub const QUEUES: u16 = 64;

/// A drive over `namespaces`. Without a serial number it gets one that stays
/// the same as long as its files, or `place`, do. It is run as `settings` say.
/// The error is one line that names the namespace, or says how much memory there is.
pub fn drive(
    namespaces: &[Namespace],
    serial: Option<&str>,
    place: &str,
    settings: nvme::Settings,
) -> Result<NvmeDrive, Failure> {
    let memory = namespaces.iter().map(Namespace::memory).fold(0, u64::saturating_add);
    storage::media::check_memory(memory)?;
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
    config.settings = settings;
    config.incarnation = incarnation_of(&config.namespaces, &media);
    let media = (1..).zip(media).collect();
    Ok(NvmeDrive::new(Subsystem::new(wire::Instant::ZERO, &config), media))
}

/// The settings of a drive with payloads of `max_payload` bytes at most and `queues` I/O queue
/// pairs, 1 to 2048.
pub fn drive_settings(max_payload: usize, queues: u16) -> nvme::Settings {
    nvme::Settings {
        max_payload,
        io_queues: queues,
        queue_entries: nvme::MAX_ENTRIES,
        ..nvme::Settings::default()
    }
}

/// The incarnation of a drive: FNV-1a over its namespaces in order, each with its NSID, the
/// incarnation of its media, the block shift and whether it is read-only (1 or 0), little endian.
/// One namespace with new contents makes those of the drive new; so do other block sizes or
/// another order, which a host that knew the drive would not notice. A size does not count: a
/// drive may grow.
fn incarnation_of(namespaces: &[NamespaceConfig], media: &[Box<dyn Media>]) -> u64 {
    let numbered = (1u32..).zip(namespaces.iter().zip(media));
    let bytes = numbered.flat_map(|(nsid, (namespace, media))| {
        let incarnation = media.incarnation().to_le_bytes();
        let format = [namespace.block_shift, u8::from(namespace.read_only)];
        nsid.to_le_bytes().into_iter().chain(incarnation).chain(format)
    });
    fnv1a(&bytes.collect::<Vec<u8>>())
}

/// 64-bit FNV-1a.
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use storage::media::RamMedia;

    #[test]
    fn the_contents_of_a_drive_are_new_if_those_of_one_namespace_are() {
        let ram = || -> Box<dyn Media> { Box::new(RamMedia::new(4096)) };
        let mut media = [ram(), ram()];
        let mut namespaces = [NamespaceConfig::new(8), NamespaceConfig::new(8)];
        let before = incarnation_of(&namespaces, &media);
        assert_eq!(incarnation_of(&namespaces, &media), before, "the same as long as it runs");
        namespaces[0].blocks = 16;
        assert_eq!(incarnation_of(&namespaces, &media), before, "a drive may grow");
        namespaces[0].block_shift = 12;
        assert_ne!(incarnation_of(&namespaces, &media), before, "other blocks");
        namespaces[0].block_shift = 9;
        namespaces[1].read_only = true;
        assert_ne!(incarnation_of(&namespaces, &media), before, "read-only");
        namespaces[1].read_only = false;
        media.swap(0, 1);
        assert_ne!(incarnation_of(&namespaces, &media), before, "each namespace has its own");
        media.swap(0, 1);
        media[1] = ram();
        assert_ne!(incarnation_of(&namespaces, &media), before, "RAM starts empty");
    }
}
