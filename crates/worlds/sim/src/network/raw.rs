//! Raw Ethernet at a station: `switch::raw` endpoints between their owners and the interface.

use super::ends::{ConnectionEnd, Protocol};
use crate::ethernet::frame::HEADER;
use crate::ethernet::{Frame, FrameLatency, Mac, Nic, nic};
use crate::measure::Stage;
use crate::node::Context;
use crate::transport::{Arrived, Encapsulation, RawConfig};
use bytes::Bytes;
use std::collections::BTreeMap;
use switch::raw::{Endpoint, Input, Output, Settings};
use wire::earliest;
use wire::raw::{Body, ETHERTYPE, Frame as Header, Sequence};
use wire::{Duration, Instant};

/// Bytes on the wire that a frame has in addition to its payload, without and with a tag.
const OVERHEAD: [usize; 2] = [38, 42];

/// The state of an end over raw Ethernet.
#[derive(Debug)]
pub(super) struct Raw {
    pub endpoint: Endpoint,
    settings: Settings,
    pub encapsulation: Encapsulation,
    /// Whether this end opens the connection; the other end accepts it.
    opens: bool,
    peer: Mac,
    connection: u32,
    priority: u8,
    /// Latencies of received data frames that are not delivered yet.
    latencies: BTreeMap<u32, FrameLatency>,
    /// The sequence number to deliver next.
    next: Sequence,
    /// Whether the owner has been notified that there is room.
    pub owner_notified: bool,
    /// The former connection, with its number, until its last segments are acknowledged, at the
    /// latest at this time.
    leaving: Option<(Endpoint, u32, Instant)>,
    /// Duplicates that former connections have dropped.
    duplicates_before: u64,
}

/// Sends and receives the raw frames of a station. The ends of connections send in turn.
#[derive(Debug)]
pub(super) struct RawScheduler {
    mac: Mac,
    station: usize,
    /// The end to poll first: the end after the last sender.
    pub first: usize,
    frames_made: u64,
}

/// The longest time for which a closed connection sends its last segments, as in live nodes.
const LINGER: Duration = Duration::from_ms(100);

/// By how much the connection number grows each time an end reopens. The lower 16 bits stay and
/// identify the end. The new connection rejects frames with the old number.
const INCARNATION: u32 = 1 << 16;

/// Whether a frame is one of farlane's raw frames.
pub(super) fn is_raw(frame: &Frame) -> bool {
    frame.bytes[HEADER - 2..HEADER] == ETHERTYPE.to_be_bytes()
}

impl Raw {
    /// An end at the host (0) or the device node (1), at a station with or without tags.
    pub(super) fn new(
        raw: &RawConfig,
        connection: u32,
        encapsulation: Encapsulation,
        (side, peer): (usize, Mac),
        tags: bool,
    ) -> Self {
        let overhead = OVERHEAD[usize::from(tags)];
        let settings = Settings { connection, overhead, ..raw.settings };
        let mut end = Self {
            endpoint: Endpoint::new(settings),
            settings,
            encapsulation,
            opens: side == 0,
            peer,
            connection,
            priority: raw.priority,
            latencies: BTreeMap::new(),
            next: Sequence::default(),
            owner_notified: false,
            leaving: None,
            duplicates_before: 0,
        };
        end.open(Instant::ZERO);
        end
    }

    /// Opens the end with the present connection number, and prepares the next number.
    pub(super) fn open(&mut self, now: Instant) {
        self.abort();
        self.settings.connection += INCARNATION;
        self.endpoint.handle(now, if self.opens { Input::Open } else { Input::Accept });
    }

    /// Forgets the connection.
    pub(super) fn abort(&mut self) {
        self.duplicates_before += self.endpoint.counters().duplicates;
        self.endpoint = Endpoint::new(self.settings);
    }

    /// Closes the connection; sent segments are still delivered.
    pub(super) fn close(&mut self, now: Instant) {
        if self.endpoint.is_quiet() {
            return self.endpoint.handle(now, Input::Close);
        }
        let next = Endpoint::new(self.settings);
        let former = std::mem::replace(&mut self.endpoint, next);
        let number = self.settings.connection - INCARNATION;
        self.leaving = Some((former, number, now + LINGER));
    }

    /// The next frame of the former connection, or when to poll again.
    fn leave(&mut self, now: Instant, frames: usize) -> (Option<Bytes>, Option<Instant>) {
        let Some((former, _, until)) = &mut self.leaving else { return (None, None) };
        if former.is_quiet() || now >= *until {
            former.handle(now, Input::Close);
        }
        former.handle(now, Input::CanTransmit { frames });
        loop {
            match former.poll(now) {
                Output::Transmit(frame) => return (Some(frame.into()), None),
                Output::Timeout(_) if former.is_quiet() && frames > 0 => {
                    self.leaving = None;
                    return (None, None);
                }
                Output::Timeout(at) => {
                    // The Close itself waits for room in the interface.
                    let lingers = Some(*until).filter(|until| *until > now);
                    return (None, earliest([at, lingers]));
                }
                Output::Delivered(_) | Output::Connected | Output::Down(_) => {}
            }
        }
    }

    pub(super) fn forget(&mut self) {
        self.owner_notified = false;
        self.latencies.clear();
        self.next = Sequence::default();
    }
}

fn raw(end: &ConnectionEnd) -> Option<&Raw> {
    match &end.protocol {
        Protocol::Raw(raw) => Some(raw),
        Protocol::Tcp(_) => None,
    }
}

/// Duplicate data frames that ends over raw Ethernet have dropped so far.
pub(super) fn duplicates(ends: &[ConnectionEnd]) -> u64 {
    let count = |raw: &Raw| raw.duplicates_before + raw.endpoint.counters().duplicates;
    ends.iter().filter_map(raw).map(count).sum()
}

/// Frames retransmitted so far.
pub(super) fn retransmitted(ends: &[ConnectionEnd]) -> u64 {
    ends.iter().filter_map(raw).map(|raw| raw.endpoint.counters().retransmitted).sum()
}

/// Bytes that an end may send. Zero if the interface has no room for another frame of the end's
/// priority.
pub(super) fn room(now: Instant, ends: &[ConnectionEnd], number: usize, nic: &Nic) -> usize {
    let Some(Raw { endpoint, priority, .. }) = raw(&ends[number]) else { return 0 };
    let waiting = ends.iter().filter_map(raw).filter(|raw| raw.priority == *priority);
    let waiting: usize = waiting.map(|raw| raw.endpoint.queued()).sum();
    if nic.busy(now).is_none() && nic.room_for(*priority) > waiting {
        endpoint.room(now)
    } else {
        0
    }
}

impl RawScheduler {
    pub(super) fn new(mac: Mac, station: usize) -> Self {
        Self { mac, station, first: 0, frames_made: 0 }
    }

    /// Handles a frame from the line, into which a bridge may have merged several frames.
    pub(super) fn receive(now: Instant, ends: &mut [ConnectionEnd], frame: Frame) {
        let mut rest = frame.bytes.slice(HEADER..);
        while let Some(length) = Header::wire_length(&rest) {
            let one = rest.split_to(length.min(rest.len()));
            Self::receive_one(now, ends, &frame, one);
        }
    }

    fn receive_one(now: Instant, ends: &mut [ConnectionEnd], frame: &Frame, bytes: Bytes) {
        let Ok(header) = Header::decode(&bytes) else { return };
        let source = frame.source();
        // The upper 16 bits change each time an end reopens.
        let number = header.connection % INCARNATION;
        let found = ends.iter_mut().find_map(|end| match &mut end.protocol {
            Protocol::Raw(raw) if raw.peer == source && raw.connection == number => Some(raw),
            _ => None,
        });
        let Some(end) = found else { return };
        if let Some((former, number, _)) = &mut end.leaving
            && *number == header.connection
        {
            return former.handle(now, Input::Received(bytes));
        }
        if let Body::Data { sequence, .. } = header.body
            && sequence.ahead_of(end.next).is_some_and(|ahead| ahead < switch::raw::MAX_WINDOW)
        {
            end.latencies.entry(sequence.number()).or_insert(frame.latency);
        }
        end.endpoint.handle(now, Input::Received(bytes));
    }

    /// Polls all ends once. Returns whether the interface got a frame, and when to run again.
    pub(super) fn turn(
        &mut self,
        now: Instant,
        ends: &mut [ConnectionEnd],
        nic: &mut Nic,
        context: &mut Context,
    ) -> (bool, Option<Instant>) {
        if ends.iter().all(|end| matches!(end.protocol, Protocol::Tcp(_))) {
            return (false, None);
        }
        let mut moved = false;
        let mut wake = None;
        let (count, first) = (ends.len(), self.first);
        let order = (0..count).map(|turn| (first + turn) % count);
        for number in order.clone() {
            let (sent, at) = self.run(now, &mut ends[number], nic, context);
            moved |= sent;
            wake = earliest([wake, at]);
        }
        for number in order {
            let room = room(now, ends, number, nic) > 0;
            let ConnectionEnd { owner, protocol: Protocol::Raw(raw), .. } = &mut ends[number]
            else {
                continue;
            };
            if room && !raw.owner_notified {
                context.kernel.arm_by(*owner, now);
            }
            raw.owner_notified = room;
        }
        (moved, wake)
    }

    fn run(
        &mut self,
        now: Instant,
        end: &mut ConnectionEnd,
        nic: &mut Nic,
        context: &mut Context,
    ) -> (bool, Option<Instant>) {
        let mut moved = false;
        let Protocol::Raw(raw) = &mut end.protocol else { return (false, None) };
        loop {
            let frames = if nic.busy(now).is_some() { 0 } else { nic.room_for(raw.priority) };
            let (last, leaves) = raw.leave(now, frames);
            if let Some(payload) = last {
                self.transmit(now, raw, nic, &payload);
                moved = true;
                continue;
            }
            raw.endpoint.handle(now, Input::CanTransmit { frames });
            match raw.endpoint.poll(now) {
                Output::Transmit(payload) => {
                    self.transmit(now, raw, nic, &payload);
                    moved = true;
                    continue;
                }
                Output::Timeout(at) => return (moved, earliest([at, leaves])),
                Output::Delivered(segment) => {
                    let way = raw.latencies.remove(&raw.next.number());
                    let way = way.unwrap_or_else(|| FrameLatency::new(now));
                    raw.next = raw.next.plus(1);
                    end.inbox.push_back(Arrived::in_frame(segment, &way, Stage::Carrier));
                }
                Output::Connected => end.connected = true,
                Output::Down(_) => {
                    (end.connected, end.closed) = (false, true);
                    raw.latencies.clear();
                }
            }
            context.kernel.arm_by(end.owner, now);
        }
    }

    fn transmit(&mut self, now: Instant, raw: &Raw, nic: &mut Nic, payload: &[u8]) {
        self.frames_made += 1;
        let id = 1 << 62 | (self.station as u64) << 40 | self.frames_made;
        let ends = [raw.peer.0, self.mac.0];
        let mut bytes = Vec::with_capacity(HEADER + payload.len());
        ends.iter().for_each(|mac| bytes.extend_from_slice(mac));
        bytes.extend_from_slice(&ETHERTYPE.to_be_bytes());
        bytes.extend_from_slice(payload);
        let frame = Frame::new(id, bytes.into(), raw.priority, now);
        nic.handle(now, nic::Input::FromHost(frame));
    }
}
