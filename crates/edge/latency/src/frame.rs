//! The payload of a frame, which is in a UDP datagram or after the EtherType of an Ethernet frame.
//!
//! | bytes | field |
//! | --- | --- |
//! | 0-3 | `FLLT` |
//! | 4 | version, 2 |
//! | 5 | kind: 0 data, 1 reflected, 2 end, 3 probe |
//! | 6-7 | bytes of the payload, padding included |
//! | 8-15 | run |
//! | 16-23 | sequence number; of an end, how many data frames were sent |
//! | 24-47 | data, end, probe: scheduled, woken, sent; reflected: when the kernel queued the earlier reflected frame of bytes 80-87, the driver took it, the wire had it |
//! | 48-79 | data, end: number of an earlier frame plus 1, and when the kernel queued it, the driver took it, the wire had it; reflected: when it came to wire, kernel, application, and when the application returned it |
//! | 80-87 | data, end, probe: when the window opens in which it is scheduled; reflected: number of an earlier reflected frame plus 1 |
//! | 88-91 | interval |
//! | 92-95 | cycle of the windows; 0 if there are none |
//! | 96-99 | length of the window |
//! | 100-103 | 0 |
//!
//! Numbers have their most significant byte first. Times are in nanoseconds of TAI, 0 if unknown.
//! The listener also reflects an End frame if it has stamps to send; the answer has the number of
//! the End frame.

use crate::sample::{Departure, Stamp, stamp};
use thiserror::Error;

/// EtherType of raw frames: Local Experimental EtherType 2 (IEEE 802-2014, table 4). Tunnels over
/// raw Ethernet use number 1.
pub const ETHERTYPE: u16 = 0x88b6;
/// Bytes of the fields, and of the smallest payload.
pub const LEAST: usize = 104;
/// Bytes of the largest payload: 1500 bytes minus the headers of IPv6 (40 bytes) and UDP (8 bytes).
pub const MOST: usize = 1500 - 48;

const MAGIC: [u8; 4] = *b"FLLT";
const VERSION: u8 = 2;

/// The purpose of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A frame from the talker to the listener.
    Data,
    /// A frame that the listener's application returned.
    Reflected,
    /// The end of the run. Only further End frames follow.
    End,
    /// A probe before the run; not counted.
    Probe,
}

const KINDS: [Kind; 4] = [Kind::Data, Kind::Reflected, Kind::End, Kind::Probe];

/// A window of the talker's schedule; all fields are 0 if the schedule has no windows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Window {
    /// When the window of the frame opens, in ns.
    pub opens: u64,
    /// Time from one window to the next, in ns.
    pub cycle: u32,
    /// Length of the window, in ns.
    pub length: u32,
}

/// The fields of a payload. In a reflected frame, stamps of an earlier reflected frame replace the
/// three times and the opening of the window ([`reflected`](Frame::reflected)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// The purpose of the frame.
    pub kind: Kind,
    /// Bytes of the payload.
    pub size: u16,
    /// The number of the run, chosen by the talker.
    pub run: u64,
    /// Sequence number, from 0.
    pub sequence: u64,
    /// When the frame was due, in ns.
    pub scheduled: u64,
    /// When the talker woke for the frame, in ns.
    pub woken: u64,
    /// When the talker's application sent the frame, in ns.
    pub sent: u64,
    /// Four further numbers; their meaning depends on the kind.
    pub more: [u64; 4],
    /// The window.
    pub window: Window,
    /// Time from one frame to the next, in ns.
    pub interval: u32,
}

/// Stamps of an earlier frame, which were not known when the frame left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct FollowUp {
    /// The number of the earlier frame.
    pub sequence: u64,
    /// The stamps.
    pub departure: Departure,
}

/// Why bytes are not a frame.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub enum Stranger {
    /// Fewer bytes than [`LEAST`].
    #[error("{0} bytes are too short for a frame: the minimum is {LEAST}")]
    Short(usize),
    /// The payload does not begin with `FLLT`.
    #[error("no frame of `farlane latency`: its payload does not begin with 'FLLT'")]
    Magic,
    /// The version is unknown.
    #[error("unknown version {0}: expected {VERSION}")]
    Version(u8),
    /// The kind is unknown.
    #[error("unknown kind {0}: expected 0 to 3")]
    Kind(u8),
    /// The length of the payload differs from its size field, or is above [`MOST`].
    #[error("the payload has {found} bytes, but its length field is {said}")]
    Size {
        /// Length of the payload.
        found: usize,
        /// The size field.
        said: u16,
    },
}

impl Frame {
    /// Replaces the contents of `buffer` by the payload, padding included.
    ///
    /// # Panics
    /// If the size is not [`LEAST`] to [`MOST`].
    pub fn encode(&self, buffer: &mut Vec<u8>) {
        let size = usize::from(self.size);
        assert!((LEAST..=MOST).contains(&size), "{size} bytes");
        buffer.clear();
        buffer.extend(MAGIC);
        buffer.extend([VERSION, self.kind as u8]);
        buffer.extend(self.size.to_be_bytes());
        for number in [self.run, self.sequence, self.scheduled, self.woken, self.sent] {
            buffer.extend(number.to_be_bytes());
        }
        self.more.iter().for_each(|number| buffer.extend(number.to_be_bytes()));
        buffer.extend(self.window.opens.to_be_bytes());
        for number in [self.interval, self.window.cycle, self.window.length] {
            buffer.extend(number.to_be_bytes());
        }
        buffer.resize(size, 0);
    }

    /// Reads a payload.
    ///
    /// # Errors
    /// Why the bytes are not a frame.
    pub fn decode(bytes: &[u8]) -> Result<Self, Stranger> {
        let found = bytes.len();
        let fields: &[u8; LEAST] = bytes.first_chunk().ok_or(Stranger::Short(found))?;
        if fields[..4] != MAGIC {
            return Err(Stranger::Magic);
        }
        if fields[4] != VERSION {
            return Err(Stranger::Version(fields[4]));
        }
        let kind = *KINDS.get(usize::from(fields[5])).ok_or(Stranger::Kind(fields[5]))?;
        let size = u16::from_be_bytes([fields[6], fields[7]]);
        if usize::from(size) != found || found > MOST {
            return Err(Stranger::Size { found, said: size });
        }
        let long = |at: usize| {
            fields[at..at + 8].iter().fold(0, |number, byte| number << 8 | u64::from(*byte))
        };
        let short = |at: usize| (long(at - 4) & u64::from(u32::MAX)) as u32;
        Ok(Self {
            kind,
            size,
            run: long(8),
            sequence: long(16),
            scheduled: long(24),
            woken: long(32),
            sent: long(40),
            more: [long(48), long(56), long(64), long(72)],
            window: Window { opens: long(80), cycle: short(92), length: short(96) },
            interval: short(88),
        })
    }

    /// The stamps of an earlier frame in this frame, if any.
    pub fn follow_up(&self) -> Option<FollowUp> {
        let [number, queued, driver, wire] = match self.kind {
            Kind::Data | Kind::End => self.more,
            Kind::Reflected => [self.window.opens, self.scheduled, self.woken, self.sent],
            Kind::Probe => return None,
        };
        let [queued, driver, wire] = [queued, driver, wire].map(stamp);
        let departure = Departure { queued, driver, wire };
        Some(FollowUp { sequence: number.checked_sub(1)?, departure })
    }

    /// Puts the stamps of an earlier frame into a Data or End frame.
    pub fn set_follow_up(&mut self, earlier: &FollowUp) {
        self.more = earlier.numbers();
    }

    /// The reflected frame. `here` has the times at which the frame reached wire, kernel and
    /// application, and at which it was returned. `earlier` has the stamps of an earlier reflected
    /// frame.
    pub fn reflected(&self, here: [Stamp; 4], earlier: Option<&FollowUp>) -> Self {
        let [opens, scheduled, woken, sent] = earlier.map_or([0; 4], FollowUp::numbers);
        let window = Window { opens, ..self.window };
        let more = here.map(number);
        Self { kind: Kind::Reflected, scheduled, woken, sent, more, window, ..*self }
    }
}

impl FollowUp {
    fn numbers(&self) -> [u64; 4] {
        let Departure { queued, driver, wire } = self.departure;
        [self.sequence + 1, number(queued), number(driver), number(wire)]
    }
}

fn number(stamp: Stamp) -> u64 {
    stamp.map_or(0, u64::from)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn data() -> Frame {
        Frame {
            kind: Kind::Data,
            size: 112,
            run: 0x1122_3344_5566_7788,
            sequence: 5,
            scheduled: 0x18,
            woken: 0x20,
            sent: 0x28,
            more: [4, 0x38, 0x40, 0],
            window: Window { opens: 0x50, cycle: 500_000, length: 100_000 },
            interval: 1_000_000,
        }
    }

    #[test]
    fn golden_bytes() {
        let mut bytes = Vec::new();
        data().encode(&mut bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "464c4c54020000701122334455667788\
             0000000000000005000000000000001800000000000000200000000000000028\
             0000000000000004000000000000003800000000000000400000000000000000\
             0000000000000050000f42400007a120000186a0000000000000000000000000"
        );
        let departure = Departure { queued: stamp(0x38), driver: stamp(0x40), wire: None };
        let follow_up = FollowUp { sequence: 3, departure };
        assert_eq!(data().follow_up(), Some(follow_up));
        let mut copy = Frame { more: [0; 4], ..data() };
        assert_eq!(copy.follow_up(), None);
        copy.set_follow_up(&follow_up);
        assert_eq!(copy, data());
    }

    #[test]
    fn golden_bytes_of_a_reflected_frame() {
        let departure = Departure { queued: stamp(0x58), driver: None, wire: stamp(0x60) };
        let earlier = FollowUp { sequence: 2, departure };
        let here = [None, stamp(0x68), stamp(0x70), stamp(0x78)];
        let back = data().reflected(here, Some(&earlier));
        let mut bytes = Vec::new();
        back.encode(&mut bytes);
        let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!(
            hex,
            "464c4c54020100701122334455667788\
             0000000000000005000000000000005800000000000000000000000000000060\
             0000000000000000000000000000006800000000000000700000000000000078\
             0000000000000003000f42400007a120000186a0000000000000000000000000"
        );
        assert_eq!(Frame::decode(&bytes).unwrap().follow_up(), Some(earlier));
        assert_eq!(data().reflected(here, None).follow_up(), None);
    }

    #[test]
    fn undecodable_frames_are_refused_with_cause() {
        let mut bytes = Vec::new();
        data().encode(&mut bytes);
        assert_eq!(Frame::decode(&bytes[..LEAST - 1]), Err(Stranger::Short(LEAST - 1)));
        assert_eq!(Frame::decode(&bytes[..111]), Err(Stranger::Size { found: 111, said: 112 }));
        let with = |at: usize, byte: u8| {
            let mut bytes = bytes.clone();
            bytes[at] = byte;
            Frame::decode(&bytes)
        };
        assert_eq!(with(0, 0), Err(Stranger::Magic));
        assert_eq!(with(4, 1), Err(Stranger::Version(1)));
        assert_eq!(with(5, 4), Err(Stranger::Kind(4)));
    }

    proptest! {
        #[test]
        fn frames_round_trip(
            kind in 0..KINDS.len(),
            size in LEAST..=MOST,
            numbers: [u64; 10],
            [cycle, length, interval]: [u32; 3],
        ) {
            let [run, sequence, scheduled, woken, sent, a, b, c, d, opens] = numbers;
            let frame = Frame {
                kind: KINDS[kind],
                size: size as u16,
                run, sequence, scheduled, woken, sent,
                more: [a, b, c, d],
                window: Window { opens, cycle, length },
                interval,
            };
            let mut bytes = Vec::new();
            frame.encode(&mut bytes);
            prop_assert_eq!(bytes.len(), size);
            prop_assert_eq!(Frame::decode(&bytes), Ok(frame));
        }

        #[test]
        fn any_bytes_do_not_panic(mut bytes: Vec<u8>, begins: bool) {
            if begins && bytes.len() >= 5 {
                bytes[..5].copy_from_slice(b"FLLT\x02");
            }
            let _ = Frame::decode(&bytes).map(|frame| frame.follow_up());
        }
    }
}
