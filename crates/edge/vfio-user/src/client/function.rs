//! The function of a server as host software sees it, with emulated BAR registers and MSI-X table.

use super::bars::Bars;
use super::channel::Error;
use super::device::Device;
use crate::config::MsixCapability;
use crate::msix::{MsixPart, Table};
use pcie::config::{capability, register};
use pcie::software::Request;
use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use std::io;
use std::ops::Range;
use wire::Bdf;
use wire::vfio_user::region_index;

/// Address of the function, which is the only device below the root port.
pub const FUNCTION: Bdf = Bdf::new(1, 0, 0);
/// Byte offsets of the expansion ROM register, which reads as 0 because ROMs are not supported.
const ROM: Range<u16> = 0x30..0x34;
/// The number of capabilities after which a list counts as circular.
const CAP_LIMIT: usize = 48;
/// Byte offset of the message data in an MSI-X table entry (PCI Express Base 4.0, section 7.7.2.3).
const ENTRY_DATA: usize = 8;
/// Offset of the byte with the mask bit in an MSI-X table entry.
const ENTRY_MASK: usize = 12;
/// Size of an MSI-X table entry in bytes.
const ENTRY: usize = 16;

/// The function of a server.
pub struct Function {
    device: Device,
    bars: Bars,
    msix: Option<MsixCapability>,
    table: Table,
    /// The eventfds of the vectors from 0 on, while MSI-X is enabled.
    signals: Vec<OwnedFd>,
}

impl Function {
    /// The function of a device, after a reset.
    pub fn new(mut device: Device) -> Result<Self, Error> {
        let mut registers = [0; 6];
        for (index, value) in registers.iter_mut().enumerate() {
            let at = u64::from(register::BAR0) + 4 * index as u64;
            *value = device.read(region_index::CONFIG, at, 4)? as u32;
        }
        let msix = find_msix(&mut device)?;
        Ok(Self {
            bars: Bars::new(device.bar_sizes(), registers),
            table: Table::new(msix),
            msix,
            signals: Vec::new(),
            device,
        })
    }

    /// The device behind the function.
    pub fn device(&mut self) -> &mut Device {
        &mut self.device
    }

    /// Executes a request. Returns the value read (0 for a write), or `None` if nothing answers at
    /// the address or the request is not for a device. `watch` receives each eventfd that is
    /// assigned to a vector.
    pub fn carry_out(
        &mut self,
        request: Request,
        watch: impl Fn(BorrowedFd<'_>) -> io::Result<()>,
    ) -> Result<Option<u64>, Error> {
        match request {
            Request::ConfigRead { target, offset, size } if target == FUNCTION => {
                self.config_read(offset, size)
            }
            Request::ConfigWrite { target, offset, size, value } if target == FUNCTION => {
                self.config_write(offset, size, value, watch)?;
                Ok(Some(0))
            }
            Request::MemoryRead { address, size } => match self.bars.find(address, size) {
                Some((bar, offset)) => self.bar_read(bar, offset, size).map(Some),
                None => Ok(None),
            },
            Request::MemoryWrite { address, size, value } => {
                if let Some((bar, offset)) = self.bars.find(address, size) {
                    self.bar_write(bar, offset, size, value)?;
                }
                Ok(Some(0))
            }
            Request::ConfigRead { .. } | Request::ConfigWrite { .. } | Request::Sleep(_) => {
                Ok(None)
            }
        }
    }

    fn config_read(&mut self, offset: u16, size: u8) -> Result<Option<u64>, Error> {
        if let Some(value) = self.bars.read(offset) {
            return Ok(Some(value.into()));
        }
        if ROM.contains(&offset) {
            return Ok(Some(0));
        }
        let end = u64::from(offset) + u64::from(size);
        if end > self.device.config_size() {
            return Ok(None);
        }
        self.device.read(region_index::CONFIG, offset.into(), size).map(Some)
    }

    fn config_write(
        &mut self,
        offset: u16,
        size: u8,
        value: u32,
        watch: impl Fn(BorrowedFd<'_>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let end = u64::from(offset) + u64::from(size);
        let outside = end > self.device.config_size();
        if self.bars.write(offset, size, value) || ROM.contains(&offset) || outside {
            return Ok(());
        }
        self.device.write(region_index::CONFIG, offset.into(), size, value.into())?;
        let control = self.msix.and_then(|msix| msix.control.checked_sub(usize::from(offset)));
        if let Some(at) = control.filter(|at| *at < usize::from(size)) {
            let enable = value.to_le_bytes()[at] & MsixCapability::ENABLE != 0;
            self.disable_msix()?;
            if enable {
                self.enable_msix(watch)?;
            }
        }
        Ok(())
    }

    fn disable_msix(&mut self) -> Result<(), Error> {
        if self.signals.is_empty() {
            return Ok(());
        }
        self.signals.clear();
        self.device.clear_msix()
    }

    /// Assigns eventfds to the vectors from 0 to the last vector that is not masked.
    fn enable_msix(
        &mut self,
        watch: impl Fn(BorrowedFd<'_>) -> io::Result<()>,
    ) -> Result<(), Error> {
        let Some(msix) = self.msix else { return Ok(()) };
        let masked = |vector: &usize| self.entry::<1>(*vector, ENTRY_MASK)[0] & 1 != 0;
        let last = (0..usize::from(msix.vectors)).rev().find(|vector| !masked(vector));
        let count = last.map_or(0, |last| last + 1);
        if count > self.device.vectors as usize {
            let reason = format!("{count} interrupts are wanted, {} offered", self.device.vectors);
            return Err(self.device.channel().error(reason));
        }
        for _ in 0..count {
            let flags = EventfdFlags::NONBLOCK | EventfdFlags::CLOEXEC;
            let signal = eventfd(0, flags).map_err(std::io::Error::from);
            let watched = signal.and_then(|signal| {
                watch(signal.as_fd())?;
                Ok(signal)
            });
            let signal = watched.map_err(|error| self.device.channel().error(error.to_string()))?;
            self.signals.push(signal);
        }
        let fds: Vec<BorrowedFd<'_>> = self.signals.iter().map(AsFd::as_fd).collect();
        self.device.set_msix(&fds)
    }

    /// `N` bytes of the MSI-X table entry of `vector`, from byte `at` of the entry on.
    fn entry<const N: usize>(&self, vector: usize, at: usize) -> [u8; N] {
        let mut bytes = [0; N];
        self.table.read(vector * ENTRY + at, &mut bytes);
        bytes
    }

    /// Passes to `each` the message data of every vector whose eventfd was signalled. `ready` tells
    /// whether an eventfd can be read.
    pub fn interrupts(&self, ready: impl Fn(BorrowedFd<'_>) -> bool, mut each: impl FnMut(u32)) {
        for (vector, signal) in self.signals.iter().enumerate() {
            if ready(signal.as_fd()) && rustix::io::read(signal, &mut [0; 8]).is_ok() {
                each(u32::from_le_bytes(self.entry(vector, ENTRY_DATA)));
            }
        }
    }

    fn bar_read(&mut self, bar: u8, offset: u64, size: u8) -> Result<u64, Error> {
        let (part, alike) = self.table.msix_part(bar, offset);
        match part {
            Some((MsixPart::Table, at)) if alike >= u64::from(size) => {
                let mut bytes = [0; 8];
                self.table.read(at, &mut bytes[..usize::from(size)]);
                Ok(u64::from_le_bytes(bytes))
            }
            _ => self.device.read(bar.into(), offset, size),
        }
    }

    fn bar_write(&mut self, bar: u8, offset: u64, size: u8, value: u64) -> Result<(), Error> {
        let (part, alike) = self.table.msix_part(bar, offset);
        match part {
            Some((MsixPart::Table, at)) if alike >= u64::from(size) => {
                self.table.write(at, &value.to_le_bytes()[..usize::from(size)]);
                Ok(())
            }
            _ => self.device.write(bar.into(), offset, size, value),
        }
    }

    /// Disables MSI-X and ends the device's access to host memory.
    pub fn close(&mut self) -> Result<(), Error> {
        self.disable_msix()?;
        self.device.unmap_memory()
    }
}

/// The MSI-X capability; `None` if the device has none.
fn find_msix(device: &mut Device) -> Result<Option<MsixCapability>, Error> {
    let mut read = |at: u64, size| device.read(region_index::CONFIG, at, size);
    let mut at = read(register::CAPABILITIES.into(), 1)? & 0xfc;
    for _ in 0..CAP_LIMIT {
        if !(0x40..=0xf4).contains(&at) {
            return Ok(None);
        }
        let head = read(at, 4)? as u32;
        if head as u8 == capability::MSIX {
            let rest = [read(at + 4, 4)? as u32, read(at + 8, 4)? as u32];
            return Ok(Some(MsixCapability::new(at as usize, [head, rest[0], rest[1]])));
        }
        at = u64::from(head >> 8 & 0xfc);
    }
    Ok(None)
}
