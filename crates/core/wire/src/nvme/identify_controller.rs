//! The Identify Controller data structure (section 5.15.2.2, figure 247).

use super::IDENTIFY;

layout! {
    /// Power state descriptor (figure 248). Other fields are zero. Relative values are 0 (best) to
    /// NPSS.
    #[derive(Default)]
    pub struct PowerState: 32, {
        /// MP, maximum power in units of 10 mW.
        max_power: u16 = 0,
        /// ENLAT, entry latency in microseconds.
        entry_latency: u32 = 4,
        /// EXLAT, exit latency in microseconds.
        exit_latency: u32 = 8,
        /// RRT, relative read throughput.
        read_throughput: u8 = 12,
        /// RRL, relative read latency.
        read_latency: u8 = 13,
        /// RWT, relative write throughput.
        write_throughput: u8 = 14,
        /// RWL, relative write latency.
        write_latency: u8 = 15,
    }
}

layout! {
    decode encode
    /// Identify Controller data. Other fields are zero.
    pub struct IdentifyController: IDENTIFY, {
        /// VID, PCI vendor ID.
        vendor: u16 = 0,
        /// SSVID, PCI subsystem vendor ID.
        subsystem_vendor: u16 = 2,
        /// SN, serial number, ASCII.
        serial: [u8; 20] = 4,
        /// MN, model number, ASCII.
        model: [u8; 40] = 24,
        /// FR, firmware revision, ASCII.
        firmware: [u8; 8] = 64,
        /// RAB, recommended arbitration burst: a power of two.
        arbitration_burst: u8 = 72,
        /// IEEE OUI.
        ieee: [u8; 3] = 73,
        /// CMIC, multi-path: bit 1, the subsystem may have several controllers; bit 3, asymmetric
        /// namespace access is reported.
        multi_path: u8 = 76,
        /// MDTS, largest transfer: 2^MDTS times the smallest memory page; 0 for no limit.
        max_transfer: u8 = 77,
        /// CNTLID, controller ID.
        controller_id: u16 = 78,
        /// VER, version as in VS.
        version: u32 = 80,
        /// RTD3R, RTD3 resume latency in microseconds.
        rtd3_resume: u32 = 84,
        /// RTD3E, RTD3 entry latency in microseconds.
        rtd3_entry: u32 = 88,
        /// OAES, optional asynchronous events supported.
        async_events: u32 = 92,
        /// CTRATT, controller attributes: see [`controller_attribute`].
        attributes: u32 = 96,
        /// CNTRLTYPE: 1 is an I/O controller.
        controller_type: u8 = 111,
        /// OACS, optional admin commands: bit 0 Security Send and Receive, bit 2 Firmware Commit
        /// and Image Download, bit 4 Device Self-test.
        admin_commands: u16 = 256,
        /// ACL, abort command limit, 0's based.
        abort_limit: u8 = 258,
        /// AERL, asynchronous event request limit, 0's based.
        async_event_limit: u8 = 259,
        /// FRMW, firmware slots: bit 0, slot 1 is read only; bits 3:1, number of slots; bit 4,
        /// activation without reset.
        firmware_slots: u8 = 260,
        /// LPA, log page attributes: bit 1 effects log, bit 2 extended data,
        /// bit 3 telemetry, bit 4 persistent event log.
        log_page_attributes: u8 = 261,
        /// ELPE, error log entries, 0's based.
        error_log_entries: u8 = 262,
        /// NPSS, power states, 0's based.
        power_states: u8 = 263,
        /// AVSCC, bit 0: vendor specific admin commands use the standard format.
        vendor_admin: u8 = 264,
        /// WCTEMP, warning composite temperature in kelvin.
        warning_temperature: u16 = 266,
        /// CCTEMP, critical composite temperature in kelvin.
        critical_temperature: u16 = 268,
        /// TNVMCAP, total capacity in bytes.
        total_capacity: u128 = 280,
        /// UNVMCAP, unallocated capacity in bytes.
        unallocated_capacity: u128 = 296,
        /// EDSTT, duration of an extended device self-test, in minutes.
        self_test_minutes: u16 = 316,
        /// DSTO: bit 0, one device self-test at a time in the subsystem.
        self_test_options: u8 = 318,
        /// FWUG, granularity of firmware downloads in units of 4 KiB; FFh for no restriction.
        firmware_granularity: u8 = 319,
        /// KAS, granularity of the Keep Alive Timer in units of 100 ms; 0 if not supported.
        keep_alive: u16 = 320,
        /// SANICAP: bit 0, crypto erase; bit 1, block erase; bit 2, overwrite; bits 31:30, whether
        /// an operation without deallocation modifies the media when it ends (01b: no).
        sanitize: u32 = 328,
        /// ANATT, longest time of a change of access to a group, in seconds.
        access_transition: u8 = 342,
        /// ANACAP: bits 4:0, Optimized, Non-Optimized, Inaccessible, Persistent Loss and Change are
        /// reported; bit 6, the group of an attached namespace does not change; bit 7, hosts choose
        /// the group of a namespace to create.
        access_capabilities: u8 = 343,
        /// ANAGRPMAX, the largest ANA group identifier; 0 without reports of access.
        max_access_group: u32 = 344,
        /// NANAGRPID, number of ANA groups.
        access_groups: u32 = 348,
        /// PELS, largest size of the Persistent Event log in units of 64 KiB.
        persistent_log: u32 = 352,
        /// SQES: smallest submission entry in 3:0, largest in 7:4, as powers of two.
        sq_entry_size: u8 = 512,
        /// CQES: smallest completion entry in 3:0, largest in 7:4, as powers of two.
        cq_entry_size: u8 = 513,
        /// MAXCMD, the recommended maximum number of outstanding commands per queue.
        max_commands: u16 = 514,
        /// NN, the largest namespace ID.
        namespaces: u32 = 516,
        /// ONCS, optional NVM commands: see [`nvm_command`].
        nvm_commands: u16 = 520,
        /// FUSES, fused operations: bit 0, Compare and Write.
        fused: u16 = 522,
        /// VWC: bit 0, a volatile write cache is present; bits 2:1, Flush with the broadcast NSID
        /// (11b: it flushes all namespaces).
        write_cache: u8 = 525,
        /// AWUN, atomic write unit in blocks, 0's based.
        atomic_write: u16 = 526,
        /// AWUPF, atomic write unit across a power failure in blocks, 0's based.
        atomic_write_power_fail: u16 = 528,
        /// NWPC: bit 0, namespaces can be write protected.
        write_protection: u8 = 531,
        /// ACWU, atomic compare and write unit in blocks, 0's based.
        atomic_compare_and_write: u16 = 532,
        /// OCFS, copy formats: bit 0, format 0h (NVM Command Set 1.0, figure 101).
        copy_formats: u16 = 534,
        /// SGLS: see [`sgl_support`].
        sgl: u32 = 536,
        /// MNAN, the maximum number of namespaces, at most NN; 0 for NN. With reports of access, not
        /// 0.
        max_namespaces: u32 = 540,
        /// SUBNQN, subsystem NQN: UTF-8, ended by a zero.
        subsystem_nqn: [u8; 256] = 768,
        /// PSD0 to PSD2, the power state descriptors.
        power_state: [PowerState; 3] = 2048,
    }
}

/// Bits of SGLS (figure 247).
pub mod sgl_support {
    /// SGLs are supported; data blocks need double word alignment and granularity (bits 1:0, 10b).
    pub const DOUBLE_WORDS: u32 = 0b10;
    /// Bit bucket descriptors.
    pub const BIT_BUCKET: u32 = 1 << 16;
    /// A contiguous metadata buffer may begin at any byte address.
    pub const METADATA_BYTES: u32 = 1 << 17;
    /// An SGL may be longer than the data.
    pub const LONGER: u32 = 1 << 18;
    /// MPTR may be the address of an SGL segment with exactly one descriptor.
    pub const METADATA_SEGMENT: u32 = 1 << 19;
}

/// Bits of CTRATT (figure 247; bit 18: NVM Express 2.1, figure 312).
pub mod controller_attribute {
    /// Host Identifiers of 128 bits.
    pub const EXTENDED_HOST_IDENTIFIER: u32 = 1;
    /// RHII: reservations need a Host Identifier other than 0.
    pub const RESERVATIONS_NEED_HOST_IDENTIFIER: u32 = 1 << 18;
}

/// Bits of ONCS (figure 247; Copy of the base specification 2.0, figure 275).
pub mod nvm_command {
    /// Compare.
    pub const COMPARE: u16 = 1;
    /// Write Uncorrectable.
    pub const WRITE_UNCORRECTABLE: u16 = 1 << 1;
    /// Dataset Management.
    pub const DATASET_MANAGEMENT: u16 = 1 << 2;
    /// Write Zeroes.
    pub const WRITE_ZEROES: u16 = 1 << 3;
    /// Save in Set Features, and Select in Get Features.
    pub const SAVE_AND_SELECT: u16 = 1 << 4;
    /// Reservations.
    pub const RESERVATIONS: u16 = 1 << 5;
    /// Timestamp.
    pub const TIMESTAMP: u16 = 1 << 6;
    /// Verify.
    pub const VERIFY: u16 = 1 << 7;
    /// Copy.
    pub const COPY: u16 = 1 << 8;
}

impl Default for IdentifyController {
    fn default() -> Self {
        Self::decode(&[0; IDENTIFY])
    }
}
