//! What a device node remembers over the end of its process.

use super::{DeviceNode, Host};
use bytes::Bytes;
use pcie::Function;
use pcie::endpoint::{ForeignState, Unsent};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use switch::downstream::SavedLink;
use switch::tunnel::Place;
use wire::Instant;

/// The state of a device node with a host, which goes on in another process.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedNode {
    /// The link, and the function.
    pub link: SavedLink,
    /// The name of the host, if it has proved its identity.
    peer: Option<String>,
    host_group: u16,
    /// The group that the device belongs to.
    group: u16,
}

impl SavedNode {
    /// Writes the bytes of the state; returns their number, or `None` if they do not fit.
    pub fn encode(&self, to: &mut [u8]) -> Option<usize> {
        postcard::to_slice(self, to).ok().map(|bytes| bytes.len())
    }

    /// The name of the host, if it has proved its identity.
    pub fn peer(&self) -> Option<&str> {
        self.peer.as_deref()
    }

    /// The state with these bytes.
    ///
    /// # Errors
    /// If the bytes are not a state.
    pub fn decode(bytes: &[u8]) -> Result<Self, ForeignState> {
        postcard::from_bytes(bytes).map_err(|_| ForeignState)
    }
}

impl<F: Function> DeviceNode<F> {
    /// The state now; `None` unless a host uses the device and its session survives connections.
    /// `function` returns the state of the function; `place` is as for
    /// [`Tunnel::save`](switch::tunnel::Tunnel::save).
    pub fn save(
        &mut self,
        function: impl FnOnce(&mut F, &Unsent) -> Bytes,
        place: &mut dyn FnMut(u64, &Bytes) -> Place,
    ) -> Option<SavedNode> {
        let host = self.host.as_ref().filter(|host| host.end.is_none())?;
        let (peer, host_group) = (host.peer.as_deref().map(str::to_owned), host.group);
        let link = self.downstream.save(function, place)?;
        Some(SavedNode { link, peer, host_group, group: self.group })
    }

    /// Goes on with the host of an earlier process, which connects again. The function is to be
    /// restored before. `bytes` returns the payloads of frames.
    ///
    /// # Errors
    /// If the state is damaged.
    pub fn restore(
        &mut self,
        now: Instant,
        saved: SavedNode,
        bytes: &mut dyn FnMut(Place) -> Option<Bytes>,
    ) -> Result<(), ForeignState> {
        let SavedNode { link, peer, host_group, group } = saved;
        self.group = group;
        let (paths, end) = Default::default();
        let peer = peer.map(Arc::from);
        self.host = Some(Host { paths, peer, group: host_group, link: None, end });
        self.downstream.restore(now, link, bytes)
    }
}
