//! Commands that are answered at once: all except region accesses and resets.

use super::{Session, State};
use crate::connection::{Incoming, Outgoing};
use crate::guest::{MAX_RANGES, Rights};
use crate::mapping::PAGE;
use crate::{MAX_DATA_XFER, MAX_MSG_FDS, doorbell};
use rustix::fd::OwnedFd;
use rustix::io::Errno;
use std::num::NonZeroU32;
use wire::Instant;
use wire::vfio_user::{
    Capabilities, Command, DEFAULT_MAX_DATA_XFER_SIZE, DEVICE_FLAGS_PCI, DEVICE_FLAGS_RESET,
    DMA_FLAG_READ, DMA_FLAG_WRITE, DMA_UNMAP_FLAG_ALL, DeviceInfo, DmaMap, DmaUnmap, Header,
    IrqInfo, IrqSet, Malformed, REGION_FLAG_MMAP, REGION_FLAG_READ, REGION_FLAG_WRITE, RegionInfo,
    RegionIoFds, SparseArea, Version, irq_index, region_index,
};

/// The supported version of the vfio-user protocol.
const MAJOR: u16 = 0;
const MINOR: u16 = 1;

/// VFIO_USER_F_DMA_REGION_MMAP of newer libvfio-user headers. It is ignored, because the descriptor
/// tells whether the range can be mapped.
const DMA_FLAG_MMAP: u32 = 1 << 2;

/// The smallest `max_data_xfer_size` in bytes that a client may offer.
const MIN_DATA_XFER: u64 = 4096;

/// The payload and the descriptors of a reply, or the errno of an error reply.
type Answer = Result<(Vec<u8>, Vec<OwnedFd>), Errno>;

fn payload(encode: impl FnOnce(&mut Vec<u8>)) -> Answer {
    let mut out = Vec::new();
    encode(&mut out);
    Ok((out, Vec::new()))
}

/// The errno for a malformed payload.
fn invalid(_: Malformed) -> Errno {
    Errno::INVAL
}

impl Session {
    /// Executes a command. A region access or reset becomes the current command, with this
    /// deadline.
    pub(super) fn command(&mut self, now: Instant, deadline: Instant, mut message: Incoming) {
        let header = message.header;
        let command = Command::from_number(header.command);
        let greeted = self.client.state == State::Ready;
        let answer = match command {
            _ if message.refusal.is_some() => Err(message.refusal.unwrap_or(Errno::INVAL)),
            None => Err(Errno::NOSYS),
            Some(Command::Version) if greeted => Err(Errno::INVAL),
            Some(Command::Version) => self.version(&message),
            Some(_) if !greeted => Err(Errno::INVAL),
            Some(Command::DmaMap) => self.dma_map(message),
            Some(Command::DmaUnmap) => self.dma_unmap(&message),
            Some(Command::DeviceGetInfo) => Self::device_info(&message),
            Some(Command::DeviceGetRegionInfo) => self.region_info(&message),
            Some(Command::DeviceGetRegionIoFds) => Self::region_io_fds(&message),
            Some(Command::DeviceGetIrqInfo) => self.irq_info(&message),
            Some(Command::DeviceSetIrqs) => self.set_irqs(message),
            Some(
                command @ (Command::RegionRead
                | Command::RegionWrite
                | Command::RegionWriteMulti
                | Command::DeviceReset),
            ) => match self.begin(command, &mut message, deadline) {
                Ok(current) => {
                    // A doorbell store that the client made before it sent this message takes
                    // effect first.
                    self.poll_doorbells();
                    self.step(now, current);
                    return;
                }
                Err(errno) => Err(errno),
            },
            Some(
                Command::DmaRead
                | Command::DmaWrite
                | Command::DirtyPages
                | Command::DeviceFeature
                | Command::MigDataRead
                | Command::MigDataWrite,
            ) => Err(Errno::NOTSUP),
        };
        self.answer(&header, answer);
    }

    /// Sends the reply, unless the command requests none.
    pub(super) fn answer(&mut self, header: &Header, answer: Answer) {
        let message = match answer {
            Ok(_) if header.no_reply => return,
            Ok((payload, fds)) => {
                let mut bytes = Vec::with_capacity(Header::SIZE + payload.len());
                bytes.extend_from_slice(&header.reply(payload.len()).encode());
                bytes.extend_from_slice(&payload);
                Outgoing { bytes, fds }
            }
            Err(errno) => {
                self.counters.refused += 1;
                let errno = NonZeroU32::new(errno.raw_os_error() as u32);
                let errno = errno.unwrap_or(NonZeroU32::MIN);
                Outgoing::new(header.error_reply(errno).encode().to_vec())
            }
        };
        if !header.no_reply {
            self.send(message);
        }
    }

    fn version(&mut self, message: &Incoming) -> Answer {
        let theirs = Version::decode(&message.payload).map_err(invalid)?;
        if theirs.major != MAJOR {
            return Err(Errno::PROTONOSUPPORT);
        }
        let minor = theirs.minor.min(MINOR);
        let offered = theirs.capabilities.clone().unwrap_or_default();
        let xfer = offered.max_data_xfer_size.unwrap_or(DEFAULT_MAX_DATA_XFER_SIZE);
        if xfer < MIN_DATA_XFER {
            return Err(Errno::INVAL);
        }
        let xfer = xfer.min(MAX_DATA_XFER as u64);
        self.client_xfer = xfer as usize;
        self.client.state = State::Ready;
        // The reply contains only capabilities that the client offered, and none if the client sent
        // no JSON. QEMU also uses the replied max_data_xfer_size as the limit of its own messages.
        let capabilities = theirs.capabilities.map(|offered| Capabilities {
            max_msg_fds: offered.max_msg_fds.map(|_| MAX_MSG_FDS as u64),
            max_data_xfer_size: offered.max_data_xfer_size.map(|_| xfer),
            max_dma_maps: offered.max_dma_maps.map(|maps| maps.min(MAX_RANGES as u64)),
            pgsizes: offered.pgsizes.map(|_| PAGE as u64),
            write_multiple: offered.write_multiple.filter(|offered| *offered),
            twin_socket: None,
            migration: false,
        });
        let reply = Version { major: MAJOR, minor, capabilities };
        payload(|out| reply.encode(out))
    }

    fn dma_map(&mut self, mut message: Incoming) -> Answer {
        let map = DmaMap::decode(&message.payload).map_err(invalid)?;
        let known = DMA_FLAG_READ | DMA_FLAG_WRITE | DMA_FLAG_MMAP;
        if map.flags & !known != 0 || message.fds.len() > 1 {
            return Err(Errno::INVAL);
        }
        let rights =
            Rights { read: map.flags & DMA_FLAG_READ != 0, write: map.flags & DMA_FLAG_WRITE != 0 };
        let file = message.fds.pop().map(|file| (file, map.offset));
        self.memory.map(map.address, map.size, rights, file)?;
        self.remap(map.address..map.address.saturating_add(map.size));
        Ok((Vec::new(), Vec::new()))
    }

    /// Unmaps a range. A descriptor in the message, as SPDK sends it, is closed when the message is
    /// dropped.
    fn dma_unmap(&mut self, message: &Incoming) -> Answer {
        let unmap = DmaUnmap::decode(&message.payload).map_err(invalid)?;
        let end = unmap.address.saturating_add(unmap.size);
        match unmap.flags {
            0 => {
                self.unmapper.disposal().dispose(self.memory.unmap(unmap.address, unmap.size)?);
                self.remap(unmap.address..end);
            }
            DMA_UNMAP_FLAG_ALL => {
                self.unmapper.disposal().dispose(self.memory.clear());
                self.remap(0..u64::MAX);
            }
            _ => return Err(Errno::INVAL),
        }
        payload(|out| DmaUnmap { argsz: DmaUnmap::LENGTH as u32, ..unmap }.encode(out))
    }

    fn device_info(message: &Incoming) -> Answer {
        let request = DeviceInfo::decode(&message.payload).map_err(invalid)?;
        if (request.argsz as usize) < DeviceInfo::LENGTH {
            return Err(Errno::INVAL);
        }
        let info = DeviceInfo {
            argsz: DeviceInfo::LENGTH as u32,
            flags: DEVICE_FLAGS_RESET | DEVICE_FLAGS_PCI,
            num_regions: region_index::COUNT,
            num_irqs: irq_index::COUNT,
        };
        payload(|out| info.encode(out))
    }

    /// Size of a region in bytes; 0 if the region does not exist.
    pub(super) fn region_size(&self, region: u32) -> u64 {
        match region {
            0..=region_index::BAR5 => self.info.bars[region as usize].map_or(0, |bar| bar.size),
            region_index::CONFIG => self.info.config.len() as u64,
            _ => 0,
        }
    }

    fn region_info(&self, message: &Incoming) -> Answer {
        let request = RegionInfo::decode(&message.payload).map_err(invalid)?;
        let argsz = request.argsz as usize;
        if argsz < RegionInfo::LENGTH || request.index >= region_index::COUNT {
            return Err(Errno::INVAL);
        }
        let size = self.region_size(request.index);
        let mut info = RegionInfo { index: request.index, size, ..RegionInfo::default() };
        if size > 0 {
            info.flags = REGION_FLAG_READ | REGION_FLAG_WRITE;
        }
        let shared = self.doorbells.as_ref();
        let Some(doorbells) = shared.filter(|_| u32::from(doorbell::BAR) == request.index) else {
            return payload(|out| info.encode_reply(request.argsz, out));
        };
        info.flags |= REGION_FLAG_MMAP;
        info.areas = vec![SparseArea { offset: doorbell::OFFSET, size: doorbell::LENGTH }];
        let mut out = Vec::new();
        info.encode_reply(request.argsz, &mut out);
        // The sparse area tells the client what can be mapped. Without the area in the reply there
        // is no descriptor.
        let whole = out.len() > RegionInfo::LENGTH;
        let fd = whole.then(|| doorbells.file().try_clone_to_owned()).transpose();
        let fd = fd.map_err(|_| Errno::MFILE)?;
        Ok((out, fd.into_iter().collect()))
    }

    /// Answers VFIO_USER_DEVICE_GET_REGION_IO_FDS without descriptors, because an access through a
    /// descriptor would overtake earlier messages.
    fn region_io_fds(message: &Incoming) -> Answer {
        let request = RegionIoFds::decode(&message.payload).map_err(invalid)?;
        if (request.argsz as usize) < RegionIoFds::LENGTH || request.index >= region_index::COUNT {
            return Err(Errno::INVAL);
        }
        let none = RegionIoFds {
            argsz: RegionIoFds::LENGTH as u32,
            index: request.index,
            ..RegionIoFds::default()
        };
        payload(|out| none.encode(out))
    }

    fn irq_info(&self, message: &Incoming) -> Answer {
        let request = IrqInfo::decode(&message.payload).map_err(invalid)?;
        if (request.argsz as usize) < IrqInfo::LENGTH {
            return Err(Errno::INVAL);
        }
        let info = self.interrupts.info(request.index).ok_or(Errno::INVAL)?;
        payload(|out| info.encode(out))
    }

    fn set_irqs(&mut self, message: Incoming) -> Answer {
        let set = IrqSet::decode(&message.payload).map_err(invalid)?;
        let result = self.interrupts.set(&set, message.fds);
        self.update_msix();
        result.map(|()| (Vec::new(), Vec::new()))
    }
}
