//! Finds frames and TLPs in the bytes of one direction of a link, cut
//! anywhere, without keeping more than a header.

use wire::frame::{self, Kind};
use wire::tlp::total_length;
use wire::trace::{HEAD, MOST_HEADS};

/// Bytes kept of a control frame's payload: all of every known one, but for the
/// later entries of a greeting.
const MOST_CONTROL: usize = 64;
/// Bytes of the shortest TLP.
const SHORTEST: usize = 12;

/// What was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Piece<'a> {
    /// A frame of TLPs with the beginnings of the first ones.
    Frame {
        /// Its sequence number.
        sequence: u32,
        /// Its bytes, header included.
        bytes: u32,
        /// TLPs in it.
        tlps: u32,
        /// The beginnings of its first TLPs, [`HEAD`] bytes each.
        heads: &'a [u8],
    },
    /// A control frame.
    Control {
        /// Its kind, see [`wire::frame::Kind`].
        kind: u8,
        /// Its payload, or the beginning of it.
        payload: &'a [u8],
    },
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
pub struct Scanner {
    state: State,
    held: [u8; MOST_CONTROL],
    have: usize,
    /// Bytes of the frame behind what is looked at.
    left: usize,
    sequence: u32,
    bytes: u32,
    tlps: u32,
    heads: Vec<u8>,
}

impl Default for Scanner {
    fn default() -> Self {
        let (held, state) = ([0; MOST_CONTROL], State::Header);
        let heads = Vec::new();
        Self { state, held, have: 0, left: 0, sequence: 0, bytes: 0, tlps: 0, heads }
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
                    if self.have == 0 && self.whole(&mut bytes) {
                        self.next_item(&mut sink);
                        continue;
                    }
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
                    self.tlp(length);
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
            self.heads.clear();
            self.next_item(sink);
        } else {
            self.state = State::Control { kind: header.kind as u8 };
        }
    }

    /// Takes all TLPs that are there as a whole with something behind them.
    fn row(&mut self, bytes: &mut &[u8]) {
        while (self.tlps as usize) < MOST_HEADS
            && let Some(head) = bytes.first_chunk::<HEAD>()
            && let Some(length) = total_length(head)
            && length < bytes.len()
            && length < self.left
        {
            let mut head = u128::from_be_bytes(*head);
            if length < HEAD {
                head &= !0xffff_ffff;
            }
            self.heads.extend_from_slice(&head.to_be_bytes());
            self.tlps += 1;
            self.left -= length;
            *bytes = &bytes[length..];
        }
    }

    /// Takes a TLP that is there as a whole, which is the rule.
    fn whole(&mut self, bytes: &mut &[u8]) -> bool {
        self.row(bytes);
        let Some(length) = total_length(bytes) else { return false };
        if length > bytes.len() || length > self.left {
            return false;
        }
        self.keep(&bytes[..length.min(HEAD)]);
        *bytes = &bytes[length..];
        self.left -= length;
        true
    }

    /// The head of a TLP is held.
    fn tlp(&mut self, length: usize) {
        let held = self.held;
        let head = &held[..length.min(HEAD)];
        self.keep(head);
        self.left -= length;
        self.have = 0;
        self.state = State::Skip(length - head.len());
    }

    fn keep(&mut self, head: &[u8]) {
        if (self.tlps as usize) < MOST_HEADS {
            self.heads.extend_from_slice(head);
            if head.len() < HEAD {
                self.heads.resize((self.tlps as usize + 1) * HEAD, 0);
            }
        }
        self.tlps += 1;
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
            sink(Piece::Frame { sequence, bytes, tlps, heads: &self.heads });
            self.tlps = 0;
            self.heads.clear();
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
        assert_eq!(found.len(), 4, "{found:#?}");
        assert_eq!(found[0], "Control { kind: 4, payload: [] }");
        let heads = found[1].strip_prefix("Frame { sequence: 9, bytes: 308, tlps: 3, heads: [");
        let heads = heads.expect("the frame").trim_end_matches("] }");
        let heads: Vec<u8> = heads.split(", ").map(|byte| byte.parse().unwrap()).collect();
        assert_eq!(heads.len(), 3 * HEAD);
        assert_eq!((heads[0], heads[3], heads[12]), (0x40, 64, 0xab), "MWr of 64 DW");
        assert_eq!((heads[16], heads[28..32].to_vec()), (0, vec![0; 4]), "MRd has no more");
        assert_eq!((heads[32], heads[35], heads[44]), (0x40, 1, 0xcd), "MWr of 1 DW");
        assert_eq!(found[2], "Control { kind: 5, payload: [0, 0, 0, 0, 0, 0, 0, 7] }");
        assert!(found[3].starts_with("Frame { sequence: 10, bytes: 280, tlps: 1, "));
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
