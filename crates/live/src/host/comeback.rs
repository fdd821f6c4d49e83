//! What the host node does with a function that comes back, or that a client
//! resets: looks who is there, and gives it what the client had set.

use pcie::enumerate::{self, Identity, Loss, Node, Returned, Settings};
use pcie::software::Bus;
use std::fmt;

/// What became of an endpoint, for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum News {
    /// It is attached again, with the data that it had.
    Back,
    /// It is attached again with other data.
    BackWithNewContents(Loss),
    /// It is there with other data, and stays detached until its client asks
    /// for a reset.
    NewContents(Loss),
    /// Another device is there, or none: it stays detached.
    Changed(String),
}

impl fmt::Display for News {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Back => f.write_str("attached again"),
            Self::BackWithNewContents(loss) => {
                write!(f, "attached again with new contents: {loss}")
            }
            Self::NewContents(loss) => write!(
                f,
                "new contents: {loss}; it stays detached until its guest resets it: restart the \
                 guest, or in it write 1 to /sys/bus/pci/devices/ADDRESS/reset"
            ),
            Self::Changed(why) => write!(
                f,
                "has changed and stays detached: {why}; bring the one before back, or start the \
                 host again to use this one"
            ),
        }
    }
}

/// Whether an endpoint's function can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// It is the client's.
    Attached,
    /// Its link is down. `reset`: the client has asked for a reset since, or
    /// has gone, and expects nothing of the data any more.
    Lost {
        /// See above.
        reset: bool,
    },
    /// This is there, but is the client's only after a reset that it asks for.
    Waiting(Box<Node>),
}

/// What a client set before a reset that it did not ask for.
#[derive(Clone, Copy, Debug, Default)]
pub struct Settled {
    /// It uses MSI-X.
    pub msix: bool,
    /// The bytes of the Command register that it wrote.
    pub command: [Option<u8>; 2],
}

/// Gives a function that was enumerated anew what the client had set, and
/// bus mastering last: nothing leaves the function before all else stands.
pub async fn restore(bus: &Bus, node: &Node, owner: u32, settled: Settled) {
    let contents = node.device().and_then(|device| device.contents);
    enumerate::own(bus, node.bdf, contents, owner).await;
    if settled.msix {
        set_msix(bus, node, true).await;
    }
    // The lower byte holds Bus Master Enable (PCIe Base 4.0, section 7.5.1.1.3).
    for (index, byte) in settled.command.into_iter().enumerate().rev() {
        if let Some(byte) = byte {
            let at = pcie::config::register::COMMAND + index as u16;
            bus.config_write(node.bdf, at, 1, byte.into()).await;
        }
    }
}

/// Who was found at a place, and what that means to the host.
pub struct Looked {
    /// What it says of itself.
    pub identity: Identity,
    /// What it is to who was there before.
    pub returned: Returned,
}

/// Looks who is at the place of `node`, where `before` was attached last, and
/// resets the function if that is the same device, with the same contents or
/// others; `None` if nobody answers. A device behind a switch node can have
/// been replaced unseen: no link of this host went down.
pub async fn look_and_reset(
    bus: &Bus,
    before: Identity,
    node: &Node,
    settings: &Settings,
    owner: u32,
) -> Option<Looked> {
    let identity = enumerate::identify(bus, node.bdf).await?;
    let returned = before.returned(&identity, owner);
    if !matches!(returned, Returned::Another(_)) {
        enumerate::reset_function(bus, node, settings).await;
        enumerate::own(bus, node.bdf, identity.contents, owner).await;
    }
    Some(Looked { identity, returned })
}

/// Every vector signals its own number; the VMM masks on its side.
pub async fn set_msix(bus: &Bus, node: &Node, enable: bool) {
    let vectors = node.device().and_then(|device| device.msix).map_or(0, |msix| msix.vectors);
    if enable {
        for vector in 0..vectors {
            enumerate::write_msix_entry(bus, node, vector, u32::from(vector), false);
        }
    }
    enumerate::set_msix(bus, node, enable).await;
}
