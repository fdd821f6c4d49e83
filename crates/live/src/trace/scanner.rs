//! Finds frames and TLPs in the bytes of one direction of a link, cut
//! anywhere, without keeping more than a header.

use wire::frame::{self, Kind};
use wire::tlp::total_length;
use wire::trace::HEAD;

/// Bytes kept of a control frame's payload: all of every known one.
const MOST_CONTROL: usize = 64;
/// Bytes of the shortest TLP.
const SHORTEST: usize = 12;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece<'a> {
    /// A TLP with its length on the wire and its first bytes.
    Tlp { length: u16, head: &'a [u8] },
    /// The end of the frame that these TLPs are in.
    Frame { sequence: u32, bytes: u32, tlps: u32 },
    /// A control frame.
    Control { kind: u8, payload: &'a [u8] },
}

#[derive(Clone, Copy, Debug)]
enum State {
    Header,
    Control {
        kind: u8,
    },
    Tlp,
    Skip(usize),
    /// These are no frames; the tunnel will say so.
    Lost,
}

/// See the module.
#[derive(Debug)]
pub(super) struct Scanner {
    state: State,
    held: [u8; MOST_CONTROL],
    have: usize,
    /// Bytes of the frame behind what is looked at.
    left: usize,
    sequence: u32,
    bytes: u32,
    tlps: u32,
}

impl Default for Scanner {
    fn default() -> Self {
        let (held, state) = ([0; MOST_CONTROL], State::Header);
        Self { state, held, have: 0, left: 0, sequence: 0, bytes: 0, tlps: 0 }
    }
}

impl Scanner {
    /// Takes the next bytes.
    pub fn feed(&mut self, mut bytes: &[u8], mut sink: impl FnMut(Piece<'_>)) {
        loop {
            match self.state {
                State::Lost => return,
                State::Skip(left) => {
                    let step = left.min(bytes.len());
                    bytes = &bytes[step..];
                    if step < left {
                        self.state = State::Skip(left - step);
                        return;
                    }
                    self.next_item(&mut sink);
                }
                State::Header => {
                    if !self.hold(&mut bytes, frame::HEADER) {
                        return;
                    }
                    self.header(&mut sink);
                }
                State::Control { kind } => {
                    let kept = self.left.min(MOST_CONTROL);
                    if !self.hold(&mut bytes, kept) {
                        return;
                    }
                    sink(Piece::Control { kind, payload: &self.held[..kept] });
                    self.have = 0;
                    self.left -= kept;
                    self.skip_control();
                }
                State::Tlp => {
                    if !self.hold(&mut bytes, SHORTEST) {
                        return;
                    }
                    let length = total_length(&self.held[..4]).unwrap_or(usize::MAX);
                    if length > self.left {
                        self.state = State::Lost;
                        return;
                    }
                    if !self.hold(&mut bytes, length.min(HEAD)) {
                        return;
                    }
                    self.tlp(length, &mut sink);
                }
            }
        }
    }

    /// Takes bytes until `want` are held; `false` if there are not enough.
    fn hold(&mut self, bytes: &mut &[u8], want: usize) -> bool {
        let step = want.saturating_sub(self.have).min(bytes.len());
        self.held[self.have..self.have + step].copy_from_slice(&bytes[..step]);
        self.have += step;
        *bytes = &bytes[step..];
        self.have >= want
    }

    fn header(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        self.have = 0;
        let head = self.held.first_chunk().expect("64 bytes");
        let Ok(header) = frame::Header::decode(*head) else {
            self.state = State::Lost;
            return;
        };
        self.left = usize::from(header.length);
        if header.kind == Kind::Tlps {
            self.sequence = header.sequence;
            self.bytes = (self.left + frame::HEADER) as u32;
            self.tlps = 0;
            self.next_item(sink);
        } else {
            self.state = State::Control { kind: header.kind as u8 };
        }
    }

    fn tlp(&mut self, length: usize, sink: &mut impl FnMut(Piece<'_>)) {
        let head = &self.held[..length.min(HEAD)];
        sink(Piece::Tlp { length: length as u16, head });
        let skip = length - head.len();
        self.tlps += 1;
        self.left -= length;
        self.have = 0;
        self.state = State::Skip(skip);
    }

    /// What follows a TLP.
    fn next_item(&mut self, sink: &mut impl FnMut(Piece<'_>)) {
        self.state = match self.left {
            0 => State::Header,
            left if left < SHORTEST => State::Lost,
            _ => State::Tlp,
        };
        if self.left == 0 && self.tlps > 0 {
            let Self { sequence, bytes, tlps, .. } = *self;
            sink(Piece::Frame { sequence, bytes, tlps });
            self.tlps = 0;
        }
    }

    /// What follows a control frame.
    fn skip_control(&mut self) {
        let rest = std::mem::take(&mut self.left);
        self.tlps = 0;
        self.state = State::Skip(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use bytes::Bytes;
    use proptest::prelude::*;
    use wire::frame::{Control, Header};
    use wire::tlp::{MemoryRequest, Tlp};
    use wire::{Bdf, Tag};

    fn frame(kind: Kind, sequence: u32, payload: &[u8]) -> Vec<u8> {
        let header = Header { length: payload.len() as u16, kind, sequence, acknowledged: 0 };
        [&header.encode()[..], payload].concat()
    }

    fn stream() -> Vec<u8> {
        let request = |length| {
            let bdf = Bdf::new(1, 0, 0);
            MemoryRequest::for_bytes(bdf, Tag::default(), 0x1000, length).unwrap()
        };
        let mut tlps = Vec::new();
        Tlp::memory_write(request(256), Bytes::from(vec![0xab; 256])).encode(&mut tlps);
        Tlp::memory_read(request(64)).encode(&mut tlps);
        Tlp::memory_write(request(4), Bytes::from(vec![0xcd; 4])).encode(&mut tlps);
        let mut echo = Vec::new();
        Control::Echo(7).encode(&mut echo);
        [
            frame(Kind::Acknowledge, 0, &[]),
            frame(Kind::Tlps, 9, &tlps),
            frame(Kind::Echo, 0, &echo),
            frame(Kind::Tlps, 10, &tlps[..268]),
        ]
        .concat()
    }

    fn found(pieces: &[&[u8]]) -> Vec<String> {
        let mut scanner = Scanner::default();
        let mut found = Vec::new();
        pieces.iter().for_each(|piece| scanner.feed(piece, |p| found.push(format!("{p:?}"))));
        found
    }

    #[test]
    fn everything_is_found() {
        let found = found(&[&stream()]);
        assert_eq!(found.len(), 8, "{found:#?}");
        assert_eq!(found[0], "Control { kind: 4, payload: [] }");
        assert!(found[1].starts_with("Tlp { length: 268, head: [64, 0, 0, 64, 1"));
        assert!(found[2].starts_with("Tlp { length: 12, "));
        assert!(found[3].starts_with("Tlp { length: 16, "));
        assert_eq!(found[4], "Frame { sequence: 9, bytes: 308, tlps: 3 }");
        assert_eq!(found[5], "Control { kind: 5, payload: [0, 0, 0, 0, 0, 0, 0, 7] }");
        assert_eq!(found[7], "Frame { sequence: 10, bytes: 280, tlps: 1 }");
    }

    #[test]
    fn cut_anywhere_the_same_is_found() {
        let stream = stream();
        let whole = found(&[&stream]);
        for at in 0..stream.len() {
            assert_eq!(found(&[&stream[..at], &stream[at..]]), whole, "cut at {at}");
        }
        let bytes: Vec<&[u8]> = stream.chunks(1).collect();
        assert_eq!(found(&bytes), whole);
    }

    proptest! {
        #[test]
        fn hostile_bytes_do_no_harm(bytes in proptest::collection::vec(any::<u8>(), 0..500)) {
            found(&[&bytes]);
            found(&[&frame(Kind::Tlps, 0, &bytes), &bytes]);
        }
    }
}
