//! A slot with its client in a fabric.

use super::disk::{BLOCKS, COUNT, DOORBELL};
use super::{Fabric, Parent};
use bytes::{Bytes, BytesMut};
use node::Slot;
use node::slot::{Access, Change, Client, Output, Port, ReadOutcome, Settings, Token};
use pcie::enumerate::{self, Node};
use pcie::root::ReadToken;
use pcie::{Bus, Presence};
use wire::{Bdf, Instant};

/// A client with a memory location for each block, at eight times the block's number.
#[derive(Debug)]
pub struct Guest {
    pub active: bool,
    pub command: [Option<u8>; 2],
    pub memory: [u64; COUNT],
    pub signals: usize,
}

impl Client for Guest {
    fn is_active(&self) -> bool {
        self.active
    }

    fn command(&self) -> [Option<u8>; 2] {
        self.command
    }

    fn has_written_registers(&self) -> bool {
        false
    }

    fn read(&mut self, _: Instant, range: (u64, usize), _: &ReadToken) -> Option<ReadOutcome> {
        Some(ReadOutcome::Done(Some(Bytes::from(vec![0; range.1]))))
    }

    fn write(&mut self, _: Instant, address: u64, data: &[u8]) -> Option<bool> {
        let place = self.memory.get_mut(address as usize / 8);
        let data = <[u8; 8]>::try_from(data).ok();
        Some(match (place, data) {
            (Some(place), Some(data)) => {
                *place = u64::from_le_bytes(data);
                true
            }
            _ => false,
        })
    }

    fn peek(&mut self, _: (u64, usize), _: &mut BytesMut) -> bool {
        false
    }

    fn signal(&mut self, _: u16) {
        self.signals += 1;
    }
}

/// A slot, the port above it, and its client.
#[derive(Debug)]
pub struct Seat {
    pub link: usize,
    pub slot: Slot,
    pub guest: Guest,
    pub presence: Presence,
    pub changes: Vec<Change>,
    pub replies: Vec<(Token, Vec<u8>)>,
    port: Port,
    bus: Bus,
    enumeration: enumerate::Settings,
    tokens: Token,
    /// Outstanding reads in the order of their start, with their blocks.
    open: Vec<(Token, usize)>,
}

impl Seat {
    pub fn new(link: usize, (port, node): (Node, Node), bus: Bus, owner: u32) -> Self {
        let enumeration = enumerate::Settings { contents: true, ..enumerate::Settings::default() };
        let settings = Settings { enumeration: enumeration.clone(), owner };
        let slot = Slot::new(node, bus.clone(), settings);
        let memory = [u64::MAX; COUNT];
        let guest = Guest { active: true, command: [None; 2], memory, signals: 0 };
        let presence = Presence::Present;
        let (port, changes, replies) = (Port::new(port), Vec::new(), Vec::new());
        let open = Vec::new();
        Self {
            link,
            slot,
            guest,
            presence,
            changes,
            replies,
            port,
            bus,
            enumeration,
            tokens: 0,
            open,
        }
    }

    pub fn bdf(&self) -> Bdf {
        self.slot.node().bdf
    }

    pub fn link_down(&mut self) {
        self.port.link_down();
        self.slot.link_down(None, &self.guest);
    }

    pub fn link_up(&mut self) {
        self.port.link_up(&self.bus, &self.enumeration);
    }

    /// Runs the slot until it has nothing to do.
    pub fn advance(&mut self, now: Instant) -> bool {
        let mut moved = false;
        if let Some(found) = self.port.poll(now) {
            self.slot.link_up(&found.unwrap_or_default(), &self.guest);
            moved = true;
        }
        while let Some(output) = self.slot.poll(now, &mut self.guest) {
            moved = true;
            match output {
                Output::Reply(token, data) => self.replies.push((token, data)),
                Output::Presence(presence) => {
                    self.presence = presence;
                    // The client's side has answered these reads with all ones.
                    if presence == Presence::Absent {
                        self.open.clear();
                    }
                }
                Output::Change(change) => self.changes.push(change),
                Output::HostData(..) | Output::Ready { .. } => {}
            }
        }
        moved
    }

    /// The result of the earliest finished read, and its block.
    pub fn finds(&mut self) -> Option<(usize, u64)> {
        let replies = &self.replies;
        let done =
            |(token, _): &(Token, usize)| replies.iter().any(|(answered, _)| answered == token);
        let (token, block) = self.open.remove(self.open.iter().position(done)?);
        let at = self.replies.iter().position(|(answered, _)| *answered == token)?;
        let data = self.replies.swap_remove(at).1;
        Some((block, u64::from_le_bytes(data.try_into().ok()?)))
    }

    fn token(&mut self) -> Token {
        self.tokens += 1;
        self.tokens
    }

    /// Whether the client's access may start; `None` if it is answered without the slot.
    fn starts(&self, access: Access) -> Option<bool> {
        let seen = match access {
            Access::BarRead | Access::BarWrite => self.presence == Presence::Present,
            Access::ConfigRead | Access::ConfigWrite => self.presence != Presence::Absent,
            _ => true,
        };
        seen.then(|| self.slot.accepts())
    }
}

impl Fabric {
    /// Adds a slot for the function below a port of the top switch.
    pub fn seat(&mut self, link: usize, (port, node): (Node, Node), owner: u32) -> usize {
        let bus = self.buses.new_bus();
        self.seats.push(Seat::new(link, (port, node), bus, owner));
        self.settle();
        self.seats.len() - 1
    }

    /// Waits until an access may start; `false` if it needs no start.
    fn wait_for(&mut self, seat: usize, access: Access) -> bool {
        let limit = self.now + wire::Duration::from_ms(10_000);
        loop {
            self.settle();
            match self.seats[seat].starts(access) {
                None => return false,
                Some(true) => return true,
                Some(false) => assert!(self.step(limit), "{access:?} waits for ever"),
            }
        }
    }

    /// Waits for the answers of all outstanding reads.
    pub(super) fn wait_for_reads(&mut self, seat: usize) {
        let limit = self.now + wire::Duration::from_ms(10_000);
        loop {
            self.settle();
            let Seat { open, replies, .. } = &self.seats[seat];
            if open.iter().all(|(token, _)| replies.iter().any(|(answered, _)| answered == token)) {
                return;
            }
            assert!(self.step(limit), "no answer");
        }
    }

    /// Waits for the answer of an access: all ones if it is lost meanwhile.
    fn answer(&mut self, seat: usize, token: Token) -> Option<u64> {
        let limit = self.now + wire::Duration::from_ms(10_000);
        loop {
            self.settle();
            let replies = &mut self.seats[seat].replies;
            if let Some(at) = replies.iter().position(|(answered, _)| *answered == token) {
                let data = replies.swap_remove(at).1;
                return <[u8; 8]>::try_from(&data[..]).ok().map(u64::from_le_bytes);
            }
            assert!(self.step(limit), "no answer");
        }
    }

    /// The client reads a block in the BAR.
    pub fn guest_reads(&mut self, seat: usize, block: usize) -> u64 {
        if !self.wait_for(seat, Access::BarRead) {
            return u64::MAX;
        }
        let token = self.seats[seat].token();
        let place = (BLOCKS + 8 * block as u64, 8);
        self.seats[seat].slot.bar_read(self.now, token, 0, place);
        let value = self.answer(seat, token).expect("eight bytes");
        // A client whose function is absent by now gets all ones.
        if self.seats[seat].presence == Presence::Present { value } else { u64::MAX }
    }

    /// The client writes a block in the BAR.
    pub fn guest_writes(&mut self, seat: usize, block: usize, value: u64) {
        if self.wait_for(seat, Access::BarWrite) {
            let at = BLOCKS + 8 * block as u64;
            self.seats[seat].slot.bar_write(0, at, &value.to_le_bytes());
        }
    }

    /// The client rings for a block, which the function writes into the client's memory.
    pub fn guest_rings(&mut self, seat: usize, block: usize) {
        if self.wait_for(seat, Access::BarWrite) {
            self.seats[seat].slot.bar_write(0, DOORBELL, &[block as u8]);
        }
    }

    /// The client enables bus mastering.
    pub fn guest_enables(&mut self, seat: usize) {
        if !self.wait_for(seat, Access::ConfigWrite) {
            return;
        }
        let token = self.seats[seat].token();
        self.seats[seat].guest.command[0] = Some(6);
        self.seats[seat].slot.config_write(token, 4, 1, 6);
        self.answer(seat, token);
    }

    /// The client requests a reset, or disconnects. Returns when that is finished.
    pub fn guest_resets(&mut self, seat: usize) {
        assert!(self.wait_for(seat, Access::Reset));
        let token = self.seats[seat].token();
        self.seats[seat].slot.reset(token);
        self.answer(seat, token);
        self.seats[seat].guest.command = [None; 2];
    }

    /// The client starts a read of a block in the BAR. [`Seat::finds`] returns the answer.
    pub fn guest_begins_to_read(&mut self, seat: usize, block: usize) {
        let (now, seat) = (self.now, &mut self.seats[seat]);
        if seat.starts(Access::BarRead) == Some(true) {
            let token = seat.token();
            seat.open.push((token, block));
            seat.slot.bar_read(now, token, 0, (BLOCKS + 8 * block as u64, 8));
        }
    }

    /// The slots below a port of a switch.
    pub(super) fn seats_below(
        &mut self,
        at: Parent,
        port: usize,
    ) -> impl Iterator<Item = &mut Seat> {
        let fits = move |seat: &&mut Seat| at == Parent::Top && seat.link == port;
        self.seats.iter_mut().filter(fits)
    }

    pub(super) fn move_seats(&mut self) -> bool {
        let now = self.now;
        self.seats.iter_mut().fold(false, |moved, seat| moved | seat.advance(now))
    }

    pub(super) fn is_seated(&self, function: Bdf) -> bool {
        self.seats.iter().any(|seat| seat.bdf() == function)
    }

    fn seat_of(&mut self, function: Bdf) -> &mut Seat {
        self.seats.iter_mut().find(|seat| seat.bdf() == function).expect("a slot")
    }

    pub(super) fn seat_reads(
        &mut self,
        function: Bdf,
        range: (u64, usize),
        token: &ReadToken,
    ) -> Option<Bytes> {
        let (now, seat) = (self.now, self.seat_of(function));
        match seat.slot.memory_read(now, &mut seat.guest, range, token) {
            ReadOutcome::Done(data) => data,
            ReadOutcome::Pending => unreachable!("this client takes everything"),
        }
    }

    pub(super) fn seat_writes(&mut self, function: Bdf, address: u64, data: &[u8]) {
        let (now, seat) = (self.now, self.seat_of(function));
        seat.slot.memory_write(now, &mut seat.guest, address, data);
    }

    pub(super) fn seat_signals(&mut self, function: Bdf, vector: u16) {
        let seat = self.seat_of(function);
        seat.slot.interrupt(&mut seat.guest, vector);
    }
}
