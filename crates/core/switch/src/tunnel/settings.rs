//! Settings of one end of a link.

use crate::aggregate::Policy;
use wire::Duration;
use wire::frame::{Grant, LinkConnection, Paths, Role};

/// Settings of one end of a link.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// The role of this end.
    pub role: Role,
    /// Largest TLP payload accepted, in bytes: a power of two, 128 to 4096.
    pub max_payload: u16,
    /// A number that differs with each start of the process.
    pub instance: u64,
    /// Size of the receive buffer by class, as credits that are advertised to the far side.
    pub window: [Grant; 3],
    /// How long the session survives without a connection, in whole milliseconds. With 0, or if the
    /// far side does not survive, the session ends with its connection.
    pub survive: Duration,
    /// The most bytes of sent frames that are kept until the far side acknowledges them; beyond, no
    /// TLPs leave. Both ends have the same value.
    pub keep: usize,
    /// How a host uses several paths at the same time; `None`: it has one path. A device follows.
    pub paths: Option<Paths>,
    /// The place of this connection in a link of several connections; `None`: the link has one. The
    /// first connection of a host needs a device with the same number of queue pairs.
    pub connection: Option<LinkConnection>,
    /// How long a device carries requests out after the host's last word, in whole milliseconds; 0:
    /// without limit, for devices that no host reaches over another link.
    pub lease: Duration,
    /// A random number of this process, which the host shares only with its device: the name of
    /// its sessions. The lower 32 bits are ignored.
    pub secret: u128,
    /// The interval of keepalives when nothing else is sent.
    pub keepalive: Duration,
    /// The link is lost if no bytes are received for this time. Must be below the completion
    /// timeout of the root complex.
    pub loss_limit: Duration,
    /// The largest payload of one frame, in bytes.
    pub max_frame: usize,
    /// The aggregation policy.
    pub aggregation: Policy,
    /// Bytes that the transport adds to each TLP, which reduce the room in a frame. 0 for TCP and
    /// raw Ethernet.
    pub tlp_overhead: usize,
    /// The group of a host; 0 for no group. Devices can be moved between groups.
    pub group: u16,
    /// The maximum number of pushed bytes that a device keeps ([`crate::push_store::Store`]); with
    /// 0, the device accepts no push messages.
    pub push: u32,
}

impl Settings {
    /// Defaults: a receive buffer of 1024 TLPs and 1 MiB per class, keepalives every 100 ms, a loss
    /// limit of 800 ms, no survival, and 4 MiB of kept frames.
    pub fn new(role: Role, instance: u64) -> Self {
        let bulk = Grant { headers: 1024, data: (1 << 20) / 16 };
        Self {
            role,
            max_payload: 4096,
            instance,
            window: [bulk, Grant { headers: 1024, data: 1024 }, bulk],
            survive: Duration::ZERO,
            keep: 4 << 20,
            paths: None,
            connection: None,
            lease: Duration::ZERO,
            secret: u128::from(instance) << 32,
            keepalive: Duration::from_ms(100),
            loss_limit: Duration::from_ms(800),
            max_frame: 32 << 10,
            aggregation: Policy::Adaptive,
            tlp_overhead: 0,
            group: 0,
            push: 0,
        }
    }
}
