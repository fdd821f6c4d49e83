//! One endpoint offered to a VMM: executes the actions of its slot.

use super::ReadOutcome;
use crate::random_number;
use ::node::Slot;
use ::node::push::ResetEvent;
use ::node::slot::{self, Change, Client, Output, Snapshot};
use bytes::{Bytes, BytesMut};
use pcie::enumerate::{self, Node};
use pcie::root::ReadToken;
use pcie::software::Bus;
use std::collections::BTreeMap;
use std::ops::Range;
use vfio_user::{Action, BindError, DmaId, EndpointInfo, Server, SocketFolder};
use wire::Instant;
use wire::nvme::register;

/// Class code of an NVMe controller: mass storage, non-volatile memory, NVM Express (PCI Code and ID
/// Assignment 1.11, section 1.2).
const NVME: [u8; 3] = [1, 8, 2];

/// An endpoint and its VMM.
pub struct Endpoint {
    /// The downstream port above the endpoint.
    pub port: usize,
    /// The wire of the root port that carries the endpoint's interrupts, 0 for INTA.
    pub wire: u8,
    /// Whether a VMM was reported to the owner.
    pub connected: bool,
    /// The function.
    pub slot: Slot,
    /// The VMM.
    pub guest: Guest,
    /// Changes not yet reported.
    pub changes: Vec<Change>,
    /// Since when a reset by the VMM is under way.
    pub resets_since: Option<Instant>,
    /// Since when a read of a BAR by the VMM is under way.
    pub reads_since: Option<Instant>,
    /// Answers to reads of guest memory: (token, bytes).
    pub answers: Vec<(ReadToken, Option<Bytes>)>,
}

/// The VMM of an endpoint, as the endpoint's client.
pub struct Guest {
    /// The vfio-user server.
    pub server: Server,
    /// Reads of guest memory that wait for the VMM's answer to DMA_READ, by DMA ID.
    reads: BTreeMap<DmaId, ReadToken>,
}

impl Client for Guest {
    fn is_active(&self) -> bool {
        self.server.session.in_use()
    }

    fn command(&self) -> [Option<u8>; 2] {
        self.server.session.written_command()
    }

    fn has_written_registers(&self) -> bool {
        self.server.session.registers_written
    }

    fn read(
        &mut self,
        now: Instant,
        (address, length): (u64, usize),
        token: &ReadToken,
    ) -> Option<ReadOutcome> {
        match self.server.dma_read(now, address, length) {
            vfio_user::Access::Done(data) => Some(ReadOutcome::Done(Some(data))),
            vfio_user::Access::Pending(id) => {
                self.reads.insert(id, token.clone());
                Some(ReadOutcome::Pending)
            }
            vfio_user::Access::Failed(_) => Some(ReadOutcome::Done(None)),
            vfio_user::Access::Full => None,
        }
    }

    fn write(&mut self, now: Instant, address: u64, data: &[u8]) -> Option<bool> {
        match self.server.dma_write(now, address, data) {
            vfio_user::Access::Done(()) | vfio_user::Access::Pending(_) => Some(true),
            vfio_user::Access::Failed(_) => Some(false),
            vfio_user::Access::Full => None,
        }
    }

    fn peek(&mut self, range: (u64, usize), out: &mut BytesMut) -> bool {
        self.server.session.peek(range, out)
    }

    fn signal(&mut self, vector: u16) {
        self.server.session.signal(vector);
    }
}

impl Endpoint {
    /// Offers `node` on `number/cntrl` in the folder. Error: see [`BindError`].
    pub fn offer(
        sockets: &SocketFolder,
        number: usize,
        port: usize,
        node: Node,
        (info, snapshot): (EndpointInfo, Option<Snapshot>),
        bus: Bus,
        enumeration: enumerate::Settings,
    ) -> Result<Self, BindError> {
        // Never 0, which means that no host has used the device.
        let settings = slot::Settings { enumeration, owner: random_number() as u32 | 1 };
        let server = Server::bind_in(sockets, number, info)?;
        Ok(Self {
            port,
            wire: 0,
            connected: false,
            slot: Slot::new(node, bus, settings).with_snapshot(snapshot),
            guest: Guest { server, reads: BTreeMap::new() },
            changes: Vec::new(),
            resets_since: None,
            reads_since: None,
            answers: Vec::new(),
        })
    }

    /// A description for the user.
    pub fn summary(&self) -> super::Summary {
        super::Summary::new(self.slot.node(), &self.guest.server.session.info.config)
    }

    /// Handles the VMM's socket and starts possible accesses. Returns whether anything happened.
    pub fn service(&mut self, now: Instant) -> bool {
        self.guest.server.service(now);
        self.service_without_input(now)
    }

    /// As [`service`](Self::service), without input on the VMM's socket.
    pub fn service_without_input(&mut self, now: Instant) -> bool {
        self.guest.server.session.poll_doorbells();
        self.advance(now)
    }

    /// Continues without the VMM's socket, after answers on the bus.
    pub fn advance(&mut self, now: Instant) -> bool {
        let mut moved = false;
        loop {
            let mut again = false;
            while let Some(output) = self.slot.poll(now, &mut self.guest) {
                again = true;
                self.carry_out(now, output);
            }
            // Requests beyond the far side's speed wait in the client's socket.
            if let Some(action) = self.guest.server.poll(now, self.slot.accepts()) {
                again = true;
                self.start(now, action);
            }
            if !again {
                self.resets_since = self.resets_since.filter(|_| self.slot.is_preparing());
                self.reads_since = self.reads_since.filter(|_| self.slot.is_reading());
                // Cleared when the register writes have reached the host's root complex, which
                // follows them.
                self.guest.server.session.registers_written &= !self.slot.is_settled();
                return moved;
            }
            moved = true;
        }
    }

    fn carry_out(&mut self, now: Instant, output: Output) {
        match output {
            Output::Reply(token, data) => self.guest.server.reply(now, token, Ok(&data)),
            Output::Presence(presence) => self.guest.server.set_presence(now, presence),
            Output::HostData(token, data) => self.answers.push((token, data)),
            Output::Change(change) => self.changes.push(change),
            Output::Ready { .. } => {}
        }
    }

    fn start(&mut self, now: Instant, action: Action) {
        match action {
            Action::DmaDone { id, result } => {
                if let Some(token) = self.guest.reads.remove(&id) {
                    self.slot.faults += u64::from(result.is_err());
                    self.answers.push((token, result.ok()));
                }
            }
            Action::ConfigRead { token, offset, size } => {
                self.slot.config_read(now, token, offset, size);
            }
            Action::ConfigWrite { token, offset, size, value } => {
                self.slot.config_write(token, offset, size, value);
            }
            Action::BarRead { token, bar, offset, length } => {
                self.reads_since = self.reads_since.or(Some(now));
                self.slot.bar_read(now, token, bar, (offset, length));
            }
            Action::BarWrite { bar, offset, data } => self.slot.bar_write(bar, offset, &data),
            Action::MsixEnable(enable) => self.slot.set_msix(enable),
            Action::Reset { token } => {
                self.resets_since = Some(now);
                self.slot.reset(token);
            }
            Action::ClientGone { token } => {
                self.resets_since = Some(now);
                // The device still waits for reads that will get no answer.
                let pending = std::mem::take(&mut self.guest.reads).into_values();
                self.answers.extend(pending.map(|token| (token, None)));
                self.slot.reset(token);
            }
        }
    }

    /// Handles the loss of the link; `event` reports the loss to the driver once the function
    /// is back, or at once if the driver has another controller of the drive.
    pub fn link_down(&mut self, now: Instant, event: Option<ResetEvent>, has_other: bool) {
        self.slot.set_other(has_other);
        self.slot.link_down(event, &self.guest);
        if has_other {
            self.slot.report_loss(now, &mut self.guest);
        }
        self.advance(now);
    }

    /// Handles the return of the link, with the functions `found` below its port.
    pub fn link_up(&mut self, now: Instant, found: &[Node]) {
        self.slot.link_up(found, &self.guest);
        self.advance(now);
    }

    /// Notes that the client's memory in `range` was replaced.
    pub fn remapped(&mut self, range: &Range<u64>) {
        self.slot.remapped(range);
    }
}

/// Reads the properties of an endpoint before it is offered. A device that does not answer reads
/// all ones.
pub(super) async fn describe(
    bus: Bus,
    node: Node,
    doorbells: bool,
) -> (EndpointInfo, Option<Snapshot>) {
    let mut config = Box::new([0; 4096]);
    for (at, place) in config.chunks_exact_mut(4).enumerate() {
        let value = bus.config_read(node.bdf, at as u16 * 4, 4).await;
        place.copy_from_slice(&value.to_le_bytes());
    }
    let mut bars = [None; 6];
    let device = node.device();
    for bar in device.into_iter().flat_map(|device| &device.bars) {
        bars[usize::from(bar.index)] = Some(*bar);
    }
    let registers = node.bar(0).filter(|_| node.class == NVME);
    let snapshot = match registers.map(|bar| bar.address) {
        Some(bar) => Some(Snapshot {
            config: config.clone(),
            capabilities: bus.read(bar + register::CAP, 8).await,
            version: bus.read(bar + register::VS, 4).await as u32,
        }),
        None => None,
    };
    (EndpointInfo { config, bars, doorbells }, snapshot)
}
