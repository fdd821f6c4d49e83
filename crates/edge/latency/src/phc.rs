//! The offset between the system clock and a PTP hardware clock (Linux
//! Documentation/driver-api/ptp.rst). The hardware clock is read between two readings of the system
//! clock, as in phc2sys (linuxptp, clockadj.c, `clockadj_compare`).

use crate::clock::ClockPoint;

/// Readings of both clocks, in ns since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Reading {
    /// CLOCK_TAI, read before the hardware clock.
    pub before: u64,
    /// The hardware clock.
    pub hardware: u64,
    /// CLOCK_TAI, read after the hardware clock.
    pub after: u64,
}

/// CLOCK_TAI minus the hardware clock, from the reading that took the shortest time. Half of this
/// time bounds the error. `None` without readings.
///
/// With PTP, hardware clocks of NICs have TAI; hardware clocks of virtual machines (ptp_kvm) have
/// the host's UTC, which is `tai_offset` ns behind. The function assumes the one of the two that
/// gives the smaller offset.
pub fn point(readings: &[Reading], tai_offset: u64) -> Option<ClockPoint> {
    let took = |reading: &Reading| reading.after.saturating_sub(reading.before);
    let best = readings.iter().min_by_key(|reading| took(reading))?;
    let middle = best.before + took(best) / 2;
    let tai = middle.wrapping_sub(best.hardware) as i64;
    let utc = tai.wrapping_sub_unsigned(tai_offset);
    let offset_ns = if utc.unsigned_abs() < tai.unsigned_abs() { utc } else { tai };
    Some(ClockPoint { at_ns: middle, offset_ns, bound_ns: took(best).div_ceil(2) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const START: u64 = 1_795_000_000_000_000_000;
    const LEAP: u64 = 37_000_000_000;

    #[test]
    fn the_shortest_reading_counts() {
        let reading = |before, hardware, after| Reading {
            before: START + before,
            hardware: START + hardware,
            after: START + after,
        };
        // The second reading counts: 100.4 us minus 80 us. The first reading was interrupted.
        let readings = [reading(0, 1_000, 50_000), reading(100_000, 80_000, 100_800)];
        let found = ClockPoint { at_ns: START + 100_400, offset_ns: 20_400, bound_ns: 400 };
        assert_eq!(point(&readings, LEAP), Some(found));
        assert_eq!(point(&[], LEAP), None);
        // The host's UTC: the same time minus the leap seconds.
        let host = Reading { hardware: START + 80_000 - LEAP, ..readings[1] };
        assert_eq!(point(&[host], LEAP), Some(found));
        // The TAI offset of this kernel is not set.
        let behind = Reading { hardware: START + 80_000 + LEAP, ..readings[1] };
        assert_eq!(point(&[behind], 0).unwrap().offset_ns, 20_400 - LEAP as i64);
    }

    proptest! {
        #[test]
        fn the_true_difference_is_within_the_bound(
            ahead in -1_000_000_000i64..1_000_000_000,
            ways in prop::collection::vec((0u64..100_000, 0u64..100_000), 1..10),
        ) {
            let read = |(there, back): &(u64, u64)| Reading {
                before: START,
                hardware: (START + there).wrapping_sub_signed(ahead),
                after: START + there + back,
            };
            let readings: Vec<Reading> = ways.iter().map(read).collect();
            let found = point(&readings, LEAP).unwrap();
            prop_assert!(found.offset_ns.abs_diff(ahead) <= found.bound_ns);
        }
    }
}
