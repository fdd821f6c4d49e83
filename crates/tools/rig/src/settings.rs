//! The settings of live nodes from a plan's configuration of the simulation.

use crate::run::LiveOptions;
use live::NodeSettings;
use live::attached::Switch;
use live::links::Links;
use live::net::{LinkSettings, Marking, Peer, RawSettings};
use report::Failure;
use sim::transport::TransportConfig;
use sim::world::SwitchConfig;
use switch::congestion::Config as Congestion;
use switch::push_store::CAPACITY;
use switch::tunnel::Settings;
use wire::frame::{Paths, Role};

/// The settings of both ends of a tunnel.
#[derive(Clone, Debug)]
pub struct LinkParts {
    /// Settings that nodes of every role share.
    pub node: NodeSettings,
    switch: SwitchConfig,
    raw: RawSettings,
}

impl LinkParts {
    /// Reads the settings of a switch and of one of its transports, with the congestion control of
    /// the host; `None` without a tunnel.
    pub fn new(
        switch: &SwitchConfig,
        transport: Option<(&TransportConfig, Congestion)>,
        options: &LiveOptions,
    ) -> Self {
        let (transport, congestion) = transport.unzip();
        let priority = transport.and_then(TransportConfig::stations).map(|(_, priority)| priority);
        let congestion = match transport {
            Some(TransportConfig::Raw(_)) => congestion.unwrap_or_default(),
            _ => Congestion::None,
        };
        let node = NodeSettings {
            waiting: options.waiting,
            max_payload: switch.max_payload as u16,
            aggregation: switch.aggregation,
            congestion,
            rate_limit: switch.rate_limit,
            survive: switch.survive,
            paths: Paths::Active,
            connection: None,
            marking: Marking { priority: priority.filter(|priority| *priority > 0), dscp: None },
            gate: None,
            credentials: options.credentials.clone(),
        };
        let raw = RawSettings { congestion, give_up: switch.loss_limit };
        Self { node, switch: switch.clone(), raw }
    }

    /// Returns the settings of one end. A device node keeps pushed bytes.
    pub fn tunnel(&self, role: Role) -> Settings {
        let SwitchConfig { keepalive, loss_limit, max_frame, .. } = self.switch;
        let push = if role == Role::Device { CAPACITY } else { 0 };
        Settings { keepalive, loss_limit, max_frame, push, ..self.node.tunnel(role) }
    }

    /// Creates a switch with a link to each of these nodes.
    ///
    /// # Errors
    /// As [`links`](Self::links).
    pub fn switch(&self, peers: &[Peer]) -> Result<Switch, Failure> {
        let upstream = switch::upstream::Settings {
            ports: peers.len() as u8,
            max_payload: self.switch.max_payload,
            p2p: false,
            tunnel: self.tunnel(Role::Host),
        };
        let links = Links::new(peers).over(self.links()?).limited(self.node.limit());
        Ok(Switch::new(upstream, links))
    }

    /// Returns the settings of the connections.
    ///
    /// # Errors
    /// If this process may not set the priority.
    pub fn links(&self) -> Result<LinkSettings, Failure> {
        Ok(LinkSettings { raw: self.raw, ..self.node.links()? })
    }
}
