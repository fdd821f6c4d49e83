//! A captured connection of the tunnel: converts the bytes of both directions to frames, TLPs and
//! commands.
//!
//! Bytes are pushed in the order in which they passed the capture, both directions mixed. The time
//! of a TLP is the time of the last byte of its frame, because the far side cannot act earlier. If
//! the capture records bytes before it forwards them, causes precede their effects.

use super::{Analyser, AnalyserSettings, Direction};
use bytes::{Buf, Bytes, BytesMut};
use std::ops::Range;
use thiserror::Error;
use wire::Instant;
use wire::frame::{self, Control, HEADER, Header, Kind};
use wire::tlp::{self, Tlp};

/// The payload of a tunnel frame.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// A TLP.
    Tlp(Tlp),
    /// A control frame.
    Control(Control),
}

/// A TLP or control frame of the stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Item {
    /// Time of the last byte of the frame.
    pub at: Instant,
    /// Direction of the frame: [`Direction::Down`] is from the host.
    pub direction: Direction,
    /// Offset of the frame's first byte in the stream of its direction.
    pub offset: u64,
    /// Sequence number of the frame; 0 for control frames.
    pub sequence: u32,
    /// The TLP or control frame.
    pub payload: Payload,
}

/// An error in a stream.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Fault {
    /// The bytes are not a frame.
    #[error("{0}")]
    Frame(#[from] frame::Malformed),
    /// The bytes are not a TLP: index of the TLP in the frame, from 0, and the error.
    #[error("TLP {0} of the frame: {1}")]
    Tlp(usize, tlp::Malformed),
    /// A frame is missing or arrived twice: the number in the frame and the expected number.
    #[error("frame {0} where frame {1} should follow")]
    Sequence(u32, u32),
    /// A frame acknowledges more frames than passed in the other direction: the acknowledged number
    /// and the number of frames that passed.
    #[error(
        "the frame acknowledges frames up to {0}, but only {1} frames had passed the other way"
    )]
    Acknowledged(u32, u32),
    /// A frame precedes the greeting of this side.
    #[error("a frame before the greeting")]
    NoGreeting,
    /// A frame of TLPs contains no TLP.
    #[error("a frame without TLPs")]
    Empty,
    /// The stream ends within a frame, after this number of the frame's bytes.
    #[error("the stream ends inside of a frame of which {0} bytes are there")]
    Truncated(usize),
}

/// An error in a stream, and its place.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{}, byte {offset}: {fault}", if *direction == Direction::Down { "host to device" } else { "device to host" })]
pub struct DecodeError {
    /// Direction of the stream.
    pub direction: Direction,
    /// Offset of the frame's first byte in the stream.
    pub offset: u64,
    /// The error.
    pub fault: Fault,
}

/// Receives the sequence number and the payload of a frame.
type Sink<'a> = &'a mut dyn FnMut(u32, Payload);
type Decoded = Result<(), Fault>;

/// The state of the decoder for one direction of the connection.
#[derive(Debug, Default)]
struct Side {
    /// Bytes of an incomplete frame.
    bytes: BytesMut,
    /// Offset of the first of `bytes` in the stream.
    offset: u64,
    greeted: bool,
    next_sequence: u32,
    acknowledged: u32,
    /// In a session that goes on, the frame that this side's Hello expects next.
    expects: Option<u32>,
}

/// Splits the streams of one connection into frames and TLPs. Stores at most one frame per
/// direction.
#[derive(Debug, Default)]
pub struct Decoder {
    down: Side,
    up: Side,
}

impl Decoder {
    /// Creates a decoder for a connection, before its first byte.
    pub fn new() -> Self {
        Self::default()
    }

    /// Decodes the next bytes of a direction, which passed at `at`. Passes every item that the
    /// bytes complete to `sink`.
    ///
    /// # Errors
    /// The first error. The items before the error have been passed to `sink`; nothing after the
    /// error can be decoded.
    pub fn push(
        &mut self,
        at: Instant,
        direction: Direction,
        bytes: &[u8],
        mut sink: impl FnMut(Item),
    ) -> Result<(), DecodeError> {
        let (side, other) = match direction {
            Direction::Down => (&mut self.down, &mut self.up),
            Direction::Up => (&mut self.up, &mut self.down),
        };
        side.bytes.extend_from_slice(bytes);
        loop {
            other.next_sequence = side.expects.take().unwrap_or(other.next_sequence);
            let sent = other.next_sequence;
            let offset = side.offset;
            let item = |sequence, payload| Item { at, direction, offset, sequence, payload };
            match side.next_frame(sent, &mut |sequence, payload| sink(item(sequence, payload))) {
                Ok(true) => {}
                Ok(false) => return Ok(()),
                Err(fault) => return Err(DecodeError { direction, offset, fault }),
            }
        }
    }

    /// Checks that both streams end at the end of a frame, as after an orderly end of both nodes.
    ///
    /// # Errors
    /// [`Fault::Truncated`] for the first stream that ends within a frame.
    pub fn finish(&self) -> Result<(), DecodeError> {
        for (direction, side) in [(Direction::Down, &self.down), (Direction::Up, &self.up)] {
            if !side.bytes.is_empty() {
                let fault = Fault::Truncated(side.bytes.len());
                return Err(DecodeError { direction, offset: side.offset, fault });
            }
        }
        Ok(())
    }
}

impl Side {
    /// Removes the next frame; returns `false` if no whole frame is there.
    fn next_frame(&mut self, sent: u32, sink: Sink<'_>) -> Result<bool, Fault> {
        let Some(head) = self.bytes.first_chunk::<HEADER>() else { return Ok(false) };
        let header = Header::decode(*head)?;
        let length = HEADER + usize::from(header.length);
        if self.bytes.len() < length {
            return Ok(false);
        }
        let mut payload = self.bytes.split_to(length).freeze();
        payload.advance(HEADER);
        self.frame(header, sent, payload, sink)?;
        self.offset += length as u64;
        Ok(true)
    }

    fn frame(&mut self, header: Header, sent: u32, payload: Bytes, sink: Sink<'_>) -> Decoded {
        if let Kind::Hello = header.kind
            && let Control::Hello(hello) = Control::decode(header.kind, &payload)?
            && let Some(expected) = hello.session.and_then(|session| session.expected)
        {
            (self.expects, self.acknowledged, self.greeted) = (Some(expected), expected, true);
            sink(header.sequence, Payload::Control(Control::Hello(hello)));
            return Ok(());
        }
        let acknowledged = header.acknowledged;
        let ahead = acknowledged.wrapping_sub(self.acknowledged);
        if ahead > sent.wrapping_sub(self.acknowledged) {
            return Err(Fault::Acknowledged(acknowledged, sent));
        }
        self.acknowledged = acknowledged;
        if header.kind == Kind::Tlps {
            return self.tlps(header.sequence, payload, sink);
        }
        let control = Control::decode(header.kind, &payload)?;
        let greets = matches!(control, Control::Hello(_) | Control::Reject { .. });
        if !greets && !self.greeted {
            return Err(Fault::NoGreeting);
        }
        self.greeted = true;
        sink(header.sequence, Payload::Control(control));
        Ok(())
    }

    fn tlps(&mut self, sequence: u32, mut payload: Bytes, sink: Sink<'_>) -> Decoded {
        if !self.greeted {
            return Err(Fault::NoGreeting);
        }
        if sequence != self.next_sequence {
            return Err(Fault::Sequence(sequence, self.next_sequence));
        }
        if payload.is_empty() {
            return Err(Fault::Empty);
        }
        self.next_sequence = sequence.wrapping_add(1);
        for index in 0.. {
            if payload.is_empty() {
                break;
            }
            let tlp = Tlp::decode(&mut payload).map_err(|fault| Fault::Tlp(index, fault))?;
            sink(sequence, Payload::Tlp(tlp));
        }
        Ok(())
    }
}

/// Bytes that were captured at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StreamRange {
    /// Time of the capture, before the bytes were forwarded.
    pub at: Instant,
    /// Direction of the bytes.
    pub direction: Direction,
    /// Range of the bytes in the stream of this direction.
    pub bytes: Range<usize>,
}

/// Finds the commands of a captured connection: a [`Decoder`] followed by an [`Analyser`]. Hot
/// resets are taken into account.
#[derive(Debug, Default)]
pub struct LinkAnalyser {
    decoder: Decoder,
    /// The analyser that finds the commands.
    pub analyser: Analyser,
    /// Number of the latest hot reset, until the device acknowledges it.
    resetting: Option<u32>,
}

impl LinkAnalyser {
    /// Creates an analyser for a connection, before its first byte.
    pub fn new(settings: AnalyserSettings) -> Self {
        Self { analyser: Analyser::new(settings), ..Self::default() }
    }

    /// Processes the next bytes. Take the analyser's events afterwards.
    ///
    /// # Errors
    /// As [`Decoder::push`].
    pub fn push(
        &mut self,
        at: Instant,
        direction: Direction,
        bytes: &[u8],
    ) -> Result<(), DecodeError> {
        let Self { decoder, analyser, resetting } = self;
        decoder.push(at, direction, bytes, |item| match item.payload {
            // The device sent the TLP before the reset, and the host discards it.
            Payload::Tlp(_) if direction == Direction::Up && resetting.is_some() => {}
            Payload::Tlp(tlp) => analyser.push(item.at, direction, &tlp),
            Payload::Control(Control::Reset(number)) => {
                *resetting = Some(number);
                analyser.link_reset();
            }
            Payload::Control(Control::ResetDone(number)) => {
                resetting.take_if(|latest| *latest == number);
            }
            Payload::Control(_) => {}
        })
    }

    /// Processes a whole capture: the streams of both directions and the order in which their bytes
    /// passed. `sink` receives every event.
    ///
    /// # Errors
    /// As [`Decoder::push`]. If a range is beyond the end of its stream, the stream ends there.
    pub fn run(
        &mut self,
        down: &[u8],
        up: &[u8],
        ranges: impl IntoIterator<Item = StreamRange>,
        mut sink: impl FnMut(super::Event),
    ) -> Result<(), DecodeError> {
        for StreamRange { at, direction, bytes } in ranges {
            let stream = if direction == Direction::Down { down } else { up };
            let end = bytes.end.min(stream.len());
            let piece = stream.get(bytes.start..end).unwrap_or_default();
            let result = self.push(at, direction, piece);
            while let Some(event) = self.analyser.next_event() {
                sink(event);
            }
            result?;
        }
        Ok(())
    }

    /// Ends the capture: commands in flight end and become events.
    ///
    /// # Errors
    /// As [`Decoder::finish`].
    pub fn finish(&mut self) -> Result<(), DecodeError> {
        self.analyser.finish();
        self.decoder.finish()
    }
}
