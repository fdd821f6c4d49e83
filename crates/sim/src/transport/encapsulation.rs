//! Bytes that another encapsulation puts into a frame beside ours: a frame has
//! its true length on every wire, in every queue and for every rate limit.

use bytes::Bytes;

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

    /// A chunk with so many TLPs as it goes into a frame.
    pub(crate) fn wrap(self, mut chunk: Vec<u8>, tlps: usize) -> Vec<u8> {
        if self.frame >= 2 {
            let more = self.frame + self.tlp * tlps;
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_frame_pays_for_itself_and_for_each_tlp() {
        let one = Encapsulation { frame: 12, tlp: 10 };
        let chunk = vec![7; 100];
        for count in [1, 9] {
            let wrapped = one.wrap(chunk.clone(), count);
            assert_eq!(wrapped.len(), chunk.len() + 12 + 10 * count);
            let mut bytes = Bytes::from(wrapped);
            one.unwrap(&mut bytes);
            assert_eq!(bytes, chunk);
        }
        assert_eq!(one.room(1488), 1476);
        let none = Encapsulation::default();
        let mut bytes = Bytes::from(none.wrap(chunk.clone(), 2));
        none.unwrap(&mut bytes);
        assert_eq!(bytes, chunk);
    }
}
