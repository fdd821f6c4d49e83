//! A server's device: the properties of the device, and the commands to the device.

use super::channel::{Channel, Error};
use super::memory::HostMemory;
use super::{Doorbells, Now};
use crate::mapping::Mapping;
use crate::{MAX_DATA_XFER, MAX_MSG_FDS, doorbell};
use bytes::Bytes;
use rustix::fd::{AsFd, BorrowedFd};
use std::path::Path;
use std::rc::Rc;
use wire::vfio_user::{
    Capabilities, Command, DEFAULT_MAX_MSG_FDS, DEVICE_FLAGS_PCI, DEVICE_FLAGS_RESET,
    DMA_FLAG_READ, DMA_FLAG_WRITE, DeviceInfo, DmaMap, DmaUnmap, IRQ_INFO_EVENTFD, IrqAction,
    IrqData, IrqInfo, IrqSet, REGION_FLAG_MMAP, REGION_FLAG_READ, REGION_FLAG_WRITE, RegionAccess,
    RegionInfo, SparseArea, Version, irq_index, region_index,
};

/// The requested maximum payload of a reply in bytes, as large as SPDK's buffer.
const REPLY_ROOM: u32 = 4080;
/// The maximum number of mapped ranges that the client offers, as in QEMU.
const MAX_DMA_MAPS: u64 = 65_535;
/// Page size of DMA ranges in bytes.
const PAGE_SIZES: u64 = 4096;
/// Size in bytes of a configuration space without extended configuration space.
const LEAST_CONFIG: u64 = 256;
/// Size in bytes of the largest configuration space.
const MOST_CONFIG: u64 = 4096;
/// The maximum number of regions, and of interrupt types, of a device.
const MOST_INDEXES: u32 = 64;

/// A mapped part of the BAR that contains the doorbells.
#[derive(Debug)]
struct Page {
    /// Byte offset in the BAR.
    offset: u64,
    mapping: Mapping,
}

/// A server's device, and the host memory that it may access.
pub struct Device {
    channel: Channel,
    resets: bool,
    /// Size in bytes of each region up to configuration space; 0 for an absent region.
    regions: [u64; region_index::CONFIG as usize + 1],
    pages: Vec<Page>,
    /// Number of MSI-X vectors that can have an eventfd.
    pub vectors: u32,
    /// The maximum number of descriptors per message that the server accepts.
    most_fds: usize,
    /// Whether INTx can have an eventfd.
    pub intx: bool,
    /// Memory that the device maps; `None`: it reaches host memory by message only.
    memory: Option<Rc<HostMemory>>,
}

/// A range of host memory without a descriptor. libvfio-user takes at most 8 TiB in one range, and 16
/// ranges.
const WINDOW: u64 = 8 << 40;
const WINDOWS: u64 = 16;

impl Device {
    /// Connects to the server at `path`, queries and resets the device, and lets the device access
    /// `memory`. Maps the doorbells that the server offers, unless `doorbells` is
    /// [`Doorbells::Message`].
    pub fn connect(
        path: &Path,
        now: Now,
        memory: Rc<HostMemory>,
        doorbells: Doorbells,
    ) -> Result<Self, Error> {
        Self::start(path, now, Some(memory), doorbells)
    }

    /// As [`connect`](Self::connect), but the device maps nothing: it sends DMA commands for any
    /// address below 2^47, which [`Channel::next_dma`] returns, and doorbells are rung by message.
    pub fn connect_without_memory(path: &Path, now: Now) -> Result<Self, Error> {
        Self::start(path, now, None, Doorbells::Message)
    }

    fn start(
        path: &Path,
        now: Now,
        memory: Option<Rc<HostMemory>>,
        doorbells: Doorbells,
    ) -> Result<Self, Error> {
        let mut device = Self {
            channel: Channel::connect(path, now, memory.clone())?,
            resets: false,
            regions: [0; region_index::CONFIG as usize + 1],
            pages: Vec::new(),
            vectors: 0,
            most_fds: 1,
            intx: false,
            memory,
        };
        device.greet()?;
        device.query(doorbells)?;
        device.reset()?;
        device.map_memory()?;
        Ok(device)
    }

    /// The connection to the server.
    pub fn channel(&mut self) -> &mut Channel {
        &mut self.channel
    }

    /// The socket, to wait for messages.
    pub fn socket(&self) -> BorrowedFd<'_> {
        self.channel.as_fd()
    }

    /// Size in bytes of each BAR; 0 for an absent BAR.
    pub fn bar_sizes(&self) -> [u64; 6] {
        std::array::from_fn(|index| self.regions[index])
    }

    /// Size in bytes of configuration space.
    pub fn config_size(&self) -> u64 {
        self.regions[region_index::CONFIG as usize]
    }

    /// Whether doorbells are rung in a mapped page.
    pub fn has_pages(&self) -> bool {
        !self.pages.is_empty()
    }

    /// Negotiates the version of the protocol and the capabilities.
    fn greet(&mut self) -> Result<(), Error> {
        let capabilities = Some(Capabilities {
            max_msg_fds: Some(MAX_MSG_FDS as u64),
            max_data_xfer_size: Some(MAX_DATA_XFER as u64),
            max_dma_maps: Some(MAX_DMA_MAPS),
            pgsizes: Some(PAGE_SIZES),
            write_multiple: Some(false),
            twin_socket: None,
            migration: false,
        });
        let ours = Version { major: 0, minor: 1, capabilities };
        let command = Command::Version;
        let payload = self.ask(command, |out| ours.encode(out));
        let payload =
            payload.map_err(|error| error.perhaps("no vfio-user server, or it is in use"))?;
        let theirs = Version::decode(&payload).map_err(|why| self.channel.fail(command, why))?;
        if (theirs.major, theirs.minor.min(1)) != (0, theirs.minor) {
            let reason = format!("version '{}.{}': expected 0.1", theirs.major, theirs.minor);
            return Err(self.channel.fail(command, reason));
        }
        let offered = theirs.capabilities.unwrap_or_default();
        let fds = offered.max_msg_fds.unwrap_or(DEFAULT_MAX_MSG_FDS);
        self.most_fds = fds.clamp(1, MAX_MSG_FDS as u64) as usize;
        Ok(())
    }

    /// Queries the properties of the device, its regions and its interrupts.
    fn query(&mut self, doorbells: Doorbells) -> Result<(), Error> {
        let command = Command::DeviceGetInfo;
        let argsz = DeviceInfo::LENGTH as u32;
        let request = DeviceInfo { argsz, flags: 0, num_regions: 0, num_irqs: 0 };
        let payload = self.ask(command, |out| request.encode(out))?;
        let info = DeviceInfo::decode(&payload).map_err(|why| self.channel.fail(command, why))?;
        if info.flags & DEVICE_FLAGS_PCI == 0 {
            return Err(self.channel.fail(command, "the device is not a PCI device"));
        }
        let regions = region_index::CONFIG + 1..=MOST_INDEXES;
        if !regions.contains(&info.num_regions) || info.num_irqs > MOST_INDEXES {
            let (regions, types) = (info.num_regions, info.num_irqs);
            let reason = format!("invalid counts: {regions} regions, {types} interrupt types");
            return Err(self.channel.fail(command, reason));
        }
        self.resets = info.flags & DEVICE_FLAGS_RESET != 0;
        for index in 0..=region_index::CONFIG {
            self.look_at_region(index, doorbells)?;
        }
        // Host software of the client with memory uses MSI-X only.
        if self.memory.is_none() && info.num_irqs > irq_index::INTX {
            self.intx = self.signals(irq_index::INTX)? > 0;
        }
        if info.num_irqs > irq_index::MSIX {
            self.vectors = self.signals(irq_index::MSIX)?;
        }
        Ok(())
    }

    fn look_at_region(&mut self, index: u32, doorbells: Doorbells) -> Result<(), Error> {
        let command = Command::DeviceGetRegionInfo;
        let request = RegionInfo { argsz: REPLY_ROOM, index, ..RegionInfo::default() };
        let mut bytes = Vec::new();
        request.encode_request(&mut bytes);
        let (payload, fds) = self.channel.exchange(command, &bytes, &[])?;
        let fail = |why: String| self.channel.fail(command, format!("region {index}: {why}"));
        let info = RegionInfo::decode(&payload).map_err(|why| fail(why.to_string()))?;
        if info.index != index {
            return Err(fail(format!("the reply is about region {}", info.index)));
        }
        let is_bar = index <= region_index::BAR5;
        if is_bar && info.size != 0 && !(info.size.is_power_of_two() && info.size >= 16) {
            return Err(fail(format!("invalid size of a BAR: {:#x} bytes", info.size)));
        }
        let both = REGION_FLAG_READ | REGION_FLAG_WRITE;
        if index == region_index::CONFIG
            && !((LEAST_CONFIG..=MOST_CONFIG).contains(&info.size) && info.flags & both == both)
        {
            let reason = "configuration space is not 256 to 4096 bytes, readable and writable";
            return Err(fail(reason.to_owned()));
        }
        self.regions[index as usize] = info.size;
        let offered = index == u32::from(doorbell::BAR) && info.flags & REGION_FLAG_MMAP != 0;
        if !offered || doorbells == Doorbells::Message {
            return Ok(());
        }
        let whole = [SparseArea { offset: 0, size: info.size }];
        let areas = if info.areas.is_empty() { &whole[..] } else { &info.areas[..] };
        let Ok([file]) = <[_; 1]>::try_from(fds) else {
            return Err(fail("a mappable region needs exactly one descriptor".to_owned()));
        };
        // A file that is not memory could be on a file system that never answers. SPDK's target
        // creates the file in the folder of the socket.
        match doorbells {
            _ if file.is_memory() => {}
            Doorbells::Mapped => {
                let reason = "the page of doorbells is not in memory: give the server a folder on \
                    tmpfs, or use doorbells by message";
                return Err(fail(reason.to_owned()));
            }
            Doorbells::Auto | Doorbells::Message => return Ok(()),
        }
        let mut pages = Vec::new();
        for SparseArea { offset, size } in areas.iter().copied() {
            if offset.checked_add(size).is_none_or(|end| end > info.size) {
                let reason = format!("the area of {size:#x} bytes at {offset:#x} is not inside");
                return Err(fail(reason));
            }
            let at = info.offset.checked_add(offset);
            let mapping = at
                .ok_or(rustix::io::Errno::INVAL)
                .and_then(|at| Mapping::new(file.as_fd(), at, size, false, true));
            let mapping = mapping.map_err(|errno| fail(format!("mmap: {errno}")))?;
            pages.push(Page { offset, mapping });
        }
        self.pages = pages;
        Ok(())
    }

    /// Number of interrupts of a type that can have an eventfd.
    fn signals(&mut self, index: u32) -> Result<u32, Error> {
        let command = Command::DeviceGetIrqInfo;
        let request = IrqInfo { argsz: IrqInfo::LENGTH as u32, flags: 0, index, count: 0 };
        let payload = self.ask(command, |out| request.encode(out))?;
        let info = IrqInfo::decode(&payload).map_err(|why| self.channel.fail(command, why))?;
        if info.index != index || info.count > 2048 {
            let reason = format!("{} interrupts of type {}", info.count, info.index);
            return Err(self.channel.fail(command, reason));
        }
        Ok(if info.flags & IRQ_INFO_EVENTFD != 0 { info.count } else { 0 })
    }

    /// Resets the device, if the server supports it.
    pub fn reset(&mut self) -> Result<(), Error> {
        if self.resets {
            self.ask(Command::DeviceReset, |_| ())?;
        }
        Ok(())
    }

    fn map_memory(&mut self) -> Result<(), Error> {
        if let Some(memory) = self.memory.clone() {
            return self.map(memory.base, memory.size, &[memory.file()]);
        }
        let mapped = (0..WINDOWS).try_for_each(|number| self.map(number * WINDOW, WINDOW, &[]));
        let hint = "a device that insists on shared memory cannot be served";
        mapped.map_err(|error| error.hint(hint))
    }

    fn map(&mut self, address: u64, size: u64, fds: &[BorrowedFd<'_>]) -> Result<(), Error> {
        let flags = DMA_FLAG_READ | DMA_FLAG_WRITE;
        let mut bytes = Vec::new();
        DmaMap { flags, offset: 0, address, size }.encode(&mut bytes);
        self.channel.exchange(Command::DmaMap, &bytes, fds).map(drop)
    }

    /// Ends the device's access to host memory.
    pub fn unmap_memory(&mut self) -> Result<(), Error> {
        let Some(memory) = &self.memory else { return Ok(()) };
        let HostMemory { base: address, size, .. } = **memory;
        let unmap = DmaUnmap { argsz: DmaUnmap::LENGTH as u32, flags: 0, address, size };
        self.ask(Command::DmaUnmap, |out| unmap.encode(out)).map(drop)
    }

    /// Assigns eventfds to the MSI-X vectors from 0 on, with as many eventfds per message as the
    /// server accepts.
    pub fn set_msix(&mut self, fds: &[BorrowedFd<'_>]) -> Result<(), Error> {
        let (action, index) = (IrqAction::Trigger, irq_index::MSIX);
        for (number, some) in fds.chunks(self.most_fds).enumerate() {
            let (start, count) = ((number * self.most_fds) as u32, some.len() as u32);
            let mut bytes = Vec::new();
            IrqSet { data: IrqData::Eventfd, action, index, start, count }.encode(&mut bytes);
            self.channel.exchange(Command::DeviceSetIrqs, &bytes, some)?;
        }
        Ok(())
    }

    /// Removes all eventfds of MSI-X.
    pub fn clear_msix(&mut self) -> Result<(), Error> {
        let (action, index) = (IrqAction::Trigger, irq_index::MSIX);
        let none = IrqSet { data: IrqData::None, action, index, start: 0, count: 0 };
        self.ask(Command::DeviceSetIrqs, |out| none.encode(out)).map(drop)
    }

    /// Reads `count` bytes of a region, 1 to 8, little endian. `offset` is in bytes.
    pub fn read(&mut self, region: u32, offset: u64, count: u8) -> Result<u64, Error> {
        let command = Command::RegionRead;
        let request = RegionAccess { offset, region, count: count.into() };
        let payload = self.ask(command, |out| request.encode(out))?;
        let data = self.data(request, &payload)?;
        let mut value = [0; 8];
        value[..data.len()].copy_from_slice(&data);
        Ok(u64::from_le_bytes(value))
    }

    /// The bytes in the reply to a read.
    pub fn data(&self, request: RegionAccess, reply: &Bytes) -> Result<Bytes, Error> {
        let data = reply.len().checked_sub(RegionAccess::LENGTH);
        if RegionAccess::decode(reply) != Ok(request) || data != Some(request.count as usize) {
            let RegionAccess { offset, region, count } = request;
            let reason =
                format!("the reply does not match {count} bytes at {offset:#x} of region {region}");
            return Err(self.channel.fail(Command::RegionRead, reason));
        }
        Ok(reply.slice(RegionAccess::LENGTH..))
    }

    /// Sends a read without waiting; [`Channel::next_answer`] returns the reply with this ID.
    pub fn request_read(&mut self, access: RegionAccess) -> Result<u16, Error> {
        let mut bytes = Vec::new();
        access.encode(&mut bytes);
        self.channel.request(Command::RegionRead, &bytes, &[])
    }

    /// Sends a write without waiting; [`Channel::next_answer`] returns the reply with this ID.
    pub fn request_write(&mut self, region: u32, offset: u64, data: &[u8]) -> Result<u16, Error> {
        let mut bytes = Vec::new();
        RegionAccess { offset, region, count: data.len() as u32 }.encode(&mut bytes);
        bytes.extend_from_slice(data);
        self.channel.request(Command::RegionWrite, &bytes, &[])
    }

    /// Sends a reset without waiting; `None` if the server supports none.
    pub fn request_reset(&mut self) -> Result<Option<u16>, Error> {
        let request = |channel: &mut Channel| channel.request(Command::DeviceReset, &[], &[]);
        self.resets.then(|| request(&mut self.channel)).transpose()
    }

    /// Assigns eventfds to the interrupts of a type without waiting.
    pub fn request_signals(&mut self, index: u32, fds: &[BorrowedFd<'_>]) -> Result<(), Error> {
        for (part, some) in fds.chunks(self.most_fds).enumerate() {
            let start = (part * self.most_fds) as u32;
            self.request_irqs(IrqData::Eventfd, IrqAction::Trigger, (index, start), some)?;
        }
        Ok(())
    }

    /// Takes the eventfds of a type back, without waiting.
    pub fn request_no_signals(&mut self, index: u32) -> Result<u16, Error> {
        self.request_irqs(IrqData::None, IrqAction::Trigger, (index, 0), &[])
    }

    fn request_irqs(
        &mut self,
        data: IrqData,
        action: IrqAction,
        (index, start): (u32, u32),
        fds: &[BorrowedFd<'_>],
    ) -> Result<u16, Error> {
        let mut bytes = Vec::new();
        // Unmasking INTx needs no descriptor.
        let count = if action == IrqAction::Unmask { 1 } else { fds.len() as u32 };
        IrqSet { data, action, index, start, count }.encode(&mut bytes);
        self.channel.request(Command::DeviceSetIrqs, &bytes, fds)
    }

    /// Unmasks INTx without waiting: the server masks it at each interrupt.
    pub fn request_unmask(&mut self) -> Result<u16, Error> {
        self.request_irqs(IrqData::None, IrqAction::Unmask, (irq_index::INTX, 0), &[])
    }

    /// Writes `count` bytes of a region, 1 to 8, little endian. `offset` is in bytes. The reply is
    /// checked when it arrives.
    pub fn write(&mut self, region: u32, offset: u64, count: u8, value: u64) -> Result<(), Error> {
        let bytes = &value.to_le_bytes()[..usize::from(count)];
        let is_doorbell = region == u32::from(doorbell::BAR) && offset >= doorbell::OFFSET;
        let inside = |page: &&Page| is_doorbell && count == 4 && offset >= page.offset;
        for Page { offset: start, mapping } in self.pages.iter().filter(inside) {
            if mapping.is_dead() {
                return Err(self.channel.error("the server removed its page of doorbells"));
            }
            if mapping.write((offset - start) as usize, bytes).is_some() {
                return Ok(());
            }
        }
        let mut payload = Vec::new();
        RegionAccess { offset, region, count: count.into() }.encode(&mut payload);
        payload.extend_from_slice(bytes);
        self.channel.post(Command::RegionWrite, &payload)
    }

    fn ask(
        &mut self,
        command: Command,
        encode: impl FnOnce(&mut Vec<u8>),
    ) -> Result<bytes::Bytes, Error> {
        let mut bytes = Vec::new();
        encode(&mut bytes);
        self.channel.exchange(command, &bytes, &[]).map(|(payload, _)| payload)
    }
}
