//! The listeners of a device node, and what its connections yield.

use super::{DeviceEvent, DeviceNode, FACTOR, Inner, Path};
use crate::attached::Attached;
use crate::net::{Address, Carrier, CarrierListener};
use crate::trace::Tracer;
use node::PathId;
use node::path::Input;
use std::io;
use switch::tunnel::Cause;
use wire::Instant;
use wire::trace::Tap;

/// Connections accepted in a turn: half of those that may wait for their Hello, so that each is read
/// before later ones take its place.
const MOST_ACCEPTED: usize = 8;
/// Bytes of a read from a connection other than the host's: a turn that serves strangers stays
/// short.
const STRANGER_READ: usize = 2 << 10;
/// What a connection yielded.
#[derive(Default)]
pub(super) struct Read {
    /// Whether bytes were received.
    pub any: bool,
    /// Whether the connection has ended.
    pub gone: bool,
}

/// Passes what a connection has received to the node.
pub(super) fn read<A: Attached>(
    now: Instant,
    id: PathId,
    carrier: &mut Carrier,
    node: &mut Inner<A>,
    tracer: &Tracer,
) -> Read {
    let mut any = false;
    let gone = carrier.receive(now, |bytes| {
        any = true;
        node.handle(now, id, Input::Received(bytes));
        tracer.frames(Tap::UPLINK, || node.poll_report());
    });
    Read { any, gone }
}

impl<A: Attached> DeviceNode<A> {
    /// Also listens with `listener`, such as on another interface.
    ///
    /// # Errors
    /// If the kernel refuses to watch its descriptor.
    pub fn listening_with(mut self, listener: CarrierListener) -> io::Result<Self> {
        self.poller.add_without_spin(&listener)?;
        self.listeners.push(listener);
        Ok(self)
    }

    /// The first address on which the node listens.
    ///
    /// # Errors
    /// As `getsockname(2)`.
    pub fn address(&self) -> io::Result<Address> {
        self.listeners[0].address()
    }

    /// All addresses on which the node listens, as a host connects to them.
    ///
    /// # Errors
    /// As `getsockname(2)`.
    pub fn addresses(&self) -> io::Result<String> {
        let addresses = self.listeners.iter().map(|listener| Ok(listener.address()?.to_string()));
        Ok(addresses.collect::<io::Result<Vec<_>>>()?.join(","))
    }

    /// Accepts new connections. Returns whether there were any.
    pub(super) fn accept(
        &mut self,
        now: Instant,
        emit: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<bool> {
        let mut moved = false;
        for number in 0..self.listeners.len() {
            moved |= self.accept_from(number, now, emit)?;
        }
        Ok(moved)
    }

    /// Adds an established connection.
    pub(super) fn add_path(&mut self, now: Instant, carrier: Carrier) -> PathId {
        let id = PathId(self.accepted);
        self.accepted += 1;
        let signals_close = carrier.signals_close();
        let controller = self.node.function().inner.controller();
        let rights = carrier.rights().at_controller(controller);
        let peer = carrier.identity().map(|id| id.name.clone());
        self.node.handle(now, id, Input::Accepted { signals_close, rights, peer });
        self.paths.push(Path { id, carrier, fresh: true, room: 0, watched: false });
        id
    }

    /// Accepts connections of a listener.
    fn accept_from(
        &mut self,
        number: usize,
        now: Instant,
        emit: &mut impl FnMut(DeviceEvent),
    ) -> io::Result<bool> {
        if !self.poller.take_ready(&self.listeners[number]) {
            return Ok(false);
        }
        let (mut moved, mut start) = (false, self.clock.now());
        for _ in 0..MOST_ACCEPTED {
            let left = self.budget.is_left(now);
            let listener = &mut self.listeners[number];
            let Some(mut carrier) = left.then(|| listener.accept(now)).flatten() else {
                break;
            };
            carrier.limit_reads(Some(STRANGER_READ));
            self.poller.add(&carrier, false)?;
            if carrier.identity().is_some() {
                emit(DeviceEvent::Authenticated(carrier.remote()));
            }
            self.add_path(now, carrier);
            let end = self.clock.now();
            self.budget.charge((end - start).as_ns() * FACTOR);
            (moved, start) = (true, end);
        }
        while let Some((peer, why)) = self.listeners[number].refusal() {
            emit(DeviceEvent::TurnedAway(peer.into(), Cause::Refused(why)));
        }
        Ok(moved)
    }
}
