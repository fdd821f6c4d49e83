//! A DMA test endpoint: a function that copies and fills memory by DMA.
//!
//! The function shows that the other modules do not depend on the kind of device. Tests use it as a
//! bus master with exactly known accesses. Base class 12h (processing accelerator), BAR 0 of
//! [`BAR0_SIZE`] bytes, one MSI-X vector.
//!
//! # Registers
//!
//! Little-endian, in BAR 0; any size and byte enables. Reserved bytes read as
//! zero and ignore writes.
//!
//! | offset | bytes | access | name | meaning |
//! | --- | --- | --- | --- | --- |
//! | 0x00 | 4 | RO | `MAGIC` | "DMAT" |
//! | 0x08 | 8 | RW | `SOURCE` | bus address to copy from |
//! | 0x10 | 8 | RW | `DESTINATION` | bus address to write to |
//! | 0x18 | 4 | RW | `LENGTH` | bytes, 1 to 1 MiB |
//! | 0x1c | 4 | RW | `PATTERN` | what a fill repeats, lowest byte first |
//! | 0x20 | 4 | WO | `CONTROL` | doorbell, rung by its lowest byte: 1 copies, 2 fills, 4 acknowledges the interrupt |
//! | 0x24 | 4 | RO | `STATUS` | bit 0 busy, bit 1 done, bit 2 failed, bit 3 doorbell rung while busy; bits 15:8 why it failed |
//! | 0x28 | 4 | RO | `COUNT` | jobs ended since reset, failed ones included |
//! | 0x1000 | 0x3000 | RW | `RAM` | memory behind the BAR |
//!
//! A write to the doorbell starts a job; later writes to the other registers are for the next job.
//! The end of a job sets DONE and signals vector 0 after all written bytes; without MSI-X, INTA
//! stays asserted until acknowledged. Failure codes: 1 Unsupported Request, 2 Completer Abort, 3
//! completion timeout, 4 poisoned data, 5 bus mastering is off, 6 invalid length or doorbell value.
//! Bytes written before the failure stay written. Every reset clears registers and RAM.

pub mod driver;
mod job;
#[cfg(test)]
mod tests;

use crate::endpoint::{Endpoint, EndpointConfig, Event, ReadToken};
use crate::function::{Function, Input, Output, Ports, Ready};
use job::{INVALID, Job};
use wire::Instant;

/// Vendor ID, the same as for farlane's bridges.
pub const VENDOR: u16 = crate::bridge::VENDOR;
/// Device ID.
pub const DEVICE: u16 = 0x0d3a;
/// Size of BAR 0 in bytes.
pub const BAR0_SIZE: u64 = 0x8000;
/// Size of `RAM` in bytes.
pub const RAM_SIZE: usize = 0x3000;
/// The longest job in bytes.
pub const MAX_LENGTH: u32 = 1 << 20;
/// The value of `MAGIC`.
pub const MAGIC: u32 = u32::from_le_bytes(*b"DMAT");

/// Byte offsets of the registers in BAR 0.
pub mod register {
    /// RO, 4 bytes: [`super::MAGIC`].
    pub const MAGIC: u64 = 0x00;
    /// RW, 8 bytes: bus address to copy from.
    pub const SOURCE: u64 = 0x08;
    /// RW, 8 bytes: bus address to write to.
    pub const DESTINATION: u64 = 0x10;
    /// RW, 4 bytes: length in bytes.
    pub const LENGTH: u64 = 0x18;
    /// RW, 4 bytes: the pattern of a fill.
    pub const PATTERN: u64 = 0x1c;
    /// WO, 4 bytes: the doorbell.
    pub const CONTROL: u64 = 0x20;
    /// RO, 4 bytes: status of the last job.
    pub const STATUS: u64 = 0x24;
    /// RO, 4 bytes: jobs ended since reset.
    pub const COUNT: u64 = 0x28;
    /// RW: memory behind the BAR.
    pub const RAM: u64 = 0x1000;
}

/// Values of the `CONTROL` register.
pub mod control {
    /// Copy `LENGTH` bytes from `SOURCE` to `DESTINATION`.
    pub const COPY: u8 = 1;
    /// Fill `LENGTH` bytes at `DESTINATION` with `PATTERN`.
    pub const FILL: u8 = 2;
    /// Deassert INTA.
    pub const ACKNOWLEDGE: u8 = 4;
}

/// Bits of the `STATUS` register.
pub mod status {
    /// A job runs.
    pub const BUSY: u32 = 1 << 0;
    /// The last job has ended, with success or failure.
    pub const DONE: u32 = 1 << 1;
    /// The last job failed; bits 15:8 are the failure code.
    pub const FAILED: u32 = 1 << 2;
    /// The doorbell rang while a job ran, and was ignored.
    pub const OVERRUN: u32 = 1 << 3;
}

/// Settings of a [`DmaTest`].
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Device serial number.
    pub serial: u64,
    /// Largest payload supported: 128, 256, … 4096 bytes.
    pub max_payload: usize,
    /// The function's own limit for one read request in bytes, a power of two up to 4096.
    pub read_request: usize,
    /// Read requests kept in flight, 1 to 1024.
    pub reads_in_flight: usize,
}

impl Default for Settings {
    /// Payloads and read requests of 4096 bytes, 32 read requests in flight.
    fn default() -> Self {
        Self { serial: 1, max_payload: 4096, read_request: 4096, reads_in_flight: 32 }
    }
}

/// Registers that software writes, from [`register::SOURCE`].
const WRITABLE: std::ops::Range<usize> = 0x08..0x20;

/// The DMA test function.
#[derive(Debug)]
pub struct DmaTest {
    endpoint: Endpoint,
    /// `SOURCE` to `PATTERN`, at their offsets.
    registers: [u8; WRITABLE.end],
    status: u32,
    count: u32,
    ram: Vec<u8>,
    job: Option<Job>,
    /// ID of the next read; IDs are not reused after a reset.
    next_read: u64,
}

impl DmaTest {
    /// A function after power-on.
    ///
    /// # Panics
    /// If a setting is out of the range that the field's documentation states.
    pub fn new(settings: Settings) -> Self {
        let endpoint = Endpoint::new(EndpointConfig {
            serial: settings.serial,
            bar0_size: BAR0_SIZE,
            max_payload: settings.max_payload,
            read_request: settings.read_request,
            reads_in_flight: settings.reads_in_flight,
            ..EndpointConfig::new(VENDOR, DEVICE, [0x12, 0, 0])
        });
        Self {
            endpoint,
            registers: [0; WRITABLE.end],
            status: 0,
            count: 0,
            ram: vec![0; RAM_SIZE],
            job: None,
            next_read: 0,
        }
    }

    /// The endpoint, for its ID and error counters.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// The memory behind the BAR.
    pub fn ram(&self) -> &[u8] {
        &self.ram
    }

    fn word(&self, at: u64) -> u32 {
        let at = at as usize;
        u32::from_le_bytes(self.registers[at..at + 4].try_into().expect("4 bytes"))
    }

    fn quad_word(&self, at: u64) -> u64 {
        u64::from(self.word(at)) | u64::from(self.word(at + 4)) << 32
    }

    /// Handles all endpoint events. Returns whether there were any.
    fn take_events(&mut self) -> bool {
        let mut any = false;
        while let Some(event) = self.endpoint.poll_event() {
            any = true;
            match event {
                Event::Read { offset, length, token, .. } => self.read(offset, length, token),
                Event::Write { offset, data, .. } => {
                    for (at, byte) in (offset..).zip(data) {
                        self.write(at, byte);
                    }
                }
                Event::ReadDone { id, result } => self.read_done(id, result),
                Event::Reset(_) => self.reset(),
                Event::Foreign(_) => {}
            }
        }
        any
    }

    fn reset(&mut self) {
        self.registers.fill(0);
        (self.status, self.count, self.job) = (0, 0, None);
        self.ram.fill(0);
    }

    fn read(&mut self, offset: u64, length: usize, token: ReadToken) {
        let data: Vec<u8> = (offset..offset + length as u64).map(|at| self.byte(at)).collect();
        self.endpoint.complete_read(token, &data);
    }

    fn byte(&self, at: u64) -> u8 {
        let word = match at & !3 {
            register::MAGIC => MAGIC,
            register::STATUS => self.status,
            register::COUNT => self.count,
            ram if ram >= register::RAM => {
                return self.ram.get((at - register::RAM) as usize).copied().unwrap_or(0);
            }
            _ => return self.registers.get(at as usize).copied().unwrap_or(0),
        };
        word.to_le_bytes()[at as usize & 3]
    }

    fn write(&mut self, at: u64, byte: u8) {
        if at == register::CONTROL {
            self.ring(byte);
        } else if WRITABLE.contains(&(at as usize)) {
            self.registers[at as usize] = byte;
        } else if let Some(at) = at.checked_sub(register::RAM)
            && let Some(place) = self.ram.get_mut(at as usize)
        {
            *place = byte;
        }
    }

    fn ring(&mut self, doorbell: u8) {
        if doorbell == control::ACKNOWLEDGE {
            self.endpoint.set_intx(false);
            return;
        }
        if self.job.is_some() {
            self.status |= status::OVERRUN;
            return;
        }
        self.status = status::BUSY;
        let length = self.word(register::LENGTH);
        let source = self.quad_word(register::SOURCE);
        let destination = self.quad_word(register::DESTINATION);
        let pattern = self.word(register::PATTERN);
        match doorbell {
            _ if length == 0 || length > MAX_LENGTH => self.end(Err(INVALID)),
            control::COPY => self.job = Some(Job::copy(source, destination, length)),
            control::FILL => self.job = Some(Job::fill(pattern, destination, length)),
            _ => self.end(Err(INVALID)),
        }
    }

    fn end(&mut self, result: Result<(), u8>) {
        self.job = None;
        self.count = self.count.wrapping_add(1);
        self.status = self.status & status::OVERRUN | status::DONE;
        if let Err(failure) = result {
            self.status |= status::FAILED | u32::from(failure) << 8;
        }
        if self.endpoint.msix_enabled() {
            self.endpoint.interrupt(0);
        } else {
            self.endpoint.set_intx(true);
        }
    }
}

impl Function for DmaTest {
    fn handle(&mut self, now: Instant, input: Input) {
        self.endpoint.handle(now, input);
        self.take_events();
    }

    fn poll(&mut self, now: Instant, ready: Ready) -> Output {
        loop {
            self.advance();
            let output = self.endpoint.poll(now, ready);
            match output {
                // The poll may have ended a job by a timeout.
                Output::Wait(_) if self.take_events() => {}
                output => return output,
            }
        }
    }

    fn ready(&self) -> Ready {
        self.endpoint.ready()
    }

    fn ports(&self) -> Option<&dyn Ports> {
        None
    }
}
