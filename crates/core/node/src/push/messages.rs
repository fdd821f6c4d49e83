//! Records packed into messages, within the payload and the credits of a link.

use bytes::{Bytes, BytesMut};
use pcie::PushRoom;
use wire::Arena;
use wire::push::{BYTES_HEADER, Record};

/// The payloads of the messages in front of one doorbell.
#[derive(Debug)]
pub(super) struct Messages {
    payload: usize,
    payloads: Vec<BytesMut>,
}

/// A position in [`Messages`] to return to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Place(usize, usize);

impl Messages {
    /// No messages yet; each will have at most `payload` bytes, 128 to 4096.
    pub(super) fn new(payload: usize) -> Self {
        Self { payload, payloads: Vec::new() }
    }

    /// The last message, if it has room for `length` bytes; otherwise a new one.
    fn last(&mut self, length: usize, arena: &mut Arena) -> &mut BytesMut {
        let fits = |last: &BytesMut| last.len() + length <= self.payload;
        if !self.payloads.last().is_some_and(fits) {
            self.payloads.push(arena.buffer(self.payload));
        }
        self.payloads.last_mut().expect("pushed above")
    }

    /// Adds a record other than [`Record::Bytes`].
    pub(super) fn add(&mut self, record: &Record, arena: &mut Arena) {
        record.encode(self.last(record.length(), arena));
    }

    /// Adds bytes of a command, in as many records as they need.
    pub(super) fn add_bytes(
        &mut self,
        id: (u16, u16),
        address: u64,
        bytes: &[u8],
        arena: &mut Arena,
    ) {
        let mut left = bytes;
        self.add_memory(id, address, bytes.len(), arena, |_, length, out| {
            let (piece, behind) = left.split_at(length);
            out.extend_from_slice(piece);
            left = behind;
            true
        });
    }

    /// Adds `length` bytes from `address` on, which `read` appends piece by piece, each with one
    /// copy. Returns false if `read` does; some bytes may have been added then.
    pub(super) fn add_memory(
        &mut self,
        (queue, command): (u16, u16),
        mut address: u64,
        mut length: usize,
        arena: &mut Arena,
        mut read: impl FnMut(u64, usize, &mut BytesMut) -> bool,
    ) -> bool {
        while length > 0 {
            // A record of a few bytes at the end of a message is not worth its header.
            let least = length.min(64) + BYTES_HEADER;
            let payload = self.payload;
            let last = self.last(least, arena);
            let piece = length.min(Record::most_bytes(payload - last.len()));
            let mut header = [0; BYTES_HEADER];
            Record::encode_bytes_header(queue, command, address, piece, &mut &mut header[..]);
            last.extend_from_slice(&header);
            if !read(address, piece, last) {
                return false;
            }
            // A range that ends at 2^64 has no next address.
            address = address.wrapping_add(piece as u64);
            length -= piece;
        }
        true
    }

    /// Where the next record goes.
    pub(super) fn place(&self) -> Place {
        Place(self.payloads.len(), self.payloads.last().map_or(0, BytesMut::len))
    }

    /// Removes everything added after a position.
    pub(super) fn back_to(&mut self, Place(messages, length): Place) {
        self.payloads.truncate(messages);
        if let Some(last) = self.payloads.last_mut() {
            last.truncate(length);
        }
    }

    /// Whether the link has credits for all messages and for the doorbell.
    pub(super) fn fit(&self, room: &PushRoom) -> bool {
        let data: usize = self.payloads.iter().map(|payload| payload.len().div_ceil(16)).sum();
        self.payloads.len() < room.headers as usize && data < room.data as usize
    }

    /// The payloads.
    pub(super) fn into_payloads(self) -> impl Iterator<Item = Bytes> {
        self.payloads.into_iter().map(BytesMut::freeze)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lengths(messages: Messages) -> Vec<usize> {
        messages.into_payloads().map(|payload| payload.len()).collect()
    }

    #[test]
    fn bytes_are_cut_to_the_payload() {
        let (mut messages, mut arena) = (Messages::new(128), Arena::new(4096));
        messages.add(&Record::EndAll, &mut arena);
        messages.add_bytes((1, 2), 0x1000, &[7; 300], &mut arena);
        // 4 + 16 + 108, 16 + 112, 16 + 80.
        let place = messages.place();
        messages.add_bytes((1, 3), 0x2000, &[7; 64], &mut arena);
        messages.back_to(place);
        assert_eq!(lengths(messages), [128, 128, 96]);
    }

    #[test]
    fn the_doorbell_keeps_its_credits() {
        let mut messages = Messages::new(256);
        messages.add_bytes((1, 2), 0x1000, &[7; 64], &mut Arena::new(4096));
        let fits = |headers, data| {
            messages.fit(&PushRoom { payload: 256, headers, data, capacity: 1 << 20 })
        };
        // 80 bytes are 5 credits; the doorbell needs one more.
        assert!(fits(2, 6));
        assert!(!fits(1, 6) && !fits(2, 5));
    }
}
