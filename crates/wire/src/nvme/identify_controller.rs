//! The Identify Controller data structure (section 5.15.2.2, figure 247).

use super::IDENTIFY;
use super::field::{array, put, u16_at, u32_at, u128_at};

/// Power state descriptor (figure 248), the fields that are not zero here.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PowerState {
    /// MP, maximum power in units of 10 mW.
    pub max_power: u16,
    /// ENLAT, entry latency in microseconds.
    pub entry_latency: u32,
    /// EXLAT, exit latency in microseconds.
    pub exit_latency: u32,
}

/// Identify Controller data. Fields that are not here are zero.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IdentifyController {
    /// VID, PCI vendor ID.
    pub vendor: u16,
    /// SSVID, PCI subsystem vendor ID.
    pub subsystem_vendor: u16,
    /// SN, serial number, ASCII.
    pub serial: [u8; 20],
    /// MN, model number, ASCII.
    pub model: [u8; 40],
    /// FR, firmware revision, ASCII.
    pub firmware: [u8; 8],
    /// RAB, recommended arbitration burst: a power of two.
    pub arbitration_burst: u8,
    /// IEEE OUI.
    pub ieee: [u8; 3],
    /// MDTS, largest transfer: 2^MDTS smallest pages; 0 for no limit.
    pub max_transfer: u8,
    /// CNTLID, controller ID.
    pub controller_id: u16,
    /// VER, version as in VS.
    pub version: u32,
    /// RTD3R, RTD3 resume latency in microseconds.
    pub rtd3_resume: u32,
    /// RTD3E, RTD3 entry latency in microseconds.
    pub rtd3_entry: u32,
    /// OAES, optional asynchronous events supported.
    pub async_events: u32,
    /// CTRATT, controller attributes.
    pub attributes: u32,
    /// CNTRLTYPE: 1 is an I/O controller.
    pub controller_type: u8,
    /// OACS, optional admin commands.
    pub admin_commands: u16,
    /// ACL, abort command limit, 0's based.
    pub abort_limit: u8,
    /// AERL, asynchronous event request limit, 0's based.
    pub async_event_limit: u8,
    /// FRMW, firmware slots: bit 0 slot 1 is read only, 3:1 their number.
    pub firmware_slots: u8,
    /// LPA, log page attributes: bit 1 effects log, bit 2 extended data.
    pub log_page_attributes: u8,
    /// ELPE, error log entries, 0's based.
    pub error_log_entries: u8,
    /// NPSS, power states, 0's based.
    pub power_states: u8,
    /// AVSCC, bit 0: vendor specific admin commands use the standard format.
    pub vendor_admin: u8,
    /// WCTEMP, warning composite temperature in kelvin.
    pub warning_temperature: u16,
    /// CCTEMP, critical composite temperature in kelvin.
    pub critical_temperature: u16,
    /// TNVMCAP, total capacity in bytes.
    pub total_capacity: u128,
    /// UNVMCAP, unallocated capacity in bytes.
    pub unallocated_capacity: u128,
    /// SQES: smallest entry in 3:0, largest in 7:4, as powers of two.
    pub sq_entry_size: u8,
    /// CQES: the same for completion entries.
    pub cq_entry_size: u8,
    /// MAXCMD, commands a queue should have outstanding at most.
    pub max_commands: u16,
    /// NN, the largest namespace ID.
    pub namespaces: u32,
    /// ONCS, optional NVM commands: bit 2 Dataset Management, bit 3 Write
    /// Zeroes, bit 4 save and select in features.
    pub nvm_commands: u16,
    /// VWC: bit 0 present, 2:1 how Flush takes the broadcast NSID (11b: all
    /// namespaces are flushed).
    pub write_cache: u8,
    /// AWUN, atomic write unit, 0's based blocks.
    pub atomic_write: u16,
    /// AWUPF, the same across a power failure.
    pub atomic_write_power_fail: u16,
    /// SGLS: 0, no SGLs.
    pub sgl: u32,
    /// SUBNQN, subsystem NQN: UTF-8, ended by a zero.
    pub subsystem_nqn: [u8; 256],
    /// PSD0.
    pub power_state: PowerState,
}

impl Default for IdentifyController {
    fn default() -> Self {
        Self::decode(&[0; IDENTIFY])
    }
}

impl IdentifyController {
    /// From the bytes of the structure.
    pub fn decode(b: &[u8; IDENTIFY]) -> Self {
        Self {
            vendor: u16_at(b, 0),
            subsystem_vendor: u16_at(b, 2),
            serial: array(b, 4),
            model: array(b, 24),
            firmware: array(b, 64),
            arbitration_burst: b[72],
            ieee: array(b, 73),
            max_transfer: b[77],
            controller_id: u16_at(b, 78),
            version: u32_at(b, 80),
            rtd3_resume: u32_at(b, 84),
            rtd3_entry: u32_at(b, 88),
            async_events: u32_at(b, 92),
            attributes: u32_at(b, 96),
            controller_type: b[111],
            admin_commands: u16_at(b, 256),
            abort_limit: b[258],
            async_event_limit: b[259],
            firmware_slots: b[260],
            log_page_attributes: b[261],
            error_log_entries: b[262],
            power_states: b[263],
            vendor_admin: b[264],
            warning_temperature: u16_at(b, 266),
            critical_temperature: u16_at(b, 268),
            total_capacity: u128_at(b, 280),
            unallocated_capacity: u128_at(b, 296),
            sq_entry_size: b[512],
            cq_entry_size: b[513],
            max_commands: u16_at(b, 514),
            namespaces: u32_at(b, 516),
            nvm_commands: u16_at(b, 520),
            write_cache: b[525],
            atomic_write: u16_at(b, 526),
            atomic_write_power_fail: u16_at(b, 528),
            sgl: u32_at(b, 536),
            subsystem_nqn: array(b, 768),
            power_state: PowerState {
                max_power: u16_at(b, 2048),
                entry_latency: u32_at(b, 2052),
                exit_latency: u32_at(b, 2056),
            },
        }
    }

    /// To the bytes of the structure.
    pub fn encode(&self) -> [u8; IDENTIFY] {
        let mut b = [0; IDENTIFY];
        self.encode_general(&mut b);
        self.encode_admin(&mut b);
        self.encode_nvm(&mut b);
        b
    }

    /// Bytes 0 to 255: controller capabilities and features.
    fn encode_general(&self, b: &mut [u8; IDENTIFY]) {
        put(b, 0, self.vendor.to_le_bytes());
        put(b, 2, self.subsystem_vendor.to_le_bytes());
        put(b, 4, self.serial);
        put(b, 24, self.model);
        put(b, 64, self.firmware);
        b[72] = self.arbitration_burst;
        put(b, 73, self.ieee);
        b[77] = self.max_transfer;
        put(b, 78, self.controller_id.to_le_bytes());
        put(b, 80, self.version.to_le_bytes());
        put(b, 84, self.rtd3_resume.to_le_bytes());
        put(b, 88, self.rtd3_entry.to_le_bytes());
        put(b, 92, self.async_events.to_le_bytes());
        put(b, 96, self.attributes.to_le_bytes());
        b[111] = self.controller_type;
    }

    /// Bytes 256 to 511: admin command set attributes.
    fn encode_admin(&self, b: &mut [u8; IDENTIFY]) {
        put(b, 256, self.admin_commands.to_le_bytes());
        b[258] = self.abort_limit;
        b[259] = self.async_event_limit;
        b[260] = self.firmware_slots;
        b[261] = self.log_page_attributes;
        b[262] = self.error_log_entries;
        b[263] = self.power_states;
        b[264] = self.vendor_admin;
        put(b, 266, self.warning_temperature.to_le_bytes());
        put(b, 268, self.critical_temperature.to_le_bytes());
        put(b, 280, self.total_capacity.to_le_bytes());
        put(b, 296, self.unallocated_capacity.to_le_bytes());
    }

    /// From byte 512: NVM command set attributes, NQN and power state 0.
    fn encode_nvm(&self, b: &mut [u8; IDENTIFY]) {
        b[512] = self.sq_entry_size;
        b[513] = self.cq_entry_size;
        put(b, 514, self.max_commands.to_le_bytes());
        put(b, 516, self.namespaces.to_le_bytes());
        put(b, 520, self.nvm_commands.to_le_bytes());
        b[525] = self.write_cache;
        put(b, 526, self.atomic_write.to_le_bytes());
        put(b, 528, self.atomic_write_power_fail.to_le_bytes());
        put(b, 536, self.sgl.to_le_bytes());
        put(b, 768, self.subsystem_nqn);
        put(b, 2048, self.power_state.max_power.to_le_bytes());
        put(b, 2052, self.power_state.entry_latency.to_le_bytes());
        put(b, 2056, self.power_state.exit_latency.to_le_bytes());
    }
}
