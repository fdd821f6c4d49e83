//! Host memory for accesses by devices.

use super::ReadOutcome;
use bytes::{Bytes, BytesMut};
use pcie::Ram;
use pcie::root::ReadToken;
use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use wire::{Bdf, Instant};

/// The memory and interrupts that the devices of a machine access.
pub trait Memory {
    /// Reads `range.1` bytes from the bus address `range.0` on for a device.
    fn read(
        &mut self,
        now: Instant,
        requester: Bdf,
        range: (u64, usize),
        token: &ReadToken,
    ) -> ReadOutcome;

    /// Appends the bytes that [`read`](Self::read) would return, if they are available at once, for
    /// push. Otherwise returns false and appends nothing.
    fn peek(&mut self, requester: Bdf, range: (u64, usize), out: &mut BytesMut) -> bool;

    /// Writes bytes of a device.
    fn write(&mut self, now: Instant, requester: Bdf, address: u64, data: &[u8]);

    /// Delivers an MSI-X message of a device with this data.
    fn interrupt(&mut self, requester: Bdf, data: u32);

    /// Sets the level of an INTx wire of the root port (0 for INTA).
    fn wire(&mut self, wire: u8, level: bool);
}

/// The memory of a machine without guests: one range of RAM that every device may access.
#[derive(Debug)]
pub struct RamMemory {
    /// The RAM, shared with the host software.
    pub ram: Rc<RefCell<Ram>>,
    /// Interrupts not yet handled.
    pub interrupts: VecDeque<(Bdf, u32)>,
    /// Accesses outside the RAM.
    pub faults: u64,
}

impl RamMemory {
    /// Memory in `ram`.
    pub fn new(ram: Rc<RefCell<Ram>>) -> Self {
        Self { ram, interrupts: VecDeque::new(), faults: 0 }
    }
}

impl Memory for RamMemory {
    fn read(
        &mut self,
        _: Instant,
        _: Bdf,
        (address, length): (u64, usize),
        _: &ReadToken,
    ) -> ReadOutcome {
        let data = self.ram.borrow_mut().get(address, length).map(Bytes::copy_from_slice);
        self.faults += u64::from(data.is_none());
        ReadOutcome::Done(data)
    }

    fn peek(&mut self, _: Bdf, (address, length): (u64, usize), out: &mut BytesMut) -> bool {
        self.ram.borrow_mut().get(address, length).map(|data| out.extend_from_slice(data)).is_some()
    }

    fn write(&mut self, _: Instant, _: Bdf, address: u64, data: &[u8]) {
        match self.ram.borrow_mut().get_mut(address, data.len()) {
            Some(place) => place.copy_from_slice(data),
            None => self.faults += 1,
        }
    }

    fn interrupt(&mut self, requester: Bdf, data: u32) {
        // Only the latest interrupts matter; the oldest are dropped.
        if self.interrupts.len() >= 4096 {
            self.interrupts.pop_front();
        }
        self.interrupts.push_back((requester, data));
    }

    fn wire(&mut self, _: u8, _: bool) {}
}
