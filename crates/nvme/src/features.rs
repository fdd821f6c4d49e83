//! The values of features (NVMe 1.4, section 5.21.1).

use crate::config::Config;
use crate::log::WARNING_TEMPERATURE;

/// Arbitration Burst that stands for no limit.
const NO_LIMIT: u32 = 7;

/// The values of features that belong to nothing else. All are the controller's
/// but Error Recovery, and none is saved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Features {
    /// Arbitration: HPW 31:24, MPW 23:16, LPW 15:8, AB 2:0.
    pub arbitration: u32,
    /// Power Management: WH 7:5, PS 4:0.
    pub power: u32,
    /// Temperature Threshold, over temperature, in kelvin.
    pub over_temperature: u16,
    /// Temperature Threshold, under temperature, in kelvin.
    pub under_temperature: u16,
    /// Error Recovery of each namespace: TLER 15:0.
    pub error_recovery: Vec<u32>,
    /// Volatile Write Cache: WCE.
    pub write_cache: bool,
    /// Number of Queues: submission and completion queues allocated.
    pub queues: (u16, u16),
    /// Write Atomicity Normal: DN.
    pub write_atomicity: u32,
    /// Asynchronous Event Configuration.
    pub async_events: u32,
}

impl Features {
    /// After a reset.
    pub fn new(config: &Config) -> Self {
        Self {
            arbitration: 4,
            power: 0,
            over_temperature: WARNING_TEMPERATURE,
            under_temperature: 0,
            error_recovery: vec![0; config.namespaces.len()],
            write_cache: config.volatile_write_cache,
            queues: (config.io_queues, config.io_queues),
            write_atomicity: 0,
            async_events: 0,
        }
    }

    /// Commands that one queue may have fetched in one turn.
    pub fn burst(&self) -> u16 {
        match self.arbitration & 7 {
            NO_LIMIT => u16::MAX,
            burst => 1 << burst,
        }
    }

    /// NSQA and NCQA, 0's based.
    pub fn allocated(&self) -> u32 {
        u32::from(self.queues.0 - 1) | u32::from(self.queues.1 - 1) << 16
    }
}
