//! A port whose link is lost and restored, and the functions below it.

use super::{Change, Output, Settings, Slot};
use pcie::enumerate::{self, Error, Node};
use pcie::software::{Bus, Task};
use std::fmt;
use wire::Instant;

/// A port of the host's own switch. It enumerates the functions below whenever its link comes up.
pub struct Port {
    /// The port.
    pub node: Node,
    rescan: Option<Task<Result<Vec<Node>, Error>>>,
}

impl Port {
    /// A port that was enumerated with all below it.
    pub fn new(node: Node) -> Self {
        Self { node, rescan: None }
    }

    /// Handles the return of the link. [`poll`](Self::poll) returns the functions below, unless the
    /// link goes down.
    pub fn link_up(&mut self, bus: &Bus, settings: &enumerate::Settings) {
        let (node, payload) = (self.node.clone(), self.node.max_payload);
        let rescan = enumerate::enumerate_below(bus.clone(), node, settings.clone(), payload);
        self.rescan = Some(Task::new(bus, rescan));
    }

    /// Handles the loss of the link.
    pub fn link_down(&mut self) {
        self.rescan = None;
    }

    /// The functions below the port since its link came up; returned once. Poll after answers on
    /// the bus.
    pub fn poll(&mut self, now: Instant) -> Option<Result<Vec<Node>, Error>> {
        let found = self.rescan.as_mut()?.poll(now)?;
        self.rescan = None;
        Some(found)
    }
}

impl fmt::Debug for Port {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Port {}", self.node.bdf)
    }
}

/// A slot with the host's own driver.
#[derive(Debug)]
pub struct OwnSlot {
    port: Port,
    slot: Slot,
}

impl OwnSlot {
    /// A slot with the function `node` below `port`.
    pub fn new(port: Node, node: Node, bus: Bus, settings: Settings) -> Self {
        Self { port: Port::new(port), slot: Slot::new(node, bus, settings) }
    }

    /// The function that was attached last.
    pub fn node(&self) -> &Node {
        self.slot.node()
    }

    /// Handles the loss of the link.
    pub fn link_down(&mut self) {
        self.port.link_down();
        self.slot.link_down(None, &());
    }

    /// Handles the return of the link.
    pub fn link_up(&mut self) {
        self.port.link_up(&self.slot.bus, &self.slot.settings.enumeration);
    }

    /// Handles the return of the link, if the functions below the port are enumerated elsewhere:
    /// `found`. For several slots below one port.
    pub fn link_up_with(&mut self, found: &[Node]) {
        self.slot.link_up(found, &());
    }

    /// Whether the function has new contents; returned once, when the function is ready for its
    /// driver after the link came up. Poll after answers on the bus.
    ///
    /// # Errors
    /// Why the function is not available.
    pub fn poll(&mut self, now: Instant) -> Option<Result<bool, String>> {
        match self.port.poll(now) {
            Some(Ok(found)) => self.slot.link_up(&found, &()),
            Some(Err(error)) => return Some(Err(error.to_string())),
            None => {}
        }
        loop {
            match self.slot.poll(now, &mut ())? {
                Output::Change(Change::Changed(why)) => return Some(Err(why)),
                Output::Ready { reset } => return Some(Ok(reset)),
                _ => {}
            }
        }
    }
}
