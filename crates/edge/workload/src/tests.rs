use crate::pattern::{fill, first_difference, matches};
use crate::{Agenda, CompletionMode, Cpu, Fio, Rw};
use proptest::prelude::*;
use wire::{Duration, Instant};

proptest! {
    /// A change of any byte is detected, and data with another offset, version or seed is detected
    /// too.
    #[test]
    fn every_wrong_byte_is_found(
        seed: u64,
        block in 0u64..1 << 40,
        version in 0u32..1 << 31,
        at in 0usize..1024,
        flip in 1u8..,
    ) {
        let offset = block * 512;
        let mut bytes = [0; 1024];
        fill(seed, offset, version, &mut bytes);
        prop_assert!(matches(seed, offset, version, &bytes));
        prop_assert_eq!(first_difference(seed, offset, version, &bytes), None);
        for (seed, offset, version) in [
            (seed ^ 1, offset, version),
            (seed, offset + 512, version),
            (seed, offset, version + 1),
        ] {
            prop_assert!(!matches(seed, offset, version, &bytes));
        }
        let right = bytes[at];
        bytes[at] ^= flip;
        prop_assert!(!matches(seed, offset, version, &bytes));
        prop_assert_eq!(first_difference(seed, offset, version, &bytes), Some((at, right)));
    }

    /// Actions are returned in order of due time; actions with the same due time are returned in
    /// the order in which they were scheduled.
    #[test]
    fn agenda_keeps_order_of_time_and_scheduling(times in prop::collection::vec(0u64..8, 0..40)) {
        let mut agenda = Agenda::default();
        for (number, time) in times.iter().enumerate() {
            agenda.schedule(Instant::from_ns(*time), number);
        }
        agenda.retain(|number| number % 3 != 0);
        let mut wanted: Vec<_> = (0..times.len()).filter(|number| number % 3 != 0).collect();
        wanted.sort_by_key(|number| times[*number]);
        let due = std::iter::from_fn(|| agenda.due(Instant::from_ns(8)));
        prop_assert_eq!(due.collect::<Vec<_>>(), wanted);
    }
}

#[test]
fn a_rate_is_a_time_between_transfers() {
    // 4096 bytes at 1 MB/s take 4096 us.
    let fio = Fio { rate: Some(1_000_000), ..Fio::new(Rw::Read, 4096, 1) };
    assert_eq!(fio.interval(), Some(Duration::from_us(4096)));
    assert_eq!(Fio::new(Rw::Read, 4096, 1).interval(), None);
}

/// fio 3, HOWTO: `size`, `io_size`, `number_ios`, `loops`, `time_based`.
#[test]
fn a_job_moves_its_size_unless_it_is_told_otherwise() {
    let fio = Fio { size: 10 * 4096 + 512, ..Fio::new(Rw::Read, 4096, 1) };
    let transfers = |fio: &Fio| fio.transfers();
    assert_eq!(transfers(&fio), Some(10));
    assert_eq!(transfers(&Fio { io_size: Some(3 * 4096), ..fio.clone() }), Some(3));
    assert_eq!(transfers(&Fio { io_size: Some(25 * 4096), loops: 2, ..fio.clone() }), Some(50));
    assert_eq!(transfers(&Fio { number_ios: Some(4), ..fio.clone() }), Some(4));
    assert_eq!(
        transfers(&Fio { number_ios: Some(40), ..fio.clone() }),
        Some(10),
        "it only shortens"
    );
    let runtime = Some(Duration::from_ms(1));
    assert_eq!(transfers(&Fio { runtime, ..fio.clone() }), Some(10), "whichever comes first");
    assert_eq!(transfers(&Fio { runtime, time_based: true, loops: 2, ..fio }), None);
}

#[test]
fn larger_transfers_are_several_commands() {
    let fio = Fio::new(Rw::Read, 300 << 10, 4);
    // A transfer of 300 KiB is split into commands of 128, 128 and 44 KiB.
    assert_eq!((fio.commands(128 << 10), fio.commands(1 << 20)), (12, 4));
    // A transfer is split into at most bs / stripe + 2 parts of stripes.
    assert_eq!(Fio { stripe: 8192, ..Fio::new(Rw::Read, 8192, 2) }.commands(128 << 10), 6);
    assert_eq!(Fio { size: 10_000, ..Fio::new(Rw::Read, 4096, 1) }.part(), 8192);
}

#[test]
fn a_busy_cpu_and_a_poller_delay() {
    let at = Instant::from_ns;
    let (cpu, same) = (Cpu::default(), |cpu: &Cpu| cpu.clone());
    cpu.occupy(at(0), Duration::from_ns(10));
    assert_eq!(same(&cpu).occupy(at(5), Duration::from_ns(3)), at(13));
    assert_eq!((cpu.occupy(at(20), Duration::from_ns(3)), same(&cpu).free_at()), (at(23), at(23)));
    let polling = CompletionMode::Polling { interval: Duration::from_ns(8) };
    assert_eq!((polling.after(at(9)), polling.after(at(16))), (at(16), at(16)));
    let interrupt = CompletionMode::Interrupt { latency: Duration::from_ns(8) };
    assert_eq!(interrupt.after(at(9)), at(17));
}
