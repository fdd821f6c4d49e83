//! A host driver for the DMA test function.

use super::{MAGIC, control, register, status};
use crate::software::Bus;
use wire::Duration;

/// Why a job failed: bits 15:8 of `STATUS`, or `None` if the
/// function does not answer or has been reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Failed(pub Option<u8>);

/// Copies `length` bytes from one bus address to another by the function
/// whose BAR 0 is at `bar`, and waits for the end.
///
/// # Errors
/// [`Failed`] with the cause.
pub async fn copy(bus: &Bus, bar: u64, from: u64, to: u64, length: u32) -> Result<(), Failed> {
    start_copy(bus, bar, from, to, length);
    wait(bus, bar).await
}

/// Fills `length` bytes at the bus address `to` with `pattern`, and waits for the end.
///
/// # Errors
/// [`Failed`] with the cause.
pub async fn fill(bus: &Bus, bar: u64, pattern: u32, to: u64, length: u32) -> Result<(), Failed> {
    bus.write(bar + register::DESTINATION, 8, to);
    bus.write(bar + register::LENGTH, 4, u64::from(length));
    bus.write(bar + register::PATTERN, 4, u64::from(pattern));
    bus.write(bar + register::CONTROL, 4, u64::from(control::FILL));
    wait(bus, bar).await
}

/// Starts a copy and does not wait.
pub fn start_copy(bus: &Bus, bar: u64, from: u64, to: u64, length: u32) {
    bus.write(bar + register::SOURCE, 8, from);
    bus.write(bar + register::DESTINATION, 8, to);
    bus.write(bar + register::LENGTH, 4, u64::from(length));
    bus.write(bar + register::CONTROL, 4, u64::from(control::COPY));
}

/// Waits until the function is not busy.
///
/// # Errors
/// [`Failed`] if the last job of the function failed, or if the function does not answer.
pub async fn wait(bus: &Bus, bar: u64) -> Result<(), Failed> {
    loop {
        let status = bus.read(bar + register::STATUS, 4).await as u32;
        if status == u32::MAX {
            return Err(Failed(None));
        }
        if status & status::BUSY != 0 {
            bus.sleep(Duration::from_us(10)).await;
        } else if status & status::FAILED != 0 {
            return Err(Failed(Some((status >> 8) as u8)));
        } else if status & status::DONE != 0 {
            return Ok(());
        } else {
            return Err(Failed(None));
        }
    }
}

/// Whether a DMA test function answers at `bar`.
pub async fn is_present(bus: &Bus, bar: u64) -> bool {
    bus.read(bar + register::MAGIC, 4).await == u64::from(MAGIC)
}
