//! Controller registers (section 3.1, figures 68 to 80).

use crate::macros::Bits;

/// CAP, controller capabilities: 64 bits.
pub const CAP: u64 = 0x00;
/// VS, version.
pub const VS: u64 = 0x08;
/// INTMS, interrupt mask set.
pub const INTMS: u64 = 0x0c;
/// INTMC, interrupt mask clear.
pub const INTMC: u64 = 0x10;
/// CC, controller configuration.
pub const CC: u64 = 0x14;
/// CSTS, controller status.
pub const CSTS: u64 = 0x1c;
/// NSSR, NVM subsystem reset.
pub const NSSR: u64 = 0x20;
/// AQA, admin queue attributes.
pub const AQA: u64 = 0x24;
/// ASQ, admin submission queue base address: 64 bits.
pub const ASQ: u64 = 0x28;
/// ACQ, admin completion queue base address: 64 bits.
pub const ACQ: u64 = 0x30;
/// The first doorbell: the tail of submission queue 0.
pub const DOORBELLS: u64 = 0x1000;

/// The value of NSSR that requests a subsystem reset: "NVMe" (figure 79).
pub const NSSR_VALUE: u32 = 0x4e56_4d65;

/// Version 1.4.0 as VS shows it (figure 70).
pub const VERSION_1_4: u32 = 0x0001_0400;

/// A doorbell (sections 3.1.17 and 3.1.18).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Doorbell {
    /// The tail of a submission queue.
    SubmissionTail(u16),
    /// The head of a completion queue.
    CompletionHead(u16),
}

impl Doorbell {
    /// The doorbell at a byte offset in the BAR, for the stride `4 << dstrd`. `None` below the
    /// doorbells, misaligned, or after queue 65535.
    pub const fn at(offset: u64, dstrd: u8) -> Option<Self> {
        let stride = 4 << (dstrd & 15);
        if offset < DOORBELLS || !(offset - DOORBELLS).is_multiple_of(stride) {
            return None;
        }
        let index = (offset - DOORBELLS) / stride;
        if index / 2 > 0xffff {
            return None;
        }
        let queue = (index / 2) as u16;
        Some(if index.is_multiple_of(2) {
            Self::SubmissionTail(queue)
        } else {
            Self::CompletionHead(queue)
        })
    }

    /// The byte offset of the doorbell in the BAR for the stride `4 << dstrd`.
    pub const fn offset(self, dstrd: u8) -> u64 {
        let index = match self {
            Self::SubmissionTail(queue) => queue as u64 * 2,
            Self::CompletionHead(queue) => queue as u64 * 2 + 1,
        };
        DOORBELLS + (index << (dstrd & 15)) * 4
    }
}

register! {
    /// CAP (figure 69).
    pub struct Capabilities: u64, {
        /// MQES: entries of the largest I/O queue, 0's based.
        max_queue_entries: u16 = [0, 16],
        /// CQR: queues must be physically contiguous.
        contiguous_queues: bool = [16, 1],
        /// AMS, 2 bits: arbitration mechanisms in addition to round robin.
        arbitration: u8 = [17, 2],
        /// TO: the longest time until CSTS.RDY follows CC.EN, in units of 500 ms.
        timeout: u8 = [24, 8],
        /// DSTRD, 4 bits: doorbell stride 2^(2 + DSTRD) bytes.
        doorbell_stride: u8 = [32, 4],
        /// NSSRS: subsystem reset is supported.
        subsystem_reset: bool = [36, 1],
        /// CSS, 8 bits: command sets; bit 0 is the NVM command set.
        command_sets: u8 = [37, 8],
        /// MPSMIN, 4 bits: smallest memory page 2^(12 + MPSMIN) bytes.
        min_page: u8 = [48, 4],
        /// MPSMAX, 4 bits: largest memory page 2^(12 + MPSMAX) bytes.
        max_page: u8 = [52, 4],
    }
}

numbers! {
    /// SHN, shutdown notification in CC (figure 73).
    pub enum ShutdownNotice: u8 {
        /// 00b.
        None = 0,
        /// 01b.
        Normal = 1,
        /// 10b.
        Abrupt = 2,
        /// 11b.
        Reserved = 3,
    }
}

impl Bits for ShutdownNotice {
    fn from_field(bits: u64) -> Self {
        Self::ALL[bits as usize]
    }
}

register! {
    /// CC (figure 73).
    pub struct Configuration: u32, {
        /// EN.
        enable: bool = [0, 1],
        /// CSS, 3 bits: the command set selected, 0 for NVM.
        command_set: u8 = [4, 3],
        /// MPS, 4 bits: memory page of 2^(12 + MPS) bytes.
        page: u8 = [7, 4],
        /// AMS, 3 bits: arbitration mechanism, 0 for round robin.
        arbitration: u8 = [11, 3],
        /// SHN.
        shutdown: ShutdownNotice = [14, 2],
        /// IOSQES, 4 bits: submission entry size as a power of two.
        sq_entry_size: u8 = [16, 4],
        /// IOCQES, 4 bits: completion entry size as a power of two.
        cq_entry_size: u8 = [20, 4],
    }
}

numbers! {
    /// SHST, shutdown status in CSTS (figure 74).
    pub enum ShutdownStatus: u8 {
        /// 00b: normal operation.
        Normal = 0,
        /// 01b.
        Occurring = 1,
        /// 10b.
        Complete = 2,
        /// 11b.
        Reserved = 3,
    }
}

impl Bits for ShutdownStatus {
    fn from_field(bits: u64) -> Self {
        Self::ALL[bits as usize]
    }
}

register! {
    /// CSTS (figure 74).
    pub struct ControllerStatus: u32, {
        /// RDY.
        ready: bool = [0, 1],
        /// CFS: a fatal error, after which the host must reset the controller.
        fatal: bool = [1, 1],
        /// SHST.
        shutdown: ShutdownStatus = [2, 2],
    }
}

register! {
    /// AQA (figure 76). Both sizes are 0's based, 12 bits.
    pub struct AdminQueueAttributes: u32, {
        /// ASQS.
        sq_size: u16 = [0, 12],
        /// ACQS.
        cq_size: u16 = [16, 12],
    }
}
