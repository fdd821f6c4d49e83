//! Doorbells in host memory (NVMe 1.4, sections 5.7 and 7.13).
//!
//! The host writes tails and heads of I/O queues into the shadow doorbell buffer. If the old value
//! equals the value in the EventIdx buffer, the host also writes the register, only to wake the
//! controller.
//!
//! The controller uses only the shadow values, because a register value may arrive later than a
//! newer value from memory. Before the controller stops polling a doorbell, it writes the last
//! value into EventIdx, and then reads the shadow value once more. No read passes the write on
//! PCIe. So either this read returns a new value, or the host finds the last value in EventIdx and
//! writes the register.

use super::{Controller, Read};
use crate::slots::Key;
use crate::subsystem::Shared;
use bytes::Bytes;
use pcie::endpoint::DmaError;
use std::collections::BTreeMap;
use wire::nvme::register::{DOORBELLS, Doorbell};

/// Both buffers, in the layout of the doorbell registers.
#[derive(Debug)]
pub(super) struct DoorbellBuffers {
    shadow: u64,
    event_index: u64,
    /// By offset of the doorbell register from the first doorbell.
    states: BTreeMap<u64, ShadowState>,
}

/// The state of polling a doorbell.
#[derive(Debug, Default)]
struct ShadowState {
    /// The read that is under way.
    read: Option<Key>,
    /// Whether another read is needed after the present one.
    again: bool,
    /// EventIdx has the last value, and no newer value was found. The controller waits until the
    /// host writes the register.
    rests: bool,
}

impl DoorbellBuffers {
    /// The addresses of both buffers.
    pub(super) fn places(&self) -> (u64, u64) {
        (self.shadow, self.event_index)
    }
}

fn offset(doorbell: Doorbell) -> u64 {
    doorbell.offset(0) - DOORBELLS
}

impl Controller {
    /// Sets the buffers, and reads the doorbells of existing queues.
    pub(crate) fn set_doorbell_buffers(&mut self, shadow: u64, event_index: u64) {
        self.doorbells = Some(DoorbellBuffers { shadow, event_index, states: BTreeMap::new() });
        for doorbell in self.queues.io_doorbells() {
            self.check_shadow(doorbell);
        }
    }

    /// Whether the value of a doorbell is in host memory: after Doorbell Buffer Config, for all I/O
    /// queues.
    pub(super) fn has_shadow(&self, doorbell: Doorbell) -> bool {
        let (Doorbell::SubmissionTail(id) | Doorbell::CompletionHead(id)) = doorbell;
        self.doorbells.is_some() && id != 0 && self.queues.doorbell(doorbell).is_some()
    }

    /// Reads the shadow value, because the host has written the register, or because all entries up
    /// to the tail were fetched.
    pub(super) fn check_shadow(&mut self, doorbell: Doorbell) {
        let Some(buffers) = &mut self.doorbells else { return };
        let state = buffers.states.entry(offset(doorbell)).or_default();
        match state.read {
            Some(_) => state.again = true,
            None => self.read_shadow(doorbell),
        }
    }

    /// Reads the head of a completion queue, unless a read is under way or the controller waits for
    /// the register.
    pub(super) fn look_for_head(&mut self, queue: u16) {
        let Some(buffers) = &self.doorbells else { return };
        let doorbell = Doorbell::CompletionHead(queue);
        let state = buffers.states.get(&offset(doorbell));
        if queue != 0 && state.is_none_or(|state| state.read.is_none() && !state.rests) {
            self.read_shadow(doorbell);
        }
    }

    /// Reads the heads of all queues with entries, on which the interrupt pin depends.
    pub(super) fn look_for_heads(&mut self) {
        if self.doorbells.is_some() {
            let occupied = self.queues.cqs().filter(|queue| queue.occupied() > 0);
            let ids: Vec<u16> = occupied.map(|queue| queue.id).collect();
            ids.into_iter().for_each(|id| self.look_for_head(id));
        }
    }

    /// Sets EventIdx of a new queue to 0, so that the host writes the register at the first change.
    /// Discards reads for an earlier queue with this number.
    pub(crate) fn reset_doorbell(&mut self, doorbell: Doorbell) {
        let Some(buffers) = &mut self.doorbells else { return };
        buffers.states.remove(&offset(doorbell));
        let event_index = buffers.event_index + offset(doorbell);
        self.endpoint.dma_copy(event_index, &[0; 4]);
    }

    /// Writes the last value into EventIdx, then reads the doorbell.
    fn read_shadow(&mut self, doorbell: Doorbell) {
        let Some(seen) = self.queues.doorbell(doorbell) else { return };
        let Some(buffers) = &mut self.doorbells else { return };
        let at = offset(doorbell);
        let (shadow, event_index) = (buffers.shadow + at, buffers.event_index + at);
        let key = self.reads.insert(Read::Doorbell(doorbell));
        buffers.states.insert(at, ShadowState { read: Some(key), ..ShadowState::default() });
        self.endpoint.dma_copy(event_index, &seen.to_le_bytes());
        self.endpoint.dma_read(key.as_u64(), shadow, size_of::<u32>());
    }

    /// Handles a doorbell value from host memory. If the read failed, sets CSTS.CFS, because the
    /// controller cannot find new commands (section 9.5).
    pub(super) fn shadow_arrived(
        &mut self,
        shared: &mut Shared,
        doorbell: Doorbell,
        read: Key,
        result: Result<Bytes, DmaError>,
    ) {
        let Some(buffers) = &mut self.doorbells else { return };
        let state =
            buffers.states.get_mut(&offset(doorbell)).filter(|state| state.read == Some(read));
        let Some(state) = state else { return };
        let again = std::mem::take(state).again;
        let Ok(data) = result else { return self.fatal() };
        let value = u32::from_le_bytes(data[..].try_into().expect("as many bytes as asked for"));
        let moved = match self.queues.doorbell(doorbell) {
            Some(seen) => seen != value && self.ring(shared, Some(doorbell), value),
            // The queue was deleted, or is being deleted.
            None => return,
        };
        self.rest(doorbell, !moved && !again);
        let more = match doorbell {
            // If the tail has moved, the next read follows the fetch of the new commands.
            Doorbell::SubmissionTail(_) => again && !moved,
            Doorbell::CompletionHead(_) => again || moved && !self.endpoint.msix_enabled(),
        };
        if more {
            self.check_shadow(doorbell);
        }
    }

    fn rest(&mut self, doorbell: Doorbell, rests: bool) {
        let state = self.doorbells.as_mut().and_then(|all| all.states.get_mut(&offset(doorbell)));
        if let Some(state) = state {
            state.rests = rests;
        }
    }
}
