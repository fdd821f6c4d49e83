//! The index of a trace: the times of its TLPs and frames, and the frame of each TLP. It places the
//! trace on the common timeline.

use super::decode::{self, Key, PayloadPrint, key};
use super::drive::Drive;
use super::file::{Item, TraceFile};
use report::Failure;
use std::collections::{BTreeMap, HashMap, VecDeque};
use wire::frame::{Control, FIXED_HELLO, Kind};
use wire::push::{Push, Reason};
use wire::tlp::Packet;
use wire::trace::{HEAD, LinkState, NodeRole, Record, Tap};
use wire::{Bdf, Tag};

/// Maximum number of indexed TLPs at the port of a node; later TLPs are left out.
const MOST_TLPS: usize = 16 << 20;
/// Maximum number of TLPs that wait for their match on the other side.
const MOST_WAITING: usize = 1 << 16;
/// Number for no TLP, frame or connection.
pub(super) const NONE: u32 = u32::MAX;
/// Number for no frame, because a device node answered or sent the TLP from pushed bytes.
pub(super) const FROM_PUSH: u32 = NONE - 1;

/// A TLP at the port of a node.
#[derive(Clone, Copy, Debug)]
pub(super) struct PortTlp {
    /// Time of the node's clock in nanoseconds.
    pub at: u64,
    /// Slots of the TLP in frames: towards the host, and towards the devices.
    pub slots: [u32; 2],
    pub payload: PayloadPrint,
}

/// A frame of TLPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Frame {
    /// Time of the node's clock in nanoseconds: when a sent frame was handed to the network, or a
    /// received frame was complete.
    pub at: u64,
    /// Link of the frame.
    pub tap: Tap,
    /// Whether the frame travels towards the host.
    pub up: bool,
    /// Sequence number of the frame.
    pub sequence: u32,
    /// Length of the frame in bytes, header included.
    pub bytes: u32,
    /// Number of TLPs in the frame.
    pub tlps: u32,
    /// Index of the connection that carries the frame.
    pub(super) connection: u32,
    /// Slot of the frame's first TLP. `kept`: number of its TLPs that have a slot.
    pub(super) first: u32,
    pub(super) kept: u32,
}

/// A connection of a link, from its HELLO frames.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Connection {
    pub tap: Tap,
    pub local: u64,
    pub remote: u64,
}

/// One echo, or the reply to an echo, at one end.
#[derive(Clone, Copy, Debug)]
pub(super) struct Echo {
    pub at: u64,
    pub tap: Tap,
    pub reply: bool,
    pub number: u64,
}

/// Maximum number of stored faults; nodes have fewer.
const MOST_FAULTS: usize = 1024;

/// The index of one trace file.
#[derive(Debug, Default)]
pub struct Index {
    pub(super) port: Vec<PortTlp>,
    pub(super) frames: Vec<Frame>,
    /// For every TLP of every frame: its frame, and its number at the port.
    pub(super) slots: Vec<(u32, u32)>,
    pub(super) connections: Vec<Connection>,
    pub(super) echoes: Vec<Echo>,
    /// Times of the first and the last record, in nanoseconds.
    pub span: Option<(u64, u64)>,
    /// Number of missing records, as far as they were counted.
    pub lost: u64,
    /// Number of places where records are missing.
    pub gaps: u64,
    /// Number of invalid records.
    pub bad: u64,
    /// Number of TLPs at the port beyond the limit.
    pub beyond: u64,
    /// Number of reads that a device node answered from pushed bytes, and their bytes.
    pub from_push: (u64, u64),
    /// Commands that the node did not push, or pushed only in part, by reason.
    pub not_pushed: BTreeMap<Reason, u64>,
    /// The planned faults that began, at most [`MOST_FAULTS`]: time, place and text form.
    pub faults: Vec<(u64, Tap, String)>,
    by_frame: HashMap<(Tap, u32, bool, u32), u32>,
    pub(super) drive: Drive,
}

impl Index {
    /// Reads a file.
    ///
    /// # Errors
    /// As [`TraceFile::read`].
    pub fn new(file: &TraceFile) -> Result<Self, Failure> {
        // A host node has links to devices, a device node a link to its host, a switch node both.
        let sides: &[usize] = match file.header.role {
            NodeRole::Host => &[1],
            NodeRole::Device => DEVICE,
            NodeRole::Switch => &[0, 1],
        };
        let mut builder = Builder { sides, ..Builder::default() };
        let bad = file.read(|item| builder.item(item))?;
        let Builder { mut index, .. } = builder;
        index.bad = bad;
        index.drive.finish();
        Ok(index)
    }

    /// Returns the number of TLPs at the node's port.
    pub fn tlps(&self) -> usize {
        self.port.len()
    }

    /// Returns whether a device node answered or sent the TLP with this number at its port from
    /// pushed bytes.
    pub(super) fn is_from_push(&self, number: u64) -> bool {
        let tlp = usize::try_from(number).ok().and_then(|number| self.port.get(number));
        tlp.is_some_and(|tlp| tlp.slots[0] == FROM_PUSH)
    }

    /// Returns the frames of all links.
    pub fn frames(&self) -> &[Frame] {
        &self.frames
    }

    /// Returns the index of the frame with this sequence number.
    pub(super) fn frame(&self, tap: Tap, connection: u32, up: bool, sequence: u32) -> Option<u32> {
        self.by_frame.get(&(tap, connection, up, sequence)).copied()
    }
}

/// A link that is being read.
#[derive(Debug, Default)]
struct Link {
    local: Option<u64>,
    remote: Option<u64>,
    connection: Option<u32>,
}

#[derive(Debug, Default)]
struct Builder {
    index: Index,
    /// The sides of the node that have links.
    sides: &'static [usize],
    links: HashMap<Tap, Link>,
    /// TLPs that were seen on a link but not yet at the port, and the reverse.
    from_link: Waiting,
    from_port: Waiting,
    /// At a device node, the latest read of the function, by requester and tag.
    reads: HashMap<[u8; 4], FunctionRead>,
}

/// A read of the function behind a device node.
#[derive(Clone, Copy, Debug)]
struct FunctionRead {
    number: u32,
    key: Key,
    bytes: usize,
}

/// Waiting TLPs by direction, side and key, in order.
#[derive(Debug, Default)]
struct Waiting {
    by_key: HashMap<(bool, bool, Key), VecDeque<u32>>,
    count: usize,
}

impl Waiting {
    fn put(&mut self, up: bool, side: usize, key: Key, number: u32) {
        if self.count >= MOST_WAITING {
            self.clear();
        }
        self.count += 1;
        self.by_key.entry((up, side == 1, key)).or_default().push_back(number);
    }

    fn take(&mut self, up: bool, side: usize, key: Key) -> Option<u32> {
        let name = (up, side == 1, key);
        let queue = self.by_key.get_mut(&name)?;
        let number = queue.pop_front();
        if queue.is_empty() {
            self.by_key.remove(&name);
        }
        self.count -= usize::from(number.is_some());
        number
    }

    /// Removes a TLP that will not arrive at the other side.
    fn remove(&mut self, up: bool, side: usize, key: Key, number: u32) {
        let name = (up, side == 1, key);
        let Some(queue) = self.by_key.get_mut(&name) else { return };
        let before = queue.len();
        queue.retain(|other| *other != number);
        self.count -= before - queue.len();
        if queue.is_empty() {
            self.by_key.remove(&name);
        }
    }

    fn clear(&mut self) {
        *self = Self::default();
    }
}

const DEVICE: &[usize] = &[0];

fn name(requester: Bdf, tag: Tag) -> [u8; 4] {
    let ([a, b], [c, d]) = (requester.bits().to_be_bytes(), tag.get().to_be_bytes());
    [a, b, c, d]
}

fn is_push(head: &[u8]) -> bool {
    // A message (PCIe Base 4.0, table 2-3).
    let is_message = head[0] & 0x18 == 0x10;
    is_message && decode::header(head).is_some_and(|tlp| Push::decode_front(&tlp).is_some())
}

/// Returns whether this node sends the frame.
fn is_sent(tap: Tap, up: bool) -> bool {
    (tap == Tap::UPLINK) == up
}

/// Returns 0 for a link towards the host, 1 for a link towards the devices.
fn side(tap: Tap) -> usize {
    usize::from(tap != Tap::UPLINK)
}

impl Builder {
    fn item(&mut self, item: Item<'_>) {
        let timed = match item {
            Item::Gap(lost) => {
                self.index.gaps += 1;
                self.index.lost += lost.unwrap_or(0);
                self.index.drive.gap();
                self.forget();
                return;
            }
            Item::Record(timed) => timed,
        };
        let at = timed.at_ns;
        let (first, last) = self.index.span.unwrap_or((at, at));
        self.index.span = Some((first.min(at), last.max(at)));
        match timed.record {
            Record::Tlp { tap, up, bytes, length, hash, holes } if !tap.is_link() => {
                self.port(at, up, key(bytes), PayloadPrint::new(length, bytes, hash, holes));
                if self.sides == DEVICE {
                    self.function(bytes);
                }
            }
            Record::Frame { tap, up, sequence, bytes, tlps, heads } => {
                let connection = self.links.get(&tap).and_then(|link| link.connection);
                let (connection, first) = (connection.unwrap_or(NONE), self.index.slots.len());
                let (first, kept) = (first as u32, (heads.len() / HEAD) as u32);
                let frame = Frame { at, tap, up, sequence, bytes, tlps, connection, first, kept };
                self.frame(frame, heads);
            }
            Record::Control { tap, up, kind, payload } => {
                self.control(at, tap, up, kind, payload);
            }
            Record::Link { tap, state } => {
                self.links.insert(tap, Link::default());
                if matches!(state, LinkState::Down(_)) {
                    self.forget();
                }
            }
            Record::Nvme { event, .. } => self.index.drive.event(at, event),
            Record::NotPushed { reason, commands } => {
                let known = Reason::from_number(reason);
                self.index.not_pushed.extend(known.map(|reason| (reason, commands)));
            }
            Record::Fault { tap, text } if self.index.faults.len() < MOST_FAULTS => {
                self.index.faults.push((at, tap, text.to_owned()));
            }
            Record::Tlp { .. } | Record::Fault { .. } | Record::Unknown { .. } => {}
        }
    }

    fn forget(&mut self) {
        self.from_link.clear();
        self.from_port.clear();
        self.reads.clear();
    }

    fn port(&mut self, at: u64, up: bool, key: Key, payload: PayloadPrint) {
        if self.index.port.len() >= MOST_TLPS {
            self.index.beyond += 1;
            return;
        }
        let number = self.index.port.len() as u32;
        let mut slots = [NONE; 2];
        for &side in self.sides {
            let arrives = (side == 1) == up;
            if !arrives {
                self.from_port.put(up, side, key, number);
            } else if let Some(slot) = self.from_link.take(up, side, key) {
                slots[side] = slot;
                self.index.slots[slot as usize].1 = number;
            }
        }
        self.index.port.push(PortTlp { at, slots, payload });
    }

    /// Records the last TLP at the port of a device node, which begins with `bytes`. A completion
    /// that no frame brought, to a read that no frame took away, is from push.
    fn function(&mut self, bytes: &[u8]) {
        let number = self.index.port.len() as u32 - 1;
        let is_write = bytes[0] & 0x5f == 0x40;
        let tlp = decode::header(bytes).filter(|_| !is_write);
        match tlp.map(|tlp| tlp.packet) {
            Some(Packet::MemoryRead(r)) => {
                let read = FunctionRead { number, key: key(bytes), bytes: r.byte_count() };
                self.reads.insert(name(r.requester, r.tag), read);
            }
            Some(Packet::Completion(c)) => {
                let unframed = |number: u32| self.index.port[number as usize].slots[0] >= FROM_PUSH;
                let read = self.reads.get(&name(c.requester, c.tag)).copied();
                let Some(read) = read.filter(|read| unframed(read.number) && unframed(number))
                else {
                    return;
                };
                if self.index.port[read.number as usize].slots[0] == NONE {
                    self.index.from_push.0 += 1;
                    self.index.from_push.1 += read.bytes as u64;
                    self.from_port.remove(true, 0, read.key, read.number);
                }
                for number in [read.number, number] {
                    self.index.port[number as usize].slots[0] = FROM_PUSH;
                }
            }
            _ => {}
        }
    }

    fn frame(&mut self, frame: Frame, heads: &[u8]) {
        let Frame { tap, up, sequence, connection, .. } = frame;
        if self.index.slots.len() + heads.len() / HEAD >= FROM_PUSH as usize {
            return;
        }
        let number = self.index.frames.len() as u32;
        for head in heads.chunks_exact(HEAD) {
            let (key, slot) = (key(head), self.index.slots.len() as u32);
            let mut port = NONE;
            if self.sides == DEVICE && is_push(head) {
                // The port consumes this TLP.
            } else if !is_sent(tap, up) {
                self.from_link.put(up, side(tap), key, slot);
            } else if let Some(tlp) = self.from_port.take(up, side(tap), key) {
                port = tlp;
                self.index.port[tlp as usize].slots[side(tap)] = slot;
            }
            self.index.slots.push((number, port));
        }
        self.index.by_frame.insert((tap, connection, up, sequence), number);
        self.index.frames.push(frame);
    }

    fn control(&mut self, at: u64, tap: Tap, up: bool, kind: u8, mut payload: &[u8]) {
        let Ok(kind) = Kind::from_byte(kind) else { return };
        if kind == Kind::Reset {
            // The payload is a number, or empty in version 1.
            return self.forget();
        }
        if kind == Kind::Hello {
            // The record may contain only some of the entries.
            payload = &payload[..payload.len().min(FIXED_HELLO)];
        }
        let Ok(control) = Control::decode(kind, payload) else { return };
        let echo = |reply, number| Echo { at, tap, reply, number };
        match control {
            Control::Hello(hello) => self.hello(tap, is_sent(tap, up), hello.instance),
            Control::Echo(number) => self.index.echoes.push(echo(false, number)),
            Control::EchoReply(number) => self.index.echoes.push(echo(true, number)),
            _ => {}
        }
    }

    fn hello(&mut self, tap: Tap, sent: bool, instance: u64) {
        let link = self.links.entry(tap).or_default();
        *(if sent { &mut link.local } else { &mut link.remote }) = Some(instance);
        if let (Some(local), Some(remote)) = (link.local, link.remote) {
            link.connection = Some(self.index.connections.len() as u32);
            self.index.connections.push(Connection { tap, local, remote });
        }
    }
}
