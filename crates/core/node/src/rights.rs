//! What a peer may do at a device node.

/// The rights of a peer at a device node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// The groups as which the peer may attach as a host.
    pub attach: Groups,
    /// Whether the peer may move the device to another group of hosts.
    pub move_device: bool,
    /// Whether the peer may probe the link.
    pub probe: bool,
}

impl Rights {
    /// All rights, for a link without authentication.
    pub const ALL: Self = Self { attach: Groups::Any, move_device: true, probe: true };

    /// Whether the peer may connect as a probe.
    pub fn may_probe(&self) -> bool {
        self.probe || self.move_device
    }

    /// Whether any right is given.
    pub fn any(&self) -> bool {
        *self != Self::default()
    }
}

/// Groups of hosts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Groups {
    /// No group: the peer may not attach.
    #[default]
    None,
    /// Any group.
    Any,
    /// The listed groups.
    Listed(Vec<u16>),
}

impl Groups {
    /// Whether a host of `group` may attach.
    pub fn contain(&self, group: u16) -> bool {
        match self {
            Self::None => false,
            Self::Any => true,
            Self::Listed(groups) => groups.contains(&group),
        }
    }
}
