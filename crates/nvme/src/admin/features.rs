//! Get Features and Set Features (NVMe 1.4, sections 5.13 and 5.21).

use crate::controller::Controller;
use crate::failure::Failure;
use crate::features::Features;
use crate::plan::Plan;
use wire::nvme::feature::{self, Select};
use wire::nvme::{BROADCAST_NSID, Command, StatusCode};

/// SV, save: bit 31 of command dword 10 of Set Features.
const SAVE: u32 = 1 << 31;
/// Capabilities: the feature can be changed (figure 180).
const CHANGEABLE: u32 = 1 << 2;
/// Capabilities: the feature is a namespace's (figure 180).
const NAMESPACE_SPECIFIC: u32 = 1 << 1;
/// THSEL of Temperature Threshold: over or under.
const UNDER: u32 = 1 << 20;
/// TMPSEL of Temperature Threshold: the composite temperature.
const COMPOSITE: u32 = 0;
/// TMPSEL: all sensors, for Set Features only.
const ALL_SENSORS: u32 = 15;
/// Asynchronous Event Configuration: the critical warnings that exist; no
/// notices are offered by OAES.
const EVENTS: u32 = 0x1f;

impl Controller {
    pub(super) fn get_features(&mut self, command: &Command) -> Result<Plan, Failure> {
        let id = command.cdw10 as u8;
        self.check_exists(id)?;
        let value = match Select::from_number(command.cdw10 >> 8 & 7) {
            Some(Select::Current) => self.current(id, command)?,
            // Nothing is saved: what was saved is the default.
            Some(Select::Default | Select::Saved) => self.default_value(id, command)?,
            Some(Select::Capabilities) if id == feature::ERROR_RECOVERY => {
                CHANGEABLE | NAMESPACE_SPECIFIC
            }
            Some(Select::Capabilities) => CHANGEABLE,
            None => return Err(Failure::cdw(10, 8)),
        };
        Ok(Plan::Done(value))
    }

    fn check_exists(&self, id: u8) -> Result<(), Failure> {
        match id {
            feature::VOLATILE_WRITE_CACHE if !self.config.volatile_write_cache => {}
            feature::ARBITRATION
            | feature::POWER_MANAGEMENT
            | feature::TEMPERATURE_THRESHOLD
            | feature::ERROR_RECOVERY
            | feature::VOLATILE_WRITE_CACHE
            | feature::NUMBER_OF_QUEUES
            | feature::INTERRUPT_COALESCING
            | feature::INTERRUPT_VECTOR
            | feature::WRITE_ATOMICITY
            | feature::ASYNC_EVENT_CONFIG => return Ok(()),
            _ => {}
        }
        Err(Failure::cdw(10, 0))
    }

    fn current(&self, id: u8, command: &Command) -> Result<u32, Failure> {
        match id {
            feature::INTERRUPT_COALESCING => Ok(self.interrupts.coalescing()),
            feature::INTERRUPT_VECTOR => {
                let vector = command.cdw11 as u16;
                let disabled =
                    self.interrupts.coalescing_disabled(vector).ok_or(Failure::cdw(11, 0))?;
                Ok(u32::from(vector) | u32::from(disabled) << 16)
            }
            _ => self.stored(&self.features, id, command),
        }
    }

    fn default_value(&self, id: u8, command: &Command) -> Result<u32, Failure> {
        match id {
            feature::INTERRUPT_COALESCING => Ok(0),
            feature::INTERRUPT_VECTOR => Ok(command.cdw11 & 0xffff),
            _ => self.stored(&Features::new(&self.config), id, command),
        }
    }

    /// A value out of a set of features.
    fn stored(&self, features: &Features, id: u8, command: &Command) -> Result<u32, Failure> {
        Ok(match id {
            feature::ARBITRATION => features.arbitration,
            feature::POWER_MANAGEMENT => features.power,
            feature::TEMPERATURE_THRESHOLD => {
                if command.cdw11 >> 16 & 15 != COMPOSITE {
                    return Err(Failure::cdw(11, 16));
                }
                match command.cdw11 >> 20 & 3 {
                    0 => u32::from(features.over_temperature),
                    1 => u32::from(features.under_temperature),
                    _ => return Err(Failure::cdw(11, 20)),
                }
            }
            // NSID 0 is that of no namespace (section 6.1), so this feature has
            // no value for it, mandatory or not.
            feature::ERROR_RECOVERY => {
                let namespace = self.namespace(command.nsid)?;
                features.error_recovery[namespace.nsid as usize - 1]
            }
            feature::VOLATILE_WRITE_CACHE => u32::from(features.write_cache),
            feature::NUMBER_OF_QUEUES => features.allocated(),
            feature::WRITE_ATOMICITY => features.write_atomicity,
            feature::ASYNC_EVENT_CONFIG => features.async_events,
            _ => unreachable!("checked before"),
        })
    }

    pub(super) fn set_features(&mut self, command: &Command) -> Result<Plan, Failure> {
        let (id, value) = (command.cdw10 as u8, command.cdw11);
        self.check_exists(id)?;
        if command.cdw10 & SAVE != 0 {
            return Err(Failure::at_cdw(StatusCode::FEATURE_NOT_SAVEABLE, 10, 31));
        }
        let own = command.nsid != 0 && command.nsid != BROADCAST_NSID;
        if own && id != feature::ERROR_RECOVERY {
            let code = StatusCode::FEATURE_NOT_NAMESPACE_SPECIFIC;
            return Err(Failure::field(code, 4, 0));
        }
        match id {
            feature::ARBITRATION => self.features.arbitration = value & 0xffff_ff07,
            feature::POWER_MANAGEMENT => self.set_power(value)?,
            feature::TEMPERATURE_THRESHOLD => self.set_threshold(value)?,
            feature::ERROR_RECOVERY => self.set_error_recovery(command.nsid, value)?,
            feature::VOLATILE_WRITE_CACHE => self.features.write_cache = value & 1 != 0,
            feature::NUMBER_OF_QUEUES => return self.set_queues(value).map(Plan::Done),
            feature::INTERRUPT_COALESCING => self.interrupts.set_coalescing(value),
            feature::INTERRUPT_VECTOR => self.set_vector(value)?,
            feature::WRITE_ATOMICITY => self.features.write_atomicity = value & 1,
            feature::ASYNC_EVENT_CONFIG => {
                if value & !EVENTS != 0 {
                    return Err(Failure::cdw(11, 8));
                }
                self.features.async_events = value;
            }
            _ => unreachable!("checked before"),
        }
        Ok(Plan::Done(0))
    }

    /// There is one power state.
    fn set_power(&mut self, value: u32) -> Result<(), Failure> {
        if value & 0x1f != 0 {
            return Err(Failure::cdw(11, 0));
        }
        self.features.power = value & 0xe0;
        Ok(())
    }

    fn set_threshold(&mut self, value: u32) -> Result<(), Failure> {
        if !matches!(value >> 16 & 15, COMPOSITE | ALL_SENSORS) {
            return Err(Failure::cdw(11, 16));
        }
        if value >> 20 & 3 > 1 {
            return Err(Failure::cdw(11, 20));
        }
        self.with_warnings(|controller| {
            let features = &mut controller.features;
            if value & UNDER != 0 {
                features.under_temperature = value as u16;
            } else {
                features.over_temperature = value as u16;
            }
        });
        Ok(())
    }

    /// TLER is kept; DULBE is not supported (NSFEAT bit 2).
    fn set_error_recovery(&mut self, nsid: u32, value: u32) -> Result<(), Failure> {
        if value & 1 << 16 != 0 {
            return Err(Failure::cdw(11, 16));
        }
        let value = value & 0xffff;
        if nsid == BROADCAST_NSID {
            self.features.error_recovery.fill(value);
        } else {
            let index = self.namespace(nsid)?.nsid as usize - 1;
            self.features.error_recovery[index] = value;
        }
        Ok(())
    }

    /// NSQR and NCQR, 0's based (section 5.21.1.7). May only be asked before
    /// the first I/O queue is created.
    fn set_queues(&mut self, value: u32) -> Result<u32, Failure> {
        if self.queues.any_io() {
            return Err(Failure::permanent(StatusCode::COMMAND_SEQUENCE_ERROR));
        }
        let (submission, completion) = (value as u16, (value >> 16) as u16);
        if submission == u16::MAX || completion == u16::MAX {
            return Err(Failure::cdw(11, if submission == u16::MAX { 0 } else { 16 }));
        }
        let most = self.config.io_queues;
        self.features.queues = ((submission + 1).min(most), (completion + 1).min(most));
        Ok(self.features.allocated())
    }

    fn set_vector(&mut self, value: u32) -> Result<(), Failure> {
        let vector = value as u16;
        if vector >= self.interrupts.vectors() {
            return Err(Failure::cdw(11, 0));
        }
        self.interrupts.set_coalescing_disabled(vector, value & 1 << 16 != 0);
        Ok(())
    }
}
