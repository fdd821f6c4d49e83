//! Moves the data of commands between host memory and the buffer.

use super::{Controller, Read};
use crate::failure::Failure;
use crate::pointer::Walk;
use crate::prp::MemoryRanges;
use crate::sgl::NOWHERE;
use crate::slots::Key;
use crate::subsystem::Shared;
use bytes::{Bytes, BytesMut};
use pcie::endpoint::DmaError;
use wire::nvme::{Command, StatusCode};

/// The data of one command.
#[derive(Debug, Default)]
pub(super) enum Transfer {
    /// No data, or all data transferred.
    #[default]
    None,
    /// To the host: sent when the data and all ranges are known.
    ToHost { walk: Walk, length: usize, data: Option<Bytes> },
    /// From the host: the lists of ranges are being read.
    FromHost { walk: Walk },
    /// From the host: the data are being read.
    Receiving { buffer: BytesMut, whole: Option<Bytes>, left: usize },
}

impl Transfer {
    /// A transfer to the host. `lengths` are the bytes of data and the bytes of metadata at MPTR,
    /// which follow the data in the buffer.
    pub(super) fn to_host(
        command: &Command,
        lengths: [usize; 2],
        page: usize,
    ) -> Result<Self, Failure> {
        let walk = Walk::new(command, lengths, page, true)?;
        Ok(Self::ToHost { walk, length: lengths.iter().sum(), data: None })
    }

    /// As [`to_host`](Self::to_host).
    pub(super) fn from_host(
        command: &Command,
        lengths: [usize; 2],
        page: usize,
    ) -> Result<Self, Failure> {
        let walk = Walk::new(command, lengths, page, false)?;
        Ok(Self::FromHost { walk })
    }

    /// Sets the data for the host, if the command sends any.
    pub(super) fn supply(&mut self, bytes: Bytes) {
        if let Self::ToHost { length, data, .. } = self {
            assert_eq!(bytes.len(), *length, "exactly the bytes asked for");
            *data = Some(bytes);
        }
    }

    /// The next PRP list or SGL segment to read: address and number of bytes.
    pub(super) fn next_list(&self) -> Option<(u64, usize)> {
        match self {
            Self::ToHost { walk, .. } | Self::FromHost { walk } => walk.next_list(),
            _ => None,
        }
    }

    pub(super) fn can_fetch_data(&self) -> bool {
        matches!(self, Self::FromHost { walk } if walk.is_complete())
    }

    /// Whether the command waits for data from the host.
    pub(super) fn is_receiving(&self) -> bool {
        matches!(self, Self::FromHost { .. } | Self::Receiving { .. })
    }

    /// The received data, if they are complete.
    pub(super) fn take_received(&mut self) -> Option<Bytes> {
        match self {
            Self::Receiving { left: 0, whole, buffer } => {
                Some(whole.take().unwrap_or_else(|| std::mem::take(buffer).freeze()))
            }
            _ => None,
        }
    }

    pub(super) fn can_send(&self) -> bool {
        matches!(self, Self::ToHost { walk, data: Some(_), .. } if walk.is_complete())
    }

    fn store(&mut self, offset: usize, data: Bytes) {
        let Self::Receiving { buffer, whole, left } = self else {
            unreachable!("only receiving reads data")
        };
        *left -= data.len();
        if offset == 0 && *left == 0 && buffer.is_empty() {
            *whole = Some(data);
        } else {
            buffer[offset..offset + data.len()].copy_from_slice(&data);
        }
    }
}

impl Controller {
    pub(super) fn read_list(&mut self, key: Key, address: u64, length: usize) {
        let execution = self.commands.get_mut(key).expect("it is being carried out");
        execution.reads += 1;
        let read = self.reads.insert(Read::List(key));
        self.endpoint.dma_read(read.as_u64(), address, length);
    }

    pub(super) fn list_arrived(
        &mut self,
        shared: &mut Shared,
        key: Key,
        result: Result<Bytes, DmaError>,
    ) {
        let Some(execution) = self.commands.get_mut(key) else { return };
        execution.reads -= 1;
        let supplied =
            result.map_err(|_| transfer_error()).and_then(|list| match &mut execution.transfer {
                Transfer::ToHost { walk, .. } | Transfer::FromHost { walk } => walk.add_list(&list),
                _ => unreachable!("only walks ask for lists"),
            });
        match supplied {
            Ok(()) => self.proceed(shared, key),
            Err(failure) => self.fail(shared, key, failure),
        }
    }

    /// Reads all data of a command from host memory.
    pub(super) fn fetch_data(&mut self, key: Key) {
        let execution = self.commands.get_mut(key).expect("it is being carried out");
        let Transfer::FromHost { walk } = &execution.transfer else {
            unreachable!("can_fetch_data was true")
        };
        let ranges = MemoryRanges::from_slice(walk.ranges());
        let left = ranges.iter().map(|range| range.length).sum();
        // A single range needs no copy.
        let buffer = BytesMut::zeroed(if ranges.len() == 1 { 0 } else { left });
        execution.transfer = Transfer::Receiving { buffer, whole: None, left };
        execution.reads += ranges.len();
        let mut offset = 0;
        for range in ranges {
            let read = self.reads.insert(Read::Data(key, offset));
            self.endpoint.dma_read(read.as_u64(), range.address, range.length);
            offset += range.length;
        }
    }

    pub(super) fn data_arrived(
        &mut self,
        shared: &mut Shared,
        key: Key,
        offset: usize,
        result: Result<Bytes, DmaError>,
    ) {
        let Some(execution) = self.commands.get_mut(key) else { return };
        execution.reads -= 1;
        match result {
            Ok(data) => {
                execution.transfer.store(offset, data);
                self.proceed(shared, key);
            }
            Err(_) => self.fail(shared, key, transfer_error()),
        }
    }

    /// Sends the data of a command, or queues the command while the posted backlog is full.
    pub(super) fn send_or_queue(&mut self, shared: &mut Shared, key: Key) {
        if !self.waiting_to_send.is_empty()
            || self.endpoint.posted_backlog() > self.settings.posted_backlog
        {
            self.waiting_to_send.push_back(key);
        } else {
            self.send(shared, key);
        }
    }

    /// Removes a command from the queue of commands whose data wait for the link.
    pub(crate) fn keep_data(&mut self, key: Key) {
        self.waiting_to_send.retain(|waiting| *waiting != key);
    }

    /// Sends queued data in order while the posted backlog has room.
    pub(super) fn send_waiting(&mut self, shared: &mut Shared) {
        while self.endpoint.posted_backlog() <= self.settings.posted_backlog {
            let Some(key) = self.waiting_to_send.pop_front() else { return };
            self.send(shared, key);
        }
    }

    fn send(&mut self, shared: &mut Shared, key: Key) {
        let execution = self.commands.get_mut(key).expect("it is being carried out");
        let Transfer::ToHost { walk, data: Some(data), .. } = &execution.transfer else {
            unreachable!("can_send was true")
        };
        let mut offset = 0;
        for range in walk.ranges() {
            if range.address != NOWHERE {
                let piece = data.slice(offset..offset + range.length);
                self.endpoint.dma_write(range.address, piece);
            }
            offset += range.length;
        }
        self.finish(shared, key);
    }
}

/// The failure of a DMA read of host memory (section 9.3).
fn transfer_error() -> Failure {
    Failure::transient(StatusCode::DATA_TRANSFER_ERROR)
}
