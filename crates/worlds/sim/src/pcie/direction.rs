//! One direction of a link: transmitter, wire, receiver.

use super::{Buffer, DLLP, Deferral, FRAMING, Rate};
use crate::kernel::pop_if;
use crate::measure::Load;
use ::pcie::{OrderedQueue, Ready};
use std::collections::VecDeque;
use wire::tlp::{Class, Packet, Tlp, TraceId};
use wire::{Duration, Instant};

/// A TLP received over a link.
#[derive(Debug)]
pub(crate) struct Received {
    pub tlp: Tlp,
    /// When the first bit of the TLP reached the receiver's end of the wire.
    pub started: Instant,
}

#[derive(Debug)]
struct InFlight {
    /// When the TLP reaches the receiver's transaction layer.
    arrives: Instant,
    started: Instant,
    /// When the sender chooses the TLP. Later than now if the TLP was sent ahead of time.
    chosen: Instant,
    /// Whether `Deferral::Writes` accepts the TLP.
    plain: bool,
    tlp: Tlp,
}

/// Flow-control credits of one class.
#[derive(Clone, Copy, Debug, Default)]
struct Credits {
    headers: u32,
    data: u32,
}

#[derive(Debug, Default)]
pub(crate) struct Direction {
    rate: Rate,
    transmit: Duration,
    pub propagation: Duration,
    receive: Duration,
    /// When the transmitter accepts the next TLP.
    free: Instant,
    /// When the wire is free; DLLPs precede the next TLP.
    wire_free: Instant,
    /// Whether a class waits for credits.
    lacks_credits: bool,
    in_flight: VecDeque<InFlight>,
    received: OrderedQueue,
    /// For each class, when the first bits of the TLPs in `received` reached the end of the wire.
    started: [VecDeque<Instant>; 3],
    left: [Credits; 3],
    /// The credits of an empty receive buffer.
    full: [Credits; 3],
    /// Credits on their way back: when the transmitter has them, class, data credits.
    returns: VecDeque<(Instant, Class, u32)>,
    load: Load,
    deferral: Deferral,
    /// Deferred TLPs, and when they arrived.
    deferred: VecDeque<(Instant, Received)>,
    /// Arrivals of TLPs that `Deferral::Writes` does not accept.
    wake_ups: VecDeque<Instant>,
}

impl Direction {
    pub(super) fn new(
        rate: Rate,
        transmit: Duration,
        propagation: Duration,
        receive: Duration,
        buffer: Buffer,
    ) -> Self {
        let full = |class| Credits { headers: buffer.headers[class], data: buffer.data[class] };
        let full = std::array::from_fn(full);
        Self { rate, transmit, propagation, receive, left: full, full, ..Self::default() }
    }

    /// The load until `now`. Busy time and bytes include DLLPs, `packets` does not.
    pub(crate) fn load(&self, now: Instant) -> Load {
        self.ahead(now).fold(self.load, |all, next| {
            let bytes = Self::wire_bytes(&next.tlp);
            all - Load { busy: self.rate.duration(bytes), packets: 1, bytes: bytes as u64 }
        })
    }

    /// TLPs that were sent ahead of time and belong to times after `now`, last one first.
    fn ahead(&self, now: Instant) -> impl Iterator<Item = &InFlight> {
        self.in_flight.iter().rev().take_while(move |next| next.chosen > now)
    }

    /// Resets this direction; see [`Link::reset`](super::Link::reset).
    pub(super) fn reset(&mut self, now: Instant, mut dropped: impl FnMut(TraceId)) {
        self.load = self.load(now);
        if let Some(first) = self.ahead(now).last() {
            let begin = first.started.since(Instant::ZERO) - self.propagation - self.transmit;
            (self.free, self.wire_free) = (first.chosen, Instant::ZERO + begin);
        }
        self.take_all().iter().for_each(|tlp| dropped(tlp.trace_id));
        self.started.iter_mut().for_each(VecDeque::clear);
        self.wake_ups.clear();
        self.returns.clear();
        self.left = self.full;
        self.lacks_credits = false;
    }

    /// Takes all TLPs, in the order of their arrival. Reset the direction then.
    pub(super) fn take_all(&mut self) -> Vec<Tlp> {
        let mut all: Vec<_> = self.deferred.drain(..).map(|(_, received)| received.tlp).collect();
        all.extend(std::iter::from_fn(|| self.received.pop(Ready::ALL)));
        all.extend(self.in_flight.drain(..).map(|in_flight| in_flight.tlp));
        all
    }

    /// Bytes of a TLP on the wire.
    pub(crate) fn wire_bytes(tlp: &Tlp) -> usize {
        tlp.wire_length() + FRAMING
    }

    /// The classes of TLPs that the transmitter accepts now: none while it sends a TLP, otherwise
    /// the classes with credits for a payload of `max_payload` bytes.
    pub(crate) fn ready(&mut self, now: Instant, max_payload: usize) -> Ready {
        while let Some((_, class, data)) = pop_if(&mut self.returns, |(at, ..)| *at <= now) {
            let left = &mut self.left[class.index()];
            left.headers += 1;
            left.data += data;
        }
        if now < self.free {
            return Ready::NONE;
        }
        let need = max_payload.div_ceil(16) as u32;
        let ready = Ready::from_fn(|class| {
            let left = self.left[class.index()];
            let data = if class == Class::NonPosted { 1 } else { need };
            left.headers > 0 && left.data >= data
        });
        self.lacks_credits = ready != Ready::ALL;
        ready
    }

    /// When the transmitter is free, if the sender may choose the TLP for that time now. No event
    /// can change the choice, because there are credits for all classes and no event occurs before
    /// `until`. `None`: the sender must wait.
    pub(crate) fn takes_ahead(
        &mut self,
        now: Instant,
        until: Option<Instant>,
        max_payload: usize,
    ) -> Option<Instant> {
        let at = self.free;
        if self.lacks_credits || at <= now || until.is_some_and(|until| at >= until) {
            return None;
        }
        let all = self.ready(at, max_payload) == Ready::ALL;
        // `ready` sets this again at the time of the TLP.
        self.lacks_credits = false;
        all.then_some(at)
    }

    /// Sends a TLP of a ready class. Returns when its first bit is on the wire.
    pub(crate) fn send(&mut self, now: Instant, tlp: Tlp) -> Instant {
        debug_assert!(now >= self.free, "the transmitter is busy");
        let left = &mut self.left[tlp.class().index()];
        left.headers -= 1;
        left.data -= tlp.data_credits();
        let bytes = Self::wire_bytes(&tlp);
        let span = self.rate.duration(bytes);
        let begin = self.wire_free.max(now);
        self.free = begin + span;
        self.wire_free = self.free;
        self.load.add(span, bytes);
        let start = begin + self.transmit;
        let started = start + self.propagation;
        let arrives = started + span + self.receive;
        let plain = self.is_plain_write(&tlp);
        if !plain {
            self.wake_ups.push_back(arrives);
        }
        self.in_flight.push_back(InFlight { arrives, started, chosen: now, plain, tlp });
        start
    }

    /// Header and data credits of the posted TLPs whose credits have not returned: all TLPs that
    /// the receiving component has not taken, and possibly some that it has taken.
    pub(crate) fn posted_on_the_way(&self) -> [u32; 2] {
        let class = Class::Posted.index();
        let (full, left) = (self.full[class], self.left[class]);
        [full.headers - left.headers, full.data - left.data]
    }

    /// Sends a DLLP as soon as the wire is free, before the next TLP. Returns the end of the DLLP.
    pub(super) fn send_dllp(&mut self, now: Instant) -> Instant {
        let span = self.rate.duration(DLLP);
        self.wire_free = self.wire_free.max(now) + span;
        self.load.busy = self.load.busy + span;
        self.load.bytes += DLLP as u64;
        self.wire_free
    }

    /// Receives the TLPs that have arrived. Acknowledges each one by a DLLP in the other direction,
    /// `back`.
    pub(crate) fn arrive(&mut self, now: Instant, back: &mut Self) {
        while self.in_flight.front().is_some_and(|next| next.arrives <= now) {
            let next = self.leave_wire();
            self.started[next.tlp.class().index()].push_back(next.started);
            self.received.push(next.tlp);
            back.send_dllp(now);
        }
    }

    /// Removes the next TLP from the wire.
    fn leave_wire(&mut self) -> InFlight {
        let next = self.in_flight.pop_front().expect("the caller looked");
        if !next.plain {
            self.wake_ups.pop_front();
        }
        next
    }

    /// Whether [`Deferral::Writes`] accepts this TLP.
    fn is_plain_write(&self, tlp: &Tlp) -> bool {
        let Deferral::Writes { from, until } = self.deferral else { return false };
        let Packet::MemoryWrite(write) = tlp.packet else { return false };
        write.address >= from && write.address + write.length() as u64 <= until
    }

    /// Defers the next TLP that arrived by `now`, if the deferral allows it. Returns the time of
    /// arrival, the class and the data credits of the TLP.
    pub(super) fn take_deferred(&mut self, now: Instant) -> Option<(Instant, Class, u32)> {
        let next = self.in_flight.front().filter(|next| next.arrives <= now)?;
        let alone = match self.deferral {
            Deferral::Nothing => false,
            Deferral::Writes { .. } => next.plain,
            Deferral::All => self.deferred.len() < Deferral::MOST,
        };
        if !alone {
            return None;
        }
        let InFlight { arrives, started, tlp, .. } = self.leave_wire();
        let credits = (arrives, tlp.class(), tlp.data_credits());
        self.deferred.push_back((arrives, Received { tlp, started }));
        Some(credits)
    }

    /// The next deferred TLP, and when it arrived.
    pub(crate) fn next_deferred(&mut self) -> Option<(Instant, Received)> {
        self.deferred.pop_front()
    }

    /// Sets the deferral from now on; [`Deferral::Nothing`] if TLPs wait in the receiver's buffer.
    ///
    /// # Panics
    /// If TLPs are in flight and the deferral is [`Deferral::Writes`].
    pub(crate) fn set_deferred(&mut self, deferral: Deferral) {
        let plain = matches!(deferral, Deferral::Writes { .. });
        assert!(!plain || self.in_flight.is_empty(), "what flies was looked at when it was sent");
        self.deferral = if self.received.is_empty() { deferral } else { Deferral::Nothing };
    }

    /// Removes and returns the next received TLP of a class in `ready`. A DLLP in the other
    /// direction, `back`, returns its credits.
    pub(crate) fn take(&mut self, now: Instant, ready: Ready, back: &mut Self) -> Option<Received> {
        let tlp = self.received.pop(ready)?;
        let started = self.started[tlp.class().index()].pop_front().expect("pushed together");
        // The transmitter has the credits when this DLLP (UpdateFC) has arrived.
        let sent = back.send_dllp(now);
        self.return_credits(sent + back.latency(), tlp.class(), tlp.data_credits());
        Some(Received { tlp, started })
    }

    pub(super) fn return_credits(&mut self, at: Instant, class: Class, data: u32) {
        // DLLPs share one wire: they arrive in order.
        self.returns.push_back((at, class, data));
    }

    /// Latency between the ports' transaction layers, without serialisation.
    pub(super) fn latency(&self) -> Duration {
        self.transmit + self.propagation + self.receive
    }

    /// When the next TLP arrives that must wake the receiving component.
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        let place = match self.deferral {
            Deferral::Nothing => 0,
            Deferral::Writes { .. } => return self.wake_ups.front().copied(),
            Deferral::All => Deferral::MOST - self.deferred.len(),
        };
        self.in_flight.get(place).map(|next| next.arrives)
    }

    /// When the transmitter may accept more TLPs than at `now`: when it is free, or when credits
    /// return. `None` if neither is expected.
    pub(crate) fn next_ready(&self, now: Instant) -> Option<Instant> {
        if self.free > now {
            return Some(self.free);
        }
        if !self.lacks_credits {
            return None;
        }
        // No other event wakes the transmitter for the credits of TLPs that will be deferred.
        let alone = || match self.deferral {
            Deferral::Nothing => None,
            _ => self.in_flight.front().map(|next| next.arrives).filter(|at| *at > now),
        };
        self.returns.front().map(|(at, ..)| *at).or_else(alone)
    }

    /// When credits return, if the transmitter waits for them. The component that has taken a TLP
    /// wakes the transmitter's component at this time.
    pub(crate) fn next_credits(&self) -> Option<Instant> {
        self.returns.front().filter(|_| self.lacks_credits).map(|(at, ..)| *at)
    }

    /// How long a DLLP takes from its first bit sent to its last bit received.
    pub(crate) fn dllp_time(&self) -> Duration {
        self.rate.duration(DLLP) + self.propagation
    }

    pub(crate) fn tlp_time(&self, tlp: &Tlp) -> Duration {
        self.rate.duration(Self::wire_bytes(tlp))
    }

    /// When the first bit of a TLP that is sent now is on the wire.
    pub(crate) fn next_start(&self, now: Instant) -> Instant {
        self.wire_free.max(now) + self.transmit
    }
}
