//! Register accesses of the host, as messages to the device.

use bytes::{Bytes, BytesMut};
use pcie::endpoint::{ConfigToken, Endpoint, ReadToken};
use std::collections::BTreeMap;
use vfio_user::client::{Device, Error};
use wire::vfio_user::RegionAccess;

/// A region and the byte offset in it.
pub(super) type Place = (u32, u64);

/// What a read of the host is answered with.
pub(super) enum Answered {
    /// A completion of a register read.
    Register(ReadToken),
    /// A completion of a read of configuration space.
    Config(ConfigToken),
}

/// A read of the host.
struct Read {
    data: BytesMut,
    /// Bytes whose reply has not arrived.
    missing: usize,
    answered: Answered,
}

/// A message without a reply.
enum Sent {
    /// A part of a read: the number of the read, the offset in it, and the message.
    Read(u64, usize, RegionAccess),
    Write,
    Reset,
}

/// Accesses under way.
#[derive(Default)]
pub(super) struct Accesses {
    sent: BTreeMap<u16, Sent>,
    /// Reads of the host since the last reset.
    reads: BTreeMap<u64, Read>,
    next_read: u64,
    /// Resets without a reply.
    resets: usize,
}

impl Accesses {
    /// Number of messages without a reply.
    pub(super) fn under_way(&self) -> usize {
        self.sent.len()
    }

    /// Forgets the reads of the host: the function was reset.
    pub(super) fn forget(&mut self) {
        self.reads.clear();
    }

    pub(super) fn read(
        &mut self,
        device: &mut Device,
        (region, offset): Place,
        length: usize,
        answered: Answered,
    ) -> Result<(), Error> {
        let number = self.next_read;
        self.next_read += 1;
        let read = Read { data: BytesMut::zeroed(length), missing: length, answered };
        self.reads.insert(number, read);
        for (at, bytes) in pieces(offset, length) {
            let offset = offset + at as u64;
            let access = RegionAccess { offset, region, count: bytes as u32 };
            let id = device.request_read(access)?;
            self.sent.insert(id, Sent::Read(number, at, access));
        }
        Ok(())
    }

    pub(super) fn write(
        &mut self,
        device: &mut Device,
        (region, offset): Place,
        data: &[u8],
    ) -> Result<(), Error> {
        for (at, bytes) in pieces(offset, data.len()) {
            let id = device.request_write(region, offset + at as u64, &data[at..at + bytes])?;
            self.sent.insert(id, Sent::Write);
        }
        Ok(())
    }

    /// A reset was sent with this ID.
    pub(super) fn expect_reset(&mut self, id: u16) {
        self.sent.insert(id, Sent::Reset);
        self.resets += 1;
    }

    /// Whether the device has not yet replied to a reset.
    pub(super) fn is_resetting(&self) -> bool {
        self.resets > 0
    }

    /// Ignores the reply with this ID.
    pub(super) fn ignore(&mut self, id: u16) {
        self.sent.insert(id, Sent::Write);
    }

    /// Takes a reply of the device. What it refuses to read is all ones, as from a function that is
    /// not there; what it refuses to write is dropped.
    pub(super) fn answer(
        &mut self,
        device: &mut Device,
        endpoint: &mut Endpoint,
        id: u16,
        answer: Result<Bytes, u32>,
    ) -> Result<(), Error> {
        match (self.sent.remove(&id), answer) {
            (Some(Sent::Write), _) => Ok(()),
            (Some(Sent::Read(number, at, access)), answer) => {
                let data = answer.map(|reply| device.data(access, &reply)).ok().transpose()?;
                let bytes = data.unwrap_or_else(|| vec![0xff; access.count as usize].into());
                self.complete(endpoint, number, at, &bytes);
                Ok(())
            }
            (Some(Sent::Reset), Ok(_)) => {
                self.resets -= 1;
                Ok(())
            }
            // A device without resets or interrupts is not usable.
            (Some(Sent::Reset) | None, Err(errno)) => {
                let why = format!("refused a reset or interrupts: errno {errno}");
                Err(device.channel().error(why))
            }
            (None, Ok(_)) => Ok(()),
        }
    }

    fn complete(&mut self, endpoint: &mut Endpoint, number: u64, at: usize, bytes: &[u8]) {
        // Reads from before a reset are forgotten.
        let Some(read) = self.reads.get_mut(&number) else { return };
        read.data[at..at + bytes.len()].copy_from_slice(bytes);
        read.missing -= bytes.len();
        if read.missing > 0 {
            return;
        }
        let Read { data, answered, .. } = self.reads.remove(&number).expect("found above");
        match answered {
            Answered::Register(token) => endpoint.complete_read(token, &data),
            Answered::Config(token) => {
                let word = data[..].try_into().expect("a double word was read");
                endpoint.complete_config_read(token, word);
            }
        }
    }
}

/// Naturally aligned pieces of 1, 2, 4 or 8 bytes: devices reject others. Each is an offset in the
/// bytes and a length.
fn pieces(offset: u64, length: usize) -> impl Iterator<Item = (usize, usize)> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let left = length - at;
        let aligned = 1 << (offset + at as u64).trailing_zeros().min(3);
        let bytes = [8, 4, 2, 1].into_iter().find(|size| *size <= left && *size <= aligned)?;
        at += bytes;
        Some((at - bytes, bytes))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accesses_are_split_at_natural_boundaries() {
        let of = |offset, length| pieces(offset, length).collect::<Vec<_>>();
        assert_eq!(of(0x1003, 13), [(0, 1), (1, 4), (5, 8)]);
        assert_eq!(of(8, 8), [(0, 8)]);
        assert_eq!(of(6, 4), [(0, 2), (2, 2)]);
        assert_eq!(of(0, 0), []);
    }
}
