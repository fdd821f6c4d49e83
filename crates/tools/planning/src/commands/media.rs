//! The longest time of a drive's media (`sim::drive`, NVMeVirt's model of flash).

use super::Kind;
use sim::drive::{DriveConfig, Timing};
use wire::Duration;

/// The longest and the shortest time of firmware and media for a command of `bytes` bytes, if up to
/// `others` equal commands are under way. `total` is what is ever written; `None`: any amount.
pub fn span(
    drive: &DriveConfig,
    (kind, bytes): (Kind, usize),
    others: u64,
    total: Option<u64>,
) -> [Duration; 2] {
    let timing = &drive.timing;
    match kind {
        Kind::Read => read(timing, bytes as u64, others),
        Kind::Write => write(timing, bytes as u64, others, total),
    }
}

fn transfer(timing: &Timing, bytes: u64) -> u64 {
    match timing.channel_rate {
        0 => 0,
        rate => u64::try_from(u128::from(bytes) * 1_000_000_000_000 / u128::from(rate) + 1)
            .unwrap_or(u64::MAX),
    }
}

fn read(timing: &Timing, bytes: u64, others: u64) -> [Duration; 2] {
    let page = timing.page as u64;
    // A transfer may begin anywhere in a page, if pages are not made of whole transfers.
    let pages = bytes.div_ceil(page)
        + u64::from(!page.is_multiple_of(bytes) && !bytes.is_multiple_of(page));
    let dies = u64::from(timing.channels) * u64::from(timing.luns);
    let sense = timing.read_lsb.max(timing.read_msb).as_ps() + timing.variation.as_ps();
    let senses = (others + 1) * pages.div_ceil(dies) * sense;
    let part = transfer(timing, bytes.min(page));
    let transfers = (others + 1) * pages.div_ceil(u64::from(timing.channels)) * part;
    let firmware = if bytes > 4096 { timing.firmware_read_large } else { timing.firmware_read };
    let least = timing.read_lsb.min(timing.read_msb);
    [firmware + Duration::from_ps(senses + transfers), firmware + least]
}

fn write(timing: &Timing, bytes: u64, others: u64, total: Option<u64>) -> [Duration; 2] {
    let cost = timing.write_4k.as_ps() * bytes.div_ceil(4096);
    let least = timing.write_base + Duration::from_ps(cost);
    let full = timing.write_buffer > 0 && total.is_none_or(|total| total > timing.write_buffer);
    let room = match full {
        false => 0,
        // The whole buffer and the writes before this one are programmed first, on all dies.
        true => {
            let page = timing.page as u64;
            let dies = u64::from(timing.channels) * u64::from(timing.luns);
            let pages = (timing.write_buffer + (others + 1) * bytes).div_ceil(page);
            let each = timing.program.as_ps() + u64::from(timing.luns) * transfer(timing, page);
            (pages.div_ceil(dies) + 1) * each
        }
    };
    [least + Duration::from_ps(room), least]
}
