//! Get Features and Set Features (NVMe 1.4, sections 5.13 and 5.21).

use crate::controller::Controller;
use crate::failure::Failure;
use crate::features::{self, Features};
use crate::plan::Plan;
use crate::reservation::Request;
use crate::slots::Key;
use crate::state::SavedFeature;
use crate::subsystem::{ReservationRequest, Shared};
use wire::nvme::feature::{self, Select};
use wire::nvme::{BROADCAST_NSID, Command, StatusCode, feature_bits};

/// SV, save: bit 31 of command dword 10 of Set Features.
const SAVE: u32 = 1 << 31;
/// Capabilities: the feature can be saved (figure 180).
const SAVEABLE: u32 = 1;
/// Capabilities: each namespace has its own value (figure 180).
const NAMESPACE_SPECIFIC: u32 = 1 << 1;
/// Capabilities: the feature can be changed (figure 180).
const CHANGEABLE: u32 = 1 << 2;

impl Controller {
    pub(super) fn get_features(
        &mut self,
        shared: &Shared,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let (id, value) = (command.cdw10 as u8, command.cdw11);
        self.check_exists(shared, id)?;
        let select = Select::from_number(command.cdw10 >> 8 & 7).ok_or(Failure::cdw(10, 8))?;
        let of_namespaces = features::is_of_namespaces(id);
        if select == Select::Capabilities {
            let saveable = shared.saves() && features::is_saveable(id);
            let namespaces = if of_namespaces { NAMESPACE_SPECIFIC } else { 0 };
            return Ok(Plan::Done(CHANGEABLE | namespaces | if saveable { SAVEABLE } else { 0 }));
        }
        if id == feature::INTERRUPT_VECTOR {
            return self.interrupt_vector(value, select).map(Plan::Done);
        }
        if id == feature::HOST_IDENTIFIER {
            return self.host_identifier(shared, value, select).map(Plan::Send);
        }
        if let Some(data) = self.feature_data(id, select) {
            return Ok(Plan::Send(data));
        }
        let mut nsid = command.nsid;
        if id == feature::ERROR_RECOVERY && nsid == 0 {
            // Hosts request all mandatory features without a namespace. The answer is the value of
            // the first attached namespace, or the default.
            nsid = shared.attached(self.id).map(|(nsid, _)| nsid).next().unwrap_or(0);
        } else if of_namespaces {
            let reserves =
                matches!(id, feature::RESERVATION_MASK | feature::RESERVATION_PERSISTENCE);
            if nsid == BROADCAST_NSID && reserves {
                // Sections 5.21.1.27 and 5.21.1.28.
                return Err(Failure::field(StatusCode::INVALID_FIELD, 4, 0));
            }
            shared.namespace(self.id, nsid)?;
        }
        if id == feature::RESERVATION_PERSISTENCE {
            // As write protection below.
            let persists = shared.namespace(self.id, nsid)?.reservation.persists;
            return Ok(Plan::Done((persists && select == Select::Current).into()));
        }
        if id == feature::WRITE_PROTECTION {
            // Write protection cannot be saved, but a power loss does not change it.
            let record = &shared.namespace(self.id, command.nsid)?.record;
            let protected = select == Select::Current && record.write_protected;
            return Ok(Plan::Done(protected.into()));
        }
        let value_in = |features: &Features| features.get(id, nsid, value);
        Ok(Plan::Done(match select {
            Select::Current => value_in(&self.features)?,
            // The saved value of a feature that was never saved is the default.
            Select::Saved => value_in(&self.saved_features(shared))?,
            _ => value_in(&Features::new(&self.settings))?,
        }))
    }

    fn check_exists(&self, shared: &Shared, id: u8) -> Result<(), Failure> {
        let exists = match id {
            feature::VOLATILE_WRITE_CACHE => self.settings.volatile_write_cache,
            feature::HOST_IDENTIFIER
            | feature::RESERVATION_MASK
            | feature::RESERVATION_PERSISTENCE
            | feature::WRITE_PROTECTION => shared.saves(),
            feature::NUMBER_OF_QUEUES
            | feature::INTERRUPT_VECTOR
            | feature::TIMESTAMP
            | feature::KEEP_ALIVE_TIMER
            | feature::HOST_BEHAVIOR => true,
            id => features::is_saveable(id),
        };
        if exists { Ok(()) } else { Err(Failure::cdw(10, 0)) }
    }

    /// Interrupt Vector Configuration; by default each vector coalesces.
    fn interrupt_vector(&self, value: u32, select: Select) -> Result<u32, Failure> {
        let vector = value as u16;
        if select != Select::Current {
            return Ok(vector.into());
        }
        let disabled = self.interrupts.coalescing_disabled(vector).ok_or(Failure::cdw(11, 0))?;
        Ok(u32::from(vector) | u32::from(disabled) << 16)
    }

    /// The saved values of all features; defaults for features that were never saved.
    pub(crate) fn saved_features(&self, shared: &Shared) -> Features {
        let mut features = Features::new(&self.settings);
        for saved in shared.saved.iter().filter(|saved| saved.controller == self.id) {
            features.set(saved.feature, saved.nsid, saved.value);
        }
        features.write_cache &= self.settings.volatile_write_cache;
        features
    }

    pub(super) fn set_features(
        &mut self,
        shared: &mut Shared,
        key: Key,
        command: &Command,
    ) -> Result<Plan, Failure> {
        let (id, value) = (command.cdw10 as u8, command.cdw11);
        self.check_exists(shared, id)?;
        let save = command.cdw10 & SAVE != 0;
        let saveable = shared.saves() && features::is_saveable(id) && self.is_accessible(shared);
        if save && !saveable {
            return Err(Failure::at_cdw(StatusCode::FEATURE_NOT_SAVEABLE, 10, 31));
        }
        if id == feature::WRITE_PROTECTION {
            return self.protect_namespace(shared, key, command);
        }
        let nsids = self.nsids_of(shared, id, command.nsid)?;
        features::check(id, value)?;
        let access =
            id == feature::ASYNC_EVENT_CONFIG && value & feature_bits::NAMESPACE_ACCESS != 0;
        if access && !shared.reports_access() {
            return Err(Failure::cdw(11, 8));
        }
        match id {
            feature::NUMBER_OF_QUEUES => return self.set_queues(value).map(Plan::Done),
            feature::TIMESTAMP => return Ok(Plan::Receive(feature::TIMESTAMP_LENGTH)),
            feature::HOST_BEHAVIOR => return Ok(Plan::Receive(feature::HOST_BEHAVIOR_LENGTH)),
            feature::HOST_IDENTIFIER => {
                return Ok(Plan::Receive(feature::HOST_IDENTIFIER_LENGTH[value as usize & 1]));
            }
            feature::RESERVATION_PERSISTENCE => {
                let request = Request { change: None, persists: Some(value & 1 != 0) };
                let (by, aborts) = ((self.id, key), false);
                return shared.request_reservation(ReservationRequest {
                    by,
                    nsids,
                    request,
                    aborts,
                });
            }
            feature::KEEP_ALIVE_TIMER => self.set_keep_alive(value),
            feature::INTERRUPT_VECTOR => self.set_vector(value)?,
            _ => {
                let saved = |nsid| SavedFeature { controller: self.id, feature: id, nsid, value };
                let values: Vec<SavedFeature> = nsids.into_iter().map(saved).collect();
                if save {
                    shared.save_features(self.id, key, values);
                    return Ok(Plan::Wait);
                }
                self.apply_features(shared, &values);
            }
        }
        Ok(Plan::Done(0))
    }

    /// The NSIDs whose values a command sets; 0 for a feature of the controller.
    fn nsids_of(&self, shared: &Shared, id: u8, nsid: u32) -> Result<Vec<u32>, Failure> {
        match (features::is_of_namespaces(id), nsid) {
            (true, BROADCAST_NSID) => Ok(shared.attached(self.id).map(|(nsid, _)| nsid).collect()),
            (true, nsid) => shared.namespace(self.id, nsid).map(|_| vec![nsid]),
            (false, 0 | BROADCAST_NSID) => Ok(vec![0]),
            (false, _) => Err(Failure::field(StatusCode::FEATURE_NOT_NAMESPACE_SPECIFIC, 4, 0)),
        }
    }

    /// Sets features to checked values.
    fn apply_features(&mut self, shared: &mut Shared, values: &[SavedFeature]) {
        let before = self.warning(shared);
        let old = self.features.clone();
        for value in values {
            self.features.set(value.feature, value.nsid, value.value);
        }
        if let Some(value) = values.first().filter(|_| self.features != old) {
            shared.log_feature(self.now, self.id, value.feature, value.value);
        }
        self.interrupts.set_coalescing(self.features.coalescing);
        self.warn(shared, before);
    }

    /// Ends a command that saves `values`. If the store failed, the values do not change.
    pub(crate) fn features_stored(
        &mut self,
        shared: &mut Shared,
        key: Key,
        values: &[SavedFeature],
        stored: bool,
    ) {
        // A reset may have dropped the command.
        if !self.is_under_way(key) {
            return;
        }
        if stored {
            self.apply_features(shared, values);
            self.resume(shared, key);
        } else {
            self.fail(shared, key, Failure::transient(StatusCode::INTERNAL_ERROR));
        }
    }

    /// Sets the number of queues: NSQR and NCQR, 0's based (section 5.21.1.7). Allowed only while
    /// no I/O queue exists.
    fn set_queues(&mut self, value: u32) -> Result<u32, Failure> {
        if self.queues.any_io() || self.parts.any_queues() {
            return Err(Failure::permanent(StatusCode::COMMAND_SEQUENCE_ERROR));
        }
        let (submission, completion) = (value as u16, (value >> 16) as u16);
        if submission == u16::MAX || completion == u16::MAX {
            return Err(Failure::cdw(11, if submission == u16::MAX { 0 } else { 16 }));
        }
        let most = self.settings.io_queues;
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
