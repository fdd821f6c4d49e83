//! Additional bytes of frames, to model another encapsulation. The bytes count on every wire, in
//! every queue and for every rate limit.

use bytes::Bytes;

/// The number of additional bytes. They follow the payload of a frame; the last two bytes have the
/// number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Encapsulation {
    /// Additional bytes of each frame: 0, or at least 2.
    pub frame: usize,
    /// Additional bytes for each TLP; only if `frame` is not 0.
    pub tlp: usize,
}

impl Encapsulation {
    /// `room` minus the additional bytes of a frame. The tunnel counts the bytes of `tlp`.
    pub(crate) fn room(self, room: usize) -> usize {
        room.saturating_sub(self.frame)
    }

    /// Appends the additional bytes to a payload with `tlps` TLPs.
    pub(crate) fn wrap(self, mut segment: Vec<u8>, tlps: usize) -> Vec<u8> {
        if self.frame >= 2 {
            let more = self.frame + self.tlp * tlps;
            segment.resize(segment.len() + more - 2, 0);
            segment.extend_from_slice(&(more as u16).to_be_bytes());
        }
        segment
    }

    /// Removes the additional bytes from a received payload.
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
        let segment = vec![7; 100];
        for count in [1, 9] {
            let wrapped = one.wrap(segment.clone(), count);
            assert_eq!(wrapped.len(), segment.len() + 12 + 10 * count);
            let mut bytes = Bytes::from(wrapped);
            one.unwrap(&mut bytes);
            assert_eq!(bytes, segment);
        }
        assert_eq!(one.room(1488), 1476);
        let none = Encapsulation::default();
        let mut bytes = Bytes::from(none.wrap(segment.clone(), 2));
        none.unwrap(&mut bytes);
        assert_eq!(bytes, segment);
    }
}
