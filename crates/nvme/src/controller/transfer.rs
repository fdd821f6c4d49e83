//! Moving a command's data between host memory and the buffer.

use super::{Controller, Read};
use crate::failure::Failure;
use crate::prp::Walk;
use crate::slots::Key;
use bytes::{Bytes, BytesMut};
use pcie::endpoint::DmaError;
use wire::nvme::{Command, StatusCode};

/// The data of one command.
#[derive(Debug, Default)]
pub(super) enum Transfer {
    /// No data, or no more.
    #[default]
    None,
    /// To the host: goes when both the data and their places are known.
    ToHost { walk: Walk, length: usize, data: Option<Bytes> },
    /// From the host, its places still being found.
    FromHost { walk: Walk },
    /// From the host, on its way.
    Gathering { buffer: BytesMut, whole: Option<Bytes>, left: usize },
}

impl Transfer {
    pub fn to_host(command: &Command, length: usize, page: usize) -> Result<Self, Failure> {
        let walk = Walk::new(command.prp1, command.prp2, length, page)?;
        Ok(Self::ToHost { walk, length, data: None })
    }

    pub fn from_host(command: &Command, length: usize, page: usize) -> Result<Self, Failure> {
        let walk = Walk::new(command.prp1, command.prp2, length, page)?;
        Ok(Self::FromHost { walk })
    }

    /// The data for the host; nothing if none are wanted.
    pub fn supply(&mut self, bytes: Bytes) {
        if let Self::ToHost { length, data, .. } = self {
            assert_eq!(bytes.len(), *length, "exactly the bytes asked for");
            *data = Some(bytes);
        }
    }

    /// The PRP list to read next: address and bytes.
    pub fn wants_list(&self) -> Option<(u64, usize)> {
        match self {
            Self::ToHost { walk, .. } | Self::FromHost { walk } => walk.wanted(),
            _ => None,
        }
    }

    pub fn can_gather(&self) -> bool {
        matches!(self, Self::FromHost { walk } if walk.is_complete())
    }

    /// Data are to come that the command waits for.
    pub fn is_gathering(&self) -> bool {
        matches!(self, Self::FromHost { .. } | Self::Gathering { .. })
    }

    /// What was gathered, once it is everything.
    pub fn take_gathered(&mut self) -> Option<Bytes> {
        match self {
            Self::Gathering { left: 0, whole, buffer } => {
                Some(whole.take().unwrap_or_else(|| std::mem::take(buffer).freeze()))
            }
            _ => None,
        }
    }

    pub fn can_send(&self) -> bool {
        matches!(self, Self::ToHost { walk, data: Some(_), .. } if walk.is_complete())
    }

    fn store(&mut self, offset: usize, data: Bytes) {
        let Self::Gathering { buffer, whole, left } = self else {
            unreachable!("only gathering asks for data")
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

    pub(super) fn list_arrived(&mut self, key: Key, result: Result<Bytes, DmaError>) {
        let Some(execution) = self.commands.get_mut(key) else { return };
        execution.reads -= 1;
        let supplied =
            result.map_err(|_| transfer_error()).and_then(|list| match &mut execution.transfer {
                Transfer::ToHost { walk, .. } | Transfer::FromHost { walk } => walk.supply(&list),
                _ => unreachable!("only walks ask for lists"),
            });
        match supplied {
            Ok(()) => self.proceed(key),
            Err(failure) => self.fail(key, failure),
        }
    }

    /// Asks host memory for all data of a command.
    pub(super) fn gather(&mut self, key: Key) {
        let execution = self.commands.get_mut(key).expect("it is being carried out");
        let Transfer::FromHost { walk } = &execution.transfer else {
            unreachable!("can_gather said so")
        };
        let segments = walk.segments().to_vec();
        let left = segments.iter().map(|segment| segment.length).sum();
        // One segment needs no copy.
        let buffer = BytesMut::zeroed(if segments.len() == 1 { 0 } else { left });
        execution.transfer = Transfer::Gathering { buffer, whole: None, left };
        execution.reads += segments.len();
        let mut offset = 0;
        for segment in segments {
            let read = self.reads.insert(Read::Data(key, offset));
            self.endpoint.dma_read(read.as_u64(), segment.address, segment.length);
            offset += segment.length;
        }
    }

    pub(super) fn data_arrived(
        &mut self,
        key: Key,
        offset: usize,
        result: Result<Bytes, DmaError>,
    ) {
        let Some(execution) = self.commands.get_mut(key) else { return };
        execution.reads -= 1;
        match result {
            Ok(data) => {
                execution.transfer.store(offset, data);
                self.proceed(key);
            }
            Err(_) => self.fail(key, transfer_error()),
        }
    }

    /// Hands the data of a command to the link, or keeps them while the link
    /// has enough to do.
    pub(super) fn send_or_hold(&mut self, key: Key) {
        if !self.held.is_empty() || self.endpoint.posted_backlog() > self.config.posted_backlog {
            self.held.push_back(key);
        } else {
            self.send(key);
        }
    }

    /// Sends what was kept back, in order, as far as the link has room.
    pub(super) fn release_held(&mut self) {
        while self.endpoint.posted_backlog() <= self.config.posted_backlog {
            let Some(key) = self.held.pop_front() else { return };
            self.send(key);
        }
    }

    fn send(&mut self, key: Key) {
        let execution = self.commands.get_mut(key).expect("it is being carried out");
        let Transfer::ToHost { walk, data: Some(data), .. } = &execution.transfer else {
            unreachable!("can_send said so")
        };
        let mut offset = 0;
        for segment in walk.segments() {
            let piece = data.slice(offset..offset + segment.length);
            self.endpoint.dma_write(segment.address, piece);
            offset += segment.length;
        }
        self.finish(key);
    }
}

/// The host's memory did not answer as it should (section 9.3).
fn transfer_error() -> Failure {
    Failure::transient(StatusCode::DATA_TRANSFER_ERROR)
}
