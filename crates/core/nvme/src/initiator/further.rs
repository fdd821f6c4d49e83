//! The I/O queues of a further connection of the link.

use super::admin::Admin;
use super::attach::{MAX_TRANSFER, controller, io_queue};
use super::driver::{Driver, IoQueue, NamespaceInfo, QueueMemory};
use super::queue::QueuePair;
use super::{Error, Settings};
use pcie::{Bus, Ram};
use std::cell::RefCell;
use std::ops::Range;
use std::rc::Rc;

/// What the drivers of all connections know of a drive.
#[derive(Clone, Debug)]
pub struct DriveInfo {
    pub(super) serial: String,
    pub(super) namespaces: Vec<NamespaceInfo>,
    pub(super) max_transfer: usize,
    /// The memory of all I/O queues.
    pub(super) queues: Vec<QueueMemory>,
}

/// The I/O queues of a further connection, in the memory of this connection. The driver of the first
/// connection creates them ([`attach_with`](super::attach_with)) and deletes them.
#[derive(Debug)]
pub struct FurtherQueues {
    admin: Admin,
    /// Index of the first queue.
    first: usize,
    queues: Vec<IoQueue>,
}

impl FurtherQueues {
    /// Allocates the queues with these indices, from 0, in `ram`. BAR 0 of the connection's function
    /// is at `bar0`.
    ///
    /// # Errors
    /// If the function does not answer or lacks a property, or if `ram` is too small.
    pub async fn new(
        bus: Bus,
        ram: Rc<RefCell<Ram>>,
        bar0: u64,
        settings: Settings,
        indices: Range<u16>,
    ) -> Result<Self, Error> {
        let (host, cap) = controller(bus, ram, bar0).await?;
        let admin = Admin::new(host, settings, cap)?;
        let first = indices.start.into();
        let queue = |index| io_queue(&admin, index + 1, MAX_TRANSFER);
        let queues = indices.map(queue).collect::<Result<_, _>>()?;
        Ok(Self { admin, first, queues })
    }

    /// The memory of the queues.
    pub fn memory(&self) -> Vec<QueueMemory> {
        self.queues.iter().map(IoQueue::memory).collect()
    }

    /// The driver of this connection, after the queues were created. Its other queues belong to other
    /// connections and are always full.
    pub fn into_driver(self, drive: DriveInfo) -> Driver {
        let DriveInfo { serial, namespaces, max_transfer, queues: all } = drive;
        let last = self.first + self.queues.len();
        let mut own = self.queues.into_iter();
        let queues = all.into_iter().enumerate().map(|(index, memory)| {
            let own = if (self.first..last).contains(&index) { own.next() } else { None };
            own.unwrap_or_else(|| IoQueue::elsewhere(index as u16 + 1, memory))
        });
        let queues = queues.collect();
        Driver { admin: self.admin, serial, namespaces, max_transfer, queues }
    }
}

impl IoQueue {
    /// A queue in the memory of another connection.
    pub(super) fn elsewhere(id: u16, memory: QueueMemory) -> Self {
        Self { pair: QueuePair::elsewhere(id, memory), lists: 0, list: 0 }
    }

    pub(super) fn memory(&self) -> QueueMemory {
        let Self { pair, .. } = self;
        QueueMemory { submission: pair.sq_base, completion: pair.cq_base, entries: pair.size() + 1 }
    }
}
