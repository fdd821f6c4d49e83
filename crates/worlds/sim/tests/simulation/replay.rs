//! Replay of recorded commands.

use crate::simulation::worlds::*;
use proptest::prelude::*;
use sim::workload::{BootError, IssueTiming, Operation, Replay};

fn operation(us: u64, queue: usize, op: Op, offset: u64, length: u64) -> Operation {
    Operation { at: Duration::from_us(us), drive: 0, queue, op, offset, length }
}

fn replay(operations: &[Operation], timing: IssueTiming, depths: &[u16]) -> Workload {
    let depths = vec![depths.to_vec()];
    Workload::Replay(Replay { operations: operations.into(), timing, depths })
}

/// Commands of every kind on two queues; some access the same blocks.
fn mixture() -> Vec<Operation> {
    let mut all = Vec::new();
    for round in 0..8 {
        let (us, place) = (round * 2_000, round * 8192);
        all.extend([
            operation(us, 0, Op::Write, place, 8192),
            operation(us + 1, 1, Op::Read, place, 4096),
            operation(us + 2, 1, Op::Write, place + 512, 512),
            operation(us + 500, 0, Op::Flush, 0, 0),
            operation(us + 501, 0, Op::Read, place, 8192),
            operation(us + 1_200, 1, Op::WriteZeroes, place, 1024),
            operation(us + 1_900, 0, Op::Discard, place + 4096, 4096),
        ]);
    }
    all.push(operation(16_000, 0, Op::Read, 0, 65_536));
    all
}

#[test]
fn every_kind_of_command_is_issued_at_its_time() {
    let all = mixture();
    for config in [
        Config::nvme_tsn_direct(replay(&all, IssueTiming::Recorded, &[16, 16])),
        Config::nvme_tsn_tcp(replay(&all, IssueTiming::Recorded, &[16, 16]), Rate::G1),
    ] {
        let (report, _) = twice(&config);
        let host = &report.hosts[0];
        assert_eq!((host.commands, host.latency.count()), (all.len() as u64, all.len() as u64));
        // Each round reads 16 blocks after its writes; two simultaneous writes changed one of them.
        // At the end of a round it reads 16 further blocks, of which 8 are deallocated. In the last
        // round these commands are still under way.
        assert!((8 * 15 + 7 * 7..=8 * 15 + 8 * 8).contains(&host.verified), "{}", host.verified);
        let mut records = recorded(&config).1.commands;
        records.sort_by_key(|record| (record.since, record.queue));
        let began = records[0].since;
        for (record, wanted) in records.iter().zip(&all) {
            let got = (record.since - began, record.op, record.length);
            assert_eq!(got, (wanted.at, wanted.op, wanted.length));
        }
    }
}

/// With one slot per queue, a command waits for the slot, and its latency includes this wait.
#[test]
fn a_full_queue_is_waited_for() {
    let all: Vec<_> = (0..10).map(|n| operation(n, 0, Op::Read, n * 4096, 4096)).collect();
    let one = Config::nvme_tsn_direct(replay(&all, IssueTiming::Recorded, &[1]));
    let records = recorded(&one).1.commands;
    let mut free = Instant::ZERO;
    for (number, record) in records.iter().enumerate() {
        assert_eq!(record.since - records[0].since, Duration::from_us(number as u64));
        assert!(record.until >= free + Duration::from_us(90), "no two at once");
        free = record.until;
    }
    let (many, _) = twice(&Config::nvme_tsn_direct(replay(&all, IssueTiming::Recorded, &[16])));
    let longest = (records[9].until - records[9].since).as_ns();
    assert!(many.hosts[0].latency.summary().max_ns * 2 < longest, "they overlap");
}

#[test]
fn asap_replay_ignores_recorded_pauses() {
    let all = mixture();
    let span = |timing| {
        let (report, _) = twice(&Config::nvme_tsn_tcp(replay(&all, timing, &[4, 4]), Rate::G1));
        assert_eq!(report.hosts[0].commands, all.len() as u64);
        report.hosts[0].span
    };
    assert!(span(IssueTiming::Recorded) >= Duration::from_us(16_000));
    assert!(span(IssueTiming::Asap) < Duration::from_us(5_000), "{}", span(IssueTiming::Asap));
}

/// Zeroes, data and zeroes again while a read is outstanding: the read may return either.
#[test]
fn replayed_read_of_block_changed_twice_is_not_compared() {
    let all = [
        operation(0, 0, Op::WriteZeroes, 4096, 6656),
        operation(82, 2, Op::Write, 10_752, 512),
        operation(110, 0, Op::Read, 10_240, 4096),
        operation(111, 2, Op::Write, 10_240, 6656),
        operation(144, 2, Op::Flush, 7168, 0),
        operation(163, 2, Op::WriteZeroes, 9216, 14_336),
    ];
    check(&run(&Config::nvme_tsn_direct(replay(&all, IssueTiming::Recorded, &[7; 3]))));
}

/// The memory suffices for one transfer at a time. Other transfers wait for it.
#[test]
fn buffers_are_waited_for() {
    let all: Vec<_> = (0..20)
        .map(|n| {
            operation(0, 0, if n % 2 == 0 { Op::Write } else { Op::Read }, (n / 2) << 17, 1 << 17)
        })
        .collect();
    let mut config = Config::nvme_tsn_direct(replay(&all, IssueTiming::Asap, &[16]));
    config.hosts[0].root.memory = 1 << 20;
    let (report, _) = twice(&config);
    assert_eq!(report.hosts[0].commands, 20);
    let (wide, _) = twice(&Config::nvme_tsn_direct(replay(&all, IssueTiming::Asap, &[16])));
    assert!(wide.hosts[0].span < report.hosts[0].span, "more memory, more at once");
}

#[test]
fn invalid_replay_operations_are_refused() {
    let whole = operation(0, 0, Op::Read, 0, 4096);
    for (operations, word) in [
        (vec![Operation { offset: 1 << 40, ..whole }], "end"),
        (vec![Operation { queue: 1, ..whole }], "queue"),
        (vec![Operation { drive: 1, ..whole }], "drive"),
        (vec![Operation { length: 100, ..whole }], "blocks"),
        (vec![Operation { length: 1 << 20, ..whole }], "transfer"),
        (vec![Operation { length: 0, ..whole }], "blocks"),
        (vec![Operation { at: Duration::from_us(1), ..whole }, whole], "order"),
    ] {
        let config = Config::nvme_tsn_direct(replay(&operations, IssueTiming::Recorded, &[4]));
        let error = World::new(&config).and_then(|mut world| world.run()).expect_err(word);
        let Error::Boot { error: BootError::Workload(reason), .. } = error else {
            panic!("{error}")
        };
        assert!(reason.contains(word), "{reason}");
    }
}

prop_compose! {
    fn any_operation()(
        us in 0..300u64,
        queue in 0..3usize,
        op in prop::sample::select(vec![Op::Read, Op::Write, Op::Flush, Op::WriteZeroes, Op::Discard]),
        first in 0..40u64,
        blocks in 1..30u64,
    ) -> Operation {
        let length = if op == Op::Flush { 0 } else { blocks * 512 };
        operation(us, queue, op, first * 512, length)
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..ProptestConfig::default() })]

    /// All commands end and no block is wrong, for random overlaps.
    #[test]
    fn random_replays_end_without_mismatch(
        mut all in prop::collection::vec(any_operation(), 1..60),
        asap: bool,
        depth in 1..9u16,
    ) {
        all.sort_by_key(|operation| operation.at);
        let timing = if asap { IssueTiming::Asap } else { IssueTiming::Recorded };
        let config = Config::nvme_tsn_direct(replay(&all, timing, &[depth; 3]));
        let (report, _) = twice(&config);
        prop_assert_eq!(report.hosts[0].commands, all.len() as u64);
    }
}
