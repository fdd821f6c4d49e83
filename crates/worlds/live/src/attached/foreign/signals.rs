//! Interrupts of the device: eventfds that it signals.

use super::accesses::Accesses;
use crate::poller::Poller;
use pcie::endpoint::Endpoint;
use rustix::event::{EventfdFlags, eventfd};
use rustix::io::ReadWriteFlags;
use std::collections::BTreeSet;
use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use vfio_user::client::{Device, Error};
use wire::vfio_user::irq_index;

/// With this number of packets for the host, interrupts wait.
const MAX_POSTED: usize = 256;

/// How the device interrupts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Kind {
    #[default]
    None,
    Intx,
    Msix,
}

/// The eventfds of the device.
#[derive(Default)]
pub(super) struct Signals {
    /// Whether the device has an interrupt pin.
    pub has_pin: bool,
    /// What the host has enabled.
    pub wanted: Kind,
    /// Whether INTx is asserted.
    pub asserted: bool,
    kind: Kind,
    /// Whether the device was reset since it got the eventfds.
    stale: bool,
    fds: Vec<OwnedFd>,
    /// Signalled interrupts that the endpoint has not got.
    pending: BTreeSet<u16>,
}

impl Signals {
    /// Forgets interrupts from before a reset.
    pub(super) fn forget(&mut self) {
        self.pending.clear();
    }

    /// The function was reset. A device may forget its eventfds then.
    pub(super) fn reset(&mut self) {
        self.forget();
        (self.asserted, self.wanted, self.stale) = (false, Kind::None, true);
    }

    /// Takes what the device has signalled. Returns whether there was anything.
    pub(super) fn collect(&mut self, poller: &Poller) -> bool {
        let is_signalled = |fd: &OwnedFd| poller.take_ready(fd) && take(fd);
        let signalled = (0..).zip(&self.fds).filter(|(_, fd)| is_signalled(fd));
        let before = self.pending.len();
        self.pending.extend(signalled.map(|(vector, _)| vector));
        self.pending.len() > before
    }

    /// Passes interrupts on to the endpoint. Returns whether there was any.
    pub(super) fn deliver(&mut self, endpoint: &mut Endpoint) -> bool {
        let mut any = false;
        while endpoint.posted_packets() < MAX_POSTED
            && let Some(vector) = self.pending.pop_first()
        {
            any = true;
            match self.wanted {
                Kind::Msix => endpoint.interrupt(vector),
                Kind::Intx => {
                    self.asserted = true;
                    endpoint.set_intx(true);
                }
                Kind::None => {}
            }
        }
        any
    }

    /// Gives the device the eventfds of what the host has enabled, and takes earlier ones back.
    pub(super) fn apply(
        &mut self,
        device: &mut Device,
        accesses: &mut Accesses,
        poller: &Poller,
    ) -> Result<(), Error> {
        let stale = std::mem::take(&mut self.stale);
        if self.wanted == self.kind && !stale {
            return Ok(());
        }
        if !self.fds.is_empty() {
            self.fds.iter().for_each(|fd| poller.remove(fd));
            self.fds.clear();
            // Some devices know no way back, and signal closed eventfds.
            accesses.ignore(device.request_no_signals(index(self.kind))?);
        }
        self.kind = self.wanted;
        let count = match self.kind {
            Kind::Msix => device.vectors,
            Kind::Intx => u32::from(self.has_pin && device.intx),
            Kind::None => 0,
        };
        let watched = || {
            let fd = eventfd(0, EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC)?;
            poller.add(&fd, false).map(|()| fd)
        };
        let fds = (0..count).map(|_| watched()).collect::<io::Result<_>>();
        self.fds = fds.map_err(|error| device.channel().error(error.to_string()))?;
        let fds: Vec<BorrowedFd<'_>> = self.fds.iter().map(AsFd::as_fd).collect();
        if fds.is_empty() { Ok(()) } else { device.request_signals(index(self.kind), &fds) }
    }
}

/// Takes the count of an eventfd. The device shares the file, so it could make a plain read(2) wait:
/// RWF_NOWAIT (preadv2(2)) does not.
fn take(fd: &OwnedFd) -> bool {
    let mut count = [0; 8];
    let into = &mut [IoSliceMut::new(&mut count)];
    // The present position, which eventfds do not have.
    rustix::io::preadv2(fd, into, u64::MAX, ReadWriteFlags::NOWAIT).is_ok()
}

fn index(kind: Kind) -> u32 {
    match kind {
        Kind::Msix => irq_index::MSIX,
        Kind::Intx | Kind::None => irq_index::INTX,
    }
}
