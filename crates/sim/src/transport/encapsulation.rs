//! Bytes that another encapsulation puts into a frame beside ours: a frame has
//! its true length on every wire, in every queue and for every rate limit.

use bytes::Bytes;
use wire::frame::{HEADER, Header, Kind};
use wire::tlp::total_length;

/// Bytes beside the tunnel's own. They lie behind the chunk; the last two say
/// how many there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encapsulation {
    /// In each frame: 0, or 2 and more.
    pub frame: usize,
    /// For each TLP; only with some in each frame.
    pub tlp: usize,
}

impl Encapsulation {
    /// What is left of a frame's room for headers and TLPs; the TLPs' own
    /// share is counted where they are put into the frame.
    pub(crate) fn room(self, room: usize) -> usize {
        room.saturating_sub(self.frame)
    }

    /// A chunk as it goes into a frame.
    pub(crate) fn wrap(self, mut chunk: Vec<u8>) -> Vec<u8> {
        if self.frame >= 2 {
            let more = self.frame + self.tlp * tlps(&chunk);
            chunk.resize(chunk.len() + more - 2, 0);
            chunk.extend_from_slice(&(more as u16).to_be_bytes());
        }
        chunk
    }

    /// The chunk of what came in a frame.
    pub(crate) fn unwrap(self, bytes: &mut Bytes) {
        if self.frame >= 2
            && let Some(more) = bytes.last_chunk::<2>()
        {
            let more = usize::from(u16::from_be_bytes(*more));
            bytes.truncate(bytes.len().saturating_sub(more));
        }
    }
}

/// TLPs in whole frames of the tunnel.
fn tlps(bytes: &[u8]) -> usize {
    let (mut at, mut count) = (0, 0);
    while let Some(header) = bytes[at..].first_chunk::<HEADER>() {
        let header = Header::decode(*header).expect("our own frame");
        let end = at + HEADER + usize::from(header.length);
        at += HEADER;
        while header.kind == Kind::Tlps && at < end {
            at += total_length(&bytes[at..end]).expect("our own TLP");
            count += 1;
        }
        at = end;
    }
    count
}

#[cfg(test)]
mod tests {
    use super::*;
    use wire::tlp::{MemoryRequest, Tlp};
    use wire::{Bdf, Tag};

    fn frame(count: usize) -> Vec<u8> {
        let request = MemoryRequest::for_bytes(Bdf::default(), Tag::default(), 0x1000, 128);
        let write = Tlp::memory_write(request.unwrap(), Bytes::from(vec![7; 128]));
        let mut bytes = vec![0; HEADER];
        (0..count).for_each(|_| write.encode(&mut bytes));
        let length = (bytes.len() - HEADER) as u16;
        let header = Header { length, kind: Kind::Tlps, sequence: 0, acknowledged: 0 };
        bytes[..HEADER].copy_from_slice(&header.encode());
        bytes
    }

    #[test]
    fn a_frame_pays_for_itself_and_for_each_tlp() {
        let one = Encapsulation { frame: 12, tlp: 10 };
        for count in [1, 9] {
            let chunk = frame(count);
            let wrapped = one.wrap(chunk.clone());
            assert_eq!(wrapped.len(), chunk.len() + 12 + 10 * count);
            let mut bytes = Bytes::from(wrapped);
            one.unwrap(&mut bytes);
            assert_eq!(bytes, chunk);
        }
        assert_eq!(one.room(1488), 1476);
        let none = Encapsulation::default();
        let mut bytes = Bytes::from(none.wrap(frame(2)));
        none.unwrap(&mut bytes);
        assert_eq!(bytes, frame(2));
    }
}
