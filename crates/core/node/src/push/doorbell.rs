//! The bytes that a submission doorbell makes certain: entries, lists and data.

use super::controller::{Controller, Submission};
use super::messages::Messages;
use super::{Counters, Mode, Reason, Settings};
use bytes::{Bytes, BytesMut};
use follow::{Amount, Ring, io_data};
use pcie::{PushRoom, RootComplex};
use wire::nvme::{Command, SUBMISSION_ENTRY};
use wire::push::{self, Record};
use wire::tlp::Tlp;
use wire::{Arena, Bdf};

/// The most entries pushed for one doorbell.
const MOST_ENTRIES: usize = 64;
/// The most lists of PRP entries, or segments of an SGL, read for one command. One page of PRP
/// entries leads to 2 MiB with pages of 4 KiB; a list in the middle of a page may need a second.
const MOST_LISTS: usize = 2;
/// The most bytes of a list.
const MOST_LIST: usize = 4096;
/// While more bytes than this are pushed for incomplete commands, no further data are pushed.
/// Further data would delay the doorbell, and a round trip matters little to long or numerous
/// transfers. The bound is eight transfers of 4 KiB with their entries.
pub const MOST_DATA: usize = 36 << 10;
/// PSDT 11b is reserved (NVM Express 1.4, figure 104).
const RESERVED_POINTER: u8 = 3;

/// The host memory whose bytes are pushed in front of a doorbell.
pub trait HostMemory {
    /// Appends `length` bytes at the bus address `address` to `out`, as a read by `requester` would
    /// return them now. Returns false, and appends nothing, if `requester` may not read all of
    /// them, or if they are not available at once: the doorbell does not wait.
    fn peek(&mut self, requester: Bdf, address: u64, length: usize, out: &mut BytesMut) -> bool;
}

/// No memory is available, so nothing is pushed.
impl HostMemory for () {
    fn peek(&mut self, _: Bdf, _: u64, _: usize, _: &mut BytesMut) -> bool {
        false
    }
}

/// The follower's view of the host and the links below.
pub(crate) struct Host<'a> {
    pub root: &'a RootComplex,
    pub room: &'a dyn Fn(Bdf) -> Option<PushRoom>,
    pub memory: &'a mut dyn HostMemory,
}

impl Host<'_> {
    pub(crate) fn room(&self, bdf: Bdf) -> Option<PushRoom> {
        (self.room)(bdf)
    }

    fn peek(&mut self, bdf: Bdf, address: u64, length: usize, out: &mut BytesMut) -> bool {
        self.root.may_read(bdf, address, length) && self.memory.peek(bdf, address, length, out)
    }

    fn message(&self, bdf: Bdf, payload: Bytes) -> Tlp {
        let size = self.root.completion_size();
        push::message(pcie::root::ROOT_PORT, bdf, size, self.root.ecrc(), payload)
    }

    /// A message with one invalidation.
    pub(crate) fn ending(&self, bdf: Bdf, record: &Record) -> Tlp {
        let mut payload = BytesMut::with_capacity(record.length());
        record.encode(&mut payload);
        self.message(bdf, payload.freeze())
    }
}

/// One register write of the host to a controller, and the messages in front of it.
pub(super) struct Turn<'a, 'b> {
    pub host: &'a mut Host<'b>,
    pub bdf: Bdf,
    pub settings: Settings,
    /// Bytes in flight for the other controllers behind the link.
    pub others: usize,
    pub counters: &'a mut Counters,
    pub arena: &'a mut Arena,
    /// The messages in front of the write are appended here.
    pub out: &'a mut Vec<Tlp>,
    /// Length of `out` before this turn.
    pub before: usize,
}

impl Turn<'_, '_> {
    /// Sends an invalidation in front of the write.
    pub(super) fn end(&mut self, record: &Record) {
        if self.host.room(self.bdf).is_some() {
            self.out.push(self.host.ending(self.bdf, record));
        }
    }

    /// The part of `room` that the invalidations of this turn leave, including invalidations of
    /// slots.
    fn spare(&self, room: PushRoom) -> PushRoom {
        let endings = (self.out.len() - self.before) as u32 + 2;
        let headers = room.headers.saturating_sub(endings);
        PushRoom { headers, data: room.data.saturating_sub(endings * 2), ..room }
    }

    fn peek(&mut self, address: u64, length: usize) -> Option<Bytes> {
        let mut bytes = self.arena.buffer(length);
        self.host.peek(self.bdf, address, length, &mut bytes).then(|| bytes.freeze())
    }

    /// The entries of `count` slots from `first` on, in order.
    fn entries(&mut self, ring: &Ring, first: u16, count: usize) -> Option<BytesMut> {
        let before_end = count.min(usize::from(ring.last() - first) + 1);
        let mut entries = self.arena.buffer(count * SUBMISSION_ENTRY);
        for (slot, count) in [(first, before_end), (0, count - before_end)] {
            let (address, length) = (ring.address(slot), count * SUBMISSION_ENTRY);
            if count > 0 && !self.host.peek(self.bdf, address, length, &mut entries) {
                return None;
            }
        }
        Some(entries)
    }
}

impl Controller {
    /// Handles a submission doorbell: the tail of queue `id` is now `tail`.
    pub(super) fn ring(&mut self, id: u16, tail: u16, turn: &mut Turn<'_, '_>) {
        let Some(queue) = self.queues.submission.get_mut(&id) else {
            let reason = self.obstacle().unwrap_or(Reason::Queue);
            return turn.counters.not_pushed.add(reason, 1);
        };
        if tail > queue.ring.last() {
            turn.counters.not_pushed.add(Reason::Lost, 1);
            return self.lose(Reason::Lost, turn);
        }
        let (first, count) = queue.ring(tail);
        let (queue, count) = (*queue, usize::from(count));
        let room = turn.host.room(turn.bdf);
        let obstacle = match (room, queue.suspended) {
            (None, _) => Some(Reason::Device),
            (Some(_), true) => Some(Reason::QueueDeletion),
            (Some(_), false) => self.obstacle(),
        };
        let off = turn.settings.mode == Mode::Off;
        let wanted = if off || obstacle.is_some() { 0 } else { count.min(MOST_ENTRIES) };
        // The effects of admin commands must be known, whether pushed or not.
        let wanted = if id == 0 { count } else { wanted };
        let entries = turn.entries(&queue.ring, first, wanted);
        if entries.is_none() && id == 0 {
            self.misses(&queue, first, count, turn);
        }
        let mut stop = if entries.is_some() { Reason::Burst } else { Reason::Memory };
        let entries = entries.unwrap_or_default();
        let entries = entries.as_chunks::<SUBMISSION_ENTRY>().0;
        if id == 0 {
            entries.iter().for_each(|entry| self.submitted(Command::decode(entry), turn));
        }
        let obstacle = obstacle.or_else(|| self.obstacle());
        let mut pushed = 0;
        if let Some(reason) = obstacle {
            stop = reason;
        } else if let Some(room) = room.filter(|_| !off).map(|room| turn.spare(room)) {
            let reason;
            (pushed, reason) = self.push(&queue, (first, count), entries, room, turn);
            stop = reason.unwrap_or(stop);
        }
        self.watch = None;
        if let ([entry], true, 1) = (entries, id != 0, count) {
            self.watch(id, Command::decode(entry));
        }
        turn.counters.entries += pushed as u64;
        turn.counters.unpushed += (count - pushed) as u64;
        if !off {
            turn.counters.not_pushed.add(stop, (count - pushed) as u64);
        }
        if let Some(queue) = self.queues.submission.get_mut(&id) {
            queue.pushed(count, pushed);
        }
    }

    /// Pushes the first `entries` of `count` slots from `first` on, in order, with their lists and
    /// data. First invalidates the slots that are rung without a push. Returns how many entries
    /// were pushed, and the reason why the next one was not.
    fn push(
        &mut self,
        queue: &Submission,
        (first, count): (u16, usize),
        entries: &[[u8; SUBMISSION_ENTRY]],
        room: PushRoom,
        turn: &mut Turn<'_, '_>,
    ) -> (usize, Option<Reason>) {
        let mut messages = Messages::new(room.payload);
        let mut pushed = 0;
        let place = messages.place();
        if !queue.announced
            && let Some(record) = self.announcement(queue)
        {
            messages.add(&record, turn.arena);
        }
        let announced = messages.fit(&room);
        let mut stop = None;
        if !announced {
            messages.back_to(place);
            stop = Some(Reason::Credits);
        }
        let bound = turn.settings.bound.min(room.capacity).saturating_sub(turn.others);
        for (at, entry) in entries.iter().enumerate().filter(|_| announced) {
            let place = messages.place();
            let id = (queue.id, Command::decode(entry).cid);
            let slot = queue.ring.after(first, at as u32);
            messages.add_bytes(id, queue.ring.address(slot), entry, turn.arena);
            let room = if messages.fit(&room) { Ok(()) } else { Err(Reason::Credits) };
            if let Err(reason) = room.and_then(|()| self.reserve(id, entry.len(), bound)) {
                messages.back_to(place);
                stop = Some(reason);
                break;
            }
            turn.counters.bytes += entry.len() as u64;
            pushed += 1;
        }
        if turn.settings.mode == Mode::All {
            for entry in &entries[..pushed] {
                let command = Command::decode(entry);
                let done = self.push_data(queue.id, &command, (&room, bound), &mut messages, turn);
                if let Err(reason) = done {
                    turn.counters.not_pushed.add(reason, 1);
                }
            }
        }
        if queue.may_hold((count - pushed) as u64) {
            let from = queue.ring.after(first, pushed as u32);
            for range in
                queue.ring.between(from, queue.tail).iter().filter(|range| !range.is_empty())
            {
                let length = range.end - range.start;
                turn.end(&Record::EndRange { address: range.start, length });
            }
        }
        let payloads = messages.into_payloads().map(|payload| turn.host.message(turn.bdf, payload));
        turn.out.extend(payloads);
        self.has_pushed |= pushed > 0;
        if announced && let Some(queue) = self.queues.submission.get_mut(&queue.id) {
            queue.announced = true;
        }
        (pushed, stop)
    }

    /// Adds the lists of a command, and its data for the drive unless they are long. Adds either
    /// everything or nothing.
    fn push_data(
        &mut self,
        queue: u16,
        command: &Command,
        (room, bound): (&PushRoom, usize),
        messages: &mut Messages,
        turn: &mut Turn<'_, '_>,
    ) -> Result<(), Reason> {
        let Some((length, to_host)) = self.transfer(queue, command)? else { return Ok(()) };
        let (id, most) = ((queue, command.cid), bound.saturating_sub(self.in_flight.bytes()));
        let data = MOST_DATA.saturating_sub(turn.others + self.in_flight.bytes());
        let with_data = !to_host && length <= data.min(most);
        let (mut parts, mut stop): (Vec<(u64, Bytes)>, _) = (Vec::new(), Reason::Pointer);
        let ranges =
            nvme::follow(command, length, self.registers.page(), to_host, |address, length| {
                if parts.len() == MOST_LISTS || length > MOST_LIST {
                    return None;
                }
                let list = turn.peek(address, length);
                let Some(list) = list else {
                    stop = Reason::Memory;
                    return None;
                };
                parts.push((address, list.clone()));
                Some(list)
            });
        let ranges = ranges.ok_or(stop)?;
        if parts.is_empty() && !with_data {
            return if to_host { Ok(()) } else { Err(Reason::Data) };
        }
        let place = messages.place();
        let mut total = 0;
        for (address, list) in parts {
            total += list.len();
            messages.add_bytes(id, address, &list, turn.arena);
        }
        let mut all = true;
        for range in ranges.iter().filter(|_| with_data) {
            total += range.length;
            let (host, bdf) = (&mut *turn.host, turn.bdf);
            let read = |address, length, out: &mut _| host.peek(bdf, address, length, out);
            all &= messages.add_memory(id, range.address, range.length, turn.arena, read);
        }
        let room = match (all, messages.fit(room)) {
            (false, _) => Err(Reason::Memory),
            (true, false) => Err(Reason::Credits),
            (true, true) => self.reserve(id, total, bound),
        };
        room.inspect_err(|_| messages.back_to(place))?;
        turn.counters.bytes += total as u64;
        if to_host || with_data { Ok(()) } else { Err(Reason::Data) }
    }

    /// The bytes that a command certainly moves, and the direction; `None` if there are none to
    /// push.
    fn transfer(&self, queue: u16, command: &Command) -> Result<Option<(usize, bool)>, Reason> {
        let Some((to_host, amount)) = io_data(command).filter(|_| queue != 0) else {
            return Ok(None);
        };
        self.has_nvm_commands(command.nsid)?;
        if command.psdt == RESERVED_POINTER {
            return Err(Reason::Pointer);
        }
        let length = match amount {
            Amount::Blocks(blocks) => {
                let shift = self.formats.get(&command.nsid).ok_or(Reason::BlockSize)?;
                (blocks as usize) << shift
            }
            Amount::Bytes(bytes) => bytes as usize,
            Amount::Unknown if to_host => return Ok(None),
            Amount::Unknown => return Err(Reason::Opcode),
        };
        Ok(Some((length, to_host)))
    }

    /// Counts bytes of a command as in flight, if they are within the bound.
    fn reserve(&mut self, id: (u16, u16), bytes: usize, bound: usize) -> Result<(), Reason> {
        if self.in_flight.bytes() + bytes > bound {
            return Err(Reason::Bound);
        }
        self.in_flight.add(id, bytes);
        Ok(())
    }
}
