//! Features whose values are data: Timestamp, Host Behavior Support and Host Identifier (NVMe 1.4,
//! sections 5.21.1.14, 5.21.1.22 and 5.21.1.26). None can be saved.

use crate::controller::Controller;
use crate::failure::Failure;
use crate::plan::Plan;
use crate::state::HostId;
use crate::subsystem::Shared;
use bytes::Bytes;
use wire::Instant;
use wire::nvme::feature::{self, HOST_BEHAVIOR_LENGTH, Select, TIMESTAMP_LENGTH, Timestamp};
use wire::nvme::{Command, PersistentEventType, StatusCode, TimestampChangeEvent};

/// Timestamp Origin: a host has set the timestamp.
const SET_BY_HOST: u8 = 1;

/// The Timestamp of a controller. It survives resets (optional in section 5.21.1.14), but not a
/// loss of power.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Clock {
    milliseconds: u64,
    /// Time when a host last set the clock, or of the power-on.
    since: Instant,
    origin: u8,
    /// Whether the clock has stood still.
    stopped: bool,
}

impl Clock {
    /// Whole milliseconds from `since` to `now`.
    pub(crate) fn milliseconds(since: Instant, now: Instant) -> u64 {
        (now.ps_since(since) / 1_000_000_000) as u64
    }

    /// A clock at power-on.
    pub(crate) fn new(now: Instant) -> Self {
        Self { milliseconds: 0, since: now, origin: 0, stopped: false }
    }

    /// Whether a host has set the clock.
    pub(crate) fn is_set_by_host(&self) -> bool {
        self.origin == SET_BY_HOST
    }

    /// What is to be kept over the end of the process.
    pub(crate) fn save(&self, now: Instant) -> (u64, u8) {
        let value = self.read(now);
        (value.milliseconds, value.origin)
    }

    /// A clock that stood still while no process ran: Synch is set (figure 349).
    pub(crate) fn restore(now: Instant, (milliseconds, origin): (u64, u8)) -> Self {
        Self { milliseconds, since: now, origin, stopped: true }
    }

    /// Sets the clock for a host; ignores all fields of `value` except the milliseconds.
    pub(crate) fn set(&mut self, now: Instant, value: Timestamp) {
        let milliseconds = value.milliseconds;
        *self = Self { milliseconds, since: now, origin: SET_BY_HOST, stopped: false };
    }

    /// The time of the clock in milliseconds, modulo 2^48.
    pub(crate) fn read(&self, now: Instant) -> Timestamp {
        let passed = Self::milliseconds(self.since, now);
        let milliseconds = self.milliseconds.wrapping_add(passed) & ((1 << 48) - 1);
        Timestamp { milliseconds, stopped: self.stopped, origin: self.origin }
    }
}

impl Controller {
    /// The value of a feature that has data; `None` for features without data. Default and saved
    /// values are zeroes.
    pub(super) fn feature_data(&self, id: u8, select: Select) -> Option<Bytes> {
        let current = select == Select::Current;
        match id {
            feature::TIMESTAMP => {
                let value = if current { self.clock.read(self.now).bits() } else { 0 };
                Some(Bytes::copy_from_slice(&value.to_le_bytes()))
            }
            feature::HOST_BEHAVIOR => {
                let mut data = vec![0; HOST_BEHAVIOR_LENGTH];
                data[0] = u8::from(current && self.features.advanced_retry);
                Some(data.into())
            }
            _ => None,
        }
    }

    /// The Host Identifier; zeroes without one. EXHID (`value`) must match its length.
    pub(super) fn host_identifier(
        &self,
        shared: &Shared,
        value: u32,
        select: Select,
    ) -> Result<Bytes, Failure> {
        let length = feature::HOST_IDENTIFIER_LENGTH[value as usize & 1];
        match shared.hosts.of(self.id).filter(|_| select == Select::Current) {
            None => Ok(vec![0; length].into()),
            Some(host) if host.bytes().len() == length => Ok(Bytes::copy_from_slice(host.bytes())),
            Some(_) => Err(Failure::cdw(11, 0)),
        }
    }

    /// Sets the Host Identifier; zeroes remove it. Registrations stay with the previous identifier.
    /// A bound identifier cannot be changed.
    fn set_host_identifier(&self, shared: &mut Shared, data: &[u8]) -> Result<(), Failure> {
        let host = HostId::new(data);
        if let Some(bound) = shared.hosts.bound(self.id) {
            let same = host.as_ref() == Some(bound);
            return if same { Ok(()) } else { Err(Failure::permanent(StatusCode::INVALID_FIELD)) };
        }
        if host.as_ref().is_some_and(|host| shared.is_inconsistent(self.id, host)) {
            return Err(Failure::at_cdw(StatusCode::HOST_IDENTIFIER_INCONSISTENT, 11, 0));
        }
        shared.hosts.set(self.id, host);
        Ok(())
    }

    /// Handles the received data of Set Features.
    pub(super) fn feature_received(
        &mut self,
        shared: &mut Shared,
        command: &Command,
        data: &Bytes,
    ) -> Result<Plan, Failure> {
        let id = command.cdw10 as u8;
        if id == feature::HOST_IDENTIFIER {
            self.set_host_identifier(shared, data)?;
        } else if id == feature::TIMESTAMP {
            let value = data.first_chunk::<TIMESTAMP_LENGTH>().expect("as many as were asked for");
            self.set_clock(shared, Timestamp::from_bits(u64::from_le_bytes(*value)));
        } else {
            // ACRE is 0 or 1; other bytes are reserved. CRDT1 to CRDT3 are 0, so ACRE has no
            // effect.
            if data[0] > 1 || data[1..].iter().any(|byte| *byte != 0) {
                return Err(Failure::permanent(StatusCode::INVALID_FIELD));
            }
            self.features.advanced_retry = data[0] == 1;
        }
        Ok(Plan::Done(0))
    }

    fn set_clock(&mut self, shared: &mut Shared, value: Timestamp) {
        let event = TimestampChangeEvent {
            previous: self.clock.read(self.now).bits(),
            since_reset: Clock::milliseconds(self.reset_at, self.now),
        };
        self.clock.set(self.now, value);
        shared.events.clock = self.clock;
        let kind = PersistentEventType::TimestampChange;
        shared.log_event(self.now, self.id, kind, &event.encode());
    }
}
