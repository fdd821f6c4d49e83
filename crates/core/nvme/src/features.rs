//! The values of features (NVMe 1.4, section 5.21.1).

use crate::config::Settings;
use crate::failure::Failure;
use crate::log::WARNING_TEMPERATURE;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wire::nvme::{PowerState, feature, feature_bits};

/// The power states, all operational and without latency: 25 W, 15 W and 9 W in units of 10 mW. The
/// figures are only typical, because a power state has no effect on the drive.
pub(crate) const POWER_STATES: [PowerState; 3] =
    [power_state(0, 2500), power_state(1, 1500), power_state(2, 900)];

const fn power_state(number: u8, max_power: u16) -> PowerState {
    PowerState {
        max_power,
        entry_latency: 0,
        exit_latency: 0,
        read_throughput: number,
        read_latency: number,
        write_throughput: number,
        write_latency: number,
    }
}

/// KAS: the granularity of the Keep Alive Timer is 1 s, in units of 100 ms.
pub(crate) const KEEP_ALIVE_GRANULARITY: u16 = 10;
/// Granularity of KATO in milliseconds. The controller rounds KATO up.
const KEEP_ALIVE_STEP: u32 = KEEP_ALIVE_GRANULARITY as u32 * 100;

/// The Arbitration Burst value for no limit.
const NO_LIMIT: u32 = 7;
/// THSEL of Temperature Threshold: under temperature threshold.
const UNDER: u32 = 1 << 20;
/// TMPSEL of Temperature Threshold: the composite temperature.
const COMPOSITE: u32 = 0;
/// TMPSEL: all sensors, for Set Features only.
const ALL_SENSORS: u32 = 15;
/// OAES: the supported notices.
pub(crate) const NOTICES: u32 = feature::NAMESPACE_NOTICES | feature_bits::FIRMWARE_ACTIVATION;
/// Asynchronous Event Configuration: the supported critical warnings and notices. A host that finds
/// telemetry logs in LPA may enable telemetry log notices, but this controller never sends any.
/// Only subsystems with several controllers support namespace access notices.
const EVENTS: u32 = 0x1f | NOTICES | feature_bits::TELEMETRY | feature_bits::NAMESPACE_ACCESS;

/// Reservation Notification Mask: the bits of all notifications.
const NOTIFICATIONS: u32 = 0b1110;

/// Whether hosts may save the feature. Features that apply only to existing queues or vectors
/// cannot be saved.
pub(crate) fn is_saveable(id: u8) -> bool {
    matches!(
        id,
        feature::ARBITRATION
            | feature::POWER_MANAGEMENT
            | feature::TEMPERATURE_THRESHOLD
            | feature::ERROR_RECOVERY
            | feature::VOLATILE_WRITE_CACHE
            | feature::INTERRUPT_COALESCING
            | feature::WRITE_ATOMICITY
            | feature::ASYNC_EVENT_CONFIG
    )
}

/// Whether changes of the feature are logged as persistent events. Changes of features that hosts
/// change often are not logged (NVM Express 2.1, figure 245).
pub(crate) fn is_logged(id: u8) -> bool {
    is_saveable(id) && !matches!(id, feature::POWER_MANAGEMENT | feature::ASYNC_EVENT_CONFIG)
}

/// Whether each namespace has its own value.
pub(crate) fn is_of_namespaces(id: u8) -> bool {
    matches!(
        id,
        feature::ERROR_RECOVERY
            | feature::RESERVATION_MASK
            | feature::RESERVATION_PERSISTENCE
            | feature::WRITE_PROTECTION
    )
}

/// The bits of command dword 11 that select one of several values of the feature.
pub(crate) fn selector(id: u8, value: u32) -> u32 {
    if id == feature::TEMPERATURE_THRESHOLD { value & UNDER } else { 0 }
}

/// Whether a value (command dword 11 of Set Features) is allowed for any controller.
pub(crate) fn check(id: u8, value: u32) -> Result<(), Failure> {
    let (allowed, bit) = match id {
        feature::POWER_MANAGEMENT => ((value & 0x1f) < POWER_STATES.len() as u32, 0),
        feature::TEMPERATURE_THRESHOLD if !matches!(value >> 16 & 15, COMPOSITE | ALL_SENSORS) => {
            (false, 16)
        }
        feature::TEMPERATURE_THRESHOLD => (value >> 20 & 3 <= 1, 20),
        // DULBE is not supported (NSFEAT bit 2).
        feature::ERROR_RECOVERY => (value & 1 << 16 == 0, 16),
        feature::ASYNC_EVENT_CONFIG => (value & !EVENTS == 0, 8),
        // EXHID, PTPL.
        feature::HOST_IDENTIFIER | feature::RESERVATION_PERSISTENCE => (value & !1 == 0, 1),
        feature::RESERVATION_MASK => (value & !NOTIFICATIONS == 0, 0),
        _ => (true, 0),
    };
    if allowed { Ok(()) } else { Err(Failure::cdw(11, bit)) }
}

/// The values of the features of one controller. Error Recovery has one value per namespace.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Features {
    /// Arbitration: HPW 31:24, MPW 23:16, LPW 15:8, AB 2:0.
    pub arbitration: u32,
    /// Power Management: WH 7:5, PS 4:0.
    pub power: u32,
    /// Temperature Threshold, over temperature, in kelvin.
    pub over_temperature: u16,
    /// Temperature Threshold, under temperature, in kelvin.
    pub under_temperature: u16,
    /// Error Recovery by NSID: TLER 15:0. A missing entry means 0.
    pub error_recovery: BTreeMap<u32, u32>,
    /// Reservation Notification Mask by NSID. A missing entry means 0.
    pub reservation_masks: BTreeMap<u32, u32>,
    /// Volatile Write Cache: WCE.
    pub write_cache: bool,
    /// Number of Queues: submission and completion queues allocated.
    pub queues: (u16, u16),
    /// Interrupt Coalescing: TIME 15:8, THR 7:0.
    pub coalescing: u32,
    /// Write Atomicity Normal: DN.
    pub write_atomicity: u32,
    /// Asynchronous Event Configuration.
    pub async_events: u32,
    /// Keep Alive Timer: KATO in milliseconds, a multiple of 1000; 0 for no timer.
    pub keep_alive: u32,
    /// Host Behavior Support: ACRE.
    pub advanced_retry: bool,
}

impl Features {
    /// The default values.
    pub(crate) fn new(settings: &Settings) -> Self {
        Self {
            arbitration: 4,
            power: 0,
            over_temperature: WARNING_TEMPERATURE,
            under_temperature: 0,
            error_recovery: BTreeMap::new(),
            reservation_masks: BTreeMap::new(),
            write_cache: settings.volatile_write_cache,
            queues: (settings.io_queues, settings.io_queues),
            coalescing: 0,
            write_atomicity: 0,
            async_events: 0,
            keep_alive: 0,
            advanced_retry: false,
        }
    }

    /// Sets a feature that can be saved, or Reservation Notification Mask, to a value that [`check`]
    /// allows.
    pub(crate) fn set(&mut self, id: u8, nsid: u32, value: u32) {
        match id {
            feature::ARBITRATION => self.arbitration = value & 0xffff_ff07,
            feature::POWER_MANAGEMENT => self.power = value & 0xff,
            feature::TEMPERATURE_THRESHOLD if value & UNDER != 0 => {
                self.under_temperature = value as u16;
            }
            feature::TEMPERATURE_THRESHOLD => self.over_temperature = value as u16,
            // Only TLER is stored.
            feature::ERROR_RECOVERY => {
                self.error_recovery.insert(nsid, value & 0xffff);
            }
            feature::RESERVATION_MASK => {
                self.reservation_masks.insert(nsid, value);
            }
            feature::VOLATILE_WRITE_CACHE => self.write_cache = value & 1 != 0,
            feature::INTERRUPT_COALESCING => self.coalescing = value & 0xffff,
            feature::WRITE_ATOMICITY => self.write_atomicity = value & 1,
            feature::ASYNC_EVENT_CONFIG => self.async_events = value,
            _ => unreachable!("only what can be saved"),
        }
    }

    /// The value of a feature in this structure. `selector` is command dword 11 of Get Features.
    pub(crate) fn get(&self, id: u8, nsid: u32, selector: u32) -> Result<u32, Failure> {
        Ok(match id {
            feature::ARBITRATION => self.arbitration,
            feature::POWER_MANAGEMENT => self.power,
            feature::TEMPERATURE_THRESHOLD => {
                if selector >> 16 & 15 != COMPOSITE {
                    return Err(Failure::cdw(11, 16));
                }
                match selector >> 20 & 3 {
                    0 => u32::from(self.over_temperature),
                    1 => u32::from(self.under_temperature),
                    _ => return Err(Failure::cdw(11, 20)),
                }
            }
            feature::ERROR_RECOVERY => self.error_recovery.get(&nsid).copied().unwrap_or(0),
            feature::RESERVATION_MASK => self.reservation_masks.get(&nsid).copied().unwrap_or(0),
            feature::VOLATILE_WRITE_CACHE => u32::from(self.write_cache),
            feature::NUMBER_OF_QUEUES => self.allocated(),
            feature::INTERRUPT_COALESCING => self.coalescing,
            feature::WRITE_ATOMICITY => self.write_atomicity,
            feature::ASYNC_EVENT_CONFIG => self.async_events,
            feature::KEEP_ALIVE_TIMER => self.keep_alive,
            _ => unreachable!("it does not exist, or belongs to interrupts"),
        })
    }

    /// Sets the Keep Alive Timer, rounded up (section 5.21.1.15).
    pub(crate) fn set_keep_alive(&mut self, milliseconds: u32) {
        let steps = milliseconds.div_ceil(KEEP_ALIVE_STEP);
        self.keep_alive = steps.saturating_mul(KEEP_ALIVE_STEP);
    }

    /// The maximum number of commands that are fetched from one queue in one turn.
    pub(crate) fn burst(&self) -> u16 {
        match self.arbitration & 7 {
            NO_LIMIT => u16::MAX,
            burst => 1 << burst,
        }
    }

    /// The maximum number of commands of high, medium and low priority per round: HPW, MPW and LPW
    /// plus 1.
    pub(crate) fn weights(&self) -> [u16; 3] {
        let [_, low, medium, high] = self.arbitration.to_le_bytes();
        [high, medium, low].map(|weight| u16::from(weight) + 1)
    }

    /// NSQA and NCQA, 0's based.
    pub(crate) fn allocated(&self) -> u32 {
        u32::from(self.queues.0 - 1) | u32::from(self.queues.1 - 1) << 16
    }
}
