//! Controller registers (section 3.1, figures 68 to 80).

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
/// The first doorbell: submission queue 0's tail.
pub const DOORBELLS: u64 = 0x1000;

/// What written to NSSR asks for a subsystem reset: "NVMe" (figure 79).
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
    /// The doorbell at a byte offset in the BAR, with stride 4 (DSTRD 0).
    /// `None` below the doorbells, off their alignment, or past queue 65535.
    pub const fn at(offset: u64) -> Option<Self> {
        if offset < DOORBELLS || !offset.is_multiple_of(4) {
            return None;
        }
        let index = (offset - DOORBELLS) / 4;
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

    /// Its byte offset in the BAR for the stride `4 << dstrd`.
    pub const fn offset(self, dstrd: u8) -> u64 {
        let index = match self {
            Self::SubmissionTail(queue) => queue as u64 * 2,
            Self::CompletionHead(queue) => queue as u64 * 2 + 1,
        };
        DOORBELLS + (index << (dstrd & 15)) * 4
    }
}

/// CAP (figure 69).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Capabilities {
    /// MQES: entries of the largest I/O queue, 0's based.
    pub max_queue_entries: u16,
    /// CQR: queues must be physically contiguous.
    pub contiguous_queues: bool,
    /// AMS, 2 bits: arbitration mechanisms beside round robin.
    pub arbitration: u8,
    /// TO: the longest time to become ready or not, in 500 ms.
    pub timeout: u8,
    /// DSTRD, 4 bits: doorbell stride 2^(2 + DSTRD) bytes.
    pub doorbell_stride: u8,
    /// NSSRS: subsystem reset is supported.
    pub subsystem_reset: bool,
    /// CSS, 8 bits: command sets; bit 0 is the NVM command set.
    pub command_sets: u8,
    /// MPSMIN, 4 bits: smallest memory page 2^(12 + MPSMIN) bytes.
    pub min_page: u8,
    /// MPSMAX, 4 bits: largest memory page 2^(12 + MPSMAX) bytes.
    pub max_page: u8,
}

impl Capabilities {
    /// From the register.
    pub const fn from_bits(bits: u64) -> Self {
        Self {
            max_queue_entries: bits as u16,
            contiguous_queues: bits >> 16 & 1 != 0,
            arbitration: (bits >> 17) as u8 & 3,
            timeout: (bits >> 24) as u8,
            doorbell_stride: (bits >> 32) as u8 & 15,
            subsystem_reset: bits >> 36 & 1 != 0,
            command_sets: (bits >> 37) as u8,
            min_page: (bits >> 48) as u8 & 15,
            max_page: (bits >> 52) as u8 & 15,
        }
    }

    /// As the register.
    pub const fn bits(self) -> u64 {
        self.max_queue_entries as u64
            | (self.contiguous_queues as u64) << 16
            | (self.arbitration as u64 & 3) << 17
            | (self.timeout as u64) << 24
            | (self.doorbell_stride as u64 & 15) << 32
            | (self.subsystem_reset as u64) << 36
            | (self.command_sets as u64) << 37
            | (self.min_page as u64 & 15) << 48
            | (self.max_page as u64 & 15) << 52
    }
}

/// SHN, shutdown notification in CC (figure 73).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShutdownNotice {
    /// 00b.
    #[default]
    None,
    /// 01b.
    Normal,
    /// 10b.
    Abrupt,
    /// 11b.
    Reserved,
}

/// CC (figure 73).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Configuration {
    /// EN.
    pub enable: bool,
    /// CSS, 3 bits: the command set selected, 0 for NVM.
    pub command_set: u8,
    /// MPS, 4 bits: memory page of 2^(12 + MPS) bytes.
    pub page: u8,
    /// AMS, 3 bits: arbitration mechanism, 0 for round robin.
    pub arbitration: u8,
    /// SHN.
    pub shutdown: ShutdownNotice,
    /// IOSQES, 4 bits: submission entry size as a power of two.
    pub sq_entry_size: u8,
    /// IOCQES, 4 bits: completion entry size as a power of two.
    pub cq_entry_size: u8,
}

impl Configuration {
    /// From the register.
    pub const fn from_bits(bits: u32) -> Self {
        Self {
            enable: bits & 1 != 0,
            command_set: (bits >> 4) as u8 & 7,
            page: (bits >> 7) as u8 & 15,
            arbitration: (bits >> 11) as u8 & 7,
            shutdown: match bits >> 14 & 3 {
                0 => ShutdownNotice::None,
                1 => ShutdownNotice::Normal,
                2 => ShutdownNotice::Abrupt,
                _ => ShutdownNotice::Reserved,
            },
            sq_entry_size: (bits >> 16) as u8 & 15,
            cq_entry_size: (bits >> 20) as u8 & 15,
        }
    }

    /// As the register.
    pub const fn bits(self) -> u32 {
        self.enable as u32
            | (self.command_set as u32 & 7) << 4
            | (self.page as u32 & 15) << 7
            | (self.arbitration as u32 & 7) << 11
            | (self.shutdown as u32) << 14
            | (self.sq_entry_size as u32 & 15) << 16
            | (self.cq_entry_size as u32 & 15) << 20
    }
}

/// SHST, shutdown status in CSTS (figure 74).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ShutdownStatus {
    /// 00b: normal operation.
    #[default]
    Normal,
    /// 01b.
    Occurring,
    /// 10b.
    Complete,
    /// 11b.
    Reserved,
}

/// CSTS (figure 74).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ControllerStatus {
    /// RDY.
    pub ready: bool,
    /// CFS: a fatal error; only a reset helps.
    pub fatal: bool,
    /// SHST.
    pub shutdown: ShutdownStatus,
}

impl ControllerStatus {
    /// From the register.
    pub const fn from_bits(bits: u32) -> Self {
        Self {
            ready: bits & 1 != 0,
            fatal: bits & 2 != 0,
            shutdown: match bits >> 2 & 3 {
                0 => ShutdownStatus::Normal,
                1 => ShutdownStatus::Occurring,
                2 => ShutdownStatus::Complete,
                _ => ShutdownStatus::Reserved,
            },
        }
    }

    /// As the register.
    pub const fn bits(self) -> u32 {
        self.ready as u32 | (self.fatal as u32) << 1 | (self.shutdown as u32) << 2
    }
}

/// AQA (figure 76). Both sizes are 0's based, 12 bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct AdminQueueAttributes {
    /// ASQS.
    pub sq_size: u16,
    /// ACQS.
    pub cq_size: u16,
}

impl AdminQueueAttributes {
    /// From the register.
    pub const fn from_bits(bits: u32) -> Self {
        Self { sq_size: bits as u16 & 0xfff, cq_size: (bits >> 16) as u16 & 0xfff }
    }

    /// As the register.
    pub const fn bits(self) -> u32 {
        (self.sq_size as u32 & 0xfff) | (self.cq_size as u32 & 0xfff) << 16
    }
}
