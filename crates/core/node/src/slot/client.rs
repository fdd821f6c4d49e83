//! The client of a slot, and the function's accesses to its memory.

use super::table::{Access, Outcome};
use super::{Output, Slot};
use bytes::{Bytes, BytesMut};
use pcie::root::ReadToken;
use wire::Instant;

/// While more bytes of deferred writes than this wait, the function has to wait.
pub(super) const MAX_DEFERRED: usize = 16 << 20;

/// The result of a read of host memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReadOutcome {
    /// The bytes, or `None` if the device may not read them.
    Done(Option<Bytes>),
    /// The client returns the bytes later.
    Pending,
}

/// The user of an endpoint: a driver that continues with the function after an outage and must not
/// receive other data than it wrote. `()` is the host's own driver, which starts anew each time.
pub trait Client {
    /// Whether a driver uses the function and may rely on its contents.
    fn is_active(&self) -> bool {
        false
    }

    /// The bytes of the Command register as the driver wrote them.
    fn command(&self) -> [Option<u8>; 2] {
        [None; 2]
    }

    /// Whether the driver has written a register other than a doorbell, and the function may not
    /// have handled all of the driver's writes.
    fn has_written_registers(&self) -> bool {
        false
    }

    /// Reads `range.1` bytes of memory at `range.0` for `token`; `None` if the client takes no
    /// request now.
    fn read(&mut self, _: Instant, _: (u64, usize), _: &ReadToken) -> Option<ReadOutcome> {
        Some(ReadOutcome::Done(None))
    }

    /// Writes memory; returns whether it may, or `None` if the client takes no request now.
    fn write(&mut self, _: Instant, _: u64, _: &[u8]) -> Option<bool> {
        Some(false)
    }

    /// Appends memory if it is available at once; returns whether it is.
    fn peek(&mut self, _: (u64, usize), _: &mut BytesMut) -> bool {
        false
    }

    /// Signals an interrupt vector.
    fn signal(&mut self, _: u16) {}
}

impl Client for () {}

/// An access of the function that waits because the client accepts none now.
#[derive(Debug)]
pub(super) enum Deferred {
    Read { token: ReadToken, range: (u64, usize) },
    Write { address: u64, data: Bytes },
    Interrupt(u16),
}

impl Slot {
    /// Whether the function may write more. Deferred writes stop the function.
    pub fn takes_writes(&self) -> bool {
        self.deferred_bytes < MAX_DEFERRED
    }

    /// Handles a read of the client's memory by the function.
    pub fn memory_read(
        &mut self,
        now: Instant,
        client: &mut dyn Client,
        range: (u64, usize),
        token: &ReadToken,
    ) -> ReadOutcome {
        if self.condition().outcome(Access::MemoryRead) == Outcome::Refused {
            self.faults += 1;
            return ReadOutcome::Done(None);
        }
        let done = self.deferred.is_empty().then(|| self.fetch(now, client, range, token));
        done.flatten().unwrap_or_else(|| {
            self.deferred.push_back(Deferred::Read { token: token.clone(), range });
            ReadOutcome::Pending
        })
    }

    fn fetch(
        &mut self,
        now: Instant,
        client: &mut dyn Client,
        range: (u64, usize),
        token: &ReadToken,
    ) -> Option<ReadOutcome> {
        let read = client.read(now, range, token);
        self.faults += u64::from(read == Some(ReadOutcome::Done(None)));
        read
    }

    /// Appends the bytes that [`memory_read`](Self::memory_read) would read now, if they are
    /// available at once; returns whether they are.
    pub fn peek(&self, client: &mut dyn Client, range: (u64, usize), out: &mut BytesMut) -> bool {
        self.condition().outcome(Access::MemoryRead) != Outcome::Refused
            && self.deferred.is_empty()
            && client.peek(range, out)
    }

    /// Handles a write of the function to the client's memory.
    pub fn memory_write(
        &mut self,
        now: Instant,
        client: &mut dyn Client,
        address: u64,
        data: &[u8],
    ) {
        if self.condition().outcome(Access::MemoryWrite) == Outcome::Refused {
            self.faults += 1;
        } else if !self.deferred.is_empty() || !self.store(now, client, address, data) {
            self.deferred_bytes += data.len();
            let data = Bytes::copy_from_slice(data);
            self.deferred.push_back(Deferred::Write { address, data });
        }
    }

    fn store(&mut self, now: Instant, client: &mut dyn Client, address: u64, data: &[u8]) -> bool {
        let write = client.write(now, address, data);
        self.faults += u64::from(write == Some(false));
        write.is_some()
    }

    /// Handles an interrupt of the function.
    pub fn interrupt(&mut self, client: &mut dyn Client, vector: u16) {
        if self.condition().outcome(Access::Interrupt) == Outcome::Dropped {
            return;
        }
        if self.deferred.is_empty() {
            client.signal(vector);
        } else {
            self.deferred.push_back(Deferred::Interrupt(vector));
        }
    }

    /// Retries deferred accesses, in order; returns whether any was made.
    pub(super) fn retry(&mut self, now: Instant, client: &mut dyn Client) -> bool {
        let mut moved = false;
        while let Some(next) = self.deferred.pop_front() {
            let done = match &next {
                Deferred::Interrupt(vector) => {
                    client.signal(*vector);
                    true
                }
                Deferred::Write { address, data } => {
                    let done = self.store(now, client, *address, data);
                    self.deferred_bytes -= if done { data.len() } else { 0 };
                    done
                }
                Deferred::Read { token, range } => {
                    let fetched = self.fetch(now, client, *range, token);
                    if let Some(ReadOutcome::Done(data)) = &fetched {
                        self.outputs.push_back(Output::HostData(token.clone(), data.clone()));
                    }
                    fetched.is_some()
                }
            };
            if !done {
                self.deferred.push_front(next);
                break;
            }
            moved = true;
        }
        moved
    }

    /// Drops deferred accesses: accesses from before a reset must not reach the client after it.
    pub(super) fn drop_deferred(&mut self) {
        for deferred in self.deferred.drain(..) {
            if let Deferred::Read { token, .. } = deferred {
                self.outputs.push_back(Output::HostData(token, None));
            }
        }
        self.deferred_bytes = 0;
    }
}
