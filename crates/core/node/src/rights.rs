//! What a peer may do at a device node.

/// The rights of a peer at a device node.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rights {
    /// The groups as which the peer may attach as a host.
    pub attach: Groups,
    /// The controllers of a drive, by CNTLID, to which the peer may attach; `None`: all.
    pub controllers: Option<Vec<u16>>,
    /// Whether the peer may move the device to another group of hosts.
    pub move_device: bool,
    /// Whether the peer may probe the link.
    pub probe: bool,
}

impl Rights {
    /// All rights, for a link without authentication.
    pub const ALL: Self =
        Self { attach: Groups::Any, controllers: None, move_device: true, probe: true };

    /// Whether the peer may connect as a probe.
    pub fn may_probe(&self) -> bool {
        self.probe || self.move_device
    }

    /// The rights at the node of a controller.
    #[must_use]
    pub fn at_controller(mut self, controller: u16) -> Self {
        if self.controllers.as_ref().is_some_and(|listed| !listed.contains(&controller)) {
            self.attach = Groups::None;
        }
        self
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
