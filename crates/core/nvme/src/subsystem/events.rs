//! The persistent event log (NVMe 1.4, section 5.14.1.13) of drives with records.
//!
//! An event about a change of records is stored in the same commit as the change. Other events are
//! stored with the next change, or alone if no change waits.

use super::store::{Change, NamespaceChange};
use super::{FirmwareChange, Shared};
use crate::admin::{Clock, SANITIZE_CAPABILITIES};
use crate::features;
use crate::log::{CRITICAL_TEMPERATURE, WARNING_TEMPERATURE};
use crate::state::{self, EventLog, Image, LoggedEvent, NO_CONTROLLER, Sanitize, SanitizePhase};
use wire::Instant;
use wire::nvme::{
    BROADCAST_NSID, ChangeNamespaceEvent, FirmwareCommitEvent, FormatStartEvent,
    PersistentEventType, PowerOnEvent, SanitizeCompletionEvent, SanitizeStartEvent,
    SetFeatureEvent, ThermalExcursionEvent, feature, thermal_threshold,
};

/// The log of a running drive.
#[derive(Debug)]
pub(crate) struct Events {
    pub log: EventLog,
    /// Whether the log has events that are neither stored nor in the commit in flight.
    pub unstored: bool,
    /// The event of the change in flight.
    in_flight: Option<LoggedEvent>,
    /// The timestamp that a host set last, on any controller.
    pub clock: Clock,
    since: Instant,
}

impl Events {
    /// The log after a power-on.
    pub(crate) fn new(now: Instant, log: EventLog) -> Self {
        Self { log, unstored: false, in_flight: None, clock: Clock::new(now), since: now }
    }
}

impl Shared {
    /// Logs an event of a controller, or of no controller (FFFFh).
    pub(crate) fn log_event(
        &mut self,
        now: Instant,
        controller: u16,
        kind: PersistentEventType,
        data: &[u8],
    ) {
        let event = self.event(now, controller, kind, data);
        let Some(store) = &mut self.store else { return };
        self.events.log.add(event);
        self.events.unstored = true;
        store.push_events();
    }

    fn event(
        &self,
        now: Instant,
        controller: u16,
        kind: PersistentEventType,
        data: &[u8],
    ) -> LoggedEvent {
        let timestamp = self.events.clock.read(now).bits();
        LoggedEvent { kind: kind as u8, controller, timestamp, data: data.to_vec() }
    }

    /// Logs a power-on or reset of a controller. `activated` states whether another firmware became
    /// active.
    pub(crate) fn log_reset(&mut self, now: Instant, controller: u16, activated: bool) {
        let event = PowerOnEvent {
            firmware: self.revision,
            controller,
            activation: activated.into(),
            operation: 0,
            power_cycle: self.health.history().power_cycles as u32,
            milliseconds: Clock::milliseconds(self.events.since, now),
            timestamp: self.events.clock.read(now).bits(),
        };
        self.log_event(now, controller, PersistentEventType::PowerOn, &event.encode());
    }

    /// Logs that Set Features has changed a value, unless hosts change the feature often.
    pub(crate) fn log_feature(&mut self, now: Instant, controller: u16, id: u8, value: u32) {
        if features::is_logged(id) {
            let kind = PersistentEventType::SetFeature;
            self.log_event(now, controller, kind, &feature_event(id, value).encode());
        }
    }

    /// Logs the SMART data at power-on.
    pub(crate) fn log_smart(&mut self, now: Instant, controller: u16) {
        let read_only = self.is_read_only();
        let warning = self.health.warning(WARNING_TEMPERATURE, 0, read_only);
        let page = self.health.page(now, warning).encode();
        self.log_event(now, controller, PersistentEventType::Smart, &page);
    }

    /// Logs a change of the composite temperature, if it crosses a threshold.
    pub(crate) fn log_temperature(&mut self, now: Instant, before: u16, after: u16) {
        let rises = |threshold: u16| before < threshold && threshold <= after;
        let normal = after < WARNING_TEMPERATURE && WARNING_TEMPERATURE <= before;
        for (crossed, kelvin, threshold) in [
            (rises(WARNING_TEMPERATURE), WARNING_TEMPERATURE, thermal_threshold::WARNING),
            (rises(CRITICAL_TEMPERATURE), CRITICAL_TEMPERATURE, thermal_threshold::CRITICAL),
            (normal, WARNING_TEMPERATURE, thermal_threshold::NORMAL),
        ] {
            if crossed {
                let difference = u8::try_from(kelvin.abs_diff(after)).unwrap_or(u8::MAX);
                let event = ThermalExcursionEvent { difference, threshold };
                let kind = PersistentEventType::ThermalExcursion;
                self.log_event(now, NO_CONTROLLER, kind, &event.encode());
            }
        }
    }

    /// The log to store with a change; `None` if the log has not changed.
    pub(super) fn events_with(&mut self, now: Instant, change: &Change) -> Option<EventLog> {
        let event = self.event_of(now, change);
        if event.is_none() && !self.events.unstored {
            return None;
        }
        let mut log = self.events.log.clone();
        event.iter().cloned().for_each(|event| log.add(event));
        (self.events.in_flight, self.events.unstored) = (event, false);
        Some(log)
    }

    /// Handles the result of storing a change.
    pub(super) fn events_stored(&mut self, stored: bool) {
        match (self.events.in_flight.take(), stored) {
            (Some(event), true) => self.events.log.add(event),
            (_, true) => {}
            // The next change stores the log again, because the failed change may have had events.
            (_, false) => self.events.unstored = true,
        }
    }

    /// The event for a change by a command, or for the end of a sanitize operation; `None` for
    /// other changes.
    fn event_of(&self, now: Instant, change: &Change) -> Option<LoggedEvent> {
        use PersistentEventType as Kind;
        let event = |controller, kind, data: &[u8]| Some(self.event(now, controller, kind, data));
        match change {
            Change::Namespaces { command: Some((id, _)), change } => match change {
                NamespaceChange::Create(nsid, namespace) => {
                    event(*id, Kind::ChangeNamespace, &created(*nsid, namespace).encode())
                }
                NamespaceChange::Delete(nsids) => {
                    event(*id, Kind::ChangeNamespace, &deleted(nsids).encode())
                }
                NamespaceChange::Protect { protect, .. } => {
                    let changed = feature_event(feature::WRITE_PROTECTION, (*protect).into());
                    event(*id, Kind::SetFeature, &changed.encode())
                }
                NamespaceChange::Format { nsid, command, .. } => {
                    let (nsid, command) = (*nsid, *command);
                    let start = FormatStartEvent { nsid, attributes: 0, command };
                    event(*id, Kind::FormatStart, &start.encode())
                }
                _ => None,
            },
            Change::Firmware { by: (id, _), change } => {
                event(*id, Kind::FirmwareCommit, &self.firmware_event(change).encode())
            }
            Change::Sanitize { command, sanitize } => match (command, sanitize.phase) {
                (Some((id, _)), SanitizePhase::Running) => {
                    let Sanitize { command, pattern, .. } = *sanitize;
                    let capabilities = SANITIZE_CAPABILITIES;
                    let start = SanitizeStartEvent { capabilities, command, pattern };
                    event(*id, Kind::SanitizeStart, &start.encode())
                }
                (None, _) => {
                    let log = self.sanitize_log_of(Some(*sanitize));
                    let end = SanitizeCompletionEvent {
                        progress: log.progress,
                        status: log.status,
                        passes: log.passes,
                    };
                    event(NO_CONTROLLER, Kind::SanitizeCompletion, &end.encode())
                }
                _ => None,
            },
            _ => None,
        }
    }

    /// The event of a successful Firmware Commit command.
    fn firmware_event(&self, change: &FirmwareChange) -> FirmwareCommitEvent {
        let image = change.image.as_ref().and_then(Image::revision);
        FirmwareCommitEvent {
            old: self.revision,
            new: image.unwrap_or_else(|| self.revision_in(change.slot)),
            action: (change.command >> 3 & 7) as u8,
            slot: (change.command & 7) as u8,
            ..FirmwareCommitEvent::default()
        }
    }
}

fn feature_event(id: u8, value: u32) -> SetFeatureEvent {
    SetFeatureEvent { count: 2, command: [id.into(), value] }
}

fn created(nsid: u32, namespace: &state::Namespace) -> ChangeNamespaceEvent {
    ChangeNamespaceEvent {
        size: namespace.blocks,
        capacity: namespace.blocks,
        formatted: crate::namespace::flbas(namespace.format()).unwrap_or(0),
        protection: namespace.protection,
        sharing: u8::from(!namespace.private),
        nsid,
        ..ChangeNamespaceEvent::default()
    }
}

fn deleted(nsids: &[u32]) -> ChangeNamespaceEvent {
    // SEL 1: delete (figure 267).
    let nsid = if let [nsid] = nsids { *nsid } else { BROADCAST_NSID };
    ChangeNamespaceEvent { command: 1, nsid, ..ChangeNamespaceEvent::default() }
}
