//! The settings that nodes of every role share.

use crate::attached::Switch;
use crate::links::Links;
use crate::net::{
    Address, LineGate, LinkSettings, Marking, Peer, RawSettings, Station, largest_payload, mtu,
};
use crate::{Poller, Waiting, random_number};
use credentials::Credentials;
use std::fmt;
use std::io;
use std::sync::Arc;
use switch::aggregate::Policy;
use switch::congestion::{Config, Rate};
use switch::tunnel::Settings;
use wire::Duration;
use wire::frame::{LinkConnection, Paths, Role};

/// How a node waits and sends.
#[derive(Clone, Debug)]
pub struct NodeSettings {
    /// How the node waits for input.
    pub waiting: Waiting,
    /// Largest TLP payload: a power of two, 128 to 4096 bytes.
    pub max_payload: u16,
    /// When TLPs leave the aggregation queue.
    pub aggregation: Policy,
    /// Congestion control on raw Ethernet.
    pub congestion: Config,
    /// Limit of the total output of all links.
    pub rate_limit: Option<Rate>,
    /// How long links stay up without a connection; 0: not at all.
    pub survive: Duration,
    /// How hosts use two paths of a link.
    pub paths: Paths,
    /// The place of the node's connections in links of several connections.
    pub connection: Option<LinkConnection>,
    /// How packets are marked.
    pub marking: Marking,
    /// The gate in front of the line.
    pub gate: Option<LineGate>,
    /// The key of this node and its peers; `None`: links without authentication and encryption.
    pub credentials: Option<Arc<Credentials>>,
}

/// A payload that was lowered to fit the frames of an interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Narrowed {
    interface: String,
    mtu: usize,
    payload: u16,
}

impl fmt::Display for Narrowed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { interface, mtu, payload } = self;
        write!(
            f,
            "raw Ethernet on {interface} at an MTU of {mtu} carries payloads of at most {payload} \
             bytes: using Max_Payload_Size {payload}"
        )
    }
}

impl NodeSettings {
    /// Lowers the payload to the largest one that fits the frames of all of `addresses`. Returns
    /// the bound, if any.
    ///
    /// # Errors
    /// If an interface is gone, or cannot carry TLPs.
    pub fn fit<'a>(
        &mut self,
        addresses: impl IntoIterator<Item = &'a Address>,
    ) -> io::Result<Option<Narrowed>> {
        match narrowest(addresses)? {
            Some((payload, station)) if payload < self.max_payload => {
                self.max_payload = payload;
                let (interface, mtu) = (station.interface.to_string(), mtu(station)?);
                Ok(Some(Narrowed { interface, mtu, payload }))
            }
            _ => Ok(None),
        }
    }

    /// The settings of connections that carry links.
    ///
    /// # Errors
    /// If this process may not set these marks.
    pub fn links(&self) -> io::Result<LinkSettings> {
        self.marking.check()?;
        let raw = RawSettings { congestion: self.congestion, ..RawSettings::default() };
        Ok(LinkSettings {
            raw,
            marking: self.marking,
            gate: self.gate.clone(),
            credentials: self.credentials.clone(),
        })
    }

    /// A poller that waits according to the settings.
    ///
    /// # Errors
    /// If the kernel provides no epoll instance.
    pub fn poller(&self) -> io::Result<Poller> {
        Poller::new(self.waiting)
    }

    /// The rate limit of the node. Timers are late, mostly while the node blocks; a burst of up to
    /// four frames compensates.
    pub fn limit(&self) -> Option<Rate> {
        Self::limit_of(self.rate_limit)
    }

    /// As [`limit`](Self::limit), for another rate.
    pub fn limit_of(rate: Option<Rate>) -> Option<Rate> {
        rate.map(|rate| Rate { burst: 4, ..rate })
    }

    /// A switch with a link to each of `peers`, 1 to 32, as a host of `group`.
    ///
    /// # Errors
    /// As [`links`](Self::links).
    pub fn switch(&self, peers: &[Peer], group: u16, p2p: bool) -> io::Result<Switch> {
        let (ports, max_payload) = (peers.len() as u8, self.max_payload.into());
        let paths = peers.iter().any(|peer| peer.paths().count() > 1).then_some(self.paths);
        let tunnel = Settings { group, paths, ..self.tunnel(Role::Host) };
        let upstream = switch::upstream::Settings { ports, max_payload, p2p, tunnel };
        Ok(Switch::new(upstream, Links::new(peers).over(self.links()?).limited(self.limit())))
    }

    /// The settings of a link end.
    pub fn tunnel(&self, role: Role) -> Settings {
        let Self { max_payload, aggregation, survive, connection, .. } = *self;
        let secret = u128::from(random_number()) << 64 | u128::from(random_number());
        let standard = Settings::new(role, random_number());
        Settings { max_payload, aggregation, survive, secret, connection, ..standard }
    }
}

/// The largest payload that fits the frames of all of `addresses`, and the address that bounds it;
/// `None` without raw Ethernet.
fn narrowest<'a>(
    addresses: impl IntoIterator<Item = &'a Address>,
) -> io::Result<Option<(u16, &'a Station)>> {
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
